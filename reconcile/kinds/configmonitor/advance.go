package configmonitor

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

const (
	// absencePatience is how long an evicted Pod's replacement may be missing before it is taken for not coming: what makes the Pods may
	// have been told meanwhile to run fewer. A replacement that is there but not ready is waited for without end.
	absencePatience = time.Minute
	// stuckAfter is when somebody is asked to help; the same as a Deployment's default progress deadline.
	stuckAfter = 10 * time.Minute
)

// look is what a pass saw of a restart under way.
type look struct {
	now time.Time
	// hash is of the data that is restarted for.
	hash string
	pods []pod
	// rollouts are by the UID that the plan names; what does not exist any more is not in it.
	rollouts map[types.UID]rollout
}

// advance returns the workloads with what became of them since. It decides by what is seen alone, so that it does not matter who did
// it, or whether the operator that did has told.
func advance(workloads []v1.RestartedWorkload, seen look) []v1.RestartedWorkload {
	advanced := slices.Clone(workloads)
	for i, entry := range workloads {
		if isDone(entry) {
			continue
		}
		action, message := rolled(entry, seen)
		if entry.Kind == kindPod {
			action, message = evicted(entry, workloads, seen)
		}
		advanced[i] = with(entry, action, message, seen.now)
	}
	return advanced
}

func isDone(entry v1.RestartedWorkload) bool {
	switch entry.Action {
	case v1.ActionPending, v1.ActionRolling, v1.ActionEvicting:
		return false
	case v1.ActionRolled, v1.ActionReplaced, v1.ActionGone, v1.ActionLeftAlone, v1.ActionAbandoned:
		return true
	}
	// A newer operator's word: it is not for this one to go on with.
	return true
}

// with returns the entry with another action and message.
func with(entry v1.RestartedWorkload, action v1.Action, message string, now time.Time) v1.RestartedWorkload {
	if entry.Action != action {
		entry.Action, entry.Time = action, second(now)
	}
	entry.Message = message
	return entry
}

// rolled tells what became of a workload that replaces its Pods by itself.
func rolled(entry v1.RestartedWorkload, seen look) (v1.Action, string) {
	found, ok := seen.rollouts[entry.UID]
	switch {
	case !ok:
		return v1.ActionGone, ""
	case found.refuses != "":
		return v1.ActionLeftAlone, found.refuses
	case entry.Action == v1.ActionPending:
		return v1.ActionPending, ""
	case found.stamp == "":
		// To stamp it again would make the two of us restart its Pods for ever.
		return v1.ActionLeftAlone, "somebody takes the annotation off its Pod template again: restart it by what manages it"
	case found.stamp != seen.hash:
		return v1.ActionRolling, "its Pod template was stamped for other data since: somebody has rolled it back, or restarts it for newer data"
	case found.done:
		return v1.ActionRolled, found.remark
	default:
		return v1.ActionRolling, found.remark
	}
}

// evicted tells what became of a Pod that is to be replaced.
func evicted(entry v1.RestartedWorkload, workloads []v1.RestartedWorkload, seen look) (v1.Action, string) {
	index := slices.IndexFunc(seen.pods, func(p pod) bool { return p.uid == entry.UID && !p.over })
	switch {
	case index < 0 && entry.Action == v1.ActionPending:
		return v1.ActionEvicting, ""
	case index < 0:
		return replaced(entry, workloads, seen)
	case seen.pods[index].ending:
		return v1.ActionEvicting, "is ending"
	}
	waits := seen.pods[index].ready && !isEvicting(workloads) && !groupOfOwner(entry.Owner, workloads, seen).settled
	if waits {
		return v1.ActionPending, fmt.Sprintf("waits until the other Pods of %s are ready", entry.Owner)
	}
	return v1.ActionPending, ""
}

