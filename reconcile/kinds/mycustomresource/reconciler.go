package mycustomresource

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

type reconciler struct {
	reader *reconcile.Reader
	now    func() time.Time
}

// Reconcile makes one pass over one MyCustomResource. It sends no requests: the caches have all that it needs.
func (r *reconciler) Reconcile(ctx context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var resource v1.MyCustomResource
	if err := schema.Decode(object, &resource); err != nil {
		return reconcile.Outcome{}, err
	}
	if resource.DeletionTimestamp != nil {
		return reconcile.Outcome{}, nil
	}
	found := decide(resource.Spec, observe(r.reader, resource.Spec))
	status := statusFor(resource, found, r.now())
	if status.Healthy != resource.Status.Healthy {
		logr.FromContextOrDiscard(ctx).Info("health changed", "op", "report", "healthy", status.Healthy, "reason", found.reason)
	}
	return reconcile.Outcome{Status: status, Events: eventsFor(resource.Status, found)}, nil
}
