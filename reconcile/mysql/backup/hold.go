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
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// lookForMend is how soon to look again whether somebody has helped.
const lookForMend = time.Minute

// sightBarred and sightRemoval are what the memory sees of an instance that ends: credentials that may not be sent, and a Job that deletes.
const (
	sightBarred  = "barred"
	sightRemoval = "removal"
)

// observeBar looks whether the Secret lets its credentials go to where the data is, unless a Pod deletes it already. Where the operator may
// not read the Secret, the Pod tells.
func (r *reconciler) observeBar(ctx context.Context, instance v1.MySQLBackupInstance, seen *remains) error {
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
		return err // a Secret that is missing may come back: the Job that deletes waits for it
	}
	if seen.barred = barOf(location, credentials.data); seen.barred == "" {
		r.memory.sights.End(keyOf(instance), sightBarred)
		return nil
	}
	seen.barredFor = r.memory.sights.Waited(keyOf(instance), sightBarred, seen.now)
	return nil
}

// barOf says why a Secret does not let its credentials go to where the data is, and what to do; empty if it does. A Secret that is in the
// making, or as an earlier build took it, gives no data up.
func barOf(location v1.BackupLocation, credentials map[string][]byte) string {
	if err := destination.CheckEndpoint(location.URL, credentials); err != nil {
		return fmt.Sprintf("Secret %q: %v", location.Secret, err)
	}
	return ""
}

// heldFor is for how long an instance waits for somebody, as this process has seen it by its own clock. The condition's time was written by
// another operator's: it only ends a wait of more than twice mendPatience, so that operators that take over from each other, and count
// anew, do not wait for ever. Where that clock was behind, the wait began when the API server was told to delete the instance, or later.
func heldFor(instance v1.MySQLBackupInstance, seen remains) time.Duration {
	since, waits := heldSince(instance)
	if !waits {
		return seen.barredFor
	}
	if deleted := instance.DeletionTimestamp; deleted != nil && since.Before(deleted.Time) {
		since = deleted.Time
	}
	return max(seen.barredFor, seen.now.Sub(since)-mendPatience-transfer.ClockTolerance)
}

// removingFor is for how long this process has seen an instance's data being deleted. Where operators change it counts a day less than the
// API server does.
func (r *reconciler) removingFor(instance v1.MySQLBackupInstance, now time.Time) time.Duration {
	removing := r.memory.sights.Waited(keyOf(instance), sightRemoval, now)
	if deleted := instance.DeletionTimestamp; deleted != nil {
		removing = max(removing, now.Sub(deleted.Time)-mendPatience-transfer.ClockTolerance)
	}
	return removing
}

// heldSince returns since when an instance says that it waits for somebody. What it said of its backup before somebody deleted it, or
// changed its spec, does not count: either makes another generation.
func heldSince(instance v1.MySQLBackupInstance) (time.Time, bool) {
	said := meta.FindStatusCondition(instance.Status.Conditions, v1.ConditionStalled)
	if said == nil || said.Reason != transfer.ReasonDestinationRefused || said.ObservedGeneration != instance.Generation {
		return time.Time{}, false
	}
	return said.LastTransitionTime.Time, true
}

// held is the outcome of a pass over an instance that waits for somebody.
func held(instance v1.MySQLBackupInstance, because string, now time.Time) reconcile.Outcome {
	_, waits := heldSince(instance)
	if !waits {
		// It counts from now on. A condition that stays True would keep the time of another cause.
		instance.Status.Conditions = slices.Clone(instance.Status.Conditions)
		meta.RemoveStatusCondition(&instance.Status.Conditions, v1.ConditionStalled)
	}
	outcome := reconcile.Outcome{Status: departing(instance, problem{transfer.ReasonDestinationRefused, because, true}, now), Again: lookForMend}
	if !waits {
		outcome.Events = []reconcile.Event{{Type: reconcile.Warning, Reason: transfer.ReasonDestinationRefused, Action: "Delete", Note: because}}
	}
	return outcome
}
