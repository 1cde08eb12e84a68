package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// conditionUpgrade is present while another image is held back: from all members, or from the primary.
const conditionUpgrade = reasonUpgradeBlocked

// holdPrimaryPartition is the partition that holds an update back from a primary that is member 0. It is used for no other primary, whose
// partition is higher.
const holdPrimaryPartition = 1

// upgrade is what is known about another image on its way to the primary, from the members whose turn comes before.
type upgrade struct {
	// image is what the spec asks for, if the StatefulSet has another one; empty if it has the same.
	image string
	// behind are the members that do not serve, or are not in sync. A primary always counts as in sync.
	behind []string
	// mayFix reports whether another image may be what a member in behind needs.
	mayFix bool
	// stuck reports whether the primary cannot start with what it has now, crashes whether its mysqld ends again and again, writes whether
	// it takes writes, isCurrent whether its Pod is of the revision from which Kubernetes would create it again, and is not being deleted.
	stuck, crashes, writes, isCurrent bool
	// has is the revision of the primary's Pod. canWait reports whether the primary may stay as it is: nothing shows that its mysqld fails,
	// and Kubernetes would not create its Pod again from an older revision.
	has     string
	canWait bool
	// tried reports whether there are members whose turn comes before the primary's. waits are those of them that do not serve with the
	// update yet. seriesChanged reports whether one of them has another release series while the primary's turn has not come.
	tried, seriesChanged bool
	waits                []string
	// from is the primary's release series, to another one that a member with the update has; empty if none has.
	from, to string
	// unheard are members of another series that have not reported yet which accounts no client can log in to, barred is what upgraded
	// reported about that.
	unheard  []string
	barred   replication.Accounts
	upgraded string
}

// upgradeOf returns how far an update is on its way to the primary, from what was observed.
func upgradeOf(r rollout, cluster v1.MySQLCluster, seen observed) upgrade {
	u := upgrade{}
	u.stuck, u.crashes = primaryFails(r, cluster, seen)
	if seen.set != nil && !slices.Contains([]string{"", cluster.Spec.Image}, children.ImageOf(*seen.set)) {
		u.image = cluster.Spec.Image
	}
	u.findBehind(r, cluster, seen)
	u.hear(r, seen)
	u.lookAtPrimary(r, seen)
	series := cmp.Or(u.from, replication.Series(cluster.Status.Version)) // that it reported last
	u.seriesChanged = len(u.waits) > 0 && series != "" && slices.ContainsFunc(seen.members, func(member replication.Member) bool { return u.hasOtherSeries(series, r, member, seen) })
	return u
}

// findBehind finds the members that another image waits for.
func (u *upgrade) findBehind(r rollout, cluster v1.MySQLCluster, seen observed) {
	for _, member := range seen.members {
		if member.Ordinal >= r.wanted {
			continue
		}
		isCounted := member.Name == cluster.Status.Primary || slices.Contains(cluster.Status.InSync, member.Name)
		if !isCounted || !seen.serves(member) {
			u.behind = append(u.behind, member.Name)
			u.mayFix = u.mayFix || seen.refused != nil || mayNeedAnother(member, seen)
		}
	}
}

// lookAtPrimary records what the primary's Pod has, and whether it may stay as it is.
func (u *upgrade) lookAtPrimary(r rollout, seen observed) {
	pod, found := seen.pod(r.n.Member(r.primary))
	isAlive := found && pod.DeletionTimestamp == nil
	isGoingBack := r.known && r.update == r.current
	u.has = revisionOf(pod)
	u.isCurrent = isAlive && u.has == r.current
	u.canWait = isAlive && (u.isCurrent || isGoingBack) && (u.writes || !u.stuck && !u.crashes)
}

