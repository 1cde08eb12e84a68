package cluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// passResult is the result of a pass. The status follows from it.
type passResult struct {
	cluster  v1.MySQLCluster
	seen     observed
	decision replication.Decision
	// inputs identifies the inputs of the children.
	inputs childInputs
	// children is the result of applying the children. If the pass wrote the StatefulSet, the observed Pods are from before that.
	children applyResult
	// problem is what the pass encountered while it acted; nil for none.
	problem *report.Problem
	// matched reports whether the operator asked the primary to match hollow transactions; hollow are the events about that.
	matched bool
	hollow  []reconcile.Event
	// rotation is what there is to report about the CA; nil for nothing.
	rotation *rotation
}

// status returns the whole status after a pass.
func (r passResult) status() v1.MySQLClusterStatus {
	status := previousStatus(r.cluster)
	setRecord(&status, r.decision.Record)
	status.InnoDBOnly = status.InnoDBOnly || r.seen.set != nil && isInnoDBOnly(r.cluster, r.seen)
	r.describeMembers(&status)
	r.describeServing(&status)
	r.describeDurability(&status)
	r.describeFailover(&status)
	r.describeTakeovers(&status)
	describeRotation(&status, r.rotation)
	describeMemory(&status, r.cluster)
	r.describeDisk(&status)
	describeLeft(&status, r.primaryStatus())
	r.describeRoll(&status)
	r.describeTables(&status)
	return status
}

func setRecord(status *v1.MySQLClusterStatus, record replication.Record) {
	status.Primary, status.FormerPrimary, status.Epoch, status.Revision = record.Primary, record.FormerPrimary, record.Epoch, record.Revision
	status.InSync, status.Joining, status.ForcedEpoch = record.InSync, record.Joining, record.ForcedEpoch
	status.RequiredAcks, status.LeaseMilliseconds = int32(record.RequiredAcks), int32(record.LeaseLasts.Milliseconds()) //nolint:gosec // a number of members, and about an hour at most
}

// previousStatus returns the status with everything that stays the same until the operator observes otherwise.
func previousStatus(cluster v1.MySQLCluster) v1.MySQLClusterStatus {
	n := children.NamesOf(cluster)
	status := cluster.Status
	status.Conditions = slices.Clone(cluster.Status.Conditions)
	status.ObservedGeneration = cluster.Generation
	status.Selector = n.Selector()
	status.Image = cluster.Spec.Image
	status.Endpoints = v1.Endpoints{
		Write: fmt.Sprintf("%s:%d", n.ServiceHost(n.Cluster), cluster.Spec.Port),
		Read:  fmt.Sprintf("%s:%d", n.ServiceHost(n.ReadService()), cluster.Spec.Port),
	}
	if status.ReadySummary == "" {
		status.ReadySummary = fmt.Sprintf("0/%d", children.WantedReplicas(cluster))
	}
	return status
}

// describeMembers sets the role and the state of every member. Transactions and lag change all the time, so they are updated only together
// with something that users wait for: a status that followed every transaction would write to the API server continuously.
func (r passResult) describeMembers(status *v1.MySQLClusterStatus) {
	before := map[string]v1.Member{}
	for _, member := range r.cluster.Status.Members {
		before[member.Name] = member
	}
	fresh := make([]v1.Member, 0, len(r.seen.members))
	kept := make([]v1.Member, 0, len(r.seen.members))
	for _, member := range r.seen.members {
		if !member.Pod && member.Ordinal >= r.decision.Scale {
			continue
		}
		described := describe(member, r.decision.Record)
		fresh = append(fresh, described)
		described.GTIDExecuted, described.LagSeconds = before[member.Name].GTIDExecuted, before[member.Name].LagSeconds
		kept = append(kept, described)
	}
	status.Members = kept
	if !sameMembers(kept, r.cluster.Status.Members) {
		status.Members = fresh
	}
	status.Replicas = int32(len(r.seen.pods)) //nolint:gosec // Pods of one cluster
}

