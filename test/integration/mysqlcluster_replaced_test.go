package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestMySQLClusterReplacesAPrimaryThatLostItsVolume: a replica that has everything takes over, clients are led to it, and the former
// primary becomes a replica with a copy of its data.
func TestMySQLClusterReplacesAPrimaryThatLostItsVolume(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	var had replication.GTIDSet
	s.onVolume(t, "db-0", func(v *memberVolume) { had, *v = v.executed, memberVolume{uuid: v.uuid} })
	if err := s.of("pods").Delete(t.Context(), "db-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.replaced(t, "db", "db-1")
	s.settled(t, "db")
	s.told(t, "db", [2]string{"Warning", string(replication.ReasonReplacingPrimary)}, "db-0 is the primary on record but came back with an empty volume")
	s.told(t, "db", [2]string{"Normal", "PrimaryAppointed"}, "db-1 is the primary of epoch 2")
	service, err := s.of("services").Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if to, _, _ := unstructured.NestedString(service.Object, "spec", "selector", "statefulset.kubernetes.io/pod-name"); to != "db-1" {
		t.Errorf("clients are led to %q", to)
	}
	for _, member := range []string{"db-0", "db-1", "db-2"} {
		s.onVolume(t, member, func(v *memberVolume) {
			if !v.executed.Contains(had) {
				t.Errorf("%s lacks %s", member, had.Subtract(v.executed))
			}
		})
	}
}

// TestMySQLClusterReplacesALostPrimaryOnRequest: the operator says how a user asks for it. Readers are not led to the former primary, which
// may run on, before it knows of that.
func TestMySQLClusterReplacesALostPrimaryOnRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	s.node.cutOff("db-0", true)
	asked := s.until(t, "db", string(replication.ReasonPrimaryDown))
	request := fmt.Sprintf("db-0.1.%d", asked.Status.Revision)
	command := fmt.Sprintf("kubectl -n %s annotate mysqlcluster db %s=%s --overwrite", s.namespace, mysqlcluster.AnnotationReplacePrimary, request)
	if message := why(asked).Message; !strings.Contains(message, command) {
		t.Errorf("the message %q does not have the command %q", message, command)
	}
	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationReplacePrimary: request})
	s.replaced(t, "db", "db-1")
	s.hasRole(t, "db-0", "former-primary")
	s.node.cutOff("db-0", false)
	s.settled(t, "db")
	s.hasRole(t, "db-0", "replica")
}

// hasRole waits until a Pod has the label of this role.
func (s *site) hasRole(t *testing.T, pod, want string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		found, err := s.of("pods").Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if has := found.GetLabels()["cr.mysqloperator.grtl.github.com/role"]; has != want {
			return fmt.Sprintf("the role of %s is %q, want %q", pod, has, want)
		}
		return ""
	})
}

// replaced waits until a member is the primary of the second epoch.
func (s *site) replaced(t *testing.T, cluster, primary string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, cluster)
		if err != nil {
			return err.Error()
		}
		if status := found.Status; status.Primary != primary || status.Epoch != 2 || status.FormerPrimary != "" {
			return fmt.Sprintf("the primary of epoch %d is %q, the former one %q: %s", status.Epoch, status.Primary, status.FormerPrimary, why(found).Message)
		}
		return ""
	})
}

// TestMySQLClusterIsForced: the primary and a replica are gone, and the replica has a commit that the last member lacks. The operator says
// how a user makes that one the primary, and then what it has. When the replica is back, it keeps its commit.
func TestMySQLClusterIsForced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	const last = "aaaaaaaa-0000-4000-8000-000000000000:1-3"
	commits, err := replication.ParseGTIDSet(last)
	if err != nil {
		t.Fatal(err)
	}
	s.node.cutOff("db-0", true)
	s.node.cutOff("db-1", true)
	s.onVolume(t, "db-1", func(v *memberVolume) { v.executed = v.executed.Union(commits) })
	prefix := "kubectl -n " + s.namespace + " annotate mysqlcluster db " + mysqlcluster.AnnotationForcePrimary + "="
	var request string
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, "db")
		if err != nil {
			return err.Error()
		}
		_, command, isThere := strings.Cut(why(found).Message, prefix)
		if !isThere {
			return "the message names no command: " + why(found).Message
		}
		request, _, _ = strings.Cut(command, " ")
		return ""
	})
	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationForcePrimary: request})
	s.replaced(t, "db", "db-2")
	s.told(t, "db", [2]string{"Warning", "TakeoverForced"}, "db-2 took over from db-0", "because a user asked for it. It has ")
	forced, err := s.cluster(t.Context(), "db")
	if err != nil {
		t.Fatal(err)
	}
	if one := forced.Status.Takeovers[0]; forced.Status.ForcedEpoch != 2 || one.Kept == "" {
		t.Errorf("the forced epoch is %d, the takeover %+v", forced.Status.ForcedEpoch, one)
	}
	s.node.cutOff("db-0", false)
	s.node.cutOff("db-1", false)
	s.until(t, "db", "ErrantMember")
	s.onVolume(t, "db-1", func(v *memberVolume) {
		if !v.executed.Contains(commits) {
			t.Errorf("db-1 has lost %s", last)
		}
	})
}
