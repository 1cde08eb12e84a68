// Package pulsarconsumer reconciles PulsarConsumer resources: each is a Deployment of programs that consume a topic of Apache Pulsar.
//
// A pass applies the Deployment (deployment.go), looks at how it is (observe.go), decides what to say of that (decide.go, pure) and
// reports (status.go). The operator itself never speaks to Pulsar: its image does, in the Pods (package pulsar, a program of its own).
package pulsarconsumer

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller is the kind as the engine knows it. image is the operator's own, for consumers that name none.
func Controller(kind schema.Kind, image string) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{{
			Resource: deployments(), Selector: managedSelector, Transform: reconcile.KeepDigest(append(reconcile.DeploymentStatus(), "spec.paused")...),
		}},
		Rules: []rbacv1.PolicyRule{
			// What is applied is created and changed by one verb; create is asked for where nothing is there yet.
			{APIGroups: []string{deployments().Group}, Resources: []string{deployments().Resource}, Verbs: []string{"create", "patch"}},
		},
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{api: api, image: image, now: time.Now}
		},
	}
}

func deployments() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}
