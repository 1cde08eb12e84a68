package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	// unsettled reports whether a child was changed, or is being deleted and must be created again.
	unsettled bool
	// waits reports whether the members stay as they are until an update is complete (rolloutPlan), or until another image may begin
	// (opening).
	waits bool
	// held is why the members stay as they are: they would not start with the new settings or image, or the operator has no answer about
	// them yet; nil for no reason.
	held *report.Problem
}

// applyChildren applies every child. As long as neither the children nor their inputs change, it builds and compares nothing.
func (r *reconciler) applyChildren(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, decision replication.Decision) (applyResult, error) {
	n := children.NamesOf(cluster)
	of := childInputs{uid: cluster.UID, digest: digest(
		seen.versions, strconv.FormatInt(cluster.Generation, 10), cluster.Status.Primary, seen.route, cluster.Annotations[AnnotationRestartPrimary],
		strconv.FormatBool(decision.ReadFromPrimary), strconv.Itoa(decision.Scale), string(seen.bundle), rolloutOf(cluster, seen).asked(),
	)}
	if r.memory.isMade(keyOf(cluster), of) {
		return applyResult{}, nil
	}
	done, err := r.applyMembers(ctx, client, cluster, seen, decision)
	// Clients read this ConfigMap, and no Pod needs it. It is applied even if the members are not, and the other way round.
	told, untold := client.Apply(ctx, children.TrustMap(n, seen.bundle))
	done.unsettled = done.unsettled || told != reconcile.Unchanged
	err = joined(err, untold)
	if err == nil && !done.unsettled {
		r.memory.noteMade(keyOf(cluster), of)
	}
	return done, err
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

// applyMembers applies what members consist of and how clients reach them. The order matters for a new cluster: what Pods mount comes
// before the StatefulSet, which is the last one.
func (r *reconciler) applyMembers(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, decision replication.Decision) (applyResult, error) {
	n := children.NamesOf(cluster)
	if isInnoDBOnly(cluster, seen) {
		cluster = children.WithTableDefaults(cluster)
	}
	wanted := []any{
		children.ServiceAccount(n), children.ConfigMap(n, cluster), children.PodsService(n, cluster),
		children.WriteService(n, cluster, seen.route), children.ReadService(n, cluster, seen.route, decision.ReadFromPrimary), children.PodDisruptionBudget(n),
	}
	if cluster.Spec.Network != nil || r.hasNetworkPolicy(client, n) {
		wanted = append(wanted, children.NetworkPolicy(n, cluster, r.operator))
	}
	if decision.Scale > 0 {
		if err := r.refuseForeignVolumes(ctx, n, seen, decision.Scale); err != nil {
			return applyResult{}, err
		}
	}
	unsettled, err := r.applyAll(ctx, client, wanted)
	if err != nil || decision.Scale == 0 {
		return applyResult{unsettled: unsettled}, err
	}
	done, err := r.applySet(ctx, client, cluster, seen, decision.Scale)
	done.unsettled = done.unsettled || unsettled
	return done, err
}

// applyAll applies children one after the other. unsettled reports whether one of them was changed, or could not be applied.
func (r *reconciler) applyAll(ctx context.Context, client *reconcile.Client, wanted []any) (unsettled bool, err error) {
	for _, child := range wanted {
		change, err := client.Apply(ctx, child)
		if err != nil {
			return true, err
		}
		unsettled = unsettled || change != reconcile.Unchanged
	}
	return unsettled, nil
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

// refuseForeignVolumes fails if a claim with a new member's name belongs to another owner. It runs before members are added, because the
// StatefulSet controller would use such a claim without a check.
func (r *reconciler) refuseForeignVolumes(ctx context.Context, n children.Names, seen observed, scale int) error {
	for ordinal := scaleOf(seen); ordinal < scale; ordinal++ {
		found, err := r.reader.Get(ctx, children.Claims(), n.Namespace, n.Claim(ordinal))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !children.IsOwnClaim(n, found) {
			return &reconcile.ForeignError{Resource: children.Claims(), Namespace: n.Namespace, Name: found.GetName()}
		}
	}
	return nil
}

// expandVolumes raises the claims to the size in spec.storage. It never lowers a claim; the schema already refuses that. A refusal by the
// API server is a problem. Any other failure is a transient error.
func (r *reconciler) expandVolumes(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed) (*report.Problem, error) {
	wanted := children.WantedStorage(cluster)
	for _, volume := range seen.volumes {
		asked := volume.Spec.Resources.Requests[corev1.ResourceStorage]
		if volume.Status.Phase != corev1.ClaimBound || asked.Cmp(wanted) >= 0 || !isMember(volume.Name, seen) {
			continue
		}
		if found, err := claims.Grow(ctx, client, volume, wanted); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil //nolint:nilnil // no problem, and no error in looking for one
}

func isMember(volume string, seen observed) bool {
	for _, pod := range seen.pods {
		if volume == "data-"+pod.Name {
			return true
		}
	}
	return false
}

// assign sends every member its assignment, if that differs from the one that the member follows. It is no error if a member has stopped
// answering or knows better, or if the record has changed meanwhile: told is false then, and the next pass comes soon.
func (r *reconciler) assign(ctx context.Context, client *reconcile.Client, agents *agent.Client, seen observed, decision replication.Decision) (told bool, err error) {
	told = true
	var failures []error
	for _, member := range seen.members {
		wanted, found := decision.Assignments[member.Name]
		if !found || member.Status == nil || wanted.Followed(*member.Status) {
			continue
		}
		if wanted.Relaxes(*member.Status) {
			err := r.confirmRecord(ctx, client, wanted.Record)
			if errors.Is(err, errRecordMoved) {
				return false, errors.Join(failures...) // the rest of this pass is outdated as well
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("assign %s to %s: %w", wanted.Role, member.Name, err))
				continue
			}
		}
		pod, _ := seen.pod(member.Name)
		if err := agents.Assign(ctx, agent.Target{Address: pod.Status.PodIP, Host: member.Host}, wanted); err != nil {
			logr.FromContextOrDiscard(ctx).Info("failed to send the assignment to the member, will retry", "instance", member.Name, "role", wanted.Role, "reason", err.Error())
			told = false
		}
	}
	return told, errors.Join(failures...)
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

// labelRoles sets each member's role as a label of its Pod.
func (r *reconciler) labelRoles(ctx context.Context, client *reconcile.Client, seen observed, record replication.Record) error {
	if record.Primary == "" {
		return nil // no member has a role yet
	}
	for _, pod := range seen.pods {
		role := children.RoleReplica
		if pod.Name == record.Primary {
			role = children.RolePrimary
		}
		if pod.Labels[children.LabelRole] == role || pod.DeletionTimestamp != nil {
			continue
		}
		labelled := corev1ac.Pod(pod.Name, pod.Namespace).WithLabels(map[string]string{children.LabelRole: role})
		if _, err := client.ApplyFields(ctx, managerRole, labelled); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("label %s as %s: %w", pod.Name, role, err)
		}
	}
	return nil
}
