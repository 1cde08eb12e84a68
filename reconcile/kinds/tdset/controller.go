// Package tdset reconciles TDSet resources: a Deployment whose replicas follow the hours of the day, and a Service for it if the spec asks
// for one.
//
// A pass observes (observe.go), decides, acts (act.go, with the objects of build.go) and reports (status.go). calendar.go decides which
// interval holds and until when. decide.go decides whether to set the Deployment's replicas.
//
// The operator sets the Deployment's replicas once for each change of the schedule. One apply writes the number and the mark of the change
// (annotation). So wherever the operator dies, the next operator sees whether a change was carried out. If another client sets another
// number after that, the operator leaves it until the schedule changes again, and reports it. Field ownership (Kubernetes documentation,
// "Server-Side Apply") shows which client it was. If a HorizontalPodAutoscaler scales the Deployment, the schedule does not.
package tdset

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller describes the kind to the engine.
func Controller(kind schema.Kind) reconcile.Controller {
	return ControllerAt(kind, time.Now)
}

// ControllerAt is Controller with another clock.
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
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{reader: reader, now: now}
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
