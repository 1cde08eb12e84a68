package cluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// restore makes one pass over a cluster that must still be restored.
func (r *reconciler) restore(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, known clusterMemory) (reconcile.Outcome, error) {
	exist, err := r.membersExist(ctx, client, children.NamesOf(cluster))
	if err != nil {
		return r.waiting(cluster, nil, err)
	}
	seen, err := r.restorer().Observe(ctx, client, cluster, restore.Known{Members: exist, Transfers: known.transfers})
	if err != nil {
		return r.waiting(cluster, nil, err)
	}
	step := restore.Decide(cluster, seen)
	err = r.restorer().Act(ctx, client, cluster, seen, step)
	if errors.Is(err, restore.ErrOutdated) {
		return reconcile.Outcome{RequeueAfter: stepEvery}, nil // the result of this pass is outdated as well
	}
	if found := report.FromError(err); found != nil {
		step.Problem, err = *found, nil
	}
	return r.restoreOutcome(cluster, step, step.LookAgain(seen)), err
}

func (r *reconciler) restorer() restore.Restorer {
	return restore.Restorer{Reader: r.reader, Clusters: r.resource, Image: r.operator.Image, Now: r.now, Ended: r.memory.failures}
}

// restoreOutcome returns the outcome of a pass over a cluster that must still be restored. The longer the cluster waits for a user, the
// less often the operator looks.
func (r *reconciler) restoreOutcome(cluster v1.MySQLCluster, step restore.Step, next time.Duration) reconcile.Outcome {
	status := restoreStatus(cluster, step)
	idle := r.memory.see(keyOf(cluster), lookHistory{uid: cluster.UID, digest: digest(visibleStatus(status))})
	if step.Problem.Stalled {
		next = jittered(requeueInput{stalled: true, unwatched: true, idle: idle}.requeueAfter())
	}
	return outcome(cluster, status, next)
}

// restoreStatus returns the cluster's status while it is restored.
func restoreStatus(cluster v1.MySQLCluster, step restore.Step) v1.MySQLClusterStatus {
	status := previousStatus(cluster)
	status.Restore = &step.Status
	status.Phase = v1.PhaseWaiting
	if begun := step.Status.Phase != v1.RestorePending; begun && !step.Problem.Stalled {
		status.Phase = v1.PhaseRestoring
	}
	conditionsOf(&status).Problem(step.Problem)
	return status
}

// waitForRestore reports what a cluster without members waits for: a Pod that still restores a backup to the volume of an earlier cluster
// of the same name; nil if there is none.
func (r *reconciler) waitForRestore(ctx context.Context, cluster v1.MySQLCluster, seen observed) (*report.Problem, error) {
	waits := report.Problem{Reason: protocol.ReasonRestoring, Message: "waiting for the Pod to end that restores a backup to the volume of an earlier cluster of this name"}
	if seen.set != nil || cluster.Status.HadPrimary() || restore.IsCompleted(cluster.Status) {
		return nil, nil //nolint:nilnil // it waits for nothing
	}
	ended, err := r.restorer().HaveEnded(ctx, cluster)
	if ended && err == nil {
		return nil, nil //nolint:nilnil // it waits for nothing
	}
	return &waits, err
}

// tidyRestore deletes the Jobs of a restore when its cluster is Ready. It looks once in a term of the operator.
func (r *reconciler) tidyRestore(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) error {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	known := r.memory.recall(key, cluster.UID)
	if cluster.Status.Restore == nil || known.agents == nil || known.tidied {
		return nil
	}
	if err := r.restorer().Tidy(ctx, client, cluster); err != nil {
		return err
	}
	known.tidied = true
	r.memory.keep(key, known)
	return nil
}
