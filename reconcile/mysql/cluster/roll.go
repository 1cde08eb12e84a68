package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// AnnotationRestartPrimary, on a MySQLCluster, lets one update restart the primary, and the replicas below it after that. Its value is the
// name of the update, the StatefulSet's status.updateRevision, so that it allows no later one.
const AnnotationRestartPrimary = prefix + "restart-primary-for"

// conditionPrimaryFirst is there while an update of the members is held back because it would restart the primary before replicas.
const conditionPrimaryFirst = reasonPrimaryFirst

// roll is how far an update of the members is, and what bounds it. Kubernetes restarts members from the highest number down, each once the
// one before it is ready. A primary that is not member 0 would be restarted before the replicas below it, and maybe before any has tried
// what is new.
type roll struct {
	n names
	// primary is the number of the member that takes writes; recorded says that the record names it. Without one, clients are led there.
	primary  int
	recorded bool
	// scale is how many members the StatefulSet asks for, wanted how many the spec asks for, partition the number of the first that it
	// restarts.
	scale, wanted, partition int
	// allowed is the update that people let restart the primary.
	allowed string
	// known says that the StatefulSet's status is of its template as it is: update is the revision that it goes over to, current the last one
	// that all members had, and late are the members that update has not reached.
	known           bool
	current, update string
	late            []int
	// between are those of the late ones that are not as of current either: Kubernetes would make them anew as of that.
	between []int
	// missing is how many Pods there are fewer than the StatefulSet is to have.
	missing int
	// upgrade is what members say of it whose turn comes before the primary's.
	upgrade upgrade
}

// allowedUpdate is the update that people let restart the primary. What is longer than a name can be is cut.
func allowedUpdate(cluster v1.MySQLCluster) string {
	return brief(cluster.Annotations[AnnotationRestartPrimary], longestWord)
}

// rollOf reads from what was seen how an update stands.
func rollOf(cluster v1.MySQLCluster, seen observation) roll {
	r := roll{n: namesOf(cluster), recorded: cluster.Status.Primary != "", scale: scaleOf(seen), wanted: wantedReplicas(cluster), allowed: allowedUpdate(cluster)}
	r.primary, _ = r.n.ordinal(seen.route)
	if seen.set == nil {
		return r
	}
	r.partition = partitionOf(*seen.set)
	status := seen.set.Status
	r.known = status.ObservedGeneration >= seen.set.Generation
	r.current, r.update = status.CurrentRevision, status.UpdateRevision
	for ordinal := range r.scale {
		pod, found := seen.pod(r.n.member(ordinal))
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
			r.between = append(r.between, ordinal)
		}
	}
	r.upgrade = upgradeOf(r, cluster, seen)
	return r
}

// partitionOf is the number of the first member that a StatefulSet restarts.
func partitionOf(set appsv1.StatefulSet) int {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return int(*rolling.Partition)
	}
	return 0
}

// bound is the number of the first member that may be restarted unasked: the one above the primary. It is zero where the primary is member
// 0, which comes last by itself, unless the others have to try an update before (upgrade.go). Without a record it is never less than it
// was, since members that are adopted may be at work.
func (r roll) bound() int {
	bound := 0
	if r.primary > 0 || r.isBraked() {
		bound = r.primary + 1
	}
	if !r.recorded {
		bound = max(bound, r.partition)
	}
	return bound
}

// isAllowed says whether people let this very update restart the primary, and it is not over.
func (r roll) isAllowed() bool {
	return r.known && r.bound() > 0 && r.allowed != "" && r.allowed == r.update && (r.update != r.current || len(r.late) > 0)
}

// isUnderWay says whether Kubernetes is carrying an allowed update out: it restarts one member at a time. Where more are missing, something
// else is the matter.
func (r roll) isUnderWay() bool { return r.isAllowed() && r.partition < r.bound() && r.missing <= 1 }

// lowered is a partition below the bound, and whether there is leave for it as long as the template stays as it is. While the status does
// not tell yet which update that is, what was lowered stays.
func (r roll) lowered() (partition int, may bool) {
	if !r.known {
		return r.partition, r.allowed != "" && r.partition < r.bound()
	}
	return 0, r.isAllowed() || r.passes() || r.primaryHas()
}

// primaryHas says that an update under way has reached a primary that is not member 0 already, as after a failover in the middle of it.
// Below a partition above it Kubernetes would make its Pod anew as of before the update, older than its data; and nothing is to be said
// against the members below.
func (r roll) primaryHas() bool {
	return r.known && r.recorded && r.primary > 0 && r.update != r.current && !slices.Contains(r.late, r.primary)
}

