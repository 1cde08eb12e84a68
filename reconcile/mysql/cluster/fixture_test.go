package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const agentImage = "registry.example/mysql-operator:1"

// aCluster returns db in namespace shop, as the API server defaults it.
func aCluster(replicas int32, change ...func(*v1.MySQLCluster)) v1.MySQLCluster {
	cluster := v1.MySQLCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db-uid", Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))},
		Spec: v1.MySQLClusterSpec{
			Secret: "db-secret", Port: 3306, Replicas: &replicas, Storage: resource.MustParse("1Gi"), Image: "mysql:latest",
			Durability: v1.Durability{WhenReplicasLost: v1.Continue, GracePeriodSeconds: 10},
		},
	}
	for _, apply := range change {
		apply(&cluster)
	}
	return cluster
}

// as converts an apply configuration, or anything else that JSON can encode, to another type.
func as[T any](t *testing.T, from any) T {
	t.Helper()
	content, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var into T
	if err := json.Unmarshal(content, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

func gtids(t *testing.T, text string) replication.GTIDSet {
	t.Helper()
	set, err := replication.ParseGTIDSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// scene is what a pass saw of aCluster: by default everything as it should be.
type scene struct {
	t       *testing.T
	cluster v1.MySQLCluster
	seen    observed
	record  replication.Record
}

const serverUUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func healthy(t *testing.T, replicas int) *scene {
	t.Helper()
	s := &scene{t: t, cluster: aCluster(int32(replicas)), record: replication.Record{Epoch: 1, Primary: "db-0", RequiredAcks: replication.FullAcks(replicas)}}
	n := children.NamesOf(s.cluster)
	scale := int32(replicas)
	s.seen.set = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &scale}}
	for ordinal := range replicas {
		name := n.Member(ordinal)
		s.record.InSync = append(s.record.InSync, name)
		s.seen.pods = append(s.seen.pods, readyPod(name))
		status := &replication.Status{State: replication.StateReplicating, Message: "follows db-0", Version: "9.7.4", Executed: gtids(t, serverUUID+":1-10")}
		if ordinal == 0 {
			status.State, status.Message, status.AcksEnforced, status.AckClients = replication.StateWriting, "takes writes", s.record.RequiredAcks, replicas-1
		}
		s.seen.members = append(s.seen.members, replication.Member{Name: name, Ordinal: ordinal, Host: n.Host(name), Pod: true, Status: status})
	}
	return s
}

func readyPod(name string) corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: children.ContainerAgent, State: running}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: children.ContainerMysqld, State: running}},
		},
	}
}

// member changes a member's report; kubelet sees the member as ready or not.
func (s *scene) member(ordinal int, ready bool, change func(*replication.Status)) *scene {
	change(s.seen.members[ordinal].Status)
	if !ready {
		s.seen.pods[ordinal].Status.Conditions[0].Status = corev1.ConditionFalse
	}
	return s
}

func (s *scene) silent(ordinal int) *scene {
	s.seen.members[ordinal].Status = nil
	s.seen.pods[ordinal].Status.Conditions[0].Status = corev1.ConditionFalse
	return s
}

func (s *scene) before(status v1.MySQLClusterStatus) *scene {
	s.cluster.Status = status
	return s
}

// promising makes a scene's record require fewer acknowledgements than the cluster's size asks for.
func promising(s *scene, acks int) *scene {
	s.record.RequiredAcks = acks
	return s
}

func (s *scene) report(note *replication.Note, found *report.Problem) passResult {
	return passResult{cluster: s.cluster, seen: s.seen, problem: found, decision: replication.Decision{Record: s.record, Scale: len(s.seen.members), Note: note}}
}

func conditionOf(t *testing.T, status v1.MySQLClusterStatus, kind string) string {
	t.Helper()
	for _, condition := range status.Conditions {
		if condition.Type == kind {
			return fmt.Sprintf("%s %s", condition.Status, condition.Reason)
		}
	}
	return "absent"
}

// leafOf parses a certificate of the operator.
func leafOf(t *testing.T, own tls.Certificate) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// signed creates a CA and a member certificate at a time.
func signed(t *testing.T, n children.Names, at time.Time) (*tls.Certificate, pki.Pair) {
	t.Helper()
	made, err := children.NewAuthority(n, at)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := made.Parse()
	if err != nil {
		t.Fatal(err)
	}
	member, err := children.NewMemberCertificate(n, authority, at)
	if err != nil {
		t.Fatal(err)
	}
	return authority, member
}

func verify(authority *tls.Certificate, leaf *x509.Certificate, host string, at time.Time, usage x509.ExtKeyUsage) error {
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}
