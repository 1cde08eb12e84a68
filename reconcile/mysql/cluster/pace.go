package cluster

import (
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Passes follow events: the operator watches every child of a cluster. Looking without an event is the fallback, and the only way to notice
// what no watch reports: the agents' reports, Secrets, objects of other owners, and permissions.
const (
	// stepEvery is how soon to look again at a cluster whose members answer and make progress, helpEvery at one that waits for a user's help,
	// and calmEvery at one that is Ready. If the members tell the operator what must not wait, the next look at the Secrets is soon enough.
	stepEvery = time.Second
	helpEvery = 5 * time.Second
	calmEvery = 10 * time.Second
	// missedEvery is how soon to look again at a member that has begun not to answer, and heldEvery while a primary that has crashed waits
	// for a replica to apply what it has received.
	missedEvery = 200 * time.Millisecond
	heldEvery   = 50 * time.Millisecond
	// As long as nothing changes and no member answers, the time between two looks grows up to a limit. It doubles up to unwatchedLimit if
	// no watch reports the end of the problem, and grows fourfold up to watchedLimit if one does.
	unwatchedLimit = 30 * time.Second
	watchedLimit   = 5 * time.Minute
	// startingLooks is how many looks a running agent gets to answer before the time doubles: no watch reports when it begins to.
	startingLooks = 30

	// secretsEvery is how often the operator reads the Secrets, which it never watches, while the cluster is Ready.
	secretsEvery = 5 * time.Minute
	// While it is not Ready, the operator reads them secretsSoon after a change, because a Pod may wait for one that a user deleted. Then,
	// as long as nothing changes, the time doubles up to secretsWanted while a Pod may need them; otherwise it is secretsLimit.
	secretsSoon   = 15 * time.Second
	secretsWanted = time.Minute
	secretsLimit  = 10 * time.Minute
)

// requeueInput is what the time until the next look depends on.
type requeueInput struct {
	// ready reports whether the cluster is at rest, trusted whether its members tell the operator when it is not, and stalled whether it waits
	// for a user's help.
	ready, trusted, stalled bool
	// heard reports whether a member's agent answered, asked whether one runs and should have answered.
	heard, asked bool
	// unwatched reports whether no watch reports the end of the problem.
	unwatched bool
	// idle counts the looks since the last change.
	idle int
	// due is the time after which there is something to do or to report without an event; zero for never.
	due time.Duration
}

// requeueAfter returns how long to wait for the next look, if no event comes first.
func (p requeueInput) requeueAfter() time.Duration {
	first := stepEvery
	if p.stalled {
		first = helpEvery
	}
	after := first
	switch {
	case p.ready && p.trusted:
		after = secretsLimit // nextLook shortens this to when the Secrets are due
	case p.ready:
		after = calmEvery
	case p.heard:
	case p.asked:
		after = doubled(first, p.idle-startingLooks, calmEvery)
	case p.unwatched:
		after = doubled(first, p.idle, unwatchedLimit)
	default:
		after = doubled(first, 2*p.idle, watchedLimit)
	}
	if p.due > 0 {
		after = min(after, p.due)
	}
	return after
}

// secretsAfter returns how long after the last look to read the Secrets again. wanted reports whether a Pod may wait for them, looks counts
// how often they were read since the last change.
func secretsAfter(ready, wanted bool, looks int) time.Duration {
	switch {
	case ready:
		return secretsEvery
	case wanted:
		return doubled(secretsSoon, looks, secretsWanted)
	case looks == 0:
		return secretsSoon
	}
	return secretsLimit
}

// doubled returns a time, doubled this many times, up to a limit.
func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	for after := first; after < limit; after *= 2 {
		if times <= 0 {
			return after
		}
		times--
	}
	return limit
}

// jittered shortens times, so that clusters that were created together are not looked at together indefinitely. It shortens the shortest
// most: members look at themselves every second, too, and some steps need a replica's look that is later than its primary's (raise). With
// the same period, all looks would come in the same order each time.
func jittered(longest time.Duration) time.Duration {
	part := time.Duration(8)
	if longest <= stepEvery {
		part = 2
	}
	return wait.Jitter(longest-longest/part, 1.0/float64(part-1))
}

// upToAnEighth returns a random number from 0 to an eighth.
func upToAnEighth() float64 { return wait.Jitter(time.Second, 1.0/8).Seconds() - 1 }

// prospect returns what to expect after a pass over a cluster's members, except for how long nothing has changed.
func (r passResult) prospect(status v1.MySQLClusterStatus) requeueInput {
	ahead := requeueInput{
		ready:     isAtRest(status) && !r.lacks(),
		trusted:   r.isTrusted(),
		stalled:   meta.IsStatusConditionTrue(status.Conditions, v1.ConditionStalled),
		unwatched: r.problem != nil || r.children.unsettled || r.seen.refused != nil || len(missingPods(children.NamesOf(r.cluster), r.seen)) > 0,
		due:       r.due(),
	}
	if r.matched {
		ahead.due = stepEvery // to see whether the primary did it
	}
	for _, member := range r.seen.members {
		ahead.heard = ahead.heard || member.Status != nil
	}
	for _, pod := range r.seen.pods {
		ahead.asked = ahead.asked || pod.Status.PodIP != "" && runsAgent(pod)
	}
	return ahead
}

