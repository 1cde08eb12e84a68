// Package schedule reconciles MySQLBackupSchedule resources. When a schedule's time has come, it creates a MySQLBackupInstance. It deletes
// those that the schedule's retention does not keep.
//
// A pass observes (observe.go), decides (decide.go: which time needs an instance; retain.go: what to delete; cron.go and walk.go: when
// times come), acts (act.go) and reports (status.go).
//
// Each time gets one instance, even if the operator crashes or several operators run, because the name contains the time: a second creation
// finds that the instance exists. Only then does the operator record the time in the status. An instance has no owner: the deletion of a
// schedule or a cluster deletes no backup.
//
// The operator first marks a backup that expires, and adds the finalizer that deletes its data. It deletes the backup in a later pass. It
// decides both on the API server's data, not on a cache, and changes exactly the object version that it read.
package schedule

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Controller returns the kind as the engine needs it. It shares the caches of instances and clusters with their own kinds.
func Controller(kind schema.Kind) reconcile.Controller {
	return ControllerAt(kind, time.Now)
}

// ControllerAt is Controller with another clock.
func ControllerAt(kind schema.Kind, now func() time.Time) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{
			{Resource: instances(), Owners: scheduleOf, Indices: map[string]reconcile.IndexFunc{indexSchedule: scheduleKey}},
			{Resource: clusters(), Owners: schedulesOf, Indices: map[string]reconcile.IndexFunc{indexSource: sourceKeys}},
		},
		Indices:   map[string]reconcile.IndexFunc{indexCluster: clusterOf},
		Childless: true, // a backup has no owner
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{schema.MySQLGroup}, Resources: []string{instances().Resource}, Verbs: []string{"create", "patch", "delete"}},
		},
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return newReconciler(reader, now)
		},
	}
}

// The indices of the caches. keyFor makes their keys.
const (
	// indexCluster finds schedules by the cluster that they back up. indexSchedule finds instances by the schedule in their label.
	// indexSource finds clusters by the backups that they are restored from.
	indexCluster  = "cluster"
	indexSchedule = "schedule"
	indexSource   = "source"
)

func keyFor(namespace, name string) string {
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

func clusterOf(schedule *unstructured.Unstructured) []string {
	name, _, _ := unstructured.NestedString(schedule.Object, "spec", "cluster")
	return []string{keyFor(schedule.GetNamespace(), name)}
}

func scheduleKey(made *unstructured.Unstructured) []string {
	return keysOf(scheduleOf(made, nil))
}

func sourceKeys(cluster *unstructured.Unstructured) []string {
	return keysOf(sourcesOf(cluster))
}

func keysOf(names []types.NamespacedName) []string {
	keys := make([]string, 0, len(names))
	for _, name := range names {
		keys = append(keys, name.String())
	}
	return keys
}

// scheduleOf returns the schedule in an instance's label.
func scheduleOf(made *unstructured.Unstructured, _ reconcile.Lister) []types.NamespacedName {
	schedule := made.GetLabels()[v1.LabelBackupSchedule]
	if schedule == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: made.GetNamespace(), Name: schedule}}
}

// schedulesOf returns the schedules that a change of a cluster affects: the schedules of the cluster, and the schedule of the backup that
// it is restored from, in any namespace. A backup's name begins with its schedule's name.
func schedulesOf(cluster *unstructured.Unstructured, schedules reconcile.Lister) []types.NamespacedName {
	concerned := []types.NamespacedName{}
	for _, schedule := range schedules.Indexed(indexCluster, keyFor(cluster.GetNamespace(), cluster.GetName())) {
		concerned = append(concerned, types.NamespacedName{Namespace: schedule.GetNamespace(), Name: schedule.GetName()})
	}
	for _, source := range sourcesOf(cluster) {
		for end := range source.Name {
			if source.Name[end] != '-' {
				continue
			}
			schedule := types.NamespacedName{Namespace: source.Namespace, Name: source.Name[:end]}
			if _, found := schedules.Get(schedule.Namespace, schedule.Name); found && !slices.Contains(concerned, schedule) {
				concerned = append(concerned, schedule)
			}
		}
	}
	return concerned
}

func instances() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: schema.MySQLGroup, Version: "v1", Resource: "mysqlbackupinstances"}
}

func clusters() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: schema.MySQLGroup, Version: "v1", Resource: "mysqlclusters"}
}
