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
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// act does what is next and records it in the workloads. After a failure it still does the rest.
func act(ctx context.Context, client *reconcile.Client, monitor v1.ConfigMonitor, workloads []v1.RestartedWorkload, seen observed) error {
	var failures []error
	for _, i := range toRoll(workloads) {
		if err := stamp(ctx, client, monitor, workloads[i]); err != nil {
			failures = append(failures, err)
			continue
		}
		workloads[i] = withAction(workloads[i], v1.ActionRolling, "", seen.now)
	}
	return errors.Join(append(failures, evictOne(ctx, client, monitor.Namespace, workloads, seen))...)
}

// stamp writes the hash of the data into the workload's Pod template. The workload's controller then replaces the Pods. The stamp has a
// separate field manager, so that no other client's apply removes it. If the template already has the stamp, nothing happens.
func stamp(ctx context.Context, client *reconcile.Client, monitor v1.ConfigMonitor, entry v1.RestartedWorkload) error {
	config := monitor.Status.ObservedConfigMap
	annotations := map[string]any{stampKey(config): monitor.Status.LastRestart.Hash}
	stamped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       entry.Kind,
		"metadata":   map[string]any{"name": entry.Name, "namespace": monitor.Namespace},
		"spec":       map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
	}}
	_, err := client.ApplyFields(ctx, stampManager(config), stamped)
	// The next pass records a workload that was deleted a moment ago.
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("restart %s %s: %w", entry.Kind, entry.Name, err)
	}
	return nil
}

// evictOne evicts one of the Pods that may go now, if a PodDisruptionBudget allows it. If a budget does not, a later pass tries again.
func evictOne(ctx context.Context, client *reconcile.Client, namespace string, workloads []v1.RestartedWorkload, seen observed) error {
	for _, i := range toEvict(workloads, seen) {
		entry := workloads[i]
		object := &unstructured.Unstructured{}
		object.SetNamespace(namespace)
		object.SetName(entry.Name)
		object.SetUID(entry.UID)
		err := client.Evict(ctx, object)
		if isBlockedByBudget(err) {
			workloads[i] = withAction(entry, v1.ActionPending, "waits because a PodDisruptionBudget does not allow its eviction now", seen.now)
			continue
		}
		if apierrors.IsConflict(err) {
			// Another Pod has the name: this one is gone, and the next pass will see that.
			return nil
		}
		if err != nil {
			return err
		}
		workloads[i] = withAction(entry, v1.ActionEvicting, "is terminating", seen.now)
		logr.FromContextOrDiscard(ctx).Info("pod evicted", "op", "restart", "child", kindPod+"/"+entry.Name)
		return nil
	}
	return nil
}

// isBlockedByBudget reports whether a PodDisruptionBudget forbids an eviction for now. An overloaded API server answers nearly the same.
func isBlockedByBudget(err error) bool {
	return apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
}

// problemOf returns the problem that an error stands for. The Eviction API answers with an internal error for a Pod that two
// PodDisruptionBudgets select.
func problemOf(err error) *report.Problem {
	if apierrors.IsInternalError(err) {
		return &report.Problem{Reason: report.ReasonRejected, Message: err.Error(), Stalled: true}
	}
	return report.FromError(err)
}
