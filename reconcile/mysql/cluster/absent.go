package cluster

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// absentInSync names the members of the record that, according to the caches, have no Pod and that the StatefulSet does not ask for.
func absentInSync(cluster v1.MySQLCluster, seen observed) []string {
	var absent []string
	for _, member := range seen.members {
		if !member.Pod && member.Ordinal >= scaleOf(seen) && slices.Contains(cluster.Status.InSync, member.Name) {
			absent = append(absent, member.Name)
		}
	}
	return absent
}

// confirmAbsent reads the members live that are in the record and gone according to the caches. The record would no longer count on them.
// But the caches may be older than the record: another operator, whose record this pass reads, may have created these members since. The
// primary would lock them out, and the record would promise less.
func (r *reconciler) confirmAbsent(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen *observed) error {
	absent := absentInSync(cluster, *seen)
	if len(absent) == 0 {
		return nil
	}
	n := children.NamesOf(cluster)
	set, err := liveSet(ctx, r.reader, client.Owner(), n)
	if err != nil {
		return err
	}
	seen.set = set
	seen.members = membersOf(n, cluster, *seen)
	for i := range seen.members {
		member := &seen.members[i]
		if member.Pod || !slices.Contains(absent, member.Name) {
			continue
		}
		pod, err := r.reader.Get(ctx, children.Pods(), n.Namespace, member.Name)
		if reconcile.IsGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		if set == nil || metav1.IsControlledBy(pod, set) {
			member.Pod, member.Unreachable = true, "its Pod is not in the cache yet"
		}
	}
	return nil
}

// liveSet reads the cluster's StatefulSet from the API server; nil if there is none.
func liveSet(ctx context.Context, reader reader, owner *unstructured.Unstructured, n children.Names) (*appsv1.StatefulSet, error) {
	object, err := reader.Get(ctx, children.StatefulSets(), n.Namespace, n.Cluster)
	if reconcile.IsGone(err) {
		return nil, nil //nolint:nilnil // no StatefulSet, and no error in looking for one
	}
	if err != nil {
		return nil, err
	}
	return ownSet(owner, object, n)
}

// ownSet returns a StatefulSet that is the cluster's own; nil for one of another owner. One that is about to be adopted counts: its members
// are running, and the operator must hear them before it decides anything about them.
func ownSet(owner, object *unstructured.Unstructured, n children.Names) (*appsv1.StatefulSet, error) {
	if !mayBeOwn(owner, object, n) {
		return nil, nil //nolint:nilnil // none of its own, and no error in looking for one
	}
	set := &appsv1.StatefulSet{}
	return set, schema.Decode(object, set)
}

func mayBeOwn(owner, object *unstructured.Unstructured, n children.Names) bool {
	return reconcile.CheckOwnership(owner, object, children.StatefulSets(), n.Labels()) == nil
}

// membersExist reports whether the StatefulSet exists; one of another owner is an error.
func (r *reconciler) membersExist(ctx context.Context, client *reconcile.Client, n children.Names) (bool, error) {
	found, err := r.reader.Get(ctx, children.StatefulSets(), n.Namespace, n.Cluster)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, client.CheckOwnership(found, children.StatefulSets(), n.Labels())
}