// isTrusted reports whether nothing but the members' news can change what the operator does next.
func (r passResult) isTrusted() bool {
	isSettled := r.problem == nil && !r.children.unsettled && r.seen.refused == nil && r.seen.suspect(r.cluster.Status) == ""
	return isSettled && r.decision.Matching == nil && tellNews(r.seen.members, r.decision.Record)
}

// tellNews reports whether the members can tell the operator all that must not wait. Without a lease, a primary does not report which
// replicas it does not hear. It never reports that of members that join.
func tellNews(members []replication.Member, record replication.Record) bool {
	leader, found := memberNamed(members, record.Primary)
	if !found || len(record.Joining) > 0 || leader.Status == nil || len(members) > 1 && (leader.Status.Lease == nil || leader.Status.Lease.Needs == 0) {
		return false
	}
	return !slices.ContainsFunc(members, func(member replication.Member) bool { return member.Status == nil || !member.Status.AlarmsArrive })
}

// due returns the time until something happens that no watch and no alarm reports; zero for nothing.
func (r passResult) due() time.Duration {
	if r.seen.suspect(r.cluster.Status) != "" && r.seen.suspectedFor < suspectsFor {
		if primary := r.primaryStatus(); primary != nil && primary.StartHeld {
			return heldEvery
		}
		return missedEvery
	}
	return untilLate(r.seen)
}

// leaseEndsIn is after which time, from now on, the lease of a former primary that is waited for has certainly ended; zero for none.
func (r passResult) leaseEndsIn(now time.Time) time.Duration {
	left := view(r.cluster, r.seen).LeaseEndsIn()
	if left == 0 {
		return 0
	}
	return max(time.Millisecond, left-now.Sub(r.seen.answered))
}

// suspectsFor is for how long the operator looks more often at a cluster of which a member has begun not to answer.
const suspectsFor = 5 * time.Second

// suspect is the primary if it does not answer the operator, or its mysqld does not answer the agent. It is a replica in sync if that does
// not answer, and the primary does not hear it either. A replica may take over soon, or the others do without the replica. It is empty for
// none.
func (o observed) suspect(status v1.MySQLClusterStatus) string {
	primary, found := memberNamed(o.members, status.Primary)
	switch {
	case !found:
		return ""
	case primary.Status == nil || primary.Status.IsLate():
		return primary.Name
	}
	for _, member := range o.members {
		if member.Status == nil && primary.Status.Lease.Lacks(member.Name) {
			return member.Name
		}
	}
	return ""
}

// lacks reports whether the primary lacks something right now.
func (r passResult) lacks() bool { return r.lacksAcks() || r.lacksLease() || r.lacksVolume() }

// lacksAcks reports whether the primary gets too few acknowledgements right now.
func (r passResult) lacksAcks() bool {
	primary := r.primaryStatus()
	return primary != nil && primary.AcksShortSeconds > 0
}

// lacksLease reports whether the primary leads only because the operator confirms it.
func (r passResult) lacksLease() bool {
	primary := r.primaryStatus()
	return primary != nil && lacksLease(*primary)
}

func lacksLease(primary replication.Status) bool {
	lease := primary.Lease
	return lease != nil && lease.Needs > 0 && (lease.IsEnding() || !lease.IsHeard)
}

// sooner returns the shorter of two times; zero and less mean never.
func sooner(one, other time.Duration) time.Duration {
	if one <= 0 || other > 0 && other < one {
		return other
	}
	return one
}

// untilLate returns the time until the next pending volume is late; zero for none.
func untilLate(seen observed) time.Duration {
	soonest := time.Duration(0)
	for _, volume := range seen.volumes {
		left := volumeLate - seen.now.Sub(volume.CreationTimestamp.Time) + time.Second
		if volume.Status.Phase == corev1.ClaimPending && left > 0 && (soonest == 0 || left < soonest) {
			soonest = left
		}
	}
	return soonest
}

// wantsSecrets reports whether a Pod may wait for a Secret, or show or trust an old certificate. Such a Pod is on a node. Its agent does
// not run, for another reason than a missing image, or does not answer.
func wantsSecrets(cluster v1.MySQLCluster, seen observed) bool {
	for _, pod := range seen.pods {
		if found := diagnosePod(cluster, pod); found != nil && found.Reason == reasonImagePull {
			continue
		}
		if pod.Spec.NodeName != "" && !runsAgent(pod) {
			return true
		}
	}
	for _, member := range seen.members {
		if pod, found := seen.pod(member.Name); found && member.Status == nil && runsAgent(pod) {
			return true
		}
	}
	return false
}

// digest returns a hash of texts, in their order.
func digest(texts ...string) uint64 {
	hash := fnv.New64a()
	for _, text := range texts {
		_, _ = hash.Write([]byte(text))
		_, _ = hash.Write([]byte{0})
	}
	return hash.Sum64()
}
