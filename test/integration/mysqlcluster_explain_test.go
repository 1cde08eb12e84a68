package integration

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestMySQLClusterExplained: another process, with the operator's permissions, finds what the operator would do, and writes nothing: not
// even to the members.
func TestMySQLClusterExplained(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	running := s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	running.finish(t)
	before := s.everything(t)

	healthy := s.explain(t)
	if healthy.Next.Changes || !healthy.Readiness.IsReady || healthy.Takeover.To != "db-1" {
		t.Errorf("a healthy cluster: %s", text(t, healthy))
	}
	says(t, healthy.Takeover.Loses, "nothing")
	for _, member := range healthy.Members {
		if !member.Answers || member.Lacks != 0 || member.IsWitness == (member.Name == "db-0") {
			t.Errorf("a healthy cluster: %s", text(t, member))
		}
	}

	s.node.cutOff("db-0", true)
	away := s.explain(t)
	if away.Members[0].Answers || away.Next.Changes || away.Next.Reason != replication.ReasonPrimaryDown || away.Takeover.To != "db-1" {
		t.Errorf("the primary does not answer: %s", text(t, away))
	}
	says(t, away.Members[0].Unreachable, "ask the agent of db-0")
	says(t, away.Next.Command, "annotate mysqlcluster db", "replace-primary=db-0.1.")
	says(t, away.Takeover.UntilThen, "its lease of 2.5s must end")
	says(t, away.Takeover.Loses, "no acknowledged commit", "db-0 does not say whether it has others")
	says(t, text(t, away.Unknown), "for how long db-0 has not answered the operator")
	s.node.cutOff("db-0", false)

	if difference := cmp.Diff(before, s.everything(t)); difference != "" {
		t.Errorf("something was written:\n%s", difference)
	}
}

// explain explains the cluster db with the operator's permissions.
func (s *site) explain(t *testing.T) mysqlcluster.Explanation {
	t.Helper()
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: s.operatorUser(), Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	reader, err := reconcile.NewReader(config)
	if err != nil {
		t.Fatal(err)
	}
	explained, err := mysqlcluster.Explainer{Reader: reader, Home: s.home, Now: time.Now}.Explain(t.Context(), mysqlClusters(), types.NamespacedName{Namespace: s.namespace, Name: "db"})
	if err != nil {
		t.Fatal(err)
	}
	return explained
}

// everything is the version of each object, and what each member has accepted.
func (s *site) everything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, what := range []string{"mysqlclusters", "statefulsets", "pods", "services", "configmaps", "secrets", "persistentvolumeclaims", "events"} {
		found, err := s.of(what).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range found.Items {
			all[what+"/"+one.GetName()] = one.GetResourceVersion()
		}
	}
	for _, member := range []string{"db-0", "db-1", "db-2"} {
		s.onVolume(t, member, func(v *memberVolume) { all[member] = text(t, v.last) + text(t, v.held) })
	}
	return all
}

func text(t *testing.T, value any) string {
	t.Helper()
	content, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
