package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/claims"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const managerRole = reconcile.ManagerChildren + "-role"

// applyResult is the result of applying a cluster's children in a pass.
type applyResult struct {
	// rolled reports whether the pass changed the StatefulSet after it was observed.
	rolled bool
	// compared reports whether the children were compared with what they should be, unsettled whether one was changed, or is being deleted
	// and must be created again.
	compared, unsettled bool
	// waits reports whether the members stay as they are until an update is complete (rolloutPlan), or until another image may begin
	// (opening).
	waits bool
	// held is why the members stay as they are: they would not start with the new settings or image, or the operator has no answer about
	// them yet; nil for no reason.
	held *report.Problem
}

// act carries out a plan. told reports whether every member got its assignment. A failure stops the later actions of its verb, and a
// failed check every apply: a pass that cannot apply a child still takes care of the running members. The assignments at the start of a
// plan are sent while the children are applied: neither waits for a slow member or API server.
func (r *reconciler) act(ctx context.Context, client *reconcile.Client, agents *agent.Client, plan []action, result *passResult) (told bool, err error) {
	p := performance{reconciler: r, client: client, agents: agents, result: result, failed: map[verb]error{}, told: true}
	first := assignments(plan)
	plan = plan[len(first):]
	sent := make(chan answer, 1)
	go func() {
		told, err := r.assignAll(ctx, client, agents, first)
		sent <- answer{told, err}
	}()
	roles := slices.IndexFunc(plan, action.needsRoles)
	if roles < 0 {
		roles = len(plan)
	}
	p.perform(ctx, plan[:roles])
	p.note(<-sent)
	p.perform(ctx, plan[roles:])
	p.failed[verbAssign] = p.unconfirmed
	return p.told, r.conclude(p.failed, result)
}

// performance is a plan that is being carried out.
type performance struct {
	*reconciler
	client *reconcile.Client
	agents *agent.Client
	result *passResult
	// failed is why the rest of a verb's actions are left out. unconfirmed is why assignments were not sent.
	failed      map[verb]error
	unconfirmed error
	told        bool
}

// answer is what assignAll returned.
type answer struct {
	told bool
	err  error
}

// note takes the result of assignments.
func (p *performance) note(got answer) {
	p.told = p.told && got.told
	if errors.Is(got.err, errRecordMoved) {
		p.failed[verbAssign] = got.err // the other assignments are outdated as well
		return
	}
	p.unconfirmed = errors.Join(p.unconfirmed, got.err)
}

// perform carries out actions in their order.
func (p *performance) perform(ctx context.Context, plan []action) {
	for len(plan) > 0 {
		next, together := plan[0], assignments(plan)
		plan = plan[max(1, len(together)):]
		switch {
		case p.failed[next.verb] != nil:
		case next.afterHold && p.failed[verbHold] != nil:
			p.told = false
		case len(together) > 0:
			told, err := p.assignAll(ctx, p.client, p.agents, together)
			p.note(answer{told, err})
		default:
			p.failed[next.verb] = p.carryOut(ctx, p.client, p.agents, next, p.result)
		}
		if next.verb == verbCheck {
			p.failed[verbApply] = p.failed[verbCheck] // no child is applied, and no member added
		}
		p.result.children.compared = p.result.children.compared || next.verb == verbApply
	}
}

// needsRoles reports whether the action comes after the first assignments.
func (a action) needsRoles() bool {
	return a.verb == verbAssign || a.verb == verbMatch || a.verb == verbLabel
}

// assignments returns the actions at the start of a plan that send members their assignments, and wait for the same.
func assignments(plan []action) []action {
	for i, next := range plan {
		if next.verb != verbAssign || next.afterHold != plan[0].afterHold {
			return plan[:i]
		}
	}
	return plan
}

// carryOut carries out an action that is no assignment.
func (r *reconciler) carryOut(ctx context.Context, client *reconcile.Client, agents *agent.Client, next action, result *passResult) error {
	switch next.verb {
	case verbHold:
		return r.holdPrimary(ctx, client, next.members, result)
	case verbCheck:
		return r.refuseForeignVolume(ctx, children.NamesOf(result.cluster), next.name)
	case verbApply, verbPublish:
		return r.applyChild(ctx, client, next, result)
	case verbExpand:
		return claims.Grow(ctx, client, next.volume, next.size)
	case verbMatch:
		r.matchHollow(ctx, agents, next, result)
	case verbLabel:
		return labelRole(ctx, client, next)
	case verbRecord, verbAssign: // the engine writes the record with the status, after the pass
	}
	return nil
}

// conclude returns the error of a pass that has acted, and remembers children that are all as they should be. A failure that a user can fix
// becomes the problem of the pass instead; the last one counts.
func (r *reconciler) conclude(failed map[verb]error, result *passResult) error {
	unapplied := joined(failed[verbHold], joined(failed[verbApply], failed[verbPublish]))
	if unapplied == nil && result.children.compared && !result.children.unsettled {
		r.memory.noteMade(keyOf(result.cluster), result.inputs)
	}
	// Without the labels, clients do not find the members by their roles, and nothing else reports why.
	return errors.Join(result.refuse(unapplied), result.refuse(failed[verbExpand]), failed[verbAssign], result.refuse(failed[verbLabel]))
}

// refuse makes an error that stands for a problem the problem of the pass, and returns any other error.
func (r *passResult) refuse(err error) error {
	if refused := report.FromError(err); refused != nil {
		r.problem, err = refused, nil
	}
	return err
}

// inputsOf identifies the inputs of the children.
func inputsOf(cluster v1.MySQLCluster, seen observed, decision replication.Decision) childInputs {
	return childInputs{uid: cluster.UID, digest: digest(
		seen.versions, strconv.FormatInt(cluster.Generation, 10), cluster.Status.Primary, seen.route, cluster.Annotations[AnnotationRestartPrimary],
		strconv.FormatBool(decision.ReadFromPrimary), strconv.Itoa(decision.Scale), string(seen.bundle), rolloutOf(cluster, seen).asked(),
	)}
}

