package pulsarconsumer

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// stalledInterval is the time between passes over a resource that waits for a user, where no watch shows when the problem ends.
const stalledInterval = 15 * time.Second

type reconciler struct {
	reader *reconcile.Reader
	image  string
	now    func() time.Time
}

// Reconcile makes one pass over one PulsarConsumer. A deleted one needs no pass: garbage collection deletes its Deployment.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var consumer v1.PulsarConsumer
	if err := schema.Decode(object, &consumer); err != nil {
		return reconcile.Outcome{}, err
	}
	if consumer.DeletionTimestamp != nil {
		return reconcile.Outcome{}, nil
	}
	now, err := r.observe(consumer, object)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	change, err := client.Apply(ctx, deployment(consumer, r.image))
	if err != nil {
		return r.failed(consumer, now, err)
	}
	status := statusApplied(consumer, now)
	setConditions(&status, decide(consumer, change, now), r.now())
	return reconcile.Outcome{Status: status, Events: eventsFor(consumer.Status, status)}, nil
}

// failed ends a pass that could not apply the Deployment. If a user must act, the engine makes the next pass after stalledInterval. Any
// other error is returned, and the engine retries soon. The status reports it too if it may last.
func (r *reconciler) failed(consumer v1.PulsarConsumer, now observed, err error) (reconcile.Outcome, error) {
	found := report.FromError(err)
	switch {
	case found != nil && found.Stalled:
		err = nil
	case found != nil:
	case needsNoReport(err):
		return reconcile.Outcome{}, err
	default:
		found = &report.Problem{Reason: reasonApplyFails, Message: "the operator cannot write the Deployment, and retries: its log has the reason; often an admission webhook does not answer"}
	}
	status := statusStalled(consumer, now, *found, r.now())
	return reconcile.Outcome{Status: status, Events: eventsFor(consumer.Status, status), RequeueAfter: stalledInterval}, err
}

// needsNoReport reports whether an error needs no report: another client was faster, the API server is unavailable, the operator stops, or
// the namespace and the resource are being deleted.
func needsNoReport(err error) bool {
	return reconcile.IsNamespaceTerminating(err) || apierrors.IsConflict(err) || reconcile.IsUnavailable(err) || errors.Is(err, context.Canceled)
}
