package backup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// markEvery is how soon to look again whether the schedule is there that has marked an instance: no watch tells.
const markEvery = time.Minute

// lapsedError says that data has to go for a mark of retention alone, and that the mark does not count any more.
type lapsedError struct{ because string }

func (e *lapsedError) Error() string { return e.because }

// unsureError says that nobody knows whether a mark still counts: the API server does not say whether the schedule is there.
type unsureError struct{ cause error }

func (e *unsureError) Error() string {
	return "look whether the schedule that has marked it is still there: " + e.cause.Error()
}
func (e *unsureError) Unwrap() error { return e.cause }

func isMarked(instance v1.MySQLBackupInstance) bool {
	_, expired := transfer.ExpiredBy(instance.Annotations)
	return expired
}

// lapsed says why a mark of retention does not count any more; empty if it does, or there is none. It is the word of a schedule that still
// counts the instance: nobody else would take it back. schedule is the one that the instance's spec names, as the API server has it; nil if
// there is none.
func lapsed(instance v1.MySQLBackupInstance, schedule *v1.MySQLBackupSchedule) string {
	by, expired := transfer.ExpiredBy(instance.Annotations)
	name := instance.Spec.Schedule
	switch {
	case !expired:
		return ""
	case name == "" || instance.Labels[v1.LabelBackupSchedule] != name:
		return fmt.Sprintf("retention has marked it, and its label %q names no schedule of its own any more", v1.LabelBackupSchedule)
	case schedule == nil:
		return fmt.Sprintf("MySQLBackupSchedule %q, whose retention has marked it, is gone", name)
	case schedule.DeletionTimestamp != nil:
		return fmt.Sprintf("MySQLBackupSchedule %q, whose retention has marked it, is being deleted", name)
	case by != "" && by != schedule.UID:
		return fmt.Sprintf("MySQLBackupSchedule %q, whose retention has marked it, was deleted and made anew", name)
	}
	return ""
}

// goesUnmarked says whether data goes with an instance also without the mark: by its own policy, or else its schedule's. Where that is gone
// and the instance says nothing, nobody knows whether the finalizer came with the mark, and the data stays.
func goesUnmarked(instance v1.MySQLBackupInstance, schedule *v1.MySQLBackupSchedule) bool {
	return cmp.Or(instance.Spec.DeletionPolicy, policyOf(schedule)) == v1.DeleteData
}

func policyOf(schedule *v1.MySQLBackupSchedule) v1.DeletionPolicy {
	if schedule == nil {
		return ""
	}
	return schedule.Spec.DeletionPolicy
}

// spare takes a mark back that does not count any more, with the finalizer that came with it; changed says that it did.
func (r *reconciler) spare(ctx context.Context, object *unstructured.Unstructured, instance v1.MySQLBackupInstance) (changed bool, err error) {
	if !isMarked(instance) {
		return false, nil
	}
	schedule, err := r.schedule(ctx, instance, false)
	if err != nil {
		return false, &unsureError{err}
	}
	because := lapsed(instance, schedule)
	if because == "" {
		return false, nil
	}
	_, err = r.api.Patch(ctx, r.kind.GVR(), object, transfer.Sparing(object, policyOf(schedule)))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	logr.FromContextOrDiscard(ctx).Info("mark taken back", "op", "spare", "because", because)
	return true, nil
}

// stillMarked returns a lapsedError if data was to go for a mark alone that does not count any more, and an unsureError if that cannot be
// told.
func (r *reconciler) stillMarked(ctx context.Context, instance v1.MySQLBackupInstance) error {
	if !isMarked(instance) {
		return nil
	}
	schedule, err := r.schedule(ctx, instance, false)
	if err != nil {
		return &unsureError{err}
	}
	if because := lapsed(instance, schedule); because != "" && !goesUnmarked(instance, schedule) {
		return &lapsedError{because}
	}
	return nil
}
