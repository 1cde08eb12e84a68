package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// A cluster that starts from a backup first gets the claim of its first member, and a Job whose Pod restores to that claim's volume. The
// StatefulSet, which takes the claim over, is made only when status.restore is Completed. Before the claim or the Job is made,
// status.restore says Running: from then on no empty database may be taken for the restored one. What is on the volume decides in
// the end: the Pod looks there first, so whatever is done twice is done once.

const (
	// progressEvery is how often a Pod that restores is asked how far it is, progressLast how often once it is about to end: no watch tells
	// when it has.
	progressEvery = 2 * time.Second
	progressLast  = time.Second
	// A restore that failed is tried again after restoreFirst, twice that, and so on up to restoreLast; at once when something it depends on
	// has changed.
	restoreFirst = time.Minute
	restoreLast  = 30 * time.Minute
)

// restoreWanted says whether a cluster has yet to be restored: it shall start from a backup, has no primary yet, and the data is not there.
func restoreWanted(cluster v1.MySQLCluster) bool {
	return startsFromBackup(cluster) && cluster.Status.Primary == "" && !restoreCompleted(cluster.Status)
}

func startsFromBackup(cluster v1.MySQLCluster) bool {
	return cluster.Spec.FromBackup != "" || cluster.Spec.FromBackupURL != ""
}

func restoreCompleted(status v1.MySQLClusterStatus) bool {
	return status.Restore != nil && status.Restore.Phase == v1.RestoreCompleted
}

// restoreBegun says whether something was made for a restore, so that there may be data, or a part of it.
func restoreBegun(status v1.MySQLClusterStatus) bool {
	return status.Restore != nil && status.Restore.Phase != v1.RestorePending
}

// restore makes one pass over a cluster that has yet to be restored.
func (r *reconciler) restore(ctx context.Context, object *unstructured.Unstructured, cluster v1.MySQLCluster, known remembered) (reconcile.Outcome, error) {
	seen, err := r.observeRestore(ctx, object, cluster, known.transfers)
	if err != nil {
		return r.waiting(cluster, nil, err)
	}
	step := decideRestore(cluster, seen)
	err = r.actRestore(ctx, object, cluster, seen, step)
	if errors.Is(err, errRecordMoved) {
		return reconcile.Outcome{Again: stepEvery}, nil // what this pass would say is of the past as well
	}
	if found := problemOf(err); found != nil {
		step.found, err = *found, nil
	}
	return r.restoreOutcome(cluster, step, seen.progress), err
}

// restoreOutcome is the end of a pass over a cluster that has yet to be restored. The longer it waits for a person, the less often it
// looks.
func (r *reconciler) restoreOutcome(cluster v1.MySQLCluster, step restoreStep, told *transfer.Progress) reconcile.Outcome {
	status := restoreStatus(cluster, step)
	idle := r.memory.see(keyOf(cluster), sight{uid: cluster.UID, digest: digest(said(status))})
	next := stepEvery
	switch {
	case step.found.stalled:
		next = jittered(prospect{stalled: true, unwatched: true, idle: idle}.next())
	case step.act == restoreWatch:
		next = lookAtProgress(told)
	}
	return outcome(cluster, status, next)
}

// lookAtProgress is how soon to ask a Pod again that says how far it is.
func lookAtProgress(told *transfer.Progress) time.Duration {
	if told == nil || told.TotalBytes == 0 {
		return progressEvery
	}
	left := told.TotalBytes - told.Bytes
	if left <= 0 || left < told.BytesPerSecond*int64(progressEvery/time.Second) {
		return progressLast
	}
	return progressEvery
}

// actRestore carries one step out. Whoever else has made the same object a moment ago has made it the same.
func (r *reconciler) actRestore(ctx context.Context, owner *unstructured.Unstructured, cluster v1.MySQLCluster, seen restoring, step restoreStep) error {
	n := namesOf(cluster)
	switch step.act {
	case restoreWatch, restoreRecord:
		return nil
	case restoreMakeClaim:
		if err := r.confirmRestore(ctx, owner); err != nil {
			return err
		}
		_, err := r.api.Create(ctx, nil, firstClaim(n, cluster))
		return unlessExists(err)
	case restoreGrowClaim:
		found, err := r.growClaim(ctx, *seen.claim, wantedStorage(cluster))
		if found != nil {
			return &problemError{*found}
		}
		return err
	case restoreMakeJob:
		if err := r.confirmRestore(ctx, owner); err != nil {
			return err
		}
		_, err := r.api.Create(ctx, owner, restoreJob(*seen.order, step.status.Attempts, seen.inputs))
		if err := unlessExists(err); err != nil {
			return err
		}
		return r.askVersion(ctx, owner, seen.server)
	case restoreAskVersion:
		return r.askVersion(ctx, owner, seen.server)
	case restoreDropVersion:
		return r.api.Delete(ctx, jobs(), seen.server.jobObject)
	case restoreDropJob:
		return r.api.Delete(ctx, jobs(), seen.jobObject)
	}
	return nil
}

