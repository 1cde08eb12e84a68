package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// targets is how to ask the members of a cluster.
type targets struct {
	agents asker
	// primary and inSync are from the record.
	primary string
	inSync  []string
	// addresses are those of the members' Pods, in the order of the members.
	addresses []string
	// limit is how long to wait for a member's answer, and least for that of a primary that no replica hears.
	limit func(member string) time.Duration
	least time.Duration
}

// limits returns how long a pass waits for each member's answer.
func (r *reconciler) limits(cluster v1.MySQLCluster, now time.Time) func(string) time.Duration {
	status := cluster.Status
	needsAnswer := status.FormerPrimary != "" && status.LeaseMilliseconds == 0 // nothing else says that it takes no writes
	return func(member string) time.Duration {
		isReplaced := hurries(status, now) && !needsAnswer && status.Takeovers[len(status.Takeovers)-1].From == member
		timed, key := r.memory.failures, keyOf(cluster)
		return timeoutOf(isReplaced, timed.IsTimed(key, unheard(member)) && !timed.IsTimed(key, missedLook(member)))
	}
}

// leastFor returns how long a pass waits for the primary although no replica hears it: less if it did not answer the last time.
func (r *reconciler) leastFor(cluster v1.MySQLCluster) time.Duration {
	if r.memory.failures.IsTimed(keyOf(cluster), unheard(cluster.Status.Primary)) {
		return promptly
	}
	return atLeast
}

// timeoutOf returns how long to wait for the answer of a member that is replaced as the primary or not, and did not answer the last time or
// did. Each pass of a takeover waits for it.
func timeoutOf(isReplaced, isUnheard bool) time.Duration {
	switch {
	case !isUnheard:
		return agentTimeout
	case isReplaced:
		return agentTimeout / 40
	}
	return agentTimeout / 2
}

// asker asks a member for its report.
type asker interface {
	Status(ctx context.Context, target agent.Target) (replication.Status, error)
}

const (
	// promptly is how soon a primary usually answers.
	promptly = agentTimeout / 8
	// atLeast is how long a pass waits for a primary that no replica hears.
	atLeast = agentTimeout / 4
)

// errUnheard is why a pass stops waiting for the primary.
var errUnheard = errors.New("it does not answer, and no replica hears it")

