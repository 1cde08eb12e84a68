package configmonitor

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// act does what is next and notes it in the workloads. Of what fails, the rest is done all the same.
func (r *reconciler) act(ctx context.Context, monitor v1.ConfigMonitor, workloads []v1.RestartedWorkload, seen look) error {
	var failures []error
	for _, i := range toRoll(workloads) {
		if err := r.stamp(ctx, monitor, workloads[i]); err != nil {
			failures = append(failures, err)
			continue
		}
		workloads[i] = with(workloads[i], v1.ActionRolling, "", seen.now)
	}
	return errors.Join(append(failures, r.evictOne(ctx, monitor.Namespace, workloads, seen))...)
}

// stamp writes the hash of the data into the workload's Pod template, which makes what controls it replace the Pods. It is written by
// a field manager of its own, so that nobody's other apply takes it away; if it is there already nothing happens.
func (r *reconciler) stamp(ctx context.Context, monitor v1.ConfigMonitor, entry v1.RestartedWorkload) error {
	config := monitor.Status.ObservedConfigMap
	annotations := map[string]any{stampKey(config): monitor.Status.LastRestart.Hash}
	stamped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       entry.Kind,
		"metadata":   map[string]any{"name": entry.Name, "namespace": monitor.Namespace},
		"spec":       map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
	}}
	_, err := r.api.ApplyFields(ctx, stampManager(config), stamped)
	// One that was deleted a moment ago is for the next look to note.
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("restart %s %s: %w", entry.Kind, entry.Name, err)
	}
	return nil
}

// evictOne evicts one of the Pods that may go now, if a PodDisruptionBudget lets one. What a budget holds back is tried again later.
func (r *reconciler) evictOne(ctx context.Context, namespace string, workloads []v1.RestartedWorkload, seen look) error {
	for _, i := range toEvict(workloads, seen) {
		entry := workloads[i]
		object := &unstructured.Unstructured{}
		object.SetNamespace(namespace)
		object.SetName(entry.Name)
		object.SetUID(entry.UID)
		err := r.api.Evict(ctx, object)
		if isHeldBack(err) {
			workloads[i] = with(entry, v1.ActionPending, "waits because a PodDisruptionBudget does not let it go now", seen.now)
			continue
		}
		if apierrors.IsConflict(err) {
			// Another Pod has the name: this one is gone, which the next look will show.
			return nil
		}
		if err != nil {
			return err
		}
		workloads[i] = with(entry, v1.ActionEvicting, "is ending", seen.now)
		logr.FromContextOrDiscard(ctx).Info("pod evicted", "op", "restart", "child", kindPod+"/"+entry.Name)
		return nil
	}
	return nil
}

// isHeldBack says that a PodDisruptionBudget forbids an eviction for now. An API server that has too much to do says nearly the same.
func isHeldBack(err error) bool {
	return apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
}

// problemOf turns the errors that a person can do something about into problems.
func problemOf(err error) *problem {
	switch {
	case err == nil || reconcile.IsNamespaceTerminating(err):
		return nil
	case apierrors.IsForbidden(err):
		return &problem{reasonForbidden, err.Error() + "; grant it to the operator (" + reconcile.RightsRemedy + ")"}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsInternalError(err):
		// An internal error is how the Eviction API refuses a Pod that two PodDisruptionBudgets speak of.
		return &problem{reasonRejected, err.Error()}
	}
	return nil
}
