package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// AnnotationRestartPrimary, on a MySQLCluster, allows one update to restart the primary, and the replicas below it after that. Its value is
// the name of the update, the StatefulSet's status.updateRevision, so that it allows no later one.
const AnnotationRestartPrimary = children.Prefix + "restart-primary-for"

// conditionPrimaryFirst is present while an update of the members is held back because it would restart the primary before replicas.
const conditionPrimaryFirst = reasonPrimaryFirst

// rollout is the progress of an update of the members, and what limits it. Kubernetes restarts members from the highest number down, each
// once the one before it is ready. It would restart a primary that is not member 0 before the replicas below it, and perhaps before any
// replica has tried the update.
type rollout struct {
	n children.Names
	// primary is the number of the member that takes writes; recorded reports whether the record names it. Without a record, it is the
	// member that clients reach for writes.
	primary  int
	recorded bool
	// scale is how many members the StatefulSet asks for, wanted how many the spec asks for, partition the number of the first member that
	// Kubernetes restarts.
	scale, wanted, partition int
	// allowed is the update that a user allowed to restart the primary.
	allowed string
	// known reports whether the StatefulSet's status is about its current template. If so, update is the revision that Kubernetes changes
	// to, current the last one that all members had, and late are the members that do not have update yet.
	known           bool
	current, update string
	late            []int
	// otherRevision are those of the late ones that do not have current either: Kubernetes would create them again from current.
	otherRevision []int
	// missing is how many Pods there are fewer than the StatefulSet asks for.
	missing int
	// upgrade is what is known from the members whose turn comes before the primary's.
	upgrade upgrade
}

// allowedUpdate returns the update that a user allowed to restart the primary. It shortens a value that is longer than a name can be.
func allowedUpdate(cluster v1.MySQLCluster) string {
	return report.Brief(cluster.Annotations[AnnotationRestartPrimary], report.LongestWord)
}

// rolloutOf returns the progress of an update from what was observed.
func rolloutOf(cluster v1.MySQLCluster, seen observed) rollout {
	r := progressOf(cluster, seen)
	r.upgrade = upgradeOf(r, cluster, seen)
	return r
}

// progressOf returns the same without what is known of an upgrade.
func progressOf(cluster v1.MySQLCluster, seen observed) rollout {
	r := rollout{n: children.NamesOf(cluster), recorded: cluster.Status.HadPrimary(), scale: scaleOf(seen), wanted: children.WantedReplicas(cluster), allowed: allowedUpdate(cluster)}
	r.primary, _ = r.n.Ordinal(seen.route)
	if seen.set == nil {
		return r
	}
	r.partition = partitionOf(*seen.set)
	status := seen.set.Status
	r.known = status.ObservedGeneration >= seen.set.Generation
	r.current, r.update = status.CurrentRevision, status.UpdateRevision
	for ordinal := range r.scale {
		pod, found := seen.pod(r.n.Member(ordinal))
		made := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
		if !found {
			r.missing++
			made = r.current
		}
		if made == r.update {
			continue
		}
		r.late = append(r.late, ordinal)
		if made != r.current {
			r.otherRevision = append(r.otherRevision, ordinal)
		}
	}
	return r
}

// isUpdating reports whether an update of the members is in progress, or held back, or the operator cannot know it. It ends when all Pods
// have it and are ready: before, Kubernetes may have made the primary's Pod for it a moment ago.
func (r rollout) isUpdating() bool { return !r.known || r.update != r.current || len(r.late) > 0 }

// partitionOf returns the number of the first member that Kubernetes restarts for a StatefulSet.
func partitionOf(set appsv1.StatefulSet) int {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return int(*rolling.Partition)
	}
	return 0
}

// bound returns the number of the first member that may be restarted without permission: the one above the primary. It is zero if the
// primary is member 0, which comes last anyway, unless the others must try an update first (upgrade.go). Without a record it is never less
// than it was, because adopted members may be running.
func (r rollout) bound() int {
	bound := 0
	if r.primary > 0 || r.isHeldFromPrimary() {
		bound = r.primary + 1
	}
	if !r.recorded {
		bound = max(bound, r.partition)
	}
	return bound
}

// isAllowed reports whether a user allowed this very update to restart the primary, and it is not complete.
func (r rollout) isAllowed() bool {
	return r.known && r.bound() > 0 && r.allowed != "" && r.allowed == r.update && (r.update != r.current || len(r.late) > 0)
}

// isUnderWay reports whether Kubernetes is carrying out an allowed update: it restarts one member at a time. If more are missing, there is
// another cause.
func (r rollout) isUnderWay() bool { return r.isAllowed() && r.partition < r.bound() && r.missing <= 1 }

// lowered returns a partition below the bound; may reports whether it is permitted as long as the template stays as it is. While the status
// does not show yet which update that is, a lowered partition stays.
func (r rollout) lowered() (partition int, may bool) {
	if !r.known {
		return r.partition, r.allowed != "" && r.partition < r.bound()
	}
	return 0, r.isAllowed() || r.passes() || r.primaryHas()
}

// primaryHas reports whether an update in progress has already reached a primary that is not member 0, as after a failover in the middle of
// it. With a partition above the primary, Kubernetes would create its Pod again from before the update, older than its data. And there is
// no reason to hold back the members below.
func (r rollout) primaryHas() bool {
	return r.known && r.recorded && r.primary > 0 && r.update != r.current && !slices.Contains(r.late, r.primary)
}

