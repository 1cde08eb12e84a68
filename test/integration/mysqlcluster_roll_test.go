package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
)

// primaryFirst is the condition, and the reason, of an update that is held back from the primary.
const primaryFirst = "PrimaryWouldRestartFirst"

// partitionOf is the number of the first member that a StatefulSet restarts.
func partitionOf(set *unstructured.Unstructured) int64 {
	partition, _, _ := unstructured.NestedInt64(set.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
	return partition
}

// made counts the Pods that a cluster of three has had, by their numbers.
func (s *site) made(cluster string) [3]int {
	var counts [3]int
	for number := range counts {
		counts[number] = len(s.node.podsEver(cluster)[fmt.Sprintf("%s-%d", cluster, number)])
	}
	return counts
}

// adoptedBySecond makes a cluster of three, loses the volume of its first member together with the resource, and applies it again: its
// second member is the primary then.
func (s *site) adoptedBySecond(t *testing.T, name, spec string) {
	t.Helper()
	s.apply(t, name, spec)
	s.held(t, s.settled(t, name))
	if partition := partitionOf(s.get(t, "statefulsets", name)); partition != 0 {
		t.Errorf("member 0 is the primary, and the partition is %d", partition)
	}
	s.remove(t, "mysqlclusters", name)
	s.gone(t, "mysqlclusters", name)
	s.childrenGone(t, name)
	s.remove(t, "persistentvolumeclaims", "data-"+name+"-0")
	s.gone(t, "persistentvolumeclaims", "data-"+name+"-0")
	s.apply(t, name, spec)
	if adopted := s.settled(t, name); adopted.Status.Primary != name+"-1" {
		t.Fatalf("the primary is %s", adopted.Status.Primary)
	}
}

// heldBack waits until an update has reached the third member and waits for people, and returns its name.
func (s *site) heldBack(t *testing.T, cluster string, before [3]int) (update string) {
	t.Helper()
	waits := s.until(t, cluster, primaryFirst)
	update, _, _ = unstructured.NestedString(s.get(t, "statefulsets", cluster).Object, "status", "updateRevision")
	command := fmt.Sprintf("kubectl -n %s annotate mysqlcluster %s %s=%s --overwrite", s.namespace, cluster, mysqlcluster.AnnotationRestartPrimary, update)
	s.stalled(t, waits, "held back from db-1, db-0", "the primary db-1", "db-2", command)
	told := meta.FindStatusCondition(waits.Status.Conditions, primaryFirst)
	if told == nil || told.Status != metav1.ConditionTrue || told.Message != why(waits).Message || waits.Status.ReadySummary != "3/3" {
		t.Errorf("the condition is %+v, and %s members serve", told, waits.Status.ReadySummary)
	}
	if made := s.made(cluster); made != [3]int{before[0], before[1], before[2] + 1} {
		t.Errorf("there have been %v Pods of the members, and %v before", made, before)
	}
	if partition := partitionOf(s.get(t, "statefulsets", cluster)); partition != 2 {
		t.Errorf("the partition is %d", partition)
	}
	return update
}

// TestMySQLClusterHoldsUpdatesBackFromItsPrimary: no change restarts a primary that is not member 0 before a user has allowed that
// change.
func TestMySQLClusterHoldsUpdatesBackFromItsPrimary(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	s.adoptedBySecond(t, "db", "secret: root, replicas: 3")
	before := s.made("db")

	t.Log("a change reaches the replica above the primary, and then nothing happens any more")
	s.apply(t, "db", "secret: root, replicas: 3, config: {max_connections: '5'}")
	first := s.heldBack(t, "db", before)
	s.restful(t, o)

	t.Log("what is allowed for another update allows nothing")
	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationRestartPrimary: "db-other"})
	soon(t, func(ctx context.Context) string {
		cluster, err := s.cluster(ctx, "db")
		told := meta.FindStatusCondition(cluster.Status.Conditions, primaryFirst)
		if err != nil || told == nil || !strings.Contains(told.Message, `="db-other" is not for this update`) {
			return fmt.Sprintf("the condition is %+v (%v)", told, err)
		}
		return ""
	})

	t.Log("allowed, the update continues with the primary, and the partition is back when the update is over")
	s.goesOn(t, "db", first)
	if made := s.made("db"); made != [3]int{before[0] + 1, before[1] + 1, before[2] + 1} {
		t.Errorf("there have been %v Pods of the members, and %v before", made, before)
	}

	t.Log("the next one is not allowed by it")
	before = s.made("db")
	s.apply(t, "db", "secret: root, replicas: 3, config: {max_connections: '6'}")
	second := s.heldBack(t, "db", before)
	if second == first {
		t.Errorf("both updates are called %s", first)
	}

	t.Log("leave that comes together with yet another change is not leave for that one, at no time")
	before = s.made("db")
	written := s.get(t, "statefulsets", "db").GetGeneration()
	s.patch(t, "mysqlclusters", "db", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"config":{"max_connections":"7"}}}`, mysqlcluster.AnnotationRestartPrimary, second))
	s.heldBack(t, "db", before)
	if changes := s.get(t, "statefulsets", "db").GetGeneration() - written; changes != 1 {
		t.Errorf("the StatefulSet was changed %d times: the partition was lowered meanwhile", changes)
	}

	t.Log("taken back, nothing is held back any more")
	s.apply(t, "db", "secret: root, replicas: 3, config: {max_connections: '5'}")
	s.settled(t, "db")
	soon(t, func(ctx context.Context) string {
		cluster, err := s.cluster(ctx, "db")
		told := meta.FindStatusCondition(cluster.Status.Conditions, primaryFirst)
		if made := s.made("db"); err != nil || told != nil || made != [3]int{before[0], before[1], before[2] + 2} {
			return fmt.Sprintf("the condition is %+v (%v), and there have been the Pods %v", told, err, made)
		}
		return ""
	})
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("holding back is no error: %v", errors)
	}
}

// goesOn allows an update, and follows the StatefulSet until it is over.
func (s *site) goesOn(t *testing.T, cluster, update string) {
	t.Helper()
	set := s.get(t, "statefulsets", cluster)
	watched, err := s.of("statefulsets").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + cluster, ResourceVersion: set.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	s.asks(t, cluster, map[string]string{mysqlcluster.AnnotationRestartPrimary: update})
	partitions := []int64{partitionOf(set)}
	for timeout := time.After(patience); len(partitions) < 3; {
		select {
		case <-timeout:
			t.Fatalf("the partitions were %v", partitions)
		case event := <-watched.ResultChan():
			now, _ := event.Object.(*unstructured.Unstructured)
			if now == nil {
				t.Fatalf("the watch ended after the partitions %v: %v", partitions, event)
			}
			if partition := partitionOf(now); partition != partitions[len(partitions)-1] {
				partitions = append(partitions, partition)
			}
			if current, _, _ := unstructured.NestedString(now.Object, "status", "currentRevision"); len(partitions) == 3 && current != update {
				t.Errorf("the partition is back, and the members have the update %s, want %s", current, update)
			}
		}
	}
	if !slices.Equal(partitions, []int64{2, 0, 2}) {
		t.Errorf("the partitions were %v", partitions)
	}
	if over := s.settled(t, cluster); meta.FindStatusCondition(over.Status.Conditions, primaryFirst) != nil || over.Status.Primary != cluster+"-1" {
		t.Errorf("when it is over, the status is %+v", over.Status)
	}
}

// TestMySQLClusterEndsAnUpdateBeforeTheNext: the primary has the first update. If the partition went up again for the next one,
// Kubernetes would make the primary again, as it was before the first.
func TestMySQLClusterEndsAnUpdateBeforeTheNext(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.adoptedBySecond(t, "db", "secret: root, replicas: 3")
	before := s.made("db")
	s.apply(t, "db", "secret: root, replicas: 3, config: {max_connections: '5'}")
	first := s.heldBack(t, "db", before)

	t.Log("the primary has it, and the last replica takes its time to end")
	s.patch(t, "pods", "db-0", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationRestartPrimary: first})
	soon(t, func(context.Context) string {
		if s.get(t, "pods", "db-0").GetDeletionTimestamp() == nil {
			return "db-0 is not ending yet"
		}
		return ""
	})
	written := s.get(t, "statefulsets", "db").GetGeneration()
	s.apply(t, "db", "secret: root, replicas: 3, config: {max_connections: '6'}")
	waits := fmt.Sprintf("begins when update %s has reached db-0", first)
	soon(t, func(ctx context.Context) string {
		cluster, err := s.cluster(ctx, "db")
		told := meta.FindStatusCondition(cluster.Status.Conditions, primaryFirst)
		if err != nil || told == nil || !strings.Contains(told.Message, waits) {
			return fmt.Sprintf("the condition is %+v (%v)", told, err)
		}
		return ""
	})
	if set := s.get(t, "statefulsets", "db"); set.GetGeneration() != written || partitionOf(set) != 0 {
		t.Errorf("the StatefulSet was changed meanwhile, and its partition is %d", partitionOf(set))
	}

	t.Log("then the next one begins, and is held back")
	s.patch(t, "pods", "db-0", `{"metadata":{"finalizers":null}}`)
	s.heldBack(t, "db", [3]int{before[0] + 1, before[1] + 1, before[2] + 1})
}
