package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// A cluster that starts from a backup first gets the claim of its first member, and a Job whose Pod restores to that claim's volume. The
// operator creates the StatefulSet, which takes the claim over, only when status.restore is Completed. Before it creates the claim or the
// Job, status.restore says Running: from then on, it must not take an empty database for the restored one. In the end, the content of the
// volume decides. The Pod looks there first, so repeating a step does no harm.

const (
	// progressEvery is how often the operator asks a restoring Pod for its progress, progressLast how often when the Pod is about to end:
	// no watch reports when it has.
	progressEvery = 2 * time.Second
	progressLast  = time.Second
	// The operator retries a failed restore after restoreFirst, twice that, and so on up to restoreLast. It retries at once when one of the
	// inputs has changed.
	restoreFirst = time.Minute
	restoreLast  = 30 * time.Minute
)

// restoreWanted reports whether a cluster must still be restored: it should start from a backup, has no primary yet, and the data is not
// there.
func restoreWanted(cluster v1.MySQLCluster) bool {
	return startsFromBackup(cluster) && cluster.Status.Primary == "" && !restoreCompleted(cluster.Status)
}

func startsFromBackup(cluster v1.MySQLCluster) bool {
	return cluster.Spec.FromBackup != "" || cluster.Spec.FromBackupURL != ""
}

func restoreCompleted(status v1.MySQLClusterStatus) bool {
	return status.Restore != nil && status.Restore.Phase == v1.RestoreCompleted
}

// restoreBegun reports whether the operator has created something for a restore, so that there may be data, or a part of it.
func restoreBegun(status v1.MySQLClusterStatus) bool {
	return status.Restore != nil && status.Restore.Phase != v1.RestorePending
}

// restore makes one pass over a cluster that must still be restored.
func (r *reconciler) restore(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, known clusterMemory) (reconcile.Outcome, error) {
	seen, err := r.observeRestore(ctx, client, cluster, known.transfers)
	if err != nil {
		return r.waiting(cluster, nil, err)
	}
	step := decideRestore(cluster, seen)
	err = r.actRestore(ctx, client, cluster, seen, step)
	if errors.Is(err, errRecordMoved) {
		return reconcile.Outcome{RequeueAfter: stepEvery}, nil // the result of this pass is outdated as well
	}
	if found := report.FromError(err); found != nil {
		step.found, err = *found, nil
	}
	return r.restoreOutcome(cluster, step, seen.progress), err
}

// restoreOutcome returns the outcome of a pass over a cluster that must still be restored. The longer the cluster waits for a user, the
// less often the operator looks.
func (r *reconciler) restoreOutcome(cluster v1.MySQLCluster, step restoreStep, told *transfer.Progress) reconcile.Outcome {
	status := restoreStatus(cluster, step)
	idle := r.memory.see(keyOf(cluster), lookHistory{uid: cluster.UID, digest: digest(visibleStatus(status))})
	next := stepEvery
	switch {
	case step.found.Stalled:
		next = jittered(requeueInput{stalled: true, unwatched: true, idle: idle}.requeueAfter())
	case step.act == restoreWatch:
		next = lookAtProgress(told)
	}
	return outcome(cluster, status, next)
}

// lookAtProgress returns how soon to ask a Pod again that reports its progress.
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

// actRestore carries out one step. If another operator has created the same object a moment ago, it has created it the same.
func (r *reconciler) actRestore(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen restoreObserved, step restoreStep) error {
	n := children.NamesOf(cluster)
	switch step.act {
	case restoreWatch, restoreRecord:
		return nil
	case restoreMakeClaim:
		if err := r.confirmRestore(ctx, client); err != nil {
			return err
		}
		_, err := client.CreateUnowned(ctx, children.FirstClaim(n, cluster))
		return unlessExists(err)
	case restoreGrowClaim:
		found, err := r.growClaim(ctx, client, *seen.claim, children.WantedStorage(cluster))
		if found != nil {
			return found.Err()
		}
		return err
	case restoreMakeJob:
		if err := r.confirmRestore(ctx, client); err != nil {
			return err
		}
		_, err := client.Create(ctx, restoreJob(*seen.order, step.status.Attempts, seen.inputs))
		if err := unlessExists(err); err != nil {
			return err
		}
		return r.askVersion(ctx, client, seen.server)
	case restoreAskVersion:
		return r.askVersion(ctx, client, seen.server)
	case restoreDropVersion:
		return client.Delete(ctx, children.Jobs(), seen.server.jobObject)
	case restoreDropJob:
		return client.Delete(ctx, children.Jobs(), seen.jobObject)
	}
	return nil
}