// held returns the members that an update does not reach, in the order of their restarts.
func (r rollout) held() []int {
	if !r.known || r.bound() == 0 || r.isAllowed() || r.primaryHas() || r.isHeldFromPrimary() && !r.isBlocked() {
		return nil
	}
	held := slices.DeleteFunc(slices.Clone(r.late), func(ordinal int) bool { return ordinal >= r.bound() })
	slices.Reverse(held)
	return held
}

// isHeld reports whether an update has reached all members except those that it is held back from.
func (r rollout) isHeld() bool {
	held := len(r.held())
	return held > 0 && held == len(r.late)
}

// message says what is held back because the primary is not member 0, and which command lets it continue; empty if nothing is.
func (r rollout) message() string {
	held := r.held()
	if len(held) == 0 || r.isHeldFromPrimary() {
		return ""
	}
	other := ""
	if len(r.otherRevision) > 0 {
		other = fmt.Sprintf("; if %s lost its Pod, Kubernetes would create the Pod again from the older revision %s, so continue soon", r.members(r.otherRevision), r.current)
	}
	if r.allowed != "" && r.allowed != r.update {
		other += fmt.Sprintf("; the annotation %s=%q is not for this update", AnnotationRestartPrimary, r.allowed)
	}
	return fmt.Sprintf("update %s is held back from %s: %s%s; to continue with %s: %s", r.update, r.members(held), r.holdReason(), other, r.n.Member(held[0]), r.continueCommand())
}

// holdReason says why an update is held back.
func (r rollout) holdReason() string {
	if r.primary == 0 {
		return "the operator does not know yet which of them takes writes"
	}
	above := make([]int, 0, r.scale)
	for ordinal := r.scale - 1; ordinal > r.primary; ordinal-- {
		above = append(above, ordinal)
	}
	tried := "no replica restarts before it"
	if len(above) > 0 {
		tried = "before it, Kubernetes would restart only " + r.members(above)
	}
	return fmt.Sprintf("Kubernetes would restart the primary %s before the replicas below it; %s", r.n.Member(r.primary), tried)
}

func (r rollout) members(ordinals []int) string {
	all := make([]string, 0, len(ordinals))
	for _, ordinal := range ordinals {
		all = append(all, r.n.Member(ordinal))
	}
	return strings.Join(all, ", ")
}

// roll returns the progress of an update after the pass. If the pass has written the StatefulSet, its status is not known yet.
func (r passResult) roll() rollout {
	now := rolloutOf(r.cluster, r.seen)
	now.known = now.known && !r.children.rolled
	return now
}

// nextUpdateNote says that the spec asks for another update while an allowed one is in progress; empty if it does not.
func (r passResult) nextUpdateNote() string {
	if !r.children.waits || r.upgradeWaits() != "" {
		return ""
	}
	now := rolloutOf(r.cluster, r.seen)
	return fmt.Sprintf("the newer change of the spec begins when update %s has reached %s; to start it now: kubectl -n %s annotate mysqlcluster %s %s-",
		now.update, now.members(now.late), now.n.Namespace, now.n.Cluster, AnnotationRestartPrimary)
}

// heldBack returns an update that waits for a user, or for the cluster to be healthy; nil for none.
func (r passResult) heldBack() *report.Problem {
	now := r.roll()
	if message := now.message(); message != "" {
		return &report.Problem{Reason: reasonPrimaryFirst, Message: message, Stalled: true}
	}
	if message := now.blocked(); message != "" {
		return &report.Problem{Reason: reasonUpgradeBlocked, Message: message, Stalled: true}
	}
	if message := r.upgradeWaits(); message != "" {
		return &report.Problem{Reason: reasonUpgradeBlocked, Message: message}
	}
	return nil
}

// isOver reports whether there is nothing left to wait for but a user. Either there is no note, or it follows from an update that is held
// back: agents have another release as long as their Pods have.
func (r passResult) isOver(note *report.Problem) bool {
	return note == nil || note.Reason == string(replication.ReasonAgentRelease) && r.roll().isHeld()
}

// leftToDo returns what is not as it should be although all members serve; nil for nothing. With agents of an earlier release, commits may
// not get more copies until the update continues.
func (r passResult) leftToDo(note *report.Problem) *report.Problem {
	if note != nil {
		return cmp.Or(r.rootPassword(), r.children.held, r.heldBack())
	}
	return cmp.Or(r.rootPassword(), r.notDurable(), r.children.held, r.heldBack())
}

// describeRoll sets or removes the conditions PrimaryWouldRestartFirst and UpgradeBlocked. They stay as they are while the operator does
// not know.
func (r passResult) describeRoll(status *v1.MySQLClusterStatus) {
	r.describeUpgrade(status)
	now := r.roll()
	switch message := cmp.Or(r.nextUpdateNote(), now.message()); {
	case message != "":
		conditionsOf(status).Set(conditionPrimaryFirst, metav1.ConditionTrue, reasonPrimaryFirst, message)
	case now.known || now.bound() == 0:
		conditionsOf(status).Remove(conditionPrimaryFirst)
	}
}
