package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// lease is what the agent knows of the lease of its mysqld (supervisor.Lease). The zero value is none.
type lease struct {
	// start is the start of mysqld. isKnown reports whether the supervisor has accepted the last change.
	start   string
	isKnown bool
	// needs is for how many replicas it certainly is, and lasts how long it lasts at most after the last evidence. ends is when it ends, by
	// supervisor.Clock. isHeard reports whether it rests on so many replicas that have been heard lately.
	needs       int
	lasts, ends time.Duration
	isHeard     bool
	// asked is what the supervisor was told last.
	asked supervisor.Lease
	// isImpossible means that there can be none here, as the last try for one has shown. failure is why the last try failed, empty if it
	// did not.
	isImpossible bool
	failure      string
}

// keepLease tells the supervisor which replicas are connected, and for how many this primary must have a lease. The first lease needs
// replicas that are connected: one that only the operator's confirmations keep would make the primary depend on the operator. An agent that
// has started again, and has no assignment yet, continues with the last one.
func (a *Agent) keepLease(ctx context.Context, observed mysqld.Observed, local replication.Observed) {
	order := a.leasing(local)
	if order == nil || order.Role != replication.RolePrimary || observed.Server.SuperReadOnly {
		return
	}
	known := a.currentLease()
	if order.Lease == 0 && known.isKnown && known.needs == 0 {
		return
	}
	next := supervisor.Lease{Needs: order.Lease, Lasts: order.LeaseLasts, After: max(a.confirmed(), a.receivers.since), Port: known.asked.Port, Replicas: known.asked.Replicas}
	if order.Lease > 0 {
		a.lookForReplicas(ctx, &next)
	}
	if order.Record.LeaseLasts > 0 || known.needs >= next.Needs {
		next.Confirmed = a.confirmed()
	}
	_ = a.takeLease(ctx, next, *order) // the next look tries again
}

// leasing is the assignment that says what lease the member must have; nil for none.
func (a *Agent) leasing(local replication.Observed) *replication.Assignment {
	if local.Assignment != nil {
		return local.Assignment
	}
	if last := a.lastAssignment(); last != nil && last.Record.LeaseLasts > 0 {
		return last
	}
	return nil
}

// lookForReplicas names the replicas that the lease needs. If that fails, it leaves those that are known.
func (a *Agent) lookForReplicas(ctx context.Context, next *supervisor.Lease) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	port, replicas, err := a.local.Acknowledgers(bounded)
	if err != nil {
		a.log.Info("cannot look for the replicas of the lease, will try again", "error", err.Error())
		return
	}
	next.Port, next.Replicas = port, slices.Collect(maps.Values(replicas))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions = replicas
}

func (a *Agent) lastAssignment() *replication.Assignment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept.Last
}

// confirmed is the time after which the operator read that this member leads.
func (a *Agent) confirmed() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.confirmedAt
}

// leaseToOpen gets the lease that mysqld must have before it takes writes, if the record relies on it, or will because of what this member
// has reported under it. Replicas are not connected yet, so only the operator's confirmation counts.
func (a *Agent) leaseToOpen(ctx context.Context, order replication.Assignment) error {
	if order.Record.LeaseLasts == 0 && !a.hadLease(order) {
		return a.takeLease(ctx, supervisor.Lease{}, order)
	}
	if err := a.takeLease(ctx, supervisor.Lease{Needs: order.Lease, Lasts: order.LeaseLasts, Confirmed: a.confirmed()}, order); err != nil || order.Lease == 0 {
		return err
	}
	now, err := supervisor.Clock()
	if err == nil && a.currentLease().ends <= now {
		return errors.New("waits for the operator to confirm again that this member is the primary")
	}
	return err
}

// hadLease reports whether this member has had a lease under the record of the assignment. An operator may count on it although mysqld has
// started again since.
func (a *Agent) hadLease(order replication.Assignment) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept.LeasedUnder == order.Record.Version()
}

// keepHadLease records that on the volume, before the member reports it.
func (a *Agent) keepHadLease(order replication.Assignment) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.LeasedUnder == order.Record.Version() {
		return nil
	}
	kept := a.kept
	kept.LeasedUnder = order.Record.Version()
	return a.storeState(kept)
}

func (a *Agent) currentLease() lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease.of(a.start)
}

