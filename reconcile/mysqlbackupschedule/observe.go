package mysqlbackupschedule

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/backup"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observe returns what the caches say of a schedule. They lack nothing that the schedule's own passes have made.
func (r *reconciler) observe(schedule v1.MySQLBackupSchedule) (look, error) {
	seen := look{now: r.now(), schedule: schedule}
	seen.times, seen.problem = readCalendar(schedule.Spec.Time, schedule.Spec.TimeZone)
	made, clusters := r.api.Cached(instances()).List(schedule.Namespace), r.api.Cached(clusters()).List(schedule.Namespace)
	err := seen.read(made, clusters)
	return seen, err
}

// observeLive returns what the API server itself says, and the instances as it has them, by name.
func (r *reconciler) observeLive(ctx context.Context, seen look) (look, map[string]*unstructured.Unstructured, error) {
	namespace := seen.schedule.Namespace
	made, err := r.api.List(ctx, instances(), namespace, v1.LabelBackupSchedule+"="+seen.schedule.Name)
	if err != nil {
		return seen, nil, err
	}
	clusters, err := r.api.List(ctx, clusters(), namespace, "")
	if err != nil {
		return seen, nil, err
	}
	byName := map[string]*unstructured.Unstructured{}
	for _, object := range made {
		byName[object.GetName()] = object
	}
	err = seen.read(made, clusters)
	return seen, byName, err
}

// read notes the schedule's instances and what the clusters mean to it.
func (l *look) read(made, clusters []*unstructured.Unstructured) error {
	places := map[string]string{} // the places of the schedule's backups, and whose they are
	l.instances, l.restoring, l.clusterFound = nil, map[string]bool{}, false
	for _, object := range made {
		if object.GetLabels()[v1.LabelBackupSchedule] != l.schedule.Name {
			continue
		}
		var typed v1.MySQLBackupInstance
		if err := schema.Decode(object, &typed); err != nil {
			return err
		}
		if !isOf(l.schedule.Name, typed) {
			continue
		}
		l.instances = append(l.instances, instanceFrom(l.schedule.Name, typed))
		if typed.Status.Location != nil {
			places[typed.Status.Location.URL] = typed.Name
		}
	}
	for _, object := range clusters {
		var cluster v1.MySQLCluster
		if err := schema.Decode(object, &cluster); err != nil {
			return err
		}
		if cluster.DeletionTimestamp != nil {
			continue
		}
		if cluster.Name == l.schedule.Spec.Cluster {
			l.clusterFound = true
		}
		if needsBackup(cluster) {
			l.restoring[cluster.Spec.FromBackup] = true
			l.restoring[places[cluster.Spec.FromBackupURL]] = true
		}
	}
	return nil
}

// isOf says whether an instance is one of the schedule's. A label is anybody's to write; spec.schedule cannot be changed.
func isOf(schedule string, made v1.MySQLBackupInstance) bool {
	return made.Labels[v1.LabelBackupSchedule] == schedule && made.Spec.Schedule == schedule
}

// needsBackup says whether a cluster's data is still to be made from a backup: once it has a primary, or its restore is complete, the
// backup may go.
func needsBackup(cluster v1.MySQLCluster) bool {
	if cluster.Spec.FromBackup == "" && cluster.Spec.FromBackupURL == "" {
		return false
	}
	restored := cluster.Status.Restore != nil && cluster.Status.Restore.Phase == v1.RestoreCompleted
	return cluster.Status.Primary == "" && !restored
}

func instanceFrom(schedule string, typed v1.MySQLBackupInstance) instance {
	_, condemned := typed.Annotations[backup.AnnotationExpired]
	_, replaced := typed.Annotations[backup.AnnotationReplaced]
	one := instance{
		name: typed.Name, cluster: typed.Status.Cluster, phase: typed.Status.Phase,
		scheduled: scheduledBy(schedule, typed.Name), ended: typed.CreationTimestamp.Time, made: typed.CreationTimestamp.Time,
		began: typed.Status.Location != nil, deleting: typed.DeletionTimestamp != nil, condemned: condemned, replaced: replaced,
		ready: condemned && slices.Contains(typed.Finalizers, backup.FinalizerData),
	}
	if one.cluster == "" {
		one.cluster = typed.Spec.Cluster
	}
	if typed.Status.CompletionTime != nil {
		one.ended = backup.EndedAt(typed.Status.CompletionTime.Time, one.made)
	}
	if ready := meta.FindStatusCondition(typed.Status.Conditions, v1.ConditionReady); ready != nil {
		one.reason, one.message = ready.Reason, ready.Message
	}
	return one
}
