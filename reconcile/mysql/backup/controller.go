// Package backup reconciles MySQLBackupInstance resources: one backup each, made once.
//
//	Scheduled ──(cluster serves, Secrets and claim are there)──▶ location in the status ──▶ Job ──▶ Started ──▶ Completed
//	    │                                                                                              │
//	    └───────────── activeDeadlineSeconds over, replaced, refused ──────────────────────────────────┴──▶ Failed
//
// A pass observes (observe.go), decides (decide.go while the backup is made, end.go when the instance is deleted), acts (act.go) and
// reports (status.go).
//
// A backup is made once, and its place is never in doubt, wherever the operator dies, because of the order of its writes:
//
//	finalizer, if the data is to go with the instance ──▶ status: location ──▶ Job ──▶ status: Completed or Failed, which nothing follows
//
// The location is on record before anything can be written there. The Job is named after the instance and belongs to it: there is never
// a second one at the same time, and its program continues nobody else's folder. Completed rests on what the Job's Pod itself said,
// nothing less; and where the cache says that there is nothing to be heard any more, the API server is asked before the backup is given up.
//
// When an instance is deleted its data stays, unless the finalizer is on it; then a second Job deletes the data. That Job belongs to
// nobody: garbage collection would take it together with the instance that waits for it.
package backup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller is the kind as the engine knows it. image is the operator's own, which backups' Pods run, home its namespace, where the CAs of
// clusters are kept.
func Controller(kind schema.Kind, image, home string) reconcile.Controller {
	return ControllerAt(kind, image, home, time.Now)
}

// ControllerAt is Controller by another clock.
func ControllerAt(kind schema.Kind, image, home string, now func() time.Time) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{
			{Resource: jobs(), Selector: transfer.Selector, Transform: transfer.SlimJob, Owners: byLabel},
			{Resource: pods(), Selector: transfer.Selector, Transform: reconcile.KeepPod, Owners: byLabel, Indices: map[string]reconcile.IndexFunc{indexLabel: podLabel}},
			{Resource: clusters(kind), Owners: waitingFor},
		},
		Indices:  indices(),
		Rules:    rules(kind),
		OwnRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
		Metrics:  func(instances reconcile.Lister) prometheus.Collector { return newMeasures(instances, now) },
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{api: api, kind: kind, image: image, home: home, now: now, memory: newMemory()}
		},
	}
}

// byLabel finds the instance of a Job or a Pod by its label: the Job that deletes data belongs to nobody.
func byLabel(child *unstructured.Unstructured, instances reconcile.Lister) []types.NamespacedName {
	value := child.GetLabels()[transfer.LabelBackup]
	if value == "" {
		return nil
	}
	return keysOfAll(instances.Indexed(indexLabel, indexKey(child.GetNamespace(), value)))
}

// waitingFor finds the backups of a cluster that are not over. Those that are may be many, and the cluster concerns them no more.
func waitingFor(cluster *unstructured.Unstructured, instances reconcile.Lister) []types.NamespacedName {
	named := instances.Indexed(indexWaiting, indexKey(cluster.GetNamespace(), cluster.GetName()))
	return keysOfAll(append(named, instances.Indexed(indexWaiting, indexKey(cluster.GetNamespace(), ""))...))
}

func keysOfAll(instances []*unstructured.Unstructured) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(instances))
	for _, instance := range instances {
		keys = append(keys, types.NamespacedName{Namespace: instance.GetNamespace(), Name: instance.GetName()})
	}
	return keys
}

// rules are what the kind needs beyond its own resource and what it watches. Secrets are read by name, never listed.
func rules(kind schema.Kind) []rbacv1.PolicyRule {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("batch", []string{"jobs"}, "create", "delete"),
		rule("", []string{"persistentvolumeclaims"}, "get", "create", "patch"),
		rule("", []string{"secrets"}, "get"),
		// Why Kubernetes makes no Pod for a Job is told by its events only.
		rule("", []string{"events"}, "list"),
		// The finalizer.
		rule(kind.Group, []string{kind.Plural}, "patch"),
		rule(kind.Group, []string{schedulesPlural}, "get"),
	}
}

const (
	clustersPlural  = "mysqlclusters"
	schedulesPlural = "mysqlbackupschedules"
)

func clusters(kind schema.Kind) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: clustersPlural}
}

func schedules(kind schema.Kind) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: schedulesPlural}
}

func jobs() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
}

func pods() apischema.GroupVersionResource    { return core("pods") }
func claims() apischema.GroupVersionResource  { return core("persistentvolumeclaims") }
func secrets() apischema.GroupVersionResource { return core("secrets") }

func core(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: resource}
}
