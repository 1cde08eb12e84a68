package cluster

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

// alarmed is an operator that takes alarms of the members of two clusters.
type alarmed struct {
	*reconciler
	requested chan types.NamespacedName
	port      string
	// members are how members of the two clusters connect to it, by the names of their clusters.
	members map[string]*tls.Config
}

func newAlarmed(t *testing.T) alarmed {
	t.Helper()
	a := alarmed{
		reconciler: &reconciler{operator: Operator{AlarmAddress: "127.0.0.1:0"}, now: time.Now, memory: newMemory()},
		requested:  make(chan types.NamespacedName, 100), members: map[string]*tls.Config{},
	}
	for _, name := range []string{"db", "other"} {
		n, now := children.Names{Namespace: "shop", Cluster: name}, time.Now()
		authority, member := signed(t, n, now)
		security, err := agent.NewOperatorTLS(agent.Authorities{authority}, agent.AlarmHost("shop", name), now)
		if err != nil {
			t.Fatal(err)
		}
		a.memory.keep(types.NamespacedName{Namespace: "shop", Name: name}, clusterMemory{certificateState: certificateState{security: security}})
		a.members[name] = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: security.Client().RootCAs, Certificates: []tls.Certificate{parsed(t, member)}}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Listen(ctx, func(key types.NamespacedName) { a.requested <- key })
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if at := a.memory.alarmsAt(types.NamespacedName{Namespace: "shop", Name: "db"}); at != "" {
			t.Errorf("the operator does not listen any more, and tells members to send alarms to %s", at)
		}
	})
	for deadline := time.Now().Add(5 * time.Second); a.port == ""; <-time.After(time.Millisecond) {
		if at := a.memory.alarmsAt(types.NamespacedName{Namespace: "shop", Name: "db"}); at != "" {
			_, a.port, _ = net.SplitHostPort(at)
		}
		if time.Now().After(deadline) {
			t.Fatal("the operator does not listen after five seconds")
		}
	}
	return a
}

func parsed(t *testing.T, pair pki.Pair) tls.Certificate {
	t.Helper()
	certificate, err := pair.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return *certificate
}

// alarm sends an alarm about a cluster.
func (a alarmed) alarm(t *testing.T, security *tls.Config, cluster string) error {
	t.Helper()
	return a.post(t, security, cluster, agent.AlarmPath)
}

func (a alarmed) post(t *testing.T, security *tls.Config, cluster, path string) error {
	t.Helper()
	client := agent.NewPodClient(security, agent.AlarmHost("shop", cluster))
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+net.JoinHostPort("127.0.0.1", a.port)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Ask(client, request, 0)
	return err
}

func TestAlarmRequestsAPassOverTheMembersCluster(t *testing.T) {
	t.Parallel()
	a := newAlarmed(t)
	for _, name := range []string{"db", "other"} {
		if err := a.alarm(t, a.members[name], name); err != nil {
			t.Fatal(err)
		}
		if got := <-a.requested; got != (types.NamespacedName{Namespace: "shop", Name: name}) {
			t.Errorf("a member of %s requested a pass over %s", name, got)
		}
	}
}

func TestOnlyMembersSendAlarms(t *testing.T) {
	t.Parallel()
	a := newAlarmed(t)
	withoutCertificate := a.members["db"].Clone()
	withoutCertificate.Certificates = nil
	otherMember := a.members["db"].Clone()
	otherMember.Certificates = a.members["other"].Certificates
	tests := map[string]struct {
		security *tls.Config
		cluster  string
	}{
		"a client without a certificate":     {withoutCertificate, "db"},
		"a member of another cluster":        {otherMember, "db"},
		"a member of a cluster that is gone": {a.members["db"], "gone"},
	}
	for name, test := range tests {
		if err := a.alarm(t, test.security, test.cluster); err == nil {
			t.Errorf("%s can send an alarm", name)
		}
	}
	if len(a.requested) > 0 {
		t.Errorf("a pass was requested over %s", <-a.requested)
	}
}

