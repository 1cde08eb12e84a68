// Package configmonitor reconciles ConfigMonitor resources. When the data of a ConfigMap changes, it restarts the Pods that a monitor
// selects, so that they read the data again.
//
// A pass observes (observe.go), decides, acts (act.go) and reports (status.go). decide.go decides whether to restart, and which workloads.
// advance.go decides how far a restart is and what is next.
//
// No restart is lost or done twice, wherever the operator dies, because of the order of its writes:
//
//	status: plan (hash, workloads Pending) ──▶ stamp templates, evict Pods ──▶ status: workloads done, observedHash = hash
//
// Before the plan is written, the operator has done nothing and observedHash still differs from the data: the next operator plans. After
// that, the operator may repeat each act. It stamps a template with the hash, which changes nothing the second time. It evicts a Pod by its
// UID, which no other Pod ever has. The plan names all Pods that ran when it was made; Pods created later have the new data.
package configmonitor

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller describes the kind to the engine. ConfigMaps may be many and large, so the cache keeps only their hashes. The operator reads
// Pods and their controllers live, and only during a restart: they need no cache.
func Controller(kind schema.Kind) reconcile.Controller {
	return reconcile.Controller{
		Kind:      kind,
		Watches:   []reconcile.Watch{{Resource: configMaps(), Transform: keepHash, Owners: monitorsOf}},
		Indices:   map[string]reconcile.IndexFunc{indexConfigMap: configMapKey},
		Childless: true, // it creates no objects
		Rules:     rules(),
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{reader: reader, resource: kind.GVR(), now: time.Now}
		},
	}
}

// indexConfigMap finds monitors by the ConfigMap that they watch.
const indexConfigMap = "configmap"

func configMapKey(monitor *unstructured.Unstructured) []string {
	return []string{keyFor(monitor.GetNamespace(), watchedName(monitor))}
}

func keyFor(namespace, name string) string {
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

// monitorsOf returns the monitors that watch a ConfigMap.
func monitorsOf(config *unstructured.Unstructured, monitors reconcile.Lister) []types.NamespacedName {
	found := monitors.Indexed(indexConfigMap, keyFor(config.GetNamespace(), config.GetName()))
	concerned := make([]types.NamespacedName, 0, len(found))
	for _, monitor := range found {
		concerned = append(concerned, types.NamespacedName{Namespace: monitor.GetNamespace(), Name: monitor.GetName()})
	}
	return concerned
}

// watchedName reads the name of the ConfigMap from a cached monitor. It does not decode the whole monitor, because the index needs the name
// at each change of one.
func watchedName(monitor *unstructured.Unstructured) string {
	for _, spelling := range []string{"configMap", "configmap"} {
		if name, found, _ := unstructured.NestedString(monitor.Object, "spec", spelling); found && name != "" {
			return name
		}
	}
	return ""
}

// rules returns the permissions that the kind needs in addition to its own resource and the ConfigMaps that it watches.
func rules() []rbacv1.PolicyRule {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("", []string{"pods"}, "list"),
		rule("", []string{"pods/eviction"}, "create"),
		rule("apps", []string{"replicasets"}, "get"),
		rule("apps", []string{"deployments", "statefulsets", "daemonsets"}, "get", "patch"),
	}
}

func configMaps() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func pods() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func apps(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}
