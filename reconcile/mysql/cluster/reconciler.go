// Package cluster reconciles MySQLCluster resources. A pass observes (observe.go: the children in the caches, and the report of each
// member's agent), decides (reconcile/mysql/replication: roles and the record), plans (plan.go, and package children: the actions, with
// their reasons), acts (act.go) and reports (status.go). The record of truth is part of the status: a pass writes its decision to the
// status, and the next pass carries it out.
//
// A cluster that starts from a backup has other passes until the backup is on the first member's volume (restoring.go, package restore).
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The engine looks for these interfaces when it runs.
var _ interface {
	reconcile.SkipChecker
	reconcile.DeletionHandler
	reconcile.Forgetter
	reconcile.Listener
} = (*reconciler)(nil)

type reconciler struct {
	reader   *reconcile.Reader
	resource apischema.GroupVersionResource
	operator Operator
	now      func() time.Time
	memory   *memory
	// takeovers measures the phases of takeovers.
	takeovers *prometheus.HistogramVec
}

// Forget drops what the reconciler remembers of a deleted cluster.
func (r *reconciler) Forget(key types.NamespacedName) { r.memory.forget(key) }

// Reconcile makes one pass over one cluster.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	r.memory.settle(key, nil)
	var cluster v1.MySQLCluster
	if err := schema.Decode(object, &cluster); err != nil {
		return reconcile.Outcome{}, err
	}
	if cluster.DeletionTimestamp != nil {
		r.memory.closeConnections(key)
		return reconcile.Outcome{}, nil
	}
	if cluster.Spec.Paused {
		return r.pause(ctx, client, cluster)
	}
	return r.pass(ctx, client, cluster)
}

func (r *reconciler) pass(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) (reconcile.Outcome, error) {
	known, found, unread := r.prerequisites(ctx, client, cluster)
	if known.agents == nil {
		return r.waiting(cluster, found, unread)
	}
	if restore.IsWanted(cluster) {
		return r.restore(ctx, client, cluster, known)
	}
	if restore.IsAbandoned(cluster) {
		done, err := r.restorer().Abandon(ctx, client, cluster)
		cluster = restore.GiveUp(cluster)
		if !done || err != nil {
			waits := report.Problem{Reason: protocol.ReasonRestoring, Message: "the cluster no longer starts from a backup; waiting for the Pod that restored to end"}
			return outcome(cluster, blocked(cluster, waits), stepEvery), err
		}
	}
	if restore.IsCompleted(cluster.Status) && !cluster.Status.HadPrimary() {
		if err := r.restorer().FreeVolume(ctx, client, cluster); err != nil {
			return reconcile.Outcome{}, err
		}
	}
	next, err := r.reconcileMembers(ctx, client, cluster, known, found)
	if unread != nil {
		r.memory.settle(keyOf(cluster), nil) // the next pass must read the Secrets
	}
	return next, errors.Join(unread, err)
}

// reconcileMembers makes a pass over a cluster's members. found is a problem with its Secrets.
func (r *reconciler) reconcileMembers(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, known clusterMemory, found *report.Problem) (reconcile.Outcome, error) {
	seen, err := r.observe(ctx, client, cluster, known.agents)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	if first, err := r.first(ctx, cluster, seen, known); first != nil {
		return outcome(cluster, *first, stepEvery), err
	}
	seen.bundle = known.bundle
	decision := decide(cluster, view(cluster, seen))
	result := passResult{cluster: cluster, seen: seen, decision: decision, inputs: inputsOf(cluster, seen, decision), problem: found, rotation: known.rotation}
	in := planInput{cluster: cluster, seen: seen, decision: decision, operator: r.operator, areMade: r.memory.isMade(keyOf(cluster), result.inputs)}
	in.hasPolicy = !in.areMade && r.hasNetworkPolicy(client, children.NamesOf(cluster))
	plan := planOf(in)
	if len(plan) > 0 {
		logr.FromContextOrDiscard(ctx).V(1).Info("plan", "actions", plan)
	}
	everybodyTold, err := r.act(ctx, client, known.agents, plan, &result)
	status := result.status()
	r.memory.measureTakeover(r.takeovers, cluster, status, r.now())
	if meta.IsStatusConditionTrue(status.Conditions, v1.ConditionReady) {
		err = errors.Join(err, r.tidyRestore(ctx, client, cluster))
	}
	next := r.nextLook(result, status, known)
	isRipe := result.problem == nil && known.isStepDue(usesOf(seen))
	if !everybodyTold || isRipe {
		next = sooner(next, stepEvery)
	}
	known.agents.Rest(next)
	if err == nil && everybodyTold && !isRipe {
		r.memory.settle(keyOf(cluster), result.settle(client.Owner().GetResourceVersion(), status, known))
	}
	done := outcome(cluster, status, next)
	done.Events = append(done.Events, result.hollow...)
	return done, err
}

