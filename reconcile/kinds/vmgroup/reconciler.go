package vmgroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// Reconcile makes one pass over one group.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var group v1alpha1.VmGroup
	if err := schema.Decode(object, &group); err != nil {
		return reconcile.Outcome{}, err
	}
	held, ending := slices.Contains(group.Finalizers, v1alpha1.FinalizerMachines), group.DeletionTimestamp != nil
	if ending && !held {
		return reconcile.Outcome{}, nil
	}
	if ending && group.Annotations[v1alpha1.AnnotationAbandon] == "true" {
		return r.release(ctx, client, group, abandoned(group))
	}
	found, wrong, err := r.access(ctx, group)
	if refused := report.FromError(err); refused != nil && refused.Reason == report.ReasonForbidden {
		wrong, err = refused, nil
	}
	if err != nil {
		return reconcile.Outcome{}, err
	}
	if wrong != nil {
		return r.report(group, statusWithProblem(group, *wrong, r.now()), nil, r.settings.Pace.Stalled), nil
	}
	if !held {
		return reconcile.Outcome{}, r.setFinalizer(ctx, client, true)
	}
	return r.pass(ctx, client, group, found)
}

// pass observes the vCenter, decides and acts.
func (r *reconciler) pass(ctx context.Context, client *reconcile.Client, group v1alpha1.VmGroup, found cachedAccess) (reconcile.Outcome, error) {
	at, begun := groupOf(group, found.access), r.now()
	inventory, err := r.settings.VCenter.Look(ctx, at)
	if err != nil {
		return r.failed(group, group.Status, err)
	}
	key := keyOf(group)
	seen := observed{now: r.now(), host: at.Account.Host, inventory: inventory, stopping: r.stoppingOf(key), ending: r.endingFor(group)}
	next := decide(group, seen)
	if group.DeletionTimestamp != nil {
		next = decideEnd(group, seen)
	}
	if next.release {
		return r.release(ctx, client, group, next.left)
	}
	r.stopsOnly(key, next.mustStop)
	if !next.inWrongPlace() {
		r.rememberAccess(key, found)
	}
	steps := stepsToSend(group, seen, next)
	if takesDown(steps) {
		if err := client.CheckUnchanged(ctx); err != nil {
			return reconcile.Outcome{}, err
		}
	}
	events, err := r.act(ctx, passContext{group, at, begun}, steps)
	status := statusAfterPass(group, seen, next)
	if err != nil {
		outcome, err := r.failed(group, status, err)
		outcome.Events = append(events, outcome.Events...)
		return outcome, err
	}
	again := r.settings.Pace.Step
	switch {
	case next.settled():
		again = r.settings.Pace.Rest
	case next.problem != nil && len(next.steps) == 0:
		again = r.settings.Pace.Stalled
	}
	return r.report(group, status, events, again), nil
}

// failed reports an error of the vCenter. If the group must wait, the engine makes the next pass after the wait. The pass does not return
// the error, because the engine would retry too soon.
func (r *reconciler) failed(group v1alpha1.VmGroup, status v1alpha1.VmGroupStatus, err error) (reconcile.Outcome, error) {
	var told *vcenter.Error
	if !errors.As(err, &told) {
		return reconcile.Outcome{}, err
	}
	if told.Reason == vcenter.Moved {
		return reconcile.Outcome{RequeueAfter: r.settings.Pace.Step}, nil
	}
	again := max(told.After, r.settings.Pace.Stalled)
	if told.Reason == vcenter.LoginRefused || told.Reason == vcenter.Untrusted {
		// The next pass reads the Secret again soon. While its content is the same, the helper does not ask the vCenter.
		r.forgetAccount(group.Namespace)
		again = r.settings.Pace.Stalled
	}
	before := group.Status
	group.Status = status
	status = statusWithProblem(group, report.Problem{Reason: string(told.Reason), Message: told.Message}, r.now())
	group.Status = before
	return r.report(group, status, nil, again), nil
}

func (r *reconciler) report(group v1alpha1.VmGroup, status v1alpha1.VmGroupStatus, events []reconcile.Event, again time.Duration) reconcile.Outcome {
	return reconcile.Outcome{Status: status, Events: append(events, eventsFor(group.Status, status)...), RequeueAfter: again}
}

// stoppingOf returns since when machines are shutting down.
func (r *reconciler) stoppingOf(key types.NamespacedName) map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.stopping[key])
}

// endingFor returns how long this process has known that a group is being deleted. DeletionTimestamp is from another clock.
func (r *reconciler) endingFor(group v1alpha1.VmGroup) time.Duration {
	if group.DeletionTimestamp == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	since, found := r.ending[keyOf(group)]
	if !found {
		since = r.now()
		r.ending[keyOf(group)] = since
	}
	return r.now().Sub(since)
}

// stopsOnly forgets machines that are shut down, or no longer need to be.
func (r *reconciler) stopsOnly(key types.NamespacedName, halting []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.stopping[key], func(id string, _ time.Time) bool { return !slices.Contains(halting, id) })
}

// noteStopping records when the operator first asked a machine to shut down.
func (r *reconciler) noteStopping(key types.NamespacedName, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping[key] == nil {
		r.stopping[key] = map[string]time.Time{}
	}
	if _, asked := r.stopping[key][id]; !asked {
		r.stopping[key][id] = r.now()
	}
}

// setFinalizer adds or removes the finalizer. The group has it before the operator creates anything in the vCenter.
func (r *reconciler) setFinalizer(ctx context.Context, client *reconcile.Client, wanted bool) error {
	object := client.Owner()
	finalizers := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return name == v1alpha1.FinalizerMachines })
	if wanted {
		finalizers = append(finalizers, v1alpha1.FinalizerMachines)
	}
	_, err := client.Patch(ctx, r.kind.GVR(), object, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	return err
}

// release removes the finalizer from a group that is being deleted, and reports what stays in the vCenter.
func (r *reconciler) release(ctx context.Context, client *reconcile.Client, group v1alpha1.VmGroup, left string) (reconcile.Outcome, error) {
	if left != "" {
		logr.FromContextOrDiscard(ctx).Info("left in the vCenter", "op", "delete", "what", left)
		// The event comes first, because it cannot be recorded for a group that is gone. A namespace that is being deleted accepts no
		// events.
		told := reconcile.Event{Type: reconcile.Warning, Reason: reasonMachinesLeft, Action: "Delete", Note: left}
		if err := client.WriteEvent(ctx, told); err != nil && !reconcile.IsNamespaceTerminating(err) {
			return reconcile.Outcome{}, fmt.Errorf("release VmGroup %s: %w", group.Name, err)
		}
	}
	if err := r.setFinalizer(ctx, client, false); err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Outcome{}, fmt.Errorf("release VmGroup %s: %w", group.Name, err)
	}
	return reconcile.Outcome{}, nil
}
