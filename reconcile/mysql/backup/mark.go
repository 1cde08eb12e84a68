package backup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// markEvery is the requeue time for checking whether the schedule that marked an instance still exists: no watch reports it.
const markEvery = time.Minute

// markVoidError means that data was to be deleted only because of a mark of retention, and the mark no longer counts.
type markVoidError struct{ because string }

func (e *markVoidError) Error() string { return e.because }

// markUnknownError means that the operator cannot decide whether a mark still counts: the API server does not report whether the schedule
// exists.
type markUnknownError struct{ cause error }

func (e *markUnknownError) Error() string {
	return "check whether the schedule that marked it still exists: " + e.cause.Error()
}
func (e *markUnknownError) Unwrap() error { return e.cause }

func isMarked(instance v1.MySQLBackupInstance) bool {
	_, expired := transfer.ExpiredBy(instance.Annotations)
	return expired
}

// markVoidReason returns why a mark of retention no longer counts; empty if it counts, or if there is none. A mark counts only while its
// schedule counts the instance, because only that schedule would remove the mark. schedule is the one in the instance's spec, as the API
// server has it; nil if there is none.
func markVoidReason(instance v1.MySQLBackupInstance, schedule *v1.MySQLBackupSchedule) string {
	by, expired := transfer.ExpiredBy(instance.Annotations)
	name := instance.Spec.Schedule
	switch {
	case !expired:
		return ""
	case name == "" || instance.Labels[v1.LabelBackupSchedule] != name:
		return fmt.Sprintf("retention marked it for deletion, and its label %q no longer names its schedule", v1.LabelBackupSchedule)
	case schedule == nil:
		return fmt.Sprintf("MySQLBackupSchedule %q, whose retention marked it for deletion, no longer exists", name)
	case schedule.DeletionTimestamp != nil:
		return fmt.Sprintf("MySQLBackupSchedule %q, whose retention marked it for deletion, is being deleted", name)
	case by != "" && by != schedule.UID:
		return fmt.Sprintf("MySQLBackupSchedule %q, whose retention marked it for deletion, was deleted and created again", name)
	}
	return ""
}

// deletesWithoutMark reports whether data is deleted with an instance even without the mark: by its own policy, or else its schedule's. If
// both are missing, the finalizer may have come with the mark, and the data stays.
func deletesWithoutMark(instance v1.MySQLBackupInstance, schedule *v1.MySQLBackupSchedule) bool {
	return cmp.Or(instance.Spec.DeletionPolicy, policyOf(schedule)) == v1.DeleteData
}

func policyOf(schedule *v1.MySQLBackupSchedule) v1.DeletionPolicy {
	if schedule == nil {
		return ""
	}
	return schedule.Spec.DeletionPolicy
}

// removeVoidMark removes a mark that no longer counts, and the finalizer that came with it. changed reports that it did.
func (r *reconciler) removeVoidMark(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) (changed bool, err error) {
	if !isMarked(instance) {
		return false, nil
	}
	schedule, err := r.schedule(ctx, instance, false)
	if err != nil {
		return false, &markUnknownError{err}
	}
	because := markVoidReason(instance, schedule)
	if because == "" {
		return false, nil
	}
	_, err = client.Patch(ctx, r.kind.GVR(), client.Owner(), transfer.UnexpirePatch(client.Owner(), policyOf(schedule)))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	logr.FromContextOrDiscard(ctx).Info("removed the mark of retention", "op", "spare", "because", because)
	return true, nil
}

// stillMarked returns a markVoidError if data was to be deleted only because of a mark that no longer counts. It returns an
// markUnknownError if the operator cannot decide.
func (r *reconciler) stillMarked(ctx context.Context, instance v1.MySQLBackupInstance) error {
	if !isMarked(instance) {
		return nil
	}
	schedule, err := r.schedule(ctx, instance, false)
	if err != nil {
		return &markUnknownError{err}
	}
	if because := markVoidReason(instance, schedule); because != "" && !deletesWithoutMark(instance, schedule) {
		return &markVoidError{because}
	}
	return nil
}
