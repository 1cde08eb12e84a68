package configmonitor

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

const (
	// replacementTimeout is how long the replacement of an evicted Pod may be missing. After that the operator assumes that none comes: a user
	// may have scaled the owner down. For a replacement that exists but is not ready, the operator waits without limit.
	replacementTimeout = time.Minute
	// stuckAfter is the time without progress after which the operator reports a problem; the same as a Deployment's default progress
	// deadline.
	stuckAfter = 10 * time.Minute
)

// observed is what a pass observed of a restart in progress.
type observed struct {
	now time.Time
	// hash is that of the restart's data.
	hash string
	pods []pod
	// rollouts has the workloads by the UID in the plan. Workloads that no longer exist are missing.
	rollouts map[types.UID]rollout
}

// advance returns the workloads with their new actions and messages. It decides only from what the pass observed. So it does not matter who
// acted, or whether the operator recorded it.
func advance(workloads []v1.RestartedWorkload, seen observed) []v1.RestartedWorkload {
	advanced := slices.Clone(workloads)
	for i, entry := range workloads {
		if isDone(entry) {
			continue
		}
		action, message := advanceRolled(entry, seen)
		if entry.Kind == kindPod {
			action, message = advanceEvicted(entry, workloads, seen)
		}
		advanced[i] = withAction(entry, action, message, seen.now)
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
	// A newer operator wrote this action: this operator must not continue the workload.
	return true
}

// withAction returns the entry with another action and message.
func withAction(entry v1.RestartedWorkload, action v1.Action, message string, now time.Time) v1.RestartedWorkload {
	if entry.Action != action {
		entry.Action, entry.Time = action, second(now)
	}
	entry.Message = message
	return entry
}

// advanceRolled returns the new action and message of a workload that replaces its Pods itself.
func advanceRolled(entry v1.RestartedWorkload, seen observed) (v1.Action, string) {
	found, ok := seen.rollouts[entry.UID]
	switch {
	case !ok:
		return v1.ActionGone, ""
	case found.notRolledReason != "":
		return v1.ActionLeftAlone, found.notRolledReason
	case entry.Action == v1.ActionPending:
		return v1.ActionPending, ""
	case found.stamp == "":
		// If the operator set it again, it and the other client would restart the Pods without end.
		return v1.ActionLeftAlone, "another client removes the annotation from its Pod template: restart it with the tool that manages it"
	case found.stamp != seen.hash:
		return v1.ActionRolling, "its Pod template now has the annotation for other data: another client rolled it back, or restarts it for newer data"
	case found.done:
		return v1.ActionRolled, found.progressMessage
	default:
		return v1.ActionRolling, found.progressMessage
	}
}

// advanceEvicted returns the new action and message of a Pod that must be replaced.
func advanceEvicted(entry v1.RestartedWorkload, workloads []v1.RestartedWorkload, seen observed) (v1.Action, string) {
	index := slices.IndexFunc(seen.pods, func(p pod) bool { return p.uid == entry.UID && !p.ended })
	switch {
	case index < 0 && entry.Action == v1.ActionPending:
		return v1.ActionEvicting, ""
	case index < 0:
		return advanceReplaced(entry, workloads, seen)
	case seen.pods[index].ending:
		return v1.ActionEvicting, "is terminating"
	}
	waits := seen.pods[index].ready && !isEvicting(workloads) && !groupOfOwner(entry.Owner, workloads, seen).settled
	if waits {
		return v1.ActionPending, fmt.Sprintf("waits until the other Pods of %s are ready", entry.Owner)
	}
	return v1.ActionPending, ""
}

// advanceReplaced returns the new action and message of a Pod that is gone: whether another Pod has replaced it.
func advanceReplaced(entry v1.RestartedWorkload, workloads []v1.RestartedWorkload, seen observed) (v1.Action, string) {
	group := groupOfOwner(entry.Owner, workloads, seen)
	if !group.settled {
		return v1.ActionEvicting, fmt.Sprintf("waits until the Pods of %s that replace it are ready", entry.Owner)
	}
	if group.live < group.planned && seen.now.Sub(entry.Time.Time) < replacementTimeout {
		return v1.ActionEvicting, fmt.Sprintf("waits until %s creates a Pod in its place", entry.Owner)
	}
	return v1.ActionReplaced, ""
}

// group is what a pass observed of the Pods of one owner.
type group struct {
	// planned is how many Pods the plan has; live is how many exist now and are not being deleted.
	planned, live int
	// settled reports whether no Pod is being deleted, and all Pods that need no restart, or no longer, are ready.
	settled bool
}

func groupOfOwner(owner string, workloads []v1.RestartedWorkload, seen observed) group {
	found := group{settled: true}
	due := map[types.UID]bool{}
	for _, entry := range workloads {
		if entry.Kind == kindPod && entry.Owner == owner {
			found.planned++
			due[entry.UID] = !isDone(entry)
		}
	}
	for _, one := range seen.pods {
		if one.ended || one.origin.String() != owner {
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

// toRoll returns the indices of the workloads whose template to stamp now. These are all that are pending, since each keeps its own Pods
// available.
func toRoll(workloads []v1.RestartedWorkload) []int {
	next := []int{}
	for i, entry := range workloads {
		if entry.Kind != kindPod && entry.Action == v1.ActionPending {
			next = append(next, i)
		}
	}
	return next
}

// toEvict returns the indices of the Pods of which one may be evicted now, the best first, and one for each owner. It returns none while an
// evicted Pod is not replaced. Pods that are not ready go first, because they serve no client; after bad data, all Pods may be such. Ready
// Pods go when the Pods left behind are ready.
func toEvict(workloads []v1.RestartedWorkload, seen observed) []int {
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

// stuck returns the first workload that makes no progress, and whether there is one. That is a workload which reports this itself, or any
// workload if none has made progress for stuckAfter.
func stuck(workloads []v1.RestartedWorkload, seen observed) (v1.RestartedWorkload, bool) {
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