// takeLease replaces the lease. What the supervisor did not answer may hold or not, so only the lower need and the longer time are certain.
func (a *Agent) takeLease(ctx context.Context, next supervisor.Lease, order replication.Assignment) error {
	now, err := supervisor.Clock()
	if err != nil {
		return err
	}
	known := a.currentLease()
	left, isHeard, err := supervisor.Lead(ctx, supervisor.Socket(a.layout.Run), a.start, next)
	if err == nil && isHeard {
		err = a.keepHadLease(order)
	}
	if err != nil {
		if known.failure != err.Error() {
			a.log.Info("the lease of this primary is not renewed, will try again", "error", err.Error())
		}
		known.needs, known.lasts = min(known.needs, next.Needs), max(known.lasts, next.Lasts)
		known.isKnown, known.isHeard, known.failure = false, false, err.Error()
		known.isImpossible = known.isImpossible || errors.Is(err, supervisor.ErrNoLease)
		a.setLease(known)
		return err
	}
	a.setLease(lease{start: a.start, isKnown: true, needs: next.Needs, lasts: next.Lasts, ends: now + left, isHeard: isHeard, asked: next, isImpossible: known.isImpossible && next.Needs == 0})
	return nil
}

// forwardConfirmation tells the supervisor at once that the operator has confirmed this primary: the loop may be busy.
func (a *Agent) forwardConfirmation(ctx context.Context, at time.Duration) {
	start := a.currentStart()
	if at == 0 || start == "" {
		return
	}
	if err := supervisor.Confirm(ctx, supervisor.Socket(a.layout.Run), start, at); err != nil {
		a.log.Info("cannot tell the supervisor that the operator has confirmed this primary", "error", err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease = a.lease.of(start)
	if a.lease.isKnown {
		a.lease.ends = max(a.lease.ends, at+a.lease.lasts)
	}
}

// of returns the lease of this start of mysqld.
func (l lease) of(start string) lease {
	if l.start != start {
		return lease{start: start, isImpossible: l.isImpossible}
	}
	return l
}

func (a *Agent) setLease(next lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease = next
}

// reportedLease is what the report says at this time. The caller must hold the lock. Before mysqld takes writes, the confirmation counts.
func (a *Agent) reportedLease(now time.Duration) *replication.Lease {
	known := lease{isImpossible: a.lease.isImpossible}
	if a.mysqld.Running {
		known = a.lease.of(a.mysqld.Start)
	}
	isWanted := a.assignment != nil && a.assignment.Role == replication.RolePrimary && a.assignment.Lease > 0
	if known.needs == 0 {
		known.lasts, known.ends = 0, 0
		if isWanted {
			known.lasts = a.assignment.LeaseLasts
			known.ends = a.confirmedAt + known.lasts
		}
	}
	isWriting := a.status.State == replication.StateWriting
	if known.needs == 0 && !isWanted && !known.isImpossible && (known.isKnown || !isWriting) {
		return nil
	}
	return a.report(known, now)
}

// report is what the report says of a lease at this time. The caller must hold the lock.
func (a *Agent) report(known lease, now time.Duration) *replication.Lease {
	reported := &replication.Lease{Needs: known.needs, Lasts: known.lasts, Left: known.ends - now, IsHeard: known.isHeard, IsImpossible: known.isImpossible}
	if known.needs == 0 {
		reported.Ends = supervisor.Lease{Lasts: known.lasts}.Ends(reported.Left)
		return reported
	}
	reported.Ends = a.mysqld.LeaseEnds || reported.Left < known.lasts-supervisor.MayAge
	if a.assignment != nil {
		reported.Unheard = a.unheard(a.assignment.Record)
	}
	return reported
}

// hearsTooFew reports whether the supervisor has heard fewer replicas lately than the lease needs. The caller must hold the lock.
func (a *Agent) hearsTooFew() bool {
	needs := a.lease.of(a.start).needs
	if needs == 0 || a.assignment == nil {
		return false
	}
	record := a.assignment.Record
	return len(record.ReplicasInSync())-len(a.unheard(record)) < needs
}

// unheard are the replicas in sync that the supervisor has not heard lately. The caller must hold the lock.
func (a *Agent) unheard(record replication.Record) []string {
	heard := strings.Fields(a.mysqld.Heard)
	var names []string
	for _, name := range record.ReplicasInSync() {
		for _, ordinal := range ordinalsOf([]string{name}) {
			if !slices.Contains(heard, a.sessions[ordinal].String()) {
				names = append(names, name)
			}
		}
	}
	return names
}
