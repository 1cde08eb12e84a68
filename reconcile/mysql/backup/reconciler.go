package backup

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// pollEvery is how often the operator asks a running backup for its progress.
	pollEvery = 2 * time.Second
	// helpEvery is the requeue time for what no watch reports: Secrets, claims, schedules, why a Pod does not start.
	helpEvery = 10 * time.Second
)

var _ reconcile.Forgetter = (*reconciler)(nil) // the engine looks for it when it runs

type reconciler struct {
	reader *reconcile.Reader
	kind   schema.Kind
	image  string
	home   string
	now    func() time.Time
	memory *memory
}

// Forget implements reconcile.Forgetter. It drops what the operator remembers of a deleted instance.
func (r *reconciler) Forget(key types.NamespacedName) { r.memory.forget(key) }

// Reconcile makes one pass over one instance.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var instance v1.MySQLBackupInstance
	if err := schema.Decode(object, &instance); err != nil {
		return reconcile.Outcome{}, err
	}
	if instance.DeletionTimestamp != nil {
		return r.end(ctx, client, instance)
	}
	if isOver(instance.Status.Phase) {
		return r.rest(ctx, client, instance)
	}
	return r.pass(ctx, client, instance)
}

// rest handles a backup that is over. It keeps the mark and the finalizer in line with the schedule and the policy, and deletes a Job that
// still runs. Nothing else changes.
func (r *reconciler) rest(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) (reconcile.Outcome, error) {
	r.memory.forget(types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name})
	changed, unsure := r.removeVoidMark(ctx, client, instance)
	if changed {
		return reconcile.Outcome{}, unsure
	}
	if changed, err := r.hold(ctx, client, client.Owner(), holds(instance, instance.Spec.DeletionPolicy)); changed || err != nil {
		return reconcile.Outcome{}, errors.Join(unsure, err)
	}
	if err := errors.Join(unsure, r.retire(ctx, client, instance)); err != nil {
		return reconcile.Outcome{}, err
	}
	outcome := reconcile.Outcome{Status: previousStatus(instance)}
	if isMarked(instance) {
		outcome.RequeueAfter = markEvery
	}
	return outcome, nil
}

// retire deletes the Job of a backup that is over if the Job still runs. Either a container that is not the operator's still runs, or the
// backup was given up while its Pod may still write. Nothing would ever delete what a Pod stores for a failed instance.
func (r *reconciler) retire(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) error {
	object, err := r.ownJob(ctx, instance, false)
	if object == nil || err != nil || object.GetDeletionTimestamp() != nil {
		return err
	}
	var job batchv1.Job
	if err := schema.Decode(object, &job); err != nil || transfer.IsFinished(&job) {
		return err
	}
	all, err := r.podsOf(ctx, instance, false)
	if err != nil || !goesOn(instance, transfer.Observe(protocol.CommandBackup, &job, transfer.PodsOf(&job, all))) {
		return err
	}
	return r.stop(ctx, client, instance)
}

// goesOn reports whether an unfinished Job continues after its backup is over.
func goesOn(instance v1.MySQLBackupInstance, state transfer.State) bool {
	return state.Lingers || instance.Status.Phase == v1.BackupFailed && state.Phase != transfer.Succeeded
}

// pass makes one pass over a backup that is not over.
func (r *reconciler) pass(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) (reconcile.Outcome, error) {
	seen, err := r.observe(ctx, instance)
	if err != nil {
		return r.troubled(instance, err)
	}
	if changed, err := r.hold(ctx, client, client.Owner(), holds(instance, seen.settings.DeletionPolicy)); changed || err != nil {
		return r.troubled(instance, err)
	}
	decided := decide(instance, seen)
	status, err := r.act(ctx, client, instance, seen, decided)
	if err != nil {
		return r.troubled(instance, err)
	}
	return outcome(instance, status, requeueAfter(instance, seen, decided)), nil
}

// troubled ends a pass that met an error. It reports an error that a user can fix. For any other error the status stays as it is.
func (r *reconciler) troubled(instance v1.MySQLBackupInstance, err error) (reconcile.Outcome, error) {
	found := report.FromError(err)
	if found == nil {
		return reconcile.Outcome{}, err
	}
	status := previousStatus(instance)
	conditionsOf(&status, r.now()).Problem(*found)
	return outcome(instance, status, helpEvery), nil
}

// holds reports whether an instance must have the finalizer, because its data must be deleted with it. policy is the effective policy. An
// instance without a policy of its own keeps its finalizer: it came from the schedule's policy, and the schedule may be gone.
func holds(instance v1.MySQLBackupInstance, policy v1.DeletionPolicy) bool {
	_, expired := instance.Annotations[transfer.AnnotationExpired]
	switch {
	case expired, policy == v1.DeleteData:
		return true
	case instance.Spec.DeletionPolicy == "":
		return isHeld(instance)
	}
	return false
}

func isHeld(instance v1.MySQLBackupInstance) bool {
	return slices.Contains(instance.Finalizers, transfer.FinalizerData)
}

// hold adds or removes the finalizer. changed reports that it did; the object then differs from what the pass observed.
func (r *reconciler) hold(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured, wanted bool) (changed bool, err error) {
	others := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return name == transfer.FinalizerData })
	if wanted == (len(others) < len(object.GetFinalizers())) {
		return false, nil
	}
	if wanted {
		others = append(others, transfer.FinalizerData)
	}
	// The patch includes the finalizers of others as the pass read them. It fails if that version is not the latest.
	_, err = client.Patch(ctx, r.kind.GVR(), object, map[string]any{"metadata": map[string]any{"finalizers": others}})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err == nil {
		logr.FromContextOrDiscard(ctx).Info("finalizer changed", "op", "hold", "finalizer", transfer.FinalizerData, "on", wanted)
	}
	return true, err
}