// askVersion makes the Job that asks the cluster's image for its version, unless it is there. It works beside the Job that restores.
func (r *reconciler) askVersion(ctx context.Context, owner *unstructured.Unstructured, server asking) error {
	if server.job != nil {
		return nil
	}
	_, err := r.api.Create(ctx, owner, transfer.VersionJob(server.order))
	return unlessExists(err)
}

func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// confirmRestore reads the cluster live before something is made for its restore: another operator may have brought it to its end.
func (r *reconciler) confirmRestore(ctx context.Context, owner *unstructured.Unstructured) error {
	live, err := r.api.Get(ctx, r.resource, owner.GetNamespace(), owner.GetName())
	if err != nil {
		return err
	}
	var cluster v1.MySQLCluster
	if err := schema.Decode(live, &cluster); err != nil {
		return err
	}
	if live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil || !restoreWanted(cluster) || !restoreBegun(cluster.Status) {
		return errRecordMoved
	}
	return nil
}

// restoreAbandoned says whether a restore that is not complete is no longer wanted.
func restoreAbandoned(cluster v1.MySQLCluster) bool {
	return cluster.Status.Restore != nil && !startsFromBackup(cluster) && cluster.Status.Primary == "" && !restoreCompleted(cluster.Status)
}

// abandonRestore ends a restore whose cluster is no longer to start from a backup: its Job goes first, and nothing else is done until its
// Pods have ended. done says that they have.
func (r *reconciler) abandonRestore(ctx context.Context, object *unstructured.Unstructured, cluster v1.MySQLCluster) (done bool, err error) {
	n := namesOf(cluster)
	for _, name := range []string{n.restoreJob(), n.versionJob()} {
		job, err := r.jobOf(ctx, object, n, name)
		if err != nil {
			return false, err
		}
		if job != nil {
			return false, r.api.Delete(ctx, jobs(), job)
		}
	}
	left, err := r.restorePods(ctx, n)
	return countAlive(slices.DeleteFunc(left, transfer.IsVersionPod)) == 0, err
}

// withoutRestore is a cluster whose restore was given up: the record tells of it if it had begun.
func withoutRestore(cluster v1.MySQLCluster) v1.MySQLCluster {
	if !restoreBegun(cluster.Status) {
		cluster.Status.Restore = nil
		return cluster
	}
	failed := *cluster.Status.Restore
	failed.Phase, failed.Progress = v1.RestoreFailed, nil
	cluster.Status.Restore = &failed
	return cluster
}

// keepRestored lets no member with a new data directory become the first primary of a cluster for which a restore was begun: it would be
// taken for the restored data. The volume was swapped, or the restore never came to anything.
func keepRestored(cluster v1.MySQLCluster, seen observation, decision replication.Decision) replication.Decision {
	if cluster.Status.Primary != "" || !restoreBegun(cluster.Status) || decision.Record.Primary == "" {
		return decision
	}
	for _, member := range seen.members {
		if member.Name == decision.Record.Primary && member.Status != nil && member.Status.Origin == replication.OriginMember {
			return decision
		}
	}
	claim, from := namesOf(cluster).volume(0), "the backup"
	if cluster.Status.Restore.URL != "" {
		from = cluster.Status.Restore.URL
	}
	return replication.Decision{Record: recordOf(cluster.Status), Scale: decision.Scale, ReadFromPrimary: decision.ReadFromPrimary, Note: &replication.Note{
		Reason: transfer.ReasonRestoreFailed, Blocked: true,
		Message: fmt.Sprintf("the volume of %s is empty, although it should have the data of %s: the operator does not use an empty database instead. Delete this MySQLCluster and claim %s, and apply it with the backup to restore from, or without one to start empty", claim, from, claim),
	}}
}

// freeVolume deletes the Job of a completed restore where another container of its Pod runs on: the Pod would keep the volume from the
// first member. It is done after the status has what the restore told, and repeated until the cluster has a primary.
func (r *reconciler) freeVolume(ctx context.Context, object *unstructured.Unstructured, cluster v1.MySQLCluster) error {
	seen := restoring{now: r.now()}
	err := r.observeJob(ctx, object, namesOf(cluster), nil, &seen)
	if foreign := (*reconcile.ForeignError)(nil); errors.As(err, &foreign) {
		return nil
	}
	if err == nil && (seen.job == nil || !seen.state.Lingers || seen.job.DeletionTimestamp != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.api.Delete(ctx, jobs(), seen.jobObject)
}

// tidyRestore deletes the Jobs of a restore when its cluster is Ready: until then their logs may be worth reading. It looks once in a term.
func (r *reconciler) tidyRestore(ctx context.Context, object *unstructured.Unstructured, cluster v1.MySQLCluster) error {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	known := r.memory.recall(key, cluster.UID)
	if cluster.Status.Restore == nil || known.agents == nil || known.tidied {
		return nil
	}
	n := namesOf(cluster)
	for _, name := range []string{n.versionJob(), n.restoreJob()} {
		job, err := r.jobOf(ctx, object, n, name)
		if foreign := (*reconcile.ForeignError)(nil); errors.As(err, &foreign) {
			continue
		}
		if err == nil && job != nil {
			err = r.api.Delete(ctx, jobs(), job)
		}
		if err != nil {
			return err
		}
	}
	known.tidied = true
	r.memory.keep(key, known)
	return nil
}
