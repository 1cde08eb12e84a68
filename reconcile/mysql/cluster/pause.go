package cluster

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// pause makes a pass over a cluster that is paused. It changes nothing, except that the primary needs no lease from now on: the operator
// does not confirm it, and a user may stop the replicas.
func (r *reconciler) pause(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) (reconcile.Outcome, error) {
	if !hasReleased(cluster.Status) {
		status, next, err := r.release(ctx, client, cluster)
		if err != nil || next > 0 {
			return outcome(cluster, status, next), err
		}
	}
	r.memory.closeConnections(keyOf(cluster))
	r.forgetUnheard(cluster)
	return outcome(cluster, paused(cluster), 0), nil
}

// hasReleased reports whether the primary is known to need no lease.
func hasReleased(status v1.MySQLClusterStatus) bool {
	if status.Primary == "" {
		return true
	}
	return status.LeaseMilliseconds == 0 && status.Phase == v1.PhasePaused && !meta.IsStatusConditionTrue(status.Conditions, v1.ConditionReconciling)
}

// release lets the primary lead without a lease. Until it does, release returns a status that reports that, and when to look again.
func (r *reconciler) release(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) (v1.MySQLClusterStatus, time.Duration, error) {
	status := paused(cluster)
	waits := func(why string) {
		conditionsOf(&status).Set(v1.ConditionReconciling, metav1.ConditionTrue, reasonPausing, why+" to let "+cluster.Status.Primary+" lead without a lease")
	}
	waits("waits for the primary")
	known, found, err := r.prerequisites(ctx, client, cluster)
	if known.agents == nil && found != nil {
		waits("cannot reach the primary (" + found.Message + ")")
	}
	if known.agents == nil || err != nil {
		return status, calmEvery, err
	}
	seen, err := r.observe(ctx, client, cluster, known.agents)
	if err != nil {
		return status, calmEvery, err
	}
	now := view(cluster, seen)
	if now.IsReleased() {
		return status, 0, nil
	}
	decision := now.Release()
	if !decision.Record.Equal(now.Record) {
		setRecord(&status, decision.Record)
		return status, stepEvery, nil
	}
	first, later := planAssignments(planInput{cluster: cluster, seen: seen, decision: decision, operator: r.operator})
	if _, err := r.assignAll(ctx, client, known.agents, slices.Concat(first, later)); err != nil {
		return status, stepEvery, err
	}
	if len(decision.Assignments) > 0 {
		return status, stepEvery, nil
	}
	return status, calmEvery, nil
}
