// Package schedule reconciles MySQLBackupSchedule resources: whenever a schedule's time has come it makes a
// MySQLBackupInstance, and it clears away those that the schedule's retention does not keep.
//
// A pass observes (observe.go), decides (decide.go: which time asks for an instance; retain.go: what is to go; cron.go and walk.go: when
// times come), acts (act.go) and reports (status.go).
//
// For each time one instance is made, wherever the operator dies and however many of them there are, because the name says the time:
// whoever makes it a second time finds that it is there. Only then the time is noted in the status. An instance belongs to nobody:
// neither a schedule that is deleted nor a cluster takes a backup along.
//
// A backup that is to go is marked first, with the finalizer that sees to its data, and deleted in a later pass. Both is decided by what
// the API server says, not by a cache, and done to exactly the object that was looked at.
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

// Controller is the kind as the engine knows it. It shares the caches of instances and clusters with their own kinds.
func Controller(kind schema.Kind) reconcile.Controller {
	return ControllerAt(kind, time.Now)
}

// ControllerAt is Controller by another clock.
func ControllerAt(kind schema.Kind, now func() time.Time) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{
			{Resource: instances(), Owners: scheduleOf, Indices: map[string]reconcile.IndexFunc{indexSchedule: scheduleKey}},
			{Resource: clusters(), Owners: schedulesOf, Indices: map[string]reconcile.IndexFunc{indexSource: sourceKeys}},
		},
		Indices:   map[string]reconcile.IndexFunc{indexCluster: clusterOf},
		Childless: true, // a backup belongs to nobody
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{schema.MySQLGroup}, Resources: []string{instances().Resource}, Verbs: []string{"create", "patch", "delete"}},
		},
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return newReconciler(api, now)
		},
	}
}

// The indices of the caches. Their keys are made by keyFor.
const (
	// indexCluster finds schedules by the cluster that they back up, indexSchedule instances by the schedule that their label names, and
	// indexSource clusters by the backups that they are made from.
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

// scheduleOf returns the schedule that an instance's label names.
func scheduleOf(made *unstructured.Unstructured, _ reconcile.Lister) []types.NamespacedName {
	schedule := made.GetLabels()[v1.LabelBackupSchedule]
	if schedule == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: made.GetNamespace(), Name: schedule}}
}

// schedulesOf returns the schedules that a change of a cluster concerns: those of the cluster, and the one whose backup it is made from, in
// whichever namespace. That one's name is what the backup's begins with.
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