// held are the members that an update does not reach, the first to be restarted first.
func (r roll) held() []int {
	if !r.known || r.bound() == 0 || r.isAllowed() || r.primaryHas() || r.isBraked() && !r.isBlocked() {
		return nil
	}
	held := slices.DeleteFunc(slices.Clone(r.late), func(ordinal int) bool { return ordinal >= r.bound() })
	slices.Reverse(held)
	return held
}

// isHeld says whether an update has reached all members but those that it is held back from.
func (r roll) isHeld() bool {
	held := len(r.held())
	return held > 0 && held == len(r.late)
}

// message says what is held back because the primary is not member 0, and which command lets it go on; empty where nothing is.
func (r roll) message() string {
	held := r.held()
	if len(held) == 0 || r.isBraked() {
		return ""
	}
	other := ""
	if len(r.between) > 0 {
		other = fmt.Sprintf("; if %s lost its Pod, Kubernetes would create the Pod again from the older revision %s, so continue soon", r.members(r.between), r.current)
	}
	if r.allowed != "" && r.allowed != r.update {
		other += fmt.Sprintf("; the annotation %s=%q is not for this update", AnnotationRestartPrimary, r.allowed)
	}
	return fmt.Sprintf("update %s is held back from %s: %s%s; to continue with %s: %s", r.update, r.members(held), r.danger(), other, r.n.member(held[0]), r.goOn())
}

// danger is why an update is held back.
func (r roll) danger() string {
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
	return fmt.Sprintf("Kubernetes would restart the primary %s before the replicas below it; %s", r.n.member(r.primary), tried)
}

func (r roll) members(ordinals []int) string {
	all := make([]string, 0, len(ordinals))
	for _, ordinal := range ordinals {
		all = append(all, r.n.member(ordinal))
	}
	return strings.Join(all, ", ")
}

// roll is how an update stands after the pass: a StatefulSet that the pass has written is not known yet.
func (r report) roll() roll {
	now := rollOf(r.cluster, r.seen)
	now.known = now.known && !r.children.rolled
	return now
}

// nextWaits says that the spec asks for another update while an allowed one is under way; empty where it does not.
func (r report) nextWaits() string {
	if !r.children.waits || r.upgradeWaits() != "" {
		return ""
	}
	now := rollOf(r.cluster, r.seen)
	return fmt.Sprintf("the newer change of the spec begins when update %s has reached %s; to start it now: kubectl -n %s annotate mysqlcluster %s %s-",
		now.update, now.members(now.late), now.n.namespace, now.n.cluster, AnnotationRestartPrimary)
}

// heldBack is an update that waits for people, or for the cluster to be well; nil where none does.
func (r report) heldBack() *problem {
	now := r.roll()
	if message := now.message(); message != "" {
		return &problem{reasonPrimaryFirst, message, true}
	}
	if message := now.blocked(); message != "" {
		return &problem{reasonUpgradeBlocked, message, true}
	}
	if message := r.upgradeWaits(); message != "" {
		return &problem{reasonUpgradeBlocked, message, false}
	}
	return nil
}

// isOver says whether there is nothing to wait for but people: no note, or one that follows from an update that is held back, since agents
// are of another release as long as their Pods are.
func (r report) isOver(note *problem) bool {
	return note == nil || note.reason == string(replication.ReasonAgentRelease) && r.roll().isHeld()
}

// leftToDo is what keeps a cluster from being as it should be whose members all serve; nil for nothing. With agents of before, commits may
// not get more copies until the update goes on.
func (r report) leftToDo(note *problem) *problem {
	if note != nil {
		return cmp.Or(r.rootPassword(), r.children.held, r.heldBack())
	}
	return cmp.Or(r.rootPassword(), r.notDurable(), r.children.held, r.heldBack())
}

// describeRoll sets the conditions PrimaryWouldRestartFirst and UpgradeBlocked, or takes them away. They stay as they are while nobody
// knows.
func (r report) describeRoll(status *v1.MySQLClusterStatus) {
	r.describeUpgrade(status)
	now := r.roll()
	switch message := cmp.Or(r.nextWaits(), now.message()); {
	case message != "":
		reconcile.SetCondition(&status.Conditions, metav1.Condition{
			Type: conditionPrimaryFirst, Status: metav1.ConditionTrue, Reason: reasonPrimaryFirst, Message: message, ObservedGeneration: status.ObservedGeneration,
		})
	case now.known || now.bound() == 0:
		meta.RemoveStatusCondition(&status.Conditions, conditionPrimaryFirst)
	}
}
