package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// mostHeld is for how long the agent holds the start of a primary that has crashed, if the operator says nothing. An operator that runs
	// says it within a second. Without one, this primary could not take writes after its start either.
	mostHeld = 3 * time.Second
	// cutWithin is for how long after the crash the agent tries to cut. It is shorter than the supervisor's own limit.
	cutWithin = supervisor.HoldLimit * 8 / 10
)

// heldStart is what decides on the start of a mysqld that has crashed while clients could write.
type heldStart struct {
	// lasts is for how long the start has been held.
	lasts time.Duration
	// commitsWaited means that commits waited for replicas. Otherwise, nothing that mysqld has written can be unacknowledged.
	commitsWaited bool
	// isConfirmed means that the operator has seen that mysqld has ended, and that this member stays the primary.
	isConfirmed bool
	// isReplaced means that another member takes over, and isNamed that the operator has said which one.
	isReplaced, isNamed bool
}

// holdStep is what the agent does with a held start.
type holdStep int

const (
	holdWaits holdStep = iota
	holdCuts
	holdStarts
)

// next returns what to do now.
func (h heldStart) next() holdStep {
	switch {
	case !h.commitsWaited || h.isConfirmed || h.lasts >= cutWithin:
		return holdStarts
	case h.isReplaced && h.isNamed:
		return holdCuts
	case !h.isReplaced && h.lasts >= mostHeld:
		return holdStarts
	}
	return holdWaits
}

// mindHeldStart lets mysqld start again after a crash as soon as it is known who leads. If that is another member, the agent first cuts off
// what only this one has.
func (a *Agent) mindHeldStart(ctx context.Context) {
	a.mu.Lock()
	mysqld, now, assignment, limit := a.mysqld, a.startIsHeld(), a.assignment, a.heldSince.Add(cutWithin)
	a.mu.Unlock()
	if !mysqld.Held {
		return
	}
	switch now.next() {
	case holdWaits:
		return
	case holdCuts:
		bounded, cancel := context.WithDeadline(ctx, limit)
		defer cancel()
		if isDone := a.cutWhatOthersLack(bounded, *assignment); !isDone {
			return
		}
	case holdStarts:
	}
	if err := supervisor.Tell(ctx, supervisor.Socket(a.layout.Run), supervisor.Start, mysqld.Start); err != nil {
		a.log.Info("cannot order the supervisor to start mysqld", "error", err.Error())
	}
}

// startIsHeld returns what decides on the start. The caller must hold the lock.
func (a *Agent) startIsHeld() heldStart {
	held := heldStart{lasts: time.Since(a.heldSince)}
	if last := a.kept.Last; last != nil {
		held.commitsWaited = last.Acks > 0
	}
	if now := a.assignment; now != nil {
		held.isConfirmed = now.Boot == a.status.Boot && now.Role == replication.RolePrimary
	}
	if former := a.kept.Replaced; former != nil && former.Epoch == a.kept.Held.Epoch {
		held.commitsWaited, held.isReplaced, held.isNamed = true, true, a.assignment != nil && a.kept.Held.Primary != ""
	}
	return held
}