func sameMembers(a, b []v1.Member) bool {
	return slices.EqualFunc(a, b, func(x, y v1.Member) bool {
		return x.Name == y.Name && x.Role == y.Role && x.State == y.State && x.Message == y.Message && x.Version == y.Version && x.LacksRowsOf == y.LacksRowsOf
	})
}

func describe(member replication.Member, record replication.Record) v1.Member {
	described := v1.Member{Name: member.Name}
	if record.Primary != "" {
		described.Role = v1.RoleReplica
		if member.Name == record.Primary {
			described.Role = v1.RolePrimary
		}
	}
	if member.Status == nil {
		described.State, described.Message = string(replication.StateStarting), "the operator cannot reach its agent yet"
		if !member.Pod {
			described.Message = "its Pod does not exist"
		}
		return described
	}
	described.State, described.Message = report.Brief(string(member.Status.State), report.LongestWord), report.Brief(steadyMessage(*member.Status), report.LongestMessage)
	described.GTIDExecuted = report.Brief(member.Status.Executed.String(), replication.LongestGTIDs)
	described.LagSeconds, described.Version = member.Status.LagSeconds, report.Brief(member.Status.Version, report.LongestWord)
	described.LacksRowsOf = report.Brief(member.Status.KnownTablesWithoutRows().String(), report.LongestMessage)
	return described
}

// steadyMessage leaves out what an agent says about connections that come and go; the state shows that.
func steadyMessage(status replication.Status) string {
	switch status.State {
	case replication.StateStarting:
		if strings.HasPrefix(status.Message, replication.AnswersBut) {
			return status.Message
		}
		return "mysqld does not answer yet"
	case replication.StateCatchingUp:
		return "replication is being set up or is behind"
	case replication.StateWaiting, replication.StateCloning, replication.StateReplicating, replication.StatePromoting,
		replication.StateWriting, replication.StateErrant, replication.StateBroken:
	}
	return status.Message
}

// describeServing sets the Ready condition, and the fields that say the same in other words.
func (r passResult) describeServing(status *v1.MySQLClusterStatus) {
	wanted := children.WantedReplicas(r.cluster)
	serving := 0
	for _, member := range r.seen.members {
		if member.Ordinal < wanted && r.serves(member) {
			serving++
		}
	}
	primary := r.primaryStatus()
	status.ReadyReplicas = int32(serving)
	status.ReadySummary = fmt.Sprintf("%d/%d", serving, wanted)
	if primary != nil && primary.Version != "" {
		status.Version = report.Brief(primary.Version, report.LongestWord)
	}
	writing := primary != nil && primary.State == replication.StateWriting
	found := r.worstProblem(writing, serving == wanted)
	status.Phase = phase(r.cluster, writing, found)
	if found == nil {
		conditionsOf(status).Ready(reasonAllMembersReady, fmt.Sprintf("%s takes writes and all %d members serve", status.Primary, wanted))
		return
	}
	conditionsOf(status).Problem(*found)
}

func (r passResult) serves(member replication.Member) bool { return r.seen.serves(member) }

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (r passResult) primaryStatus() *replication.Status {
	for _, member := range r.seen.members {
		if member.Name == r.decision.Record.Primary {
			return member.Status
		}
	}
	return nil
}

// wasCreated reports whether a cluster has been Ready once, as far as its phase shows.
func wasCreated(status v1.MySQLClusterStatus) bool {
	if status.Phase == v1.PhasePaused {
		return len(status.InSync) > 0
	}
	return slices.Contains([]v1.Phase{v1.PhaseReady, v1.PhaseDegraded, v1.PhaseUpdating, v1.PhaseFailed}, status.Phase)
}

