package cluster

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// A pass follows an event: every child of a cluster is watched. Looking again without one is the fallback, and the only way to hear of
// what no watch tells: what the members' agents say, Secrets, objects of others, rights.
const (
	// stepEvery is how soon to look again at a cluster whose members answer and are on their way, calmEvery at one that is Ready, and
	// helpEvery at one that waits for somebody's help.
	stepEvery = time.Second
	calmEvery = 10 * time.Second
	helpEvery = 5 * time.Second
	// As long as nothing changes and no member answers, the time between two looks grows up to a limit. It doubles up to unwatchedLimit where
	// no watch tells of the end of the trouble, and grows fourfold up to watchedLimit where one does.
	unwatchedLimit = 30 * time.Second
	watchedLimit   = 5 * time.Minute
	// startingLooks is how many looks an agent that runs gets to answer before the time doubles: no watch tells when it begins to.
	startingLooks = 30

	// secretsEvery is how often the Secrets, which are never watched, are looked at while the cluster is Ready.
	secretsEvery = 5 * time.Minute
	// While it is not, they are looked at secretsSoon after a change, since a Pod may wait for one that somebody deleted. Then, as long as
	// nothing changes, the time doubles up to secretsWanted while a Pod may need them; else they are looked at every secretsLimit.
	secretsSoon   = 15 * time.Second
	secretsWanted = time.Minute
	secretsLimit  = 10 * time.Minute
)

// prospect is what the time until the next look depends on.
type prospect struct {
	// ready says that the cluster is at rest, stalled that it waits for somebody's help.
	ready, stalled bool
	// heard says that a member's agent answered, asked that one runs and should have.
	heard, asked bool
	// unwatched says that no watch tells when the trouble is over.
	unwatched bool
	// idle counts the looks since anything changed.
	idle int
	// due is when time alone changes what there is to do or to say; zero for never.
	due time.Duration
}

// next is how long to wait for the next look, if nothing happens before.
func (p prospect) next() time.Duration {
	first := stepEvery
	if p.stalled {
		first = helpEvery
	}
	after := first
	switch {
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

// secretsAfter is how long after the last look the Secrets are looked at again. wanted says that a Pod may wait for them, looks counts how
// often they were looked at since anything changed.
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

// doubled is a time that has doubled so many times, but for a limit.
func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	for after := first; after < limit; after *= 2 {
		if times <= 0 {
			return after
		}
		times--
	}
	return limit
}

// jittered makes longer times a little shorter, so that clusters that were made at once are not looked at at once for ever.
func jittered(longest time.Duration) time.Duration {
	if longest <= stepEvery {
		return longest
	}
	const part = 8
	return wait.Jitter(longest-longest/part, 1.0/(part-1))
}

// prospect is what a pass over a cluster's members leads to expect, but for how long nothing changed.
func (r report) prospect(status v1.MySQLClusterStatus) prospect {
	ahead := prospect{
		ready:     isAtRest(status),
		stalled:   meta.IsStatusConditionTrue(status.Conditions, v1.ConditionStalled),
		unwatched: r.problem != nil || r.children.unsettled || r.seen.refused != nil || len(missingPods(namesOf(r.cluster), r.seen)) > 0,
		due:       untilLate(r.seen),
	}
	if r.matched {
		ahead.due = stepEvery // to see whether it did
	}
	for _, member := range r.seen.members {
		ahead.heard = ahead.heard || member.Status != nil
	}
	for _, pod := range r.seen.pods {
		ahead.asked = ahead.asked || pod.Status.PodIP != "" && runsAgent(pod)
	}
	return ahead
}

// sooner is the shorter of two times, of which zero and less mean never.
func sooner(one, other time.Duration) time.Duration {
	if one <= 0 || other > 0 && other < one {
		return other
	}
	return one
}

// untilLate is how long it takes until the next volume on its way is late; zero for none.
func untilLate(seen observation) time.Duration {
	soonest := time.Duration(0)
	for _, volume := range seen.volumes {
		left := volumeLate - seen.now.Sub(volume.CreationTimestamp.Time) + time.Second
		if volume.Status.Phase == corev1.ClaimPending && left > 0 && (soonest == 0 || left < soonest) {
			soonest = left
		}
	}
	return soonest
}

// wantsSecrets says whether a Pod may wait for a Secret, or show or trust an old one: it is on a node and its agent does not run, which is
// not for want of an image, or does not answer.
func wantsSecrets(cluster v1.MySQLCluster, seen observation) bool {
	for _, pod := range seen.pods {
		if found := diagnosePod(cluster, pod); found != nil && found.reason == reasonImagePull {
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

// digest is a hash of texts, in their order.
func digest(texts ...string) uint64 {
	hash := fnv.New64a()
	for _, text := range texts {
		_, _ = hash.Write([]byte(text))
		_, _ = hash.Write([]byte{0})
	}
	return hash.Sum64()
}
