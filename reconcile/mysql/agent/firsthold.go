package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// lastEndsWithin is how long the agent waits for a mysqld of the last container to end, and lastEndsEvery is how often it looks. The
	// supervisor waits longer for the agent.
	lastEndsWithin = supervisor.AgentLimit / 2
	lastEndsEvery  = 10 * time.Millisecond
)

// holdFirstStart holds the first start of mysqld in its container, if the last one crashed as the primary. The supervisor waits for the
// lock, and it does not start mysqld before the agent watches it. So the agent calls this before each attempt to watch.
func (a *Agent) holdFirstStart(ctx context.Context) {
	a.mu.Lock()
	mayHold := a.hold.mayBegin && a.kept.commitsMayHaveWaited()
	a.mu.Unlock()
	if !mayHold {
		return
	}
	unlock, err := supervisor.LockData(a.layout.Run)
	if err != nil {
		return // mysqld runs, or its supervisor has not quite ended
	}
	hasCrashed, err := a.lastCrashed(ctx)
	if err != nil {
		a.log.Info("cannot hold the start of mysqld, although it was the primary and may have crashed", "error", err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold.mayBegin = false
	if !hasCrashed {
		unlock()
		return
	}
	a.log.Info("mysqld crashed as the primary, so its start is held until it is known who leads")
	a.hold.since, a.hold.unlock = time.Now(), unlock
	a.status.Boot = rand.Text() // the operator may have confirmed a primary whose start it did not know to be held
	a.reportHeld()
	a.mayHaveNews()
	a.Wake()
}

// lastCrashed reports whether the last mysqld has ended without a shutdown. It waits until that has ended.
func (a *Agent) lastCrashed(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lastEndsWithin)
	defer cancel()
	for {
		release, err := a.layout.lockTablespace()
		if err == nil {
			release()
			return a.layout.logIsInUse()
		}
		if !errors.Is(err, errStillUsed) {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(lastEndsEvery):
		}
	}
}