// phase returns the state in one word. A cluster is being created until it has been Ready once.
func phase(cluster v1.MySQLCluster, writing bool, found *report.Problem) v1.Phase {
	created := wasCreated(cluster.Status)
	if found == nil {
		return v1.PhaseReady
	}
	changing := slices.Contains([]string{string(replication.ReasonScalingIn), reasonMembersNotReady, reasonDegraded}, found.Reason)
	switch {
	case !created && !writing && found.Stalled:
		return v1.PhaseWaiting
	case !created:
		return v1.PhaseCreating
	case !writing:
		return v1.PhaseFailed
	case changing && (cluster.Status.Phase == v1.PhaseUpdating || cluster.Status.ObservedGeneration != cluster.Generation):
		return v1.PhaseUpdating
	}
	return v1.PhaseDegraded
}

// describeDurability sets the Durable condition, and for how many replicas commits always wait.
func (r passResult) describeDurability(status *v1.MySQLClusterStatus) {
	now := r.cluster
	now.Status.InSync = status.InSync
	status.LeastAcks = int32(leastAcks(now)) //nolint:gosec // a number of members
	is, reason, message := r.durability()
	conditionsOf(status).Set(conditionDurable, is, reason, message)
}

// describeFailover sets the FailoverReady condition.
func (r passResult) describeFailover(status *v1.MySQLClusterStatus) {
	seen := view(r.cluster, r.seen)
	seen.Record = r.decision.Record
	is := metav1.ConditionFalse
	isReady, reason, message := seen.Failover()
	if isReady {
		is = metav1.ConditionTrue
	}
	conditionsOf(status).Set(conditionFailoverReady, is, string(reason), message)
}

// durability returns how many members hold the acknowledged commits, and whether that is as many as the cluster's size requires.
func (r passResult) durability() (is metav1.ConditionStatus, reason, message string) {
	full, acks := replication.FullAcks(children.WantedReplicas(r.cluster)), r.decision.Record.RequiredAcks
	primary := r.primaryStatus()
	short, waits := primary != nil && primary.AcksShortSeconds > 0, durabilityOf(r.cluster)
	switch {
	case full == 0:
		return metav1.ConditionTrue, reasonSingleMember, "a cluster of one member keeps one copy of every commit"
	case short && (waits.Least > acks || acks > 0 && !waits.Continue):
		return metav1.ConditionFalse, reasonCommitsBlocked, "commits wait for replicas that are missing (spec.durability.whenReplicasLost is Block, also if it is not set and there are three members or more)"
	case acks >= full:
		return metav1.ConditionTrue, reasonDurable, fmt.Sprintf("every acknowledged commit is on the primary and on at least %d of the others", acks) + r.onDisks()
	case !wasCreated(r.cluster.Status):
		return metav1.ConditionFalse, reasonAcksNotPromised, "the replicas do not acknowledge commits yet"
	}
	return metav1.ConditionFalse, reasonDegraded, fmt.Sprintf("acknowledged commits are certain to be on only %d of %d members in addition to the primary", acks, full)
}

// onDisks says for a cluster that must survive a loss of power whether its replicas flush what they acknowledge. They do so once their
// mysqld has restarted.
func (r passResult) onDisks() string {
	if r.cluster.Spec.Durability.Survives != v1.SurvivesPower {
		return ""
	}
	var late []string
	for _, member := range r.seen.members {
		isReplica := member.Name != r.decision.Record.Primary && r.decision.Record.Acknowledges(member.Name)
		if isReplica && (member.Status == nil || !member.Status.SyncsRelayLog) {
			late = append(late, member.Name)
		}
	}
	if len(late) > 0 {
		return ", but may not be on the disks of " + strings.Join(late, ", ") + " yet (spec.durability.survives is Power)"
	}
	return ", on their disks"
}

// notDurable returns a problem until acknowledged commits are on as many members as the cluster's size requires: users who wait for Ready
// write at once, and rely on that.
func (r passResult) notDurable() *report.Problem {
	is, reason, message := r.durability()
	if is == metav1.ConditionTrue {
		return nil
	}
	return &report.Problem{Reason: reason, Message: message}
}

func conditionsOf(status *v1.MySQLClusterStatus) report.Conditions {
	return report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration}
}
