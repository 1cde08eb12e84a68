package integration

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, "db")
		if err != nil {
			return err.Error()
		}
		if status := found.Status; status.Primary != "db-1" || status.Epoch != 2 || status.FormerPrimary != "" {
			return fmt.Sprintf("the primary of epoch %d is %q, the former one %q: %s", status.Epoch, status.Primary, status.FormerPrimary, why(found).Message)
		}
		return ""
	})
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