// hear records the reports of the primary and of the members whose turn comes before it.
func (u *upgrade) hear(r rollout, seen observed) {
	var before replication.Accounts
	if primary := seen.heard(r.n.Member(r.primary)); primary != nil {
		u.writes, u.from = primary.State == replication.StateWriting, replication.Series(primary.Version)
		if primary.LockedOut != nil {
			before = *primary.LockedOut
		}
	}
	for ordinal := r.scale - 1; ordinal > r.primary; ordinal-- {
		name := r.n.Member(ordinal)
		status, isLate := seen.heard(name), slices.Contains(r.late, ordinal)
		u.tried = true
		if isLate || !seen.serves(replication.Member{Name: name, Status: status}) {
			u.waits = append(u.waits, name)
		}
		if !isLate && status != nil && u.from != "" {
			u.compare(name, *status, before)
		}
	}
}

// hasOtherSeries reports whether a member that comes before the primary has another release series than the primary, with an update that no
// user allowed to restart the primary.
func (u *upgrade) hasOtherSeries(primary string, r rollout, member replication.Member, seen observed) bool {
	pod, found := seen.pod(member.Name)
	isAllowed := r.allowed != "" && revisionOf(pod) == r.allowed
	if !found || member.Status == nil || isAllowed || !u.precedes(r, member, pod) {
		return false
	}
	series := replication.Series(member.Status.Version)
	return series != "" && series != primary
}

// precedes reports whether a member has an update that the primary does not have, and Kubernetes restarts the primary after it.
func (u *upgrade) precedes(r rollout, member replication.Member, pod corev1.Pod) bool {
	return member.Ordinal > r.primary && revisionOf(pod) != u.has
}

// revisionOf returns the revision of a StatefulSet that a Pod is of.
func revisionOf(pod corev1.Pod) string { return pod.Labels[appsv1.ControllerRevisionHashLabelKey] }

// compare records the report of a member with the update if its release series is not the primary's. Accounts that no client could log in
// to before do not count against the update.
func (u *upgrade) compare(name string, status replication.Status, before replication.Accounts) {
	series := replication.Series(status.Version)
	if series == u.from {
		return
	}
	if series == "" || status.LockedOut == nil {
		u.unheard = append(u.unheard, name)
	}
	if series != "" {
		u.to = series
	}
	if status.LockedOut != nil && u.barred.Empty() {
		u.barred, u.upgraded = status.LockedOut.Without(before), name
	}
}

// isHeard reports whether everything that an update depends on is known.
func (u upgrade) isHeard() bool { return u.writes && len(u.waits) == 0 && len(u.unheard) == 0 }

// primaryFails reports whether the primary cannot start with its image and settings, as Kubernetes or mysqld reports (stuck), and whether
// its mysqld ends again and again for a reason that only users can find (crashes).
func primaryFails(r rollout, cluster v1.MySQLCluster, seen observed) (stuck, crashes bool) {
	pod, found := seen.pod(r.n.Member(r.primary))
	if !found {
		return seen.refused != nil, false
	}
	problem := diagnosePod(cluster, pod)
	if problem == nil {
		return false, false
	}
	return slices.Contains([]string{reasonImagePull, reasonImageUnusable, reasonDowngrade, reasonSettings}, problem.Reason), problem.Reason == reasonServerFailed
}

// mayNeedAnother reports whether a member that does not serve may need another image: its mysqld does not run, or its agent, which comes
// with the same update, is of a release whose report the operator does not rely on.
func mayNeedAnother(member replication.Member, seen observed) bool {
	if member.Status != nil && member.Status.Protocol != replication.Protocol {
		return true
	}
	pod, _ := seen.pod(member.Name)
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(container corev1.ContainerStatus) bool {
		if container.Name != children.ContainerInitialize && container.Name != children.ContainerMysqld {
			return false
		}
		waiting, ended := container.State.Waiting, container.State.Terminated
		return waiting != nil && !slices.Contains([]string{"", "PodInitializing", "ContainerCreating"}, waiting.Reason) || ended != nil && ended.ExitCode != 0
	})
}

