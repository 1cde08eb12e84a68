// Package mysqlbackupschedule reconciles MySQLBackupSchedule resources: whenever a schedule's time has come it makes a
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
package mysqlbackupschedule

import (
	"strings"
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
			{Resource: instances(), Owners: scheduleOf},
			{Resource: clusters(), Owners: schedulesOf},
		},
		Childless: true, // a backup belongs to nobody
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{schema.MySQLGroup}, Resources: []string{instances().Resource}, Verbs: []string{"create", "patch", "delete"}},
		},
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{api: api, now: now}
		},
	}
}

// scheduleOf returns the schedule that an instance's label names.
func scheduleOf(made *unstructured.Unstructured, _ reconcile.Lister) []types.NamespacedName {
	schedule := made.GetLabels()[v1.LabelBackupSchedule]
	if schedule == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: made.GetNamespace(), Name: schedule}}
}

// schedulesOf returns the schedules that a change of a cluster concerns: those of the cluster, and the one whose backup it is made from.
func schedulesOf(cluster *unstructured.Unstructured, schedules reconcile.Lister) []types.NamespacedName {
	source, _, _ := unstructured.NestedString(cluster.Object, "spec", "fromBackup")
	url, _, _ := unstructured.NestedString(cluster.Object, "spec", "fromBackupURL")
	concerned := []types.NamespacedName{}
	for _, schedule := range schedules.List(cluster.GetNamespace()) {
		name, _, _ := unstructured.NestedString(schedule.Object, "spec", "cluster")
		if name == cluster.GetName() || url != "" || strings.HasPrefix(source, schedule.GetName()+"-") {
			concerned = append(concerned, types.NamespacedName{Namespace: schedule.GetNamespace(), Name: schedule.GetName()})
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