// askPrimary fills in the primary's report of itself. The others are asked later, so that a replica's transactions can be compared with
// what the primary had before. But while the primary does not answer, their answers of this moment say whether to wait longer for it.
func (t targets) askPrimary(ctx context.Context, members []replication.Member) {
	at := slices.IndexFunc(members, func(member replication.Member) bool { return member.Name == t.primary })
	if at < 0 {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	others, answered, late := slices.Clone(members), make(chan struct{}), time.After(t.least)
	go func() {
		defer close(answered)
		t.ask(ctx, at, &members[at])
	}()
	select {
	case <-answered:
		return
	case <-time.After(promptly):
	}
	go func() {
		for !t.hearNothing(ctx, others) { // one may have lost it just now
			select {
			case <-time.After(promptly):
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-late:
			cancel(errUnheard)
		case <-ctx.Done():
		}
	}()
	<-answered
}

// hearNothing asks whether replicas in sync answer, and none of those gets anything from the primary.
func (t targets) hearNothing(ctx context.Context, members []replication.Member) bool {
	members = slices.Clone(members) // an answer of before says nothing of a member that does not answer now
	t.limit = shorter(t.limit, func(string) bool { return true })
	t.askOthers(ctx, members)
	return replication.HearNothing(members, t.inSync)
}

// shorter returns limits that are shorter for some members.
func shorter(limit func(string) time.Duration, isShort func(string) bool) func(string) time.Duration {
	return func(member string) time.Duration {
		if isShort(member) {
			return limit(member) / 4
		}
		return limit(member)
	}
}

// askOthers fills in the reports of the other members, in parallel.
func (t targets) askOthers(ctx context.Context, members []replication.Member) {
	if primary, found := memberNamed(members, t.primary); found && primary.Status != nil {
		t.limit = shorter(t.limit, primary.Status.Lease.Lacks) // the others soon do without them
	}
	var all sync.WaitGroup
	for i := range members {
		if members[i].Name != t.primary {
			all.Go(func() { t.ask(ctx, i, &members[i]) })
		}
	}
	all.Wait()
}

// confirmFirst confirms a primary whose lease ends soon before the others are asked: they may hang, and a pass waits for them. The pass
// reports what fails here, because it confirms the primary again.
func (r *reconciler) confirmFirst(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, agents *agent.Client) {
	for i, member := range seen.members {
		if member.Name != cluster.Status.Primary || member.Status == nil {
			continue
		}
		if again := member.Status.Confirmation(recordOf(cluster.Status)); again != nil {
			to := agent.Target{Address: seen.addresses()[i], Host: member.Host}
			_, _ = r.assign(ctx, client, agents, action{verb: verbAssign, name: member.Name, to: to, assignment: *again, relaxes: again.Relaxes(*member.Status)})
		}
	}
}

// noteUnheard notes for how long the members have not answered that did not answer now, and for how long those have not stopped to
// acknowledge that must. The first question that got no answer says nothing of how long that is: a request may be lost. After the next one,
// it counts from when the first one was asked.
func (r *reconciler) noteUnheard(key types.NamespacedName, record replication.Record, seen *observed) {
	answered := r.now()
	for i := range seen.members {
		member := &seen.members[i]
		r.memory.failures.End(key, missedLook(member.Name))
		isUnfenced := record.FormerPrimary != "" && member.Status != nil && !member.IsFenced(record)
		if isUnfenced {
			member.UnfencedFor = r.memory.failures.Waited(key, unfenced(member.Name), seen.now)
		} else {
			r.memory.failures.End(key, unfenced(member.Name))
		}
		if member.Status != nil {
			r.memory.failures.End(key, unheard(member.Name))
			r.memory.failures.End(key, missing(member.Name))
			continue
		}
		if r.memory.failures.IsTimed(key, unheard(member.Name)) {
			member.UnheardFor = r.memory.failures.Waited(key, unheard(member.Name), answered)
		} else {
			r.memory.failures.Waited(key, unheard(member.Name), seen.now)
		}
		if member.IsRunning {
			member.MissingFor = r.memory.failures.Waited(key, missing(member.Name), seen.now)
		} else {
			r.memory.failures.End(key, missing(member.Name))
		}
	}
}

// suspectsAgain is how long a member must not have been suspected for the operator to hurry again: members must not keep it busy. After it
// was replaced as the primary, the operator hurries again at once.
const suspectsAgain = time.Minute

// noteSuspicion returns since when a member is suspected, shorter breaks included; 0 if none is. suspect is empty for none.
func (r *reconciler) noteSuspicion(cluster v1.MySQLCluster, suspect string, now time.Time) time.Duration {
	key, timed := keyOf(cluster), r.memory.failures
	if replaced := cluster.Status.FormerPrimary; replaced != "" {
		timed.End(key, suspicion(replaced))
		timed.End(key, lastSuspicion(replaced))
	}
	if suspect == "" {
		return 0
	}
	last := lastSuspicion(suspect)
	if timed.IsTimed(key, last) && timed.Waited(key, last, now) >= suspectsAgain {
		timed.End(key, suspicion(suspect))
	}
	timed.End(key, last)
	timed.Waited(key, last, now)
	return timed.Waited(key, suspicion(suspect), now)
}

// forgetUnheard forgets for how long members have not answered, because the operator does not ask them at present.
func (r *reconciler) forgetUnheard(cluster v1.MySQLCluster) {
	for _, name := range append(slices.Clone(cluster.Status.InSync), cluster.Status.FormerPrimary) {
		r.memory.failures.End(keyOf(cluster), unheard(name))
		r.memory.failures.End(keyOf(cluster), missing(name))
		r.memory.failures.End(keyOf(cluster), unfenced(name))
	}
}

// unheard names a member that does not answer in the memory of the operator.
func unheard(member string) string { return "unheard " + member }

// missedLook names one that has not answered a look, and that no pass has asked since.
func missedLook(member string) string { return "missed look " + member }

// missing names one whose agent runs, as Kubernetes says.
func missing(member string) string { return "missing " + member }

// suspicion and lastSuspicion name that a member is suspected, from the first and from the last time on.
func suspicion(member string) string     { return "suspicion of " + member }
func lastSuspicion(member string) string { return "last suspicion of " + member }

// unfenced names a member that has not stopped acknowledging there.
func unfenced(member string) string { return "unfenced " + member }

func (t targets) ask(ctx context.Context, at int, member *replication.Member) {
	if !member.Pod {
		return
	}
	member.Unreachable = "its Pod has no address yet"
	if t.addresses[at] == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.limit(member.Name))
	defer cancel()
	status, err := t.agents.Status(ctx, agent.Target{Address: t.addresses[at], Host: member.Host})
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errUnheard):
		member.Unreachable = errUnheard.Error()
		return
	default:
		member.Unreachable = err.Error()
		return
	}
	member.Unreachable, member.Status = "", &status
}
