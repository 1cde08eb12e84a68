package tdset

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// failures has the errors of a pass's writes; nil for success.
type failures struct {
	deployment, service error
}

// act applies the Deployment, and applies or removes the Service. If one fails, it still does the other. did is the change of the
// Deployment.
func (r *reconciler) act(ctx context.Context, client *reconcile.Client, seen observed, made decision) (did reconcile.Change, failed failures) {
	did, failed.deployment = applyDeployment(ctx, client, seen, made)
	if seen.set.Spec.Service != nil {
		_, failed.service = client.Apply(ctx, serviceFor(seen.set))
	} else {
		failed.service = r.removeService(ctx, client, seen.set)
	}
	return did, failed
}

// applier is the part of the engine's client that applies objects.
type applier interface {
	Apply(ctx context.Context, desired any) (reconcile.Change, error)
}

// applyDeployment applies the wanted Deployment. If a user deleted it after the pass saw it, the decision was about an object that is gone.
// If that decision left out replicas, the API server gave the new Deployment its default. So applyDeployment applies again, with the
// replicas of a new Deployment.
func applyDeployment(ctx context.Context, api applier, seen observed, made decision) (reconcile.Change, error) {
	did, err := api.Apply(ctx, deploymentFor(seen.set, made))
	if did != reconcile.Created || seen.deployment == nil {
		return did, err
	}
	_, made = withoutDeployment(seen)
	_, err = api.Apply(ctx, deploymentFor(seen.set, made))
	return did, err
}

// removeService deletes the Service of a TDSet that no longer asks for one, if the TDSet owns it.
func (r *reconciler) removeService(ctx context.Context, client *reconcile.Client, set v1.TDSet) error {
	if _, found := r.reader.Cached(services()).Get(set.Namespace, set.Name); !found {
		return nil
	}
	live, err := r.reader.Get(ctx, services(), set.Namespace, set.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(live, client.Owner()) || live.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := client.CheckUnchanged(ctx); err != nil {
		return err
	}
	return client.Delete(ctx, services(), live)
}

// onlyServiceFailed reports whether only the Service failed, with an error that needs no back-off: the operator must scale the Deployment
// in time.
func (f failures) onlyServiceFailed() bool {
	return f.deployment == nil && f.service != nil && !needsNoReport(f.service) && report.FromError(f.service) == nil
}

// problemAndError separates failures that a user can fix from an error that the engine retries soon: another owner's Service must not delay
// the schedule. It also reports errors that repeat, in words that stay the same for each attempt.
func (f failures) problemAndError() (found *report.Problem, err error) {
	for _, failure := range []error{f.deployment, f.service} {
		refusal := report.FromError(failure)
		if refusal == nil && err == nil {
			err = failure
		}
		if found == nil {
			found = refusal
		}
	}
	if found == nil && err != nil && !needsNoReport(err) {
		found = &report.Problem{Reason: reasonApplyFails, Message: "the operator cannot write the Deployment or the Service, and retries: its log has the reason; often an admission webhook does not answer"}
	}
	return found, err
}

// needsNoReport reports whether an error needs no report: another client was faster, the API server is unavailable, or the operator stops.
func needsNoReport(err error) bool {
	return apierrors.IsConflict(err) || reconcile.IsUnavailable(err) || errors.Is(err, context.Canceled)
}
