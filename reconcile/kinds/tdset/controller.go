// Package tdset reconciles TDSet resources: a Deployment whose replicas follow the hours of the day, and a Service in front of it if one is
// asked for.
//
// A pass observes (observe.go), decides (calendar.go: which interval holds and until when; decide.go: whether the Deployment's replicas are
// to be set), acts (act.go, with what build.go makes) and reports (status.go).
//
// The schedule sets the Deployment's replicas once for each of its changes. The mark of the change (annotation) is written together with
// the number, by one apply: wherever the operator dies, the next one sees whether a change was carried out. Whoever sets another number
// after that is left alone until the schedule changes again, and reported: field ownership (Kubernetes documentation, "Server-Side Apply")
// tells who it was. Where a HorizontalPodAutoscaler scales the Deployment, the schedule does not.
package tdset

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller is the kind as the engine knows it.
func Controller(kind schema.Kind) reconcile.Controller {
	return ControllerAt(kind, time.Now)
}

// ControllerAt is Controller by another clock.
func ControllerAt(kind schema.Kind, now func() time.Time) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{
			{Resource: deployments(), Selector: managedSelector, Transform: keepScaler},
			{Resource: services(), Selector: managedSelector, Transform: reconcile.KeepDigest()},
			{Resource: autoscalers(), Transform: keepTarget, Owners: scaledBy, Indices: map[string]reconcile.IndexFunc{indexTarget: targetKey}},
		},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "create", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "create", "patch", "delete"}},
		},
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{api: api, now: now}
		},
	}
}

func deployments() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

func services() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "services"}
}

func autoscalers() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
}