// TestTestsOfAlarmsRequestNoPass: they only show that an alarm would arrive.
func TestTestsOfAlarmsRequestNoPass(t *testing.T) {
	t.Parallel()
	a := newAlarmed(t)
	if err := a.post(t, a.members["db"], "db", agent.AlarmTestPath); err != nil {
		t.Error(err)
	}
	if err := a.post(t, a.members["other"], "db", agent.AlarmTestPath); err == nil {
		t.Error("a member of another cluster can test whether its alarms arrive")
	}
	if len(a.requested) > 0 {
		t.Errorf("a pass was requested over %s", <-a.requested)
	}
}

// TestFloodOfAlarms: a tenant's image has the certificate of its members. Its alarms do not delay those of another cluster.
func TestFloodOfAlarms(t *testing.T) {
	t.Parallel()
	a := newAlarmed(t)
	at := time.Now()
	a.now = func() time.Time { return at }
	refused := 0
	const all = alarmBurst + 10
	for range all {
		if err := a.alarm(t, a.members["db"], "db"); err != nil && strings.Contains(err.Error(), "429") {
			refused++
		}
	}
	if refused != all-alarmBurst || len(a.requested) != alarmBurst {
		t.Errorf("%d alarms at once: %d were refused, and %d passes requested; want %d passes", all, refused, len(a.requested), alarmBurst)
	}
	if err := a.alarm(t, a.members["other"], "other"); err != nil {
		t.Errorf("a member of another cluster is refused: %v", err)
	}
}

// TestOldestAuthorityIsShown: while a CA is replaced, some members do not trust the new one yet.
func TestOldestAuthorityIsShown(t *testing.T) {
	t.Parallel()
	n, now := children.Names{Namespace: "shop", Cluster: "db"}, time.Now()
	old, _ := signed(t, n, now)
	recent, _ := signed(t, n, now)
	host := agent.AlarmHost("shop", "db")
	security, err := agent.NewOperatorTLS(agent.Authorities{recent, old}, host, now)
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	m.keep(types.NamespacedName{Namespace: "shop", Name: "db"}, clusterMemory{certificateState: certificateState{security: security}})
	found, err := m.alarmTLS().GetConfigForClient(&tls.ClientHelloInfo{ServerName: host})
	if err != nil {
		t.Fatal(err)
	}
	shows := func(authority *tls.Certificate) bool {
		return slices.ContainsFunc(found.Certificates, func(one tls.Certificate) bool { return leafOf(t, one).CheckSignatureFrom(authority.Leaf) == nil })
	}
	if !shows(old) || shows(recent) {
		t.Error("the operator does not show the certificate of the older CA only")
	}
}

// TestMembersLearnWhereToSendAlarms with the first request after the operator has read the Secrets.
func TestMembersLearnWhereToSendAlarms(t *testing.T) {
	t.Parallel()
	const address = "127.0.77.5"
	a, now, cluster := newAlarmed(t), time.Now(), aCluster(1)
	n := children.NamesOf(cluster)
	authority, member := signed(t, n, now)
	look := certificateCheck{Names: n, now: now}
	look.authorities = agent.Authorities{authority}
	papers, err := look.papers(nextStep{})
	if err != nil {
		t.Fatal(err)
	}
	known := a.learn(cluster, clusterMemory{}, papers, now, true)

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(agent.Port)))
	if err != nil {
		t.Skip(err)
	}
	told := ""
	server := &httptest.Server{Listener: listener, TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{parsed(t, member)}}, Config: &http.Server{
		ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			told = r.Header.Get("Mysql-Operator-Alarms")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		}),
	}}
	server.StartTLS()
	if _, err := known.agents.Status(t.Context(), agent.Target{Address: address, Host: n.Host(n.Member(0))}); err != nil {
		t.Fatal(err)
	}
	known.agents.Close()
	server.Close()
	if want := net.JoinHostPort(agent.AlarmHost(n.Namespace, n.Cluster), a.port); told != want {
		t.Fatalf("the member is told %q, want %q", told, want)
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: papers.security.Client().RootCAs, Certificates: []tls.Certificate{parsed(t, member)}}
	if err := a.alarm(t, security, n.Cluster); err != nil {
		t.Error(err)
	}
}
