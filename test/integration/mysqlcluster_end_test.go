package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

// childrenGone waits until nothing of a cluster is left but its volumes' claims, and returns the UIDs of those.
func (s *site) childrenGone(t *testing.T, cluster string) map[string]string {
	t.Helper()
	claims := map[string]string{}
	soon(t, func(ctx context.Context) string {
		for _, what := range childResources() {
			found, err := s.of(what).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + cluster})
			if err != nil {
				return err.Error()
			}
			for _, child := range found.Items {
				if what != "persistentvolumeclaims" {
					return fmt.Sprintf("%s %s is still there", what, child.GetName())
				}
				claims[child.GetName()] = string(child.GetUID())
				if owners := child.GetOwnerReferences(); len(owners) > 0 || child.GetDeletionTimestamp() != nil {
					t.Errorf("the claim %s would go, too: %v", child.GetName(), owners)
				}
			}
		}
		return ""
	})
	return claims
}

// TestMySQLClusterDeleted removes everything but the data, and adopts that data when it is applied again.
func TestMySQLClusterDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	before := s.settled(t, "db")
	writes := len(o.wire.written())

	s.remove(t, "mysqlclusters", "db")
	s.gone(t, "mysqlclusters", "db")
	claims := s.childrenGone(t, "db")
	if len(claims) != 2 {
		t.Errorf("the claims are %v, want both kept", claims)
	}
	authority := "DELETE /api/v1/namespaces/" + s.home + "/secrets/" + agent.AuthoritySecret(s.namespace, "db")
	soon(t, func(context.Context) string {
		if !slices.Contains(o.wire.written()[writes:], authority) {
			return "the CA of the cluster is not deleted"
		}
		return ""
	})
	for _, write := range o.wire.written()[writes:] {
		if strings.HasPrefix(write, "DELETE") && write != authority || strings.Contains(write, "/persistentvolumeclaims") {
			t.Errorf("the operator deleted by itself, or touched a volume: %s", write)
		}
	}

	s.apply(t, "db", "secret: root")
	after := s.settled(t, "db")
	if after.Status.Epoch != before.Status.Epoch+1 || after.Status.Primary != before.Status.Primary {
		t.Errorf("the cluster continues as epoch %d with %s, want the epoch after %d with %s", after.Status.Epoch, after.Status.Primary, before.Status.Epoch, before.Status.Primary)
	}
	same(t, s.childClaims(t, "db"), claims)
	if had, has := before.Status.Members[0].GTIDExecuted, after.Status.Members[0].GTIDExecuted; has == "" || has != had {
		t.Errorf("member 0 has the transactions %q, had %q", has, had)
	}
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("deleting a cluster is no error: %v", errors)
	}
}

// TestMySQLClusterIsOrphanedBeforeTheOperatorHears: the operator does not hear that a cluster was deleted without its children. It does not
// make itself their owner again for a cluster that is gone: garbage collection would delete them.
func TestMySQLClusterIsOrphanedBeforeTheOperatorHears(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	late := newLaggard("mysqlclusters")
	o := s.operate(t, late.slow)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	o.restful(t)
	children := s.children(t, "db")
	late.lag()
	orphan := metav1.DeletePropagationOrphan
	if err := s.of("mysqlclusters").Delete(t.Context(), "db", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	s.gone(t, "mysqlclusters", "db")
	measured := operator{registry: o.registry}
	soon(t, func(context.Context) string {
		if measured.measured(t, "reconcile_total", map[string]string{"result": "conflict"}) == 0 {
			return "no pass has noticed that the cluster is gone"
		}
		return ""
	})
	same(t, s.children(t, "db"), children)
	for _, what := range []string{"serviceaccounts", "configmaps", "services", "poddisruptionbudgets", "statefulsets"} {
		found, err := s.of(what).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=db"})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range found.Items {
			if len(one.GetOwnerReferences()) > 0 {
				t.Errorf("%s %s has the owners %v", what, one.GetName(), one.GetOwnerReferences())
			}
		}
	}
	late.catchUp()
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	same(t, s.children(t, "db"), children)
}

