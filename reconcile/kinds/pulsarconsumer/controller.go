// Package pulsarconsumer reconciles PulsarConsumer resources. For each, it runs a Deployment of programs that consume a topic of Apache
// Pulsar.
//
// A pass applies the Deployment (deployment.go), observes it (observe.go), decides what to report (decide.go, pure) and reports
// (status.go). The operator never connects to Pulsar: its image does, in the Pods (package pulsar, a separate program).
package pulsarconsumer

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Controller describes the kind to the engine. image is the operator's image, for consumers that name none.
func Controller(kind schema.Kind, image string) reconcile.Controller {
	return reconcile.Controller{
		Kind: kind,
		Watches: []reconcile.Watch{{
			Resource: deployments(), Selector: managedSelector, Transform: reconcile.KeepDigest(append(reconcile.DeploymentStatus(), "spec.paused")...),
		}},
		Rules: []rbacv1.PolicyRule{
			// The verb patch applies objects; create is needed if the object does not exist yet.
			{APIGroups: []string{deployments().Group}, Resources: []string{deployments().Resource}, Verbs: []string{"create", "patch"}},
		},
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{reader: reader, image: image, now: time.Now}
		},
	}
}

func deployments() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}