// isHeldFromPrimary reports whether an update is held back from a primary that is member 0.
func (r rollout) isHeldFromPrimary() bool {
	return r.recorded && r.primary == 0 && r.partition == holdPrimaryPartition
}

// passes reports whether nothing holds an update back from the primary any more. Either the update is complete, or the members before the
// primary serve with it, and have the primary's release series or let the same accounts in. An update that goes back to what the primary
// has is complete when all have it.
func (r rollout) passes() bool {
	if !r.isHeldFromPrimary() || !r.known {
		return false
	}
	u := r.upgrade
	isTried := u.tried && u.isHeard() && u.from != "" && u.barred.Empty()
	return isTried && slices.Contains(r.late, r.primary) || len(r.late) == 0
}

// isBlocked reports whether an update is held back from a primary that is member 0 until a user helps.
func (r rollout) isBlocked() bool {
	if !r.isHeldFromPrimary() || !r.known || r.isAllowed() || !slices.Contains(r.late, r.primary) {
		return false
	}
	u := r.upgrade
	return u.stuck || u.crashes || !u.tried || len(u.waits) == 0 && !u.barred.Empty()
}

// updateStart is how a change of the spec may reach the members.
type updateStart struct {
	// bound is the number of the first member that may be restarted.
	bound int
	// waits says what must come before that; empty if the change may begin.
	waits string
}

// opening decides how an update begins. Another image may have another series, whatever it reported when it was asked. So it begins only
// when all members are healthy: a member that must be copied gets no copy from another series (manual, "Cloning Remote Data"). But another
// image may also be what fixes a cluster; then it does not wait for the cluster to be healthy.
func (r rollout) opening() updateStart {
	u := r.upgrade
	switch {
	case !r.recorded || max(r.scale, r.wanted) < 2:
		return updateStart{bound: r.bound()}
	case r.bringsOtherSeries():
		return updateStart{bound: holdPrimaryPartition}
	case u.image == "":
		return updateStart{bound: r.bound()}
	case r.isAtRest() && len(u.behind) > 0 && !u.mayFix:
		return updateStart{r.bound(), fmt.Sprintf("the update to spec.image %s begins when all members serve and are in sync, because MySQL does not clone between release series; "+
			"waiting for %s", u.image, strings.Join(u.behind, ", "))}
	case r.primary > 0:
		return updateStart{bound: r.bound()}
	}
	return r.holdFromPrimary()
}

// holdFromPrimary holds another image back from a primary that is member 0 until the others have tried it. The exception is a primary that
// may already have something newer than the revision from which Kubernetes would create it again: it would come back older than its data.
func (r rollout) holdFromPrimary() updateStart {
	u := r.upgrade
	switch {
	case u.stuck:
		return updateStart{}
	case r.isHeldFromPrimary() || r.isAtRest() || u.isCurrent:
		return updateStart{bound: holdPrimaryPartition}
	case r.missing <= 1 && !u.mayFix:
		return updateStart{waits: fmt.Sprintf("the update to spec.image %s begins when update %s is over; waiting for %s", u.image, r.update, cmp.Or(strings.Join(u.behind, ", "), "Kubernetes"))}
	}
	return updateStart{}
}

// isAtRest reports whether no update is in progress.
func (r rollout) isAtRest() bool { return r.known && r.update == r.current && len(r.late) == 0 }

// isNear reports whether Kubernetes may restart a primary that is member 0 as soon as the members before it are ready.
func (r rollout) isNear() bool {
	return r.primary == 0 && r.partition == 0 && (!r.known || slices.Contains(r.late, r.primary))
}

// bringsOtherSeries reports whether an update brings another release series although the image has the same name, and has not reached a
// primary that is member 0 yet. The primary is held back then even if it does not answer: its agent may be down while its mysqld serves.
func (r rollout) bringsOtherSeries() bool {
	return r.isNear() && r.upgrade.seriesChanged && r.upgrade.canWait
}

