package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Operator is what this kind needs to know about the operator.
type Operator = children.Operator

// Controller returns the kind for the engine.
func Controller(kind schema.Kind, operator Operator) reconcile.Controller {
	return ControllerAt(kind, operator, time.Now)
}

// ControllerAt is Controller with another clock.
func ControllerAt(kind schema.Kind, operator Operator, now func() time.Time) reconcile.Controller {
	takeovers := takeoverSeconds()
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{
			{Resource: children.StatefulSets(), Selector: children.Selector, Transform: slimSet()},
			{Resource: children.Services(), Selector: children.Selector, Transform: slimService},
			{Resource: children.ConfigMaps(), Selector: children.Selector, Transform: reconcile.KeepDigest()},
			{Resource: children.ServiceAccounts(), Selector: children.Selector, Transform: reconcile.KeepDigest()},
			{Resource: children.PodDisruptionBudgets(), Selector: children.Selector, Transform: reconcile.KeepDigest()},
			{Resource: children.NetworkPolicies(), Selector: children.Selector, Transform: reconcile.KeepDigest()},
			{Resource: children.Claims(), Selector: children.Selector, Transform: slimVolume, Owners: byInstance, Indices: byCluster()},
			{Resource: children.Pods(), Selector: children.Selector, Transform: reconcile.KeepPod, Owners: byInstance, Indices: byCluster()},
		},
		Rules: rules(),
		// To keep the CAs of clusters, and to list them.
		OwnRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}},
		Metrics:  func(clusters reconcile.Lister) prometheus.Collector { return newCollector(clusters, takeovers) },
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{
				reader: reader, resource: kind.GVR(), operator: operator, now: now,
				memory: newMemory(), takeovers: takeovers,
			}
		},
	}
}

// byInstance finds the cluster of a Pod or a volume by its label, because a StatefulSet owns it, or it has no owner.
func byInstance(child *unstructured.Unstructured, _ reconcile.Lister) []types.NamespacedName {
	name := child.GetLabels()[children.LabelInstance]
	if name == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: child.GetNamespace(), Name: name}}
}

// indexCluster finds the Pods and volumes of one cluster without reading those of others.
const indexCluster = "cluster"

func byCluster() map[string]reconcile.IndexFunc {
	return map[string]reconcile.IndexFunc{indexCluster: clusterOf}
}

// clusterOf returns the key of a Pod or a volume in indexCluster.
func clusterOf(child *unstructured.Unstructured) []string {
	name := child.GetLabels()[children.LabelInstance]
	if name == "" {
		return nil
	}
	n := children.Names{Namespace: child.GetNamespace(), Cluster: name}
	return []string{n.Key()}
}

// rules are the permissions that the kind needs in addition to those for its own resource and what it watches. It reads and creates Secrets
// by name, and never lists them.
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
		// A restore creates the first member's claim before there is a StatefulSet that would create it.
		rule("", []string{"persistentvolumeclaims"}, "create"),
		rule("batch", []string{"jobs"}, "get", "create", "delete"),
		rule("", []string{"secrets"}, "get", "create", "patch"),
		// Only events report why Kubernetes creates no Pod for a StatefulSet.
		rule("", []string{"events"}, "list"),
		rule("cr.mysqloperator.grtl.github.com", []string{"mysqlbackupinstances"}, "get"),
	}
}
