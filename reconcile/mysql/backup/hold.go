package backup

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// lookForMend is the requeue time for checking whether a user has fixed the Secret.
const lookForMend = time.Minute

// sightBarred and sightRemoval are what the memory records of an instance that is being deleted: credentials that must not be sent, and a
// Job that deletes.
const (
	sightBarred  = "barred"
	sightRemoval = "removal"
)

// observeBar checks whether the Secret allows its credentials to be sent to the store of the data, unless a Pod already deletes the data.
// If the operator has no permission to read the Secret, the Pod reports it.
func (r *reconciler) observeBar(ctx context.Context, instance v1.MySQLBackupInstance, seen *deletionObserved) error {
	location := *instance.Status.Location
	if location.Secret == "" || seen.state.Phase == transfer.Running || seen.state.Phase == transfer.Succeeded {
		r.memory.sights.End(keyOf(instance), sightBarred)
		return nil
	}
	credentials, err := r.secret(ctx, instance.Namespace, location.Secret)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil || !credentials.found {
		return err // a missing Secret may come back: the Job that deletes waits for it
	}
	if seen.credentialsRefused = credentialsRefusedReason(location, credentials.data); seen.credentialsRefused == "" {
		r.memory.sights.End(keyOf(instance), sightBarred)
		return nil
	}
	seen.credentialsRefusedFor = r.memory.sights.Waited(keyOf(instance), sightBarred, seen.now)
	return nil
}

// credentialsRefusedReason returns why a Secret does not allow its credentials to be sent to the store of the data, and how to fix it;
// empty if it does. An incomplete Secret, or one in the format of an earlier build, is no reason to give up data.
func credentialsRefusedReason(location v1.BackupLocation, credentials map[string][]byte) string {
	if err := destination.CheckEndpoint(location.URL, credentials); err != nil {
		return fmt.Sprintf("Secret %q: %v", location.Secret, err)
	}
	return ""
}

// heldFor returns for how long an instance has waited for a user, as this process has measured with its own clock. Another operator's clock
// set the condition's time. That time only ends a wait of more than twice userPatience. Otherwise operators that restart often, and count
// from zero each time, would wait indefinitely. If that clock was behind, the wait began when the API server received the deletion, or
// later.
func heldFor(instance v1.MySQLBackupInstance, seen deletionObserved) time.Duration {
	since, waits := heldSince(instance)
	if !waits {
		return seen.credentialsRefusedFor
	}
	if deleted := instance.DeletionTimestamp; deleted != nil && since.Before(deleted.Time) {
		since = deleted.Time
	}
	return max(seen.credentialsRefusedFor, seen.now.Sub(since)-userPatience-transfer.ClockTolerance)
}

// removingFor returns for how long this process has observed the deletion of an instance's data. If the operator has restarted, it is at
// least the time since the deletion, by the API server's clock, minus a day.
func (r *reconciler) removingFor(instance v1.MySQLBackupInstance, now time.Time) time.Duration {
	removing := r.memory.sights.Waited(keyOf(instance), sightRemoval, now)
	if deleted := instance.DeletionTimestamp; deleted != nil {
		removing = max(removing, now.Sub(deleted.Time)-userPatience-transfer.ClockTolerance)
	}
	return removing
}

// heldSince returns since when an instance's status reports that it waits for a user. A report from before the deletion or before a change
// of the spec does not count: both raise the generation.
func heldSince(instance v1.MySQLBackupInstance) (time.Time, bool) {
	said := meta.FindStatusCondition(instance.Status.Conditions, v1.ConditionStalled)
	if said == nil || said.Reason != protocol.ReasonDestinationRefused || said.ObservedGeneration != instance.Generation {
		return time.Time{}, false
	}
	return said.LastTransitionTime.Time, true
}

// waitForUserOutcome is the outcome of a pass over an instance that waits for a user.
func waitForUserOutcome(instance v1.MySQLBackupInstance, because string, now time.Time) reconcile.Outcome {
	_, waits := heldSince(instance)
	if !waits {
		// The time counts from now. A condition that stays True would keep the time of another cause.
		instance.Status.Conditions = slices.Clone(instance.Status.Conditions)
		meta.RemoveStatusCondition(&instance.Status.Conditions, v1.ConditionStalled)
	}
	outcome := reconcile.Outcome{Status: deletionStatus(instance, report.Problem{Reason: protocol.ReasonDestinationRefused, Message: because, Stalled: true}, now), RequeueAfter: lookForMend}
	if !waits {
		outcome.Events = []reconcile.Event{{Type: reconcile.Warning, Reason: protocol.ReasonDestinationRefused, Action: "Delete", Note: because}}
	}
	return outcome
}
