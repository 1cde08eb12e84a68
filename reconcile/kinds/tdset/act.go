package tdset

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// failures are what went wrong with the writes of a pass; nil where nothing did.
type failures struct {
	deployment, service error
}

// act makes the Deployment and the Service as they are wanted. If one fails, the other is made all the same. did is what became of the
// Deployment.
func (r *reconciler) act(ctx context.Context, owner *unstructured.Unstructured, seen look, made decision) (did reconcile.Change, failed failures) {
	did, failed.deployment = applyDeployment(ctx, r.api, owner, seen, made)
	if seen.set.Spec.Service != nil {
		_, failed.service = r.api.Apply(ctx, owner, serviceFor(seen.set))
	} else {
		failed.service = r.removeService(ctx, owner, seen.set)
	}
	return did, failed
}

// applier is what of the engine's client makes things.
type applier interface {
	Apply(ctx context.Context, owner *unstructured.Unstructured, desired any) (reconcile.Change, error)
}

// applyDeployment makes the Deployment as it is wanted. If it was deleted since it was seen, what was decided is about one that is no more:
// where that said nothing of replicas the API server has given the new one its default, so what a new one gets is said.
func applyDeployment(ctx context.Context, api applier, owner *unstructured.Unstructured, seen look, made decision) (reconcile.Change, error) {
	did, err := api.Apply(ctx, owner, deploymentFor(seen.set, made))
	if did != reconcile.Created || seen.deployment == nil {
		return did, err
	}
	_, made = afresh(seen)
	_, err = api.Apply(ctx, owner, deploymentFor(seen.set, made))
	return did, err
}

// removeService deletes the Service of a TDSet that asks for none any more, if it is the TDSet's own.
func (r *reconciler) removeService(ctx context.Context, owner *unstructured.Unstructured, set v1.TDSet) error {
	if _, found := r.api.Cached(services()).Get(set.Namespace, set.Name); !found {
		return nil
	}
	live, err := r.api.Get(ctx, services(), set.Namespace, set.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(live, owner) || live.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := r.api.StillWanted(ctx, owner); err != nil {
		return err
	}
	return r.api.Delete(ctx, services(), live)
}

// delaysNothing says that the error is the Service's alone, and no reason to come again by back-off: the Deployment has to be scaled in
// time.
func (f failures) delaysNothing() bool {
	return f.deployment == nil && f.service != nil && !passes(f.service) && refusalOf(f.service) == nil
}

// sorted tells the failures that a person can do something about from those that are tried again soon, which is what an error means: a
// foreign Service must not make the schedule wait. What is tried in vain is told as well, in words that do not change with every attempt.
func (f failures) sorted() (found *problem, err error) {
	for _, failure := range []error{f.deployment, f.service} {
		refusal := refusalOf(failure)
		if refusal == nil && err == nil {
			err = failure
		}
		if found == nil {
			found = refusal
		}
	}
	if found == nil && err != nil && !passes(err) {
		found = &problem{reasonApplyFails, "the Deployment or the Service cannot be written, and the operator goes on trying: its log says why; often an admission webhook does not answer", false}
	}
	return found, err
}

// passes says whether an error is nothing to tell: somebody was faster, the API server is not there, the operator stops.
func passes(err error) bool {
	return apierrors.IsConflict(err) || reconcile.IsUnavailable(err) || errors.Is(err, context.Canceled)
}

// refusalOf turns the errors that a person can do something about into problems.
func refusalOf(err error) *problem {
	var foreign *reconcile.ForeignError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &foreign) && foreign.Predecessor:
		return &problem{reasonPredecessor, foreign.Error(), false}
	case errors.As(err, &foreign):
		return &problem{reasonForeignObject, foreign.Error(), true}
	case apierrors.IsForbidden(err):
		return &problem{reasonForbidden, err.Error() + "; if it is a right, grant it to the operator (" + reconcile.RightsRemedy + "); if it is a quota, raise it", true}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &problem{reasonRejected, err.Error(), true}
	}
	return nil
}
