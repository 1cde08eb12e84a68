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

// act makes the Deployment and the Service as they are wanted. If one fails, the other is made all the same. did is what became of the
// Deployment.
func (r *reconciler) act(ctx context.Context, owner *unstructured.Unstructured, seen look, made decision) (did reconcile.Change, err error) {
	did, failure := r.api.Apply(ctx, owner, deploymentFor(seen.set, made))
	if seen.set.Spec.Service != nil {
		_, err = r.api.Apply(ctx, owner, serviceFor(seen.set))
	} else {
		err = r.removeService(ctx, owner, seen.set)
	}
	return did, errors.Join(failure, err)
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
	return r.api.Delete(ctx, services(), live)
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
