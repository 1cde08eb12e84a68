package cluster

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller is the kind as the engine knows it.
func Controller(kind schema.Kind, operator Operator) reconcile.Controller {
	return ControllerAt(kind, operator, time.Now)
}

// ControllerAt is Controller by another clock.
func ControllerAt(kind schema.Kind, operator Operator, now func() time.Time) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{
			{Resource: statefulSets(), Selector: managedSelector, Transform: slimSet()},
			{Resource: services(), Selector: managedSelector, Transform: slimService},
			{Resource: configs(), Selector: managedSelector, Transform: reconcile.KeepDigest()},
			{Resource: accounts(), Selector: managedSelector, Transform: reconcile.KeepDigest()},
			{Resource: budgets(), Selector: managedSelector, Transform: reconcile.KeepDigest()},
			{Resource: networkPolicies(), Selector: managedSelector, Transform: reconcile.KeepDigest()},
			{Resource: volumes(), Selector: managedSelector, Transform: slimVolume, Owners: byInstance, Indices: byCluster()},
			{Resource: pods(), Selector: managedSelector, Transform: reconcile.KeepPod, Owners: byInstance, Indices: byCluster()},
		},
		Rules: rules(),
		// The CAs of clusters, and which of them there are.
		OwnRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}},
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{
				api: api, resource: kind.GVR(), operator: operator, now: now,
				memory: newMemory(),
			}
		},
	}
}

// byInstance finds the cluster of a Pod or a volume, which a StatefulSet owns or nobody, by its label.
func byInstance(child *unstructured.Unstructured, _ reconcile.Lister) []types.NamespacedName {
	name := child.GetLabels()[labelInstance]
	if name == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: child.GetNamespace(), Name: name}}
}

// indexCluster finds the Pods and volumes of one cluster without a look at those of others.
const indexCluster = "cluster"

func byCluster() map[string]reconcile.IndexFunc {
	return map[string]reconcile.IndexFunc{indexCluster: clusterOf}
}

// clusterOf is the key of a Pod or a volume in indexCluster.
func clusterOf(child *unstructured.Unstructured) []string {
	name := child.GetLabels()[labelInstance]
	if name == "" {
		return nil
	}
	n := names{child.GetNamespace(), name}
	return []string{n.key()}
}

// rules are what the kind needs beyond its own resource and what it watches. Secrets are read and made by name, never listed.
func rules() []rbacv1.PolicyRule {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("apps", []string{"statefulsets"}, "get", "create", "patch"),
		rule("", []string{"services", "configmaps", "serviceaccounts"}, "get", "create", "patch"),
		rule("policy", []string{"poddisruptionbudgets"}, "get", "create", "patch"),
		rule("networking.k8s.io", []string{"networkpolicies"}, "get", "create", "patch"),
		rule("", []string{"pods", "persistentvolumeclaims"}, "get", "patch"),
		// A restore makes the first member's claim before there is a StatefulSet to make it.
		rule("", []string{"persistentvolumeclaims"}, "create"),
		rule("batch", []string{"jobs"}, "get", "create", "delete"),
		rule("", []string{"secrets"}, "get", "create", "patch"),
		// Why Kubernetes makes no Pod for a StatefulSet is told by its events only.
		rule("", []string{"events"}, "list"),
		rule("cr.mysqloperator.grtl.github.com", []string{"mysqlbackupinstances"}, "get"),
	}
}