// releases reports whether Kubernetes may restart the primary once this member is ready, which it is only after it got its assignment. So
// that waits until the member has reported its version and, if the series is another one, until the StatefulSet holds the primary back.
func (r rollout) releases(member replication.Member, seen observed) bool {
	pod, found := seen.pod(member.Name)
	return found && r.isNear() && r.upgrade.precedes(r, member, pod)
}

// asked identifies the members' reports that an update depends on; empty if it depends on none.
func (r rollout) asked() string {
	if !r.isHeldFromPrimary() && r.upgrade.to == "" && !r.upgrade.seriesChanged {
		return ""
	}
	return fmt.Sprint(r.upgrade)
}

// continueCommand returns the command that lets an update restart the primary.
func (r rollout) continueCommand() string {
	return fmt.Sprintf("kubectl -n %s annotate mysqlcluster %s %s=%s --overwrite", r.n.Namespace, r.n.Cluster, AnnotationRestartPrimary, r.update)
}

// blocked says what holds an update back from the primary, which users may fix or overrule; empty if nothing does. For a primary that is
// not member 0, it says what users should know before they let the update continue.
func (r rollout) blocked() string {
	u, primary := r.upgrade, r.n.Member(r.primary)
	isWarned := r.primary > 0 && slices.Contains(r.held(), r.primary) && !u.barred.Empty()
	if !isWarned && !r.isBlocked() {
		return ""
	}
	var why string
	switch {
	case (u.stuck || u.crashes) && !isWarned:
		why = "the primary does not run with its current image and settings, so no replica can show whether the update works"
	case !u.tried:
		why = "there is no replica that could show whether the update works"
	default:
		why = fmt.Sprintf("%s has MySQL %s, which lets no client log in as %s: run ALTER USER … IDENTIFIED WITH caching_sha2_password BY … (or DROP USER) on the primary, and this condition disappears within two minutes; until then, do not change these accounts in another way, "+
			"because that stops replicas with error 1524; there is no way back to MySQL %s once the primary has restarted", u.upgraded, u.to, u.barred, u.from)
	}
	return fmt.Sprintf("update %s is held back from the primary %s: %s; to continue anyway: %s", r.update, primary, why, r.continueCommand())
}

// asks says which members must still answer before an update may reach the primary; empty if the update waits for something else.
func (r rollout) asks() string {
	u := r.upgrade
	if !r.isHeldFromPrimary() || !r.known || r.isAllowed() || len(u.waits) > 0 || len(u.unheard) == 0 {
		return ""
	}
	return fmt.Sprintf("update %s does not restart the primary %s yet: waiting until %s reports whether accounts could no longer log in with MySQL %s; an agent of an earlier release does not report this; to continue anyway: %s",
		r.update, r.n.Member(r.primary), strings.Join(u.unheard, ", "), u.to, r.continueCommand())
}

// upgradeWaits says what another image waits for before it begins; empty if it does not wait.
func (r passResult) upgradeWaits() string { return rolloutOf(r.cluster, r.seen).opening().waits }

// describeUpgrade sets or removes the condition UpgradeBlocked. What it says about this very update stays while members do not answer.
func (r passResult) describeUpgrade(status *v1.MySQLClusterStatus) {
	now, message := r.roll(), r.upgradeWaits()
	if message == "" {
		message = now.blocked()
	}
	before := meta.FindStatusCondition(status.Conditions, conditionUpgrade)
	switch {
	case message != "":
		conditionsOf(status).Set(conditionUpgrade, metav1.ConditionTrue, reasonUpgradeBlocked, message)
	case before == nil || !now.known && now.bound() > 0:
	case now.isHeldFromPrimary() && !now.isAllowed() && !now.upgrade.isHeard() && strings.Contains(before.Message, "update "+now.update+" "):
	default:
		conditionsOf(status).Remove(conditionUpgrade)
	}
}