// replaced tells whether another Pod has taken the place of one that is gone.
func replaced(entry v1.RestartedWorkload, workloads []v1.RestartedWorkload, seen look) (v1.Action, string) {
	group := groupOfOwner(entry.Owner, workloads, seen)
	if !group.settled {
		return v1.ActionEvicting, fmt.Sprintf("waits until the Pods of %s that replace it are ready", entry.Owner)
	}
	if group.live < group.planned && seen.now.Sub(entry.Time.Time) < absencePatience {
		return v1.ActionEvicting, fmt.Sprintf("waits until %s makes a Pod in its place", entry.Owner)
	}
	return v1.ActionReplaced, ""
}

// group is what is seen of the Pods of one owner.
type group struct {
	// planned is how many were to be replaced, live how many there are now.
	planned, live int
	// settled says that none is ending, and that all that need no restart, or no more, are ready.
	settled bool
}

func groupOfOwner(owner string, workloads []v1.RestartedWorkload, seen look) group {
	found := group{settled: true}
	due := map[types.UID]bool{}
	for _, entry := range workloads {
		if entry.Kind == kindPod && entry.Owner == owner {
			found.planned++
			due[entry.UID] = !isDone(entry)
		}
	}
	for _, one := range seen.pods {
		if one.over || one.origin.String() != owner {
			continue
		}
		if !one.ending {
			found.live++
		}
		if one.ending || !due[one.uid] && !one.ready {
			found.settled = false
		}
	}
	return found
}

// toRoll returns the indices of the workloads whose template is to be stamped now: all at once, since each keeps its Pods available by
// itself.
func toRoll(workloads []v1.RestartedWorkload) []int {
	next := []int{}
	for i, entry := range workloads {
		if entry.Kind != kindPod && entry.Action == v1.ActionPending {
			next = append(next, i)
		}
	}
	return next
}

// toEvict returns the indices of the Pods of which one may be evicted now, the best first and one for each owner. There is none while
// one that was evicted is not replaced. Pods that are not ready go first, since nobody misses them; after bad data they may be all.
// Others go when the Pods they leave behind are ready.
func toEvict(workloads []v1.RestartedWorkload, seen look) []int {
	if isEvicting(workloads) {
		return nil
	}
	unready, ready := []int{}, []int{}
	for i, entry := range workloads {
		if entry.Kind != kindPod || entry.Action != v1.ActionPending {
			continue
		}
		serves := slices.ContainsFunc(seen.pods, func(p pod) bool { return p.uid == entry.UID && p.ready })
		switch {
		case !serves:
			unready = append(unready, i)
		case groupOfOwner(entry.Owner, workloads, seen).settled:
			ready = append(ready, i)
		}
	}
	return firstOfEachOwner(append(unready, ready...), workloads)
}

func isEvicting(workloads []v1.RestartedWorkload) bool {
	return slices.ContainsFunc(workloads, func(entry v1.RestartedWorkload) bool { return entry.Action == v1.ActionEvicting })
}

func firstOfEachOwner(indices []int, workloads []v1.RestartedWorkload) []int {
	first, owners := []int{}, map[string]bool{}
	for _, i := range indices {
		if owner := workloads[i].Owner; !owners[owner] {
			owners[owner] = true
			first = append(first, i)
		}
	}
	return first
}

// stuck returns what does not get on by itself, the first of it, and whether there is something: a workload that says so itself, or any
// when nothing at all has got on for long.
func stuck(workloads []v1.RestartedWorkload, seen look) (v1.RestartedWorkload, bool) {
	left := slices.DeleteFunc(slices.Clone(workloads), isDone)
	if len(left) == 0 {
		return v1.RestartedWorkload{}, false
	}
	for _, entry := range left {
		if seen.rollouts[entry.UID].stuck {
			return entry, true
		}
	}
	progress := time.Time{}
	for _, entry := range workloads {
		if entry.Time.After(progress) {
			progress = entry.Time.Time
		}
	}
	if seen.now.Sub(progress) <= stuckAfter {
		return v1.RestartedWorkload{}, false
	}
	explained := slices.IndexFunc(left, func(entry v1.RestartedWorkload) bool { return entry.Message != "" })
	return left[max(explained, 0)], true
}
