// Package backup reconciles MySQLBackupInstance resources. Each is one backup, which the operator makes once.
//
//	Scheduled ──(a member is ready, Secrets and claim exist)──▶ location in the status ──▶ Job ──▶ Started ──▶ Completed
//	    │                                                                                               │
//	    └───────────── activeDeadlineSeconds over, replaced, refused ───────────────────────────────────┴──▶ Failed
//
// A pass observes (observe.go), decides (decide.go while the backup is made, end.go when the instance is deleted), acts (act.go) and
// reports (status.go).
//
// The order of the operator's writes guarantees that a backup is made once and its place is never in doubt, even if the operator crashes:
//
//	finalizer, if the data is deleted with the instance ──▶ status: location ──▶ Job ──▶ status: Completed or Failed, which is final
//
// The status has the location before any Pod can write there. The Job has the instance's name, and the instance owns it. So there are never
// two Jobs at the same time, and the Job's program never continues the folder of another backup. Only a report of the Job's Pod makes a
// backup Completed. If the cache shows that no report can come, the operator asks the API server before it gives the backup up.
//
// When a user deletes an instance, its data stays unless the instance has the finalizer. With the finalizer, a second Job deletes the data.
// That Job has no owner: garbage collection would delete it together with the instance that waits for it.
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

// Controller returns the kind as the engine needs it. image is the operator's own image, which backups' Pods run. home is the operator's
// namespace, which holds the CAs of clusters.
func Controller(kind schema.Kind, image, home string) reconcile.Controller {
	return ControllerAt(kind, image, home, time.Now)
}

// ControllerAt is Controller with another clock.
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
		Metrics:  func(instances reconcile.Lister) prometheus.Collector { return newCollector(instances, now) },
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{reader: reader, kind: kind, image: image, home: home, now: now, memory: newMemory()}
		},
	}
}

// byLabel finds the instance of a Job or a Pod by its label: the Job that deletes data has no owner.
func byLabel(child *unstructured.Unstructured, instances reconcile.Lister) []types.NamespacedName {
	value := child.GetLabels()[transfer.LabelBackup]
	if value == "" {
		return nil
	}
	return keysOfAll(instances.Indexed(indexLabel, indexKey(child.GetNamespace(), value)))
}

// waitingFor finds the backups of a cluster that are not over. Finished backups may be many, and the cluster no longer affects them.
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

// rules are the permissions that the kind needs in addition to those for its own resource and its watches. Secrets are read by name, never
// listed.
func rules(kind schema.Kind) []rbacv1.PolicyRule {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("batch", []string{"jobs"}, "create", "delete"),
		rule("", []string{"persistentvolumeclaims"}, "get", "create", "patch"),
		rule("", []string{"secrets"}, "get"),
		// Only a Job's events report why Kubernetes creates no Pod for it.
		rule("", []string{"events"}, "list"),
		// For the finalizer.
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
