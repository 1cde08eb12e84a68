package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// newsWithin is for how long the agent holds the start after a crash, if the operator says nothing. If the leading operator fails at that
	// time, another one leads after two to three seconds.
	newsWithin = 6 * time.Second
	// firstNewsWithin is the same for the first start in a new container: the operator must find the new Pod. firstHeld is for how long that
	// start is held in all.
	firstNewsWithin = 15 * time.Second
	firstHeld       = time.Minute
	// choiceWithin is how long the choice of another primary may take. If it takes longer, it may depend on what this member has. A start that
	// does not wait for the choice costs a copy of all data.
	choiceWithin = 20 * time.Second
	// cutTimeout bounds an attempt to cut.
	cutTimeout = time.Minute
)

// hold is what the agent knows of a start that is held: by the supervisor (supervisor.State), or by the agent.
type hold struct {
	// since is since when it is held.
	since time.Time
	// unlock ends a hold of the agent; nil if the agent holds no start. mayBegin reports whether the next start is the first one in its
	// container, and the agent has not looked at the data yet.
	unlock   func()
	mayBegin bool
	// undecidedSince is since when this member has known that another one takes over, and not which one; zero if that is not so.
	undecidedSince time.Time
}

// heldStart is what decides on the start of a mysqld that has crashed while clients could write. If only mysqld has crashed, the supervisor
// holds the start. If its whole container has ended, or its machine, the agent does.
type heldStart struct {
	// lasts is for how long the start has been held.
	lasts time.Duration
	// isFirst means that it is the first one in its container. hasLostLease means that mysqld ended with its lease.
	isFirst, hasLostLease bool
	// commitsWaited means that commits waited for replicas. Otherwise, nothing that mysqld has written can be unacknowledged.
	commitsWaited bool
	// isConfirmed means that the operator has seen that mysqld has ended, and that this member stays the primary.
	isConfirmed bool
	// isReplaced means that another member takes over, and isNamed that the operator has said which one. undecidedFor is for how long this
	// member has known that another one takes over, and not which one.
	isReplaced, isNamed bool
	undecidedFor        time.Duration
	// isFormer means that clients may look for another member here: it takes over, or a user has made it the primary.
	isFormer bool
}

// holdStep is what the agent does with a held start.
type holdStep int

const (
	holdWaits holdStep = iota
	holdCuts
	holdStarts
)

// limits returns for how long the start is held: if the operator says nothing, and in all. An operator that runs says something within a
// second. Without one, this primary can open only by its replicas. If the supervisor holds the start, its own limit is longer.
func (h heldStart) limits() (news, end time.Duration) {
	switch {
	case h.isFirst:
		return firstNewsWithin, firstHeld
	case h.hasLostLease: // its network may be cut
		return supervisor.LeaseHoldLimit * 8 / 10, supervisor.LeaseHoldLimit * 8 / 10
	}
	return newsWithin, supervisor.HoldLimit * 8 / 10
}

// next returns what to do now.
func (h heldStart) next() holdStep {
	news, end := h.limits()
	switch {
	case !h.commitsWaited || h.isConfirmed || h.lasts >= end:
		return holdStarts
	case h.isReplaced && h.isNamed:
		return holdCuts
	case !h.isReplaced && h.lasts >= news, h.undecidedFor >= choiceWithin:
		return holdStarts
	}
	return holdWaits
}

// noteChoice notes since when the choice of a primary takes. The caller must hold the lock.
func (a *Agent) noteChoice(primary string) {
	switch {
	case primary != "":
		a.hold.undecidedSince = time.Time{}
	case a.hold.undecidedSince.IsZero():
		a.hold.undecidedSince = time.Now()
	}
}

// reportHeld reports whether the start is held. The caller must hold the lock.
func (a *Agent) reportHeld() {
	a.status.StartHeld = a.mysqld.Held || a.hold.unlock != nil
	a.status.LeaseLost = a.mysqld.Held && a.mysqld.LeaseLost
}

// mindHeldStart lets mysqld start again after a crash as soon as it is known who leads. If that is another member, the agent first cuts off
// what only this one has.
func (a *Agent) mindHeldStart(ctx context.Context) {
	a.mu.Lock()
	isHeld, now, assignment := a.status.StartHeld, a.startIsHeld(), a.assignment
	a.mu.Unlock()
	if !isHeld {
		return
	}
	switch now.next() {
	case holdWaits:
		return
	case holdCuts:
		if !a.dropPrepared() {
			return
		}
		_, end := now.limits()
		bounded, cancel := context.WithTimeout(ctx, min(cutTimeout, end-now.lasts))
		defer cancel()
		if isDone := a.cutWhatOthersLack(bounded, *assignment); !isDone {
			return
		}
		a.refuseFromStart()
	case holdStarts:
		if now.isFormer {
			a.refuseFromStart()
		}
		a.prepareReopening()
	}
	if err := a.endHold(ctx); err != nil {
		a.log.Info("cannot order the supervisor to start mysqld", "error", err.Error())
		a.dropPrepared() // the supervisor may have started it already
	}
}

// endHold lets mysqld start.
func (a *Agent) endHold(ctx context.Context) error {
	a.mu.Lock()
	unlock, start := a.hold.unlock, a.mysqld.Start
	a.hold.unlock = nil
	a.reportHeld()
	a.mu.Unlock()
	if unlock != nil {
		unlock()
		return nil
	}
	return supervisor.Tell(ctx, supervisor.Socket(a.layout.Run), supervisor.Start, start)
}

// startIsHeld returns what decides on the start. The caller must hold the lock.
func (a *Agent) startIsHeld() heldStart {
	held := heldStart{
		lasts: time.Since(a.hold.since), isFirst: a.hold.unlock != nil, hasLostLease: a.mysqld.LeaseLost, commitsWaited: a.kept.commitsMayHaveWaited(),
	}
	if now := a.assignment; now != nil {
		held.isConfirmed = now.Boot == a.status.Boot && now.Role == replication.RolePrimary
	}
	if former := a.kept.Replaced; former != nil && former.Epoch == a.kept.Held.Epoch {
		held.isFormer, held.isReplaced = true, !former.IsForced
		held.isNamed = held.isReplaced && a.assignment != nil && a.kept.Held.Primary != ""
	}
	if !a.hold.undecidedSince.IsZero() {
		held.undecidedFor = time.Since(a.hold.undecidedSince)
	}
	return held
}
