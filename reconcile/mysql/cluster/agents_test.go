package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestStatusTellsWhichAgentsAreOfAnotherRelease decides again on what was seen: a condition names a member whose agent may be
// misunderstood, and the cluster continues.
func TestStatusTellsWhichAgentsAreOfAnotherRelease(t *testing.T) {
	t.Parallel()
	speaking := func(second int) *scene {
		s := healthy(t, 2)
		s.record.Revision = 1
		for ordinal, protocol := range []int{replication.Protocol, second} {
			s.member(ordinal, true, func(status *replication.Status) {
				status.Protocol, status.Held, status.Origin = protocol, s.record, replication.OriginMember
			})
		}
		s.cluster.Status.Primary, s.cluster.Status.Epoch, s.cluster.Status.Revision = s.record.Primary, s.record.Epoch, s.record.Revision
		s.cluster.Status.InSync, s.cluster.Status.RequiredAcks = s.record.InSync, int32(s.record.RequiredAcks)
		return s
	}
	for word, protocol := range map[string]int{"older": replication.Protocol - 1, "newer": replication.Protocol + 1} {
		s := speaking(protocol)
		decision := replication.Decide(view(s.cluster, s.seen))
		status := s.report(decision.Note, nil).status()
		if got := conditionOf(t, status, v1.ConditionReady); got != "False "+string(replication.ReasonAgentRelease) {
			t.Errorf("%s: Ready is %s", word, got)
		}
		if ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); !strings.Contains(ready.Message, word) || !strings.Contains(ready.Message, "db-1") {
			t.Errorf("%s: Ready says %q", word, ready.Message)
		}
		if len(decision.Assignments) != 2 {
			t.Errorf("%s: the members get no assignments: %v", word, decision.Assignments)
		}
	}
	s := speaking(replication.Protocol)
	if decision := replication.Decide(view(s.cluster, s.seen)); decision.Note != nil {
		t.Errorf("all have the same release, and the note is %+v", decision.Note)
	}
}

// TestPausedAndDeletedClustersKeepNoConnections: the agents close idle connections, and the operator would not notice that.
func TestPausedAndDeletedClustersKeepNoConnections(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for story, test := range map[string]struct {
		address string
		change  func(*v1.MySQLCluster)
	}{
		"paused":        {"127.0.77.2", func(cluster *v1.MySQLCluster) { cluster.Spec.Paused = true }},
		"being deleted": {"127.0.77.3", func(cluster *v1.MySQLCluster) { cluster.DeletionTimestamp = &now }},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			agents, ended := connected(t, test.address)
			cluster := aCluster(1, test.change)
			content, err := schema.Encode(cluster)
			if err != nil {
				t.Fatal(err)
			}
			r := reconciler{memory: newMemory(), now: time.Now}
			r.memory.keep(keyOf(cluster), clusterMemory{uid: cluster.UID, agents: agents})
			if _, err := r.Reconcile(t.Context(), nil, &unstructured.Unstructured{Object: content}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("the connection to the agent is open")
			}
			if r.memory.recall(keyOf(cluster), cluster.UID).agents != agents {
				t.Error("it has forgotten how to ask them")
			}
		})
	}
}

// connected returns a client that has asked an agent at an address something; ended is closed when the connection that it kept is closed.
func connected(t *testing.T, address string) (agents *agent.Client, ended chan struct{}) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(agent.Port)))
	if err != nil {
		t.Skip(err)
	}
	ended = make(chan struct{})
	answers := func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		_, _ = answer.Write([]byte("{}"))
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(answers), ReadHeaderTimeout: time.Minute}}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(ended)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	agents = agent.NewClient((&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}).Clone, time.Minute)
	if _, err := agents.Status(t.Context(), agent.Target{Address: address, Host: "example.com"}); err != nil {
		t.Fatal(err)
	}
	return agents, ended
}