// askVersion creates the Job that asks the cluster's image for its version, unless it exists. It runs in parallel with the Job that
// restores.
func (r *reconciler) askVersion(ctx context.Context, client *reconcile.Client, server versionCheck) error {
	if server.job != nil {
		return nil
	}
	_, err := client.Create(ctx, transfer.VersionJob(server.order))
	return unlessExists(err)
}

func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// confirmRestore reads the cluster live before the operator creates something for its restore: another operator may have completed it.
func (r *reconciler) confirmRestore(ctx context.Context, client *reconcile.Client) error {
	owner := client.Owner()
	live, err := r.reader.Get(ctx, r.resource, owner.GetNamespace(), owner.GetName())
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

// restoreAbandoned reports whether a restore that is not complete is no longer wanted.
func restoreAbandoned(cluster v1.MySQLCluster) bool {
	return cluster.Status.Restore != nil && !startsFromBackup(cluster) && cluster.Status.Primary == "" && !restoreCompleted(cluster.Status)
}

// abandonRestore ends a restore whose cluster no longer starts from a backup. It deletes the Jobs first, and nothing else happens until
// their Pods have ended. done reports whether they have.
func (r *reconciler) abandonRestore(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) (done bool, err error) {
	n := children.NamesOf(cluster)
	for _, name := range []string{n.RestoreJob(), n.VersionJob()} {
		job, err := r.jobOf(ctx, client, n, name)
		if err != nil {
			return false, err
		}
		if job != nil {
			return false, client.Delete(ctx, children.Jobs(), job)
		}
	}
	left, err := r.restorePods(ctx, n)
	return transfer.CountActive(slices.DeleteFunc(left, transfer.IsVersionPod)) == 0, err
}

// withoutRestore returns a cluster whose restore was given up: the status reports it as failed if it had begun.
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

// preventEmptyPrimary prevents a member with a new data directory from becoming the first primary of a cluster for which a restore has
// begun: it would be taken for the restored data. In this case the volume was exchanged, or the restore never wrote anything.
func preventEmptyPrimary(cluster v1.MySQLCluster, seen observed, decision replication.Decision) replication.Decision {
	if cluster.Status.Primary != "" || !restoreBegun(cluster.Status) || decision.Record.Primary == "" {
		return decision
	}
	for _, member := range seen.members {
		if member.Name == decision.Record.Primary && member.Status != nil && member.Status.Origin == replication.OriginMember {
			return decision
		}
	}
	claim, from := children.NamesOf(cluster).Claim(0), "the backup"
	if cluster.Status.Restore.URL != "" {
		from = cluster.Status.Restore.URL
	}
	return replication.Decision{Record: recordOf(cluster.Status), Scale: decision.Scale, ReadFromPrimary: decision.ReadFromPrimary, Note: &replication.Note{
		Reason: transfer.ReasonRestoreFailed, Blocked: true,
		Message: fmt.Sprintf("the volume of %s is empty, although it should have the data of %s: the operator does not use an empty database instead. Delete this MySQLCluster and claim %s, and apply it with the backup to restore from, or without one to start empty", claim, from, claim),
	}}
}

// freeVolume deletes the Job of a completed restore if another container of its Pod keeps running: otherwise the first member could not use
// the volume. It runs after the status has the restore's report, and in each pass until the cluster has a primary.
func (r *reconciler) freeVolume(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) error {
	seen := restoreObserved{now: r.now()}
	err := r.observeJob(ctx, client, children.NamesOf(cluster), nil, &seen)
	if foreign := (*reconcile.ForeignError)(nil); errors.As(err, &foreign) {
		return nil
	}
	if err == nil && (seen.job == nil || !seen.state.Lingers || seen.job.DeletionTimestamp != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return client.Delete(ctx, children.Jobs(), seen.jobObject)
}

// tidyRestore deletes the Jobs of a restore when its cluster is Ready: until then their logs may be useful. It looks once in a term of the
// operator.
func (r *reconciler) tidyRestore(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) error {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	known := r.memory.recall(key, cluster.UID)
	if cluster.Status.Restore == nil || known.agents == nil || known.tidied {
		return nil
	}
	n := children.NamesOf(cluster)
	for _, name := range []string{n.VersionJob(), n.RestoreJob()} {
		job, err := r.jobOf(ctx, client, n, name)
		if foreign := (*reconcile.ForeignError)(nil); errors.As(err, &foreign) {
			continue
		}
		if err == nil && job != nil {
			err = client.Delete(ctx, children.Jobs(), job)
		}
		if err != nil {
			return err
		}
	}
	known.tidied = true
	r.memory.keep(key, known)
	return nil
}
