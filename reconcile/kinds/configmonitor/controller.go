// Package configmonitor reconciles ConfigMonitor resources: when the data of a ConfigMap changes, the Pods that a monitor selects are
// restarted, so that they read it anew.
//
// A pass observes (observe.go), decides (decide.go: what has to be done at all and with which workloads; advance.go: how far a restart
// has come and what is next), acts (act.go) and reports (status.go).
//
// A restart is never lost and never done twice, wherever the operator dies, because of the order of its writes:
//
//	status: plan (hash, workloads Pending) ──▶ stamp templates, evict Pods ──▶ status: workloads done, observedHash = hash
//
// Before the plan is written nothing was done, and observedHash still differs from the data: the next operator plans. After it, every
// act may be repeated: a template is stamped with the hash, which changes nothing the second time, and a Pod is evicted by its UID,
// which no other Pod will ever have. The plan names all that ran when it was made; whatever came later was made with the new data.
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

// Controller is the kind as the engine knows it. Of the ConfigMaps, which may be many and large, the cache keeps hashes only. Pods and
// what made them are read live, and only while a restart is under way: they need no cache.
func Controller(kind schema.Kind) reconcile.Controller {
	return reconcile.Controller{
		Kind:      kind,
		Watches:   []reconcile.Watch{{Resource: configMaps(), Transform: keepHash, Owners: monitorsOf}},
		Indices:   map[string]reconcile.IndexFunc{indexConfigMap: configMapKey},
		Childless: true, // it makes nothing
		Rules:     rules(),
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{api: api, resource: kind.GVR(), now: time.Now}
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

// watchedName reads the name of the ConfigMap out of a cached monitor without decoding all of it: the index asks at every change of a
// monitor.
func watchedName(monitor *unstructured.Unstructured) string {
	for _, spelling := range []string{"configMap", "configmap"} {
		if name, found, _ := unstructured.NestedString(monitor.Object, "spec", spelling); found && name != "" {
			return name
		}
	}
	return ""
}

// rules are what the kind needs beyond its own resource and the ConfigMaps it watches.
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