// TestMySQLClusterOrphaned deletes a cluster without its children, and adopts them, members at work included, when it is applied again.
func TestMySQLClusterOrphaned(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	before, children, accounts := s.settled(t, "db"), s.children(t, "db"), s.ownSecrets(t.Context(), "db")["db-accounts"]

	orphan := metav1.DeletePropagationOrphan
	if err := s.of("mysqlclusters").Delete(t.Context(), "db", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	s.gone(t, "mysqlclusters", "db")
	if owners := s.get(t, "statefulsets", "db").GetOwnerReferences(); len(owners) > 0 {
		t.Fatalf("garbage collection left the StatefulSet's owners %v", owners)
	}

	s.apply(t, "db", "secret: root, replicas: 3")
	after := s.settled(t, "db")
	if after.Status.Epoch != before.Status.Epoch+1 || after.Status.Primary != before.Status.Primary || len(after.Status.InSync) != 3 {
		t.Errorf("the cluster continues as epoch %d with %s and %v in sync, want the epoch after %d, %s and three", after.Status.Epoch, after.Status.Primary, after.Status.InSync, before.Status.Epoch, before.Status.Primary)
	}
	same(t, s.children(t, "db"), children)
	same(t, s.ownSecrets(t.Context(), "db")["db-accounts"], accounts)
	s.node.podsOnce(t, "db", 3)
	for _, what := range []string{"serviceaccounts", "configmaps", "secrets", "services", "poddisruptionbudgets", "statefulsets"} {
		found, err := s.of(what).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=db"})
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range found.Items {
			if controller := metav1.GetControllerOf(&child); controller == nil || controller.UID != after.UID {
				t.Errorf("%s %s is controlled by %v, want the new cluster", what, child.GetName(), controller)
			}
		}
	}
	if generation := s.get(t, "statefulsets", "db").GetGeneration(); generation != 1 {
		t.Errorf("the StatefulSet was changed %d times, want never", generation-1)
	}
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("adopting is no error: %v", errors)
	}
}

// children are the UIDs of everything that belongs to a cluster.
func (s *site) children(t *testing.T, cluster string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, what := range childResources() {
		found, err := s.of(what).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + cluster})
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range found.Items {
			seen[what+"/"+child.GetName()] = string(child.GetUID())
		}
	}
	return seen
}

func (s *site) childClaims(t *testing.T, cluster string) map[string]string {
	t.Helper()
	claims := map[string]string{}
	found, err := s.of("persistentvolumeclaims").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + cluster})
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range found.Items {
		claims[claim.GetName()] = string(claim.GetUID())
	}
	return claims
}

// TestMySQLClusterWaitsForItsPredecessor applies a cluster again while the children of the deleted one are still being collected.
func TestMySQLClusterWaitsForItsPredecessor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	stories := map[string]func(*testing.T){}
	for cluster, child := range map[string]struct{ what, name string }{"service": {"services", "service"}, "secret": {"secrets", "secret-accounts"}} {
		stories[cluster] = func(t *testing.T) {
			s.apply(t, cluster, "secret: root, replicas: 1")
			s.settled(t, cluster)
			held := s.patch(t, child.what, child.name, `{"metadata":{"finalizers":["example.com/slow"]}}`)
			s.remove(t, "mysqlclusters", cluster)
			s.gone(t, "mysqlclusters", cluster)

			s.apply(t, cluster, "secret: root, replicas: 1")
			soon(t, func(ctx context.Context) string {
				waits, err := s.cluster(ctx, cluster)
				if is := why(waits); err != nil || is.Reason != "WaitingForPredecessor" || !strings.HasPrefix(is.Message, child.what+" "+s.namespace+"/"+child.name+" ") {
					return fmt.Sprintf("the cluster says %s: %s (%v)", is.Reason, is.Message, err)
				}
				says(t, why(waits).Message, "belongs to a deleted predecessor of the same name", "wait until garbage collection removes it")
				return ""
			})
			if now := s.get(t, child.what, child.name); now.GetUID() != held.GetUID() || len(now.GetFinalizers()) == 0 {
				t.Error("the predecessor's child was taken over")
			}
			s.patch(t, child.what, child.name, `{"metadata":{"finalizers":null}}`)
			s.settled(t, cluster)
		}
	}
	sideBySide(t, 2, stories)
}

// grantBeyond gives the operator its rights in the whole cluster, so that they outlive the namespace.
func (s *site) grantBeyond(t *testing.T) {
	t.Helper()
	role := s.get(t, "roles", "operator")
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": s.namespace}, "rules": role.Object["rules"]}}
	binding := object(t, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}}", s.namespace))
	binding.Object["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": s.operatorUser()}}
	for what, one := range map[string]*unstructured.Unstructured{"clusterroles": made, "clusterrolebindings": binding} {
		resource := s.Dynamic.Resource(childResource(what))
		if _, err := resource.Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resource.Delete(context.WithoutCancel(t.Context()), one.GetName(), metav1.DeleteOptions{}) })
	}
}