// first returns the status of a cluster for which something else comes before a decision about its members: an urgent record, or what the
// cluster waits for; nil for nothing.
func (r *reconciler) first(ctx context.Context, cluster v1.MySQLCluster, seen observed, known clusterMemory) (*v1.MySQLClusterStatus, error) {
	if seen.urgent != nil {
		status := previousStatus(cluster)
		setRecord(&status, *seen.urgent)
		return &status, nil
	}
	waits := known.waitForTrust(cluster, seen)
	var err error
	if waits == nil {
		waits, err = r.waitForRestore(ctx, cluster, seen)
	}
	if waits == nil {
		return nil, err
	}
	status := blocked(cluster, *waits)
	return &status, err
}

// nextLook records how the cluster looks now, and returns the time until the next pass if no event comes first.
func (r *reconciler) nextLook(found passResult, status v1.MySQLClusterStatus, known clusterMemory) time.Duration {
	cluster, ahead := found.cluster, found.prospect(status)
	now := lookHistory{uid: cluster.UID, digest: digest(found.seen.versions, visibleStatus(status)), wanted: wantsSecrets(cluster, found.seen), uses: usesOf(found.seen)}
	ahead.idle = r.memory.see(keyOf(cluster), now)
	looks := r.memory.sight(keyOf(cluster), cluster.UID).looks
	due := known.lookAgain(secretsAfter(ahead.ready, now.wanted, looks)).Sub(r.now())
	if due <= 0 && found.problem == nil && !known.looked.IsZero() {
		due = jittered(stepEvery) // it came due during this pass
	}
	next := sooner(jittered(ahead.requeueAfter()), due)
	return sooner(next, found.leaseEndsIn(r.now())) // clients wait for the end of a lease
}

// visibleStatus returns the parts of a status that users read, with the generation that they are about.
func visibleStatus(status v1.MySQLClusterStatus) string {
	ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady)
	return fmt.Sprint(status.ObservedGeneration, status.Epoch, status.Revision, ready.Reason, ready.Message)
}

func keyOf(cluster v1.MySQLCluster) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
}

// prerequisites returns what a cluster needs before the operator creates anything for it: the user's Secret, and the cluster's own Secrets.
// The operator reads them again from time to time (secretsAfter). Once a cluster has started, its pass continues even if the user's Secret
// is gone, or no Secret can be read at present. The operator reports that, and the members keep running.
func (r *reconciler) prerequisites(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) (clusterMemory, *report.Problem, error) {
	key, now, last := keyOf(cluster), r.now(), r.memory.sight(keyOf(cluster), cluster.UID)
	known := r.memory.recall(key, cluster.UID)
	if known.stillHolds(cluster, last, now) {
		return known, nil, nil
	}
	found, lacking, err := r.lookAtSecrets(ctx, client, cluster, last.uses)
	switch {
	case found.security != nil:
		known = r.learn(cluster, known, found, now, lacking == nil && err == nil)
	case known.agents == nil || err == nil:
		return clusterMemory{}, lacking, err
	}
	if reported := report.FromError(err); reported != nil {
		return known, cmp.Or(lacking, reported), nil
	}
	return known, lacking, err
}

// learn remembers the result of reading the Secrets. If the result is not complete, the next pass reads them again, and asks the agents
// over the same connections.
func (r *reconciler) learn(cluster v1.MySQLCluster, known clusterMemory, found certificateState, now time.Time, isWhole bool) clusterMemory {
	found.lost = found.lostSince(known.certificateState, now)
	found.keepOldCertificates(known.security, now)
	key := keyOf(cluster)
	fresh := known.withClients(found.security, func() string { return r.memory.alarmsAt(key) }, now)
	found.security, found.bundle = fresh.security, fresh.security.Bundle()
	fresh.certificateState, fresh.asked = found, rotationRequestOf(cluster.Annotations)
	fresh.uid, fresh.secret, fresh.tidied = cluster.UID, cluster.Spec.Secret, known.tidied
	if isWhole {
		fresh.looked, fresh.earlier = now, upToAnEighth()
		r.memory.lookedAtSecrets(key, cluster.UID)
	}
	r.memory.keep(key, fresh)
	return fresh
}

