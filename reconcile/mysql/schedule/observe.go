package schedule

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observe returns what the caches contain about a schedule. They include everything that the schedule's own passes have created.
func (r *reconciler) observe(schedule v1.MySQLBackupSchedule) (observed, error) {
	seen := observed{now: r.now(), serverNow: r.reader.ServerTime(), schedule: schedule}
	seen.times, seen.problem = readCalendar(schedule.Spec.Time, schedule.Spec.TimeZone)
	if err := seen.read(r.reader.Cached(instances()).Indexed(indexSchedule, keyFor(schedule.Namespace, schedule.Name))); err != nil {
		return seen, err
	}
	all := r.reader.Cached(clusters())
	cluster, found := all.Get(schedule.Namespace, schedule.Spec.Cluster)
	seen.clusterFound = found && cluster.GetDeletionTimestamp() == nil
	seen.restoring = map[string]bool{}
	for _, one := range seen.instances {
		for _, cluster := range all.Indexed(indexSource, keyFor(schedule.Namespace, one.name)) {
			still, err := needed(cluster)
			if err != nil {
				return seen, err
			}
			seen.restoring[one.name] = seen.restoring[one.name] || still
		}
	}
	return seen, nil
}

// observeLive returns what the API server has, and its instances by name. It fails if the schedule has changed since the pass read it.
func (r *reconciler) observeLive(ctx context.Context, client *reconcile.Client, seen observed) (observed, map[string]*unstructured.Unstructured, error) {
	made, err := r.instancesOf(ctx, seen.schedule)
	if err != nil {
		return seen, nil, err
	}
	seen.serverNow = r.reader.ServerTime()
	if err := seen.read(made); err != nil {
		return seen, nil, err
	}
	if seen.restoring, err = r.restoringLive(ctx, seen); err != nil {
		return seen, nil, err
	}
	byName := map[string]*unstructured.Unstructured{}
	for _, object := range made {
		byName[object.GetName()] = object
	}
	return seen, byName, client.CheckUnchanged(ctx)
}

// instancesOf returns the API server's instances with a schedule's label.
func (r *reconciler) instancesOf(ctx context.Context, schedule v1.MySQLBackupSchedule) ([]*unstructured.Unstructured, error) {
	return r.reader.List(ctx, instances(), schedule.Namespace, v1.LabelBackupSchedule+"="+schedule.Name)
}

// restoringLive returns the names of the schedule's backups that clusters are restored from. It reads the clusters of all namespaces of the
// operator, because a backup can be restored by URL in another namespace. It reads none if no completed backup expires. Schedules that need
// the list at the same time share one, which starts after they asked for it.
func (r *reconciler) restoringLive(ctx context.Context, seen observed) (map[string]bool, error) {
	restoring := map[string]bool{}
	if !expires(seen) {
		return restoring, nil
	}
	all, err := r.sources.get(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.from.Namespace != seen.schedule.Namespace {
			continue
		}
		if one.err != nil {
			return nil, one.err
		}
		restoring[one.from.Name] = restoring[one.from.Name] || one.still
	}
	return restoring, nil
}

// restoreSource records that a cluster names a backup, and whether it still needs it; err is why that is unknown.
type restoreSource struct {
	from  types.NamespacedName
	still bool
	err   error
}

// listSources returns the backups that all clusters are restored from.
func (r *reconciler) listSources(ctx context.Context) ([]restoreSource, error) {
	all := []restoreSource{}
	err := r.reader.EachEverywhere(ctx, clusters(), func(cluster *unstructured.Unstructured) error {
		for _, source := range sourcesOf(cluster) {
			still, err := needed(cluster)
			all = append(all, restoreSource{from: source, still: still, err: err})
		}
		return nil
	})
	return all, err
}

// read sets the schedule's instances.
func (l *observed) read(made []*unstructured.Unstructured) error {
	l.instances = nil
	for _, object := range made {
		var typed v1.MySQLBackupInstance
		if err := schema.Decode(object, &typed); err != nil {
			return err
		}
		if isOf(l.schedule.Name, typed) {
			l.instances = append(l.instances, instanceFrom(l.schedule, typed))
		}
	}
	return nil
}

// isOf reports whether an instance belongs to the schedule. Any user can write a label, but spec.schedule cannot be changed.
func isOf(schedule string, made v1.MySQLBackupInstance) bool {
	return made.Labels[v1.LabelBackupSchedule] == schedule && made.Spec.Schedule == schedule
}

// sourcesOf returns the backups in a cluster's spec, as far as they can have an instance here. It skips a URL that cannot be parsed: no
// restore can read it either.
func sourcesOf(cluster *unstructured.Unstructured) []types.NamespacedName {
	sources := []types.NamespacedName{}
	if name, _, _ := unstructured.NestedString(cluster.Object, "spec", "fromBackup"); name != "" {
		sources = append(sources, types.NamespacedName{Namespace: cluster.GetNamespace(), Name: name})
	}
	url, _, _ := unstructured.NestedString(cluster.Object, "spec", "fromBackupURL")
	if source, found := transfer.InstanceOf(url); found {
		sources = append(sources, source)
	}
	return sources
}

// needed reports whether a cluster still needs the backup that it names. When the cluster has a primary, or its restore is complete, the
// backup may be deleted.
func needed(object *unstructured.Unstructured) (bool, error) {
	var cluster v1.MySQLCluster
	if err := schema.Decode(object, &cluster); err != nil {
		return false, err
	}
	restored := cluster.Status.Restore != nil && cluster.Status.Restore.Phase == v1.RestoreCompleted
	return cluster.DeletionTimestamp == nil && !cluster.Status.HadPrimary() && !restored, nil
}

func instanceFrom(schedule v1.MySQLBackupSchedule, typed v1.MySQLBackupInstance) instance {
	by, condemned := transfer.ExpiredBy(typed.Annotations)
	_, replaced := typed.Annotations[transfer.AnnotationReplaced]
	one := instance{
		name: typed.Name, cluster: typed.Status.Cluster, phase: typed.Status.Phase,
		scheduled: scheduledBy(schedule.Name, typed.Name), ended: typed.CreationTimestamp.Time, made: typed.CreationTimestamp.Time,
		began: typed.Status.Location != nil, deleting: typed.DeletionTimestamp != nil, isMarked: condemned, replaced: replaced,
		ready: condemned && (by == "" || by == schedule.UID) && slices.Contains(typed.Finalizers, transfer.FinalizerData),
	}
	if one.cluster == "" {
		one.cluster = typed.Spec.Cluster
	}
	if typed.Status.CompletionTime != nil {
		one.ended = transfer.EndedAt(typed.Status.CompletionTime.Time, one.made)
	}
	if ready := meta.FindStatusCondition(typed.Status.Conditions, v1.ConditionReady); ready != nil {
		one.reason, one.message = ready.Reason, ready.Message
	}
	return one
}
