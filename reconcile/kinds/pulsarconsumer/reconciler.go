package pulsarconsumer

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// helpEvery is how soon to look again at what waits for somebody's help and what no watch tells the end of.
const helpEvery = 15 * time.Second

type reconciler struct {
	api   *reconcile.Client
	image string
	now   func() time.Time
}

// Reconcile makes one pass over one PulsarConsumer. What is deleted needs none: its Deployment goes with it by garbage collection.
func (r *reconciler) Reconcile(ctx context.Context, object *unstructured.Unstructured) (reconcile.Outcome, error) {
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
	change, err := r.api.Apply(ctx, object, deployment(consumer, r.image))
	if err != nil {
		return r.failed(consumer, now, err)
	}
	status := applied(consumer, now)
	conclude(&status, decide(consumer, change, now), r.now())
	return reconcile.Outcome{Status: status, Events: tell(consumer.Status, status)}, nil
}

// failed ends a pass that could not make the Deployment what it has to be. What waits for a person is looked at from time to time; all else
// stays an error, which is tried again soon, and is told as well if it is not over in a moment.
func (r *reconciler) failed(consumer v1.PulsarConsumer, now seen, err error) (reconcile.Outcome, error) {
	found, known := problemOf(err)
	switch {
	case known:
		err = nil
	case passes(err):
		return reconcile.Outcome{}, err
	default:
		found = attempted(err)
	}
	status := stalled(consumer, now, found, r.now())
	return reconcile.Outcome{Status: status, Events: tell(consumer.Status, status), Again: helpEvery}, err
}

// passes says whether an error is nothing to tell: somebody was faster, the API server is not there, the operator stops, or the namespace
// goes and the resource with it.
func passes(err error) bool {
	return reconcile.IsNamespaceTerminating(err) || apierrors.IsConflict(err) || reconcile.IsUnavailable(err) || errors.Is(err, context.Canceled)
}

// attempted is what is told of an error that the operator goes on against. The words do not change with every attempt.
func attempted(err error) verdict {
	if foreign, ok := errors.AsType[*reconcile.ForeignError](err); ok {
		return verdict{stateOnTheWay, reasonPredecessor, foreign.Error()}
	}
	return verdict{stateOnTheWay, reasonApplyFails, "the Deployment cannot be written, and the operator goes on trying: its log says why; often an admission webhook does not answer"}
}

// problemOf turns the errors that a person can do something about into verdicts.
func problemOf(err error) (found verdict, known bool) {
	var foreign *reconcile.ForeignError
	switch {
	case reconcile.IsNamespaceTerminating(err):
		return verdict{}, false
	case errors.As(err, &foreign) && !foreign.Predecessor:
		return verdict{stateStalled, reasonNameTaken, err.Error()}, true
	case apierrors.IsForbidden(err):
		return verdict{stateStalled, reasonForbidden, err.Error() + "; where a right is missing, grant it to the operator: " + reconcile.RightsRemedy}, true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return verdict{stateStalled, reasonRejected, err.Error()}, true
	}
	return verdict{}, false
}