// joined returns two errors as one. A transient error is returned alone: joined with a problem, it would not be retried.
func joined(one, other error) error {
	if one != nil && report.FromError(one) == nil {
		return one
	}
	if other != nil && report.FromError(other) == nil {
		return other
	}
	return errors.Join(one, other)
}

// applyChild applies a child.
func (r *reconciler) applyChild(ctx context.Context, client *reconcile.Client, next action, result *passResult) error {
	if next.child == nil {
		set, err := r.applySet(ctx, client, result.cluster, result.seen, next.members)
		set.compared, set.unsettled = result.children.compared, set.unsettled || result.children.unsettled
		result.children = set
		return err
	}
	change, err := client.Apply(ctx, next.child)
	result.children.unsettled = result.children.unsettled || err != nil || change != reconcile.Unchanged
	return err
}

// hasNetworkPolicy reports whether the cluster has a NetworkPolicy: one that was created for spec.network must be opened when the field is
// removed.
func (r *reconciler) hasNetworkPolicy(client *reconcile.Client, n children.Names) bool {
	made, found := r.reader.Cached(children.NetworkPolicies()).Get(n.Namespace, n.Cluster)
	return found && client.CheckOwnership(made, children.NetworkPolicies(), n.Labels()) == nil
}

// routed returns the member that the Service for writes selects until there is a primary on record: the one that it selected before. So the
// adoption of running members does not cut off their clients.
func (r *reconciler) routed(n children.Names) string {
	if service, found := r.reader.Cached(children.Services()).Get(n.Namespace, n.Cluster); found {
		member, _, _ := unstructured.NestedString(service.Object, "spec", "selector", children.LabelPod)
		if _, ok := n.Ordinal(member); ok {
			return member
		}
	}
	return n.Member(0)
}

// claimSize returns the size that the StatefulSet asks for now, because that cannot change. The operator expands the claims one by one.
func claimSize(cluster v1.MySQLCluster, seen observed) resource.Quantity {
	if seen.set != nil && len(seen.set.Spec.VolumeClaimTemplates) > 0 {
		return seen.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
	}
	return children.WantedStorage(cluster)
}

// refuseForeignVolume fails if a claim with a new member's name belongs to another owner.
func (r *reconciler) refuseForeignVolume(ctx context.Context, n children.Names, claim string) error {
	found, err := r.reader.Get(ctx, children.Claims(), n.Namespace, claim)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !children.IsOwnClaim(n, found) {
		return &reconcile.ForeignError{Resource: children.Claims(), Namespace: n.Namespace, Name: found.GetName()}
	}
	return nil
}

// assignAll sends members their assignments at the same time: one that answers slowly does not delay the others.
func (r *reconciler) assignAll(ctx context.Context, client *reconcile.Client, agents *agent.Client, all []action) (told bool, err error) {
	var sent sync.WaitGroup
	areTold, failures := make([]bool, len(all)), make([]error, len(all))
	for i, next := range all {
		sent.Go(func() { areTold[i], failures[i] = r.assign(ctx, client, agents, next) })
	}
	sent.Wait()
	return !slices.Contains(areTold, false), errors.Join(failures...)
}

// assign sends a member its assignment. It is no error if the member has stopped answering or knows better, or if the record has changed
// meanwhile: told is false then, and the next pass comes soon.
func (r *reconciler) assign(ctx context.Context, client *reconcile.Client, agents *agent.Client, next action) (told bool, err error) {
	if next.relaxes {
		err := r.confirmRecord(ctx, client, next.assignment.Record)
		if errors.Is(err, errRecordMoved) {
			return false, err
		}
		if err != nil {
			return true, fmt.Errorf("assign %s to %s: %w", next.assignment.Role, next.name, err)
		}
	}
	err = agents.Assign(ctx, next.to, next.assignment)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("failed to send the assignment to the member, will retry", "instance", next.name, "role", next.assignment.Role, "reason", err.Error())
	}
	return err == nil, nil
}

// errRecordMoved reports that the live record is not the one that the pass has read. The operator reads the record live before it allows a
// member what depends on it, because a cache may be older than another operator's decision.
var errRecordMoved = errors.New("the cluster's record has changed since this pass read it; the operator looks again")

func (r *reconciler) confirmRecord(ctx context.Context, client *reconcile.Client, record replication.Record) error {
	cluster, err := r.liveCluster(ctx, client)
	if err == nil && !recordOf(cluster.Status).Equal(record) {
		return errRecordMoved
	}
	return err
}

// liveCluster reads the cluster from the API server. It returns errRecordMoved for a cluster that is being deleted, or for another one of
// its name.
func (r *reconciler) liveCluster(ctx context.Context, client *reconcile.Client) (v1.MySQLCluster, error) {
	var cluster v1.MySQLCluster
	owner := client.Owner()
	live, err := r.reader.Get(ctx, r.resource, owner.GetNamespace(), owner.GetName())
	if err != nil {
		return cluster, err
	}
	if live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil {
		return cluster, errRecordMoved
	}
	err = schema.Decode(live, &cluster)
	return cluster, err
}

// labelRole sets a member's role as a label of its Pod.
func labelRole(ctx context.Context, client *reconcile.Client, next action) error {
	labelled := corev1ac.Pod(next.name, client.Owner().GetNamespace()).WithLabels(map[string]string{children.LabelRole: next.role})
	if _, err := client.ApplyFields(ctx, managerRole, labelled); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("label %s as %s: %w", next.name, next.role, err)
	}
	return nil
}