// lookAtSecrets returns how the operator connects to the cluster's Pods. security is nil if a problem or an error comes first. uses
// identifies the certificates that the members were seen to use.
func (r *reconciler) lookAtSecrets(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, uses string) (certificateState, *report.Problem, error) {
	n := children.NamesOf(cluster)
	hasBegun := cluster.Status.HadPrimary()
	lacking, err := r.userSecret(ctx, n, cluster.Spec.Secret)
	if (err != nil || lacking != nil) && !hasBegun {
		return certificateState{}, lacking, err
	}
	found, failed := r.certificates(ctx, certificateCheck{
		client: client, Names: n, now: r.now(), uses: uses, situation: situation{asked: rotationRequestOf(cluster.Annotations)},
	})
	if err = errors.Join(err, failed); found.security == nil {
		return certificateState{}, lacking, err
	}
	if found.stuck {
		found.rotation = rotationIn(cluster.Status)
	}
	failed = r.ownAccounts(ctx, client, n)
	if err = errors.Join(err, failed); failed != nil && !hasBegun {
		return certificateState{}, lacking, err
	}
	return found, lacking, err
}

// decide returns what must be true next.
func decide(cluster v1.MySQLCluster, now replication.Cluster) replication.Decision {
	return restore.PreventEmptyPrimary(cluster, now.Members, now.Record, replication.Decide(now))
}

// view returns the input of the decision about replication.
func view(cluster v1.MySQLCluster, seen observed) replication.Cluster {
	return replication.Cluster{
		UID: string(cluster.UID), HasContinued: hasContinued(cluster.Status, seen.now), SinceTakeover: sinceTakeover(cluster.Status, seen.now), Record: recordOf(cluster.Status), Replicas: children.WantedReplicas(cluster), Scale: scaleOf(seen),
		Members: seen.members, Port: int(cluster.Spec.Port), CopyLimit: cluster.Spec.Copies.BandwidthLimit.Value(),
		Request: cluster.Annotations[AnnotationReplacePrimary], Force: cluster.Annotations[AnnotationForcePrimary], WantsLease: cluster.Spec.Failover.WhenPrimaryUnreachable != v1.Wait,
		Limits:     limitsOf(cluster.Spec.Failover),
		Durability: durabilityOf(cluster),
		IsUpdating: progressOf(cluster, seen).isUpdating(),
	}
}

// durabilityOf returns what happens to commits when replicas are lost.
func durabilityOf(cluster v1.MySQLCluster) replication.Durability {
	least := leastAcks(cluster)
	return replication.Durability{
		Continue: least == 0 || least < replication.FullAcks(children.WantedReplicas(cluster)),
		Grace:    time.Duration(max(cluster.Spec.Durability.GracePeriodSeconds, 1)) * time.Second,
		Least:    least,
	}
}

// leastAcks is how many acknowledgements commits wait for, whatever is lost. If a user asks for Block, it is what the number of members
// requires, also before the members are there. Otherwise, it is that once all members have been in sync: a cluster that grows, or that
// begins with the data of a backup, does not stop until its members have copied all of it.
func leastAcks(cluster v1.MySQLCluster) int {
	members, durability := children.WantedReplicas(cluster), cluster.Spec.Durability
	full := replication.FullAcks(members)
	switch {
	case durability.For(members) != v1.Block:
		return 0
	case durability.WhenReplicasLost == v1.Block, len(cluster.Status.InSync) >= members:
		return full
	}
	return min(full, int(cluster.Status.LeastAcks))
}

// limitsOf returns the limits that the user wants. A definition of an older release has no defaults for them.
func limitsOf(failover v1.Failover) replication.Limits {
	return replication.Limits{
		NotReady:        time.Duration(cmp.Or(failover.NotReadySeconds, 10)) * time.Second,
		Unreachable:     time.Duration(cmp.Or(failover.UnreachableSeconds, 2)) * time.Second,
		RestartsCrashed: failover.WhenPrimaryCrashes == v1.Restart,
	}
}

func recordOf(status v1.MySQLClusterStatus) replication.Record {
	return replication.Record{Epoch: status.Epoch, Revision: status.Revision, Primary: status.Primary, FormerPrimary: status.FormerPrimary, InSync: status.InSync, Joining: status.Joining, RequiredAcks: int(status.RequiredAcks), LeaseLasts: time.Duration(status.LeaseMilliseconds) * time.Millisecond, ForcedEpoch: status.ForcedEpoch}
}

// waiting reports what a cluster needs before it can continue. An error that names its own fix becomes the problem.
func (r *reconciler) waiting(cluster v1.MySQLCluster, found *report.Problem, err error) (reconcile.Outcome, error) {
	if found == nil {
		found = report.FromError(err)
	}
	if found == nil {
		return reconcile.Outcome{}, err
	}
	status := blocked(cluster, *found)
	idle := r.memory.see(keyOf(cluster), lookHistory{uid: cluster.UID, digest: digest(visibleStatus(status))})
	next := requeueInput{stalled: found.Stalled, unwatched: true, idle: idle}.requeueAfter()
	return outcome(cluster, status, jittered(next)), nil
}
