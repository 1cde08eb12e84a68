package supervisor

import (
	"cmp"
	"errors"
	"syscall"
	"time"
)

// Recovery commits what mysqld had only prepared when it was killed, because commits waited for replicas. If another member takes over,
// this one then has transactions that the others do not have. Before recovery, the agent can still cut them off the binary log. So the
// supervisor holds the start of a mysqld to which clients could write until the agent knows who leads.

const (
	// HoldLimit bounds for how long the supervisor waits for the agent. On a busy machine, another member may lead only after ten seconds.
	HoldLimit = 30 * time.Second
	// LeaseHoldLimit is that limit after the lease of mysqld has ended. Until the operator confirms it, this member may neither take writes
	// nor serve reads. So it waits for the network, and for the operator.
	LeaseHoldLimit = 10 * time.Minute
)

// AgentLimit bounds for how long the first start of mysqld in a container waits for an agent that watches. One that holds this start locks
// the data first (LockData).
const AgentLimit = 5 * time.Second

// awaitAgent waits until an agent watches, or the container stops.
func (s *Supervisor) awaitAgent() {
	limit := time.NewTimer(cmp.Or(s.agentLimit, AgentLimit))
	defer limit.Stop()
	for {
		now, changed := s.now()
		if now.Stopping || s.isWatched() {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			s.warn("no agent has connected in time: the supervisor starts mysqld")
			return
		}
	}
}

func (s *Supervisor) isWatched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchers > 0
}

var errNotHeld = errors.New("the supervisor does not hold the start of mysqld")

// exitFailure is the exit status of a mysqld that has handled a fatal signal itself (MySQL source, MYSQLD_FAILURE_EXIT).
const exitFailure = 2

// hasCrashed reports whether mysqld has ended without a shutdown. A shutdown, also one by the statements SHUTDOWN and RESTART, tells
// clients that commits which wait for replicas have succeeded.
func hasCrashed(status syscall.WaitStatus) bool {
	return status.Signaled() || status.ExitStatus() == exitFailure
}

// mayStart waits until mysqld may start: the agent has ordered it or is gone, or has taken too long. It reports whether the container does
// not stop meanwhile.
func (s *Supervisor) mayStart() bool {
	limit := time.NewTimer(s.holdTime())
	defer limit.Stop()
	for {
		now, changed := s.now()
		if now.Stopping || !now.Held {
			return !now.Stopping
		}
		select {
		case <-changed:
		case <-limit.C:
			s.warn("the agent has not said in time whether mysqld may start: the supervisor starts it")
			s.release()
		}
	}
}

// holdTime returns for how long to wait.
func (s *Supervisor) holdTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := HoldLimit
	if s.state.LeaseLost {
		limit = LeaseHoldLimit
	}
	return cmp.Or(s.holdLimit, limit)
}

// orderStart ends the wait if it is for the mysqld after this one. The caller must hold the lock.
func (s *Supervisor) orderStart(start string) error {
	if !s.state.Held || start != s.state.Start {
		return errNotHeld
	}
	s.setHeld(false)
	return nil
}

func (s *Supervisor) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setHeld(false)
}

// setHeld records whether the start is held. The caller must hold the lock.
func (s *Supervisor) setHeld(held bool) {
	if s.state.Held != held {
		s.state.Held = held
		s.broadcast()
	}
}

// watched counts the agents that watch. Without one, nothing is held.
func (s *Supervisor) watched(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers += change
	if s.watchers == 0 {
		s.setHeld(false)
	}
	s.broadcast()
}
