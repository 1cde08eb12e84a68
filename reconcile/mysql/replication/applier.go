package replication

import (
	"fmt"
	"time"
)

const (
	// firstRetry is how long an applier stays stopped after an error before the agent starts it again. After each attempt, the agent waits
	// twice as long for the next one, up to longestRetry.
	firstRetry   = 10 * time.Second
	longestRetry = 30 * time.Minute
)

// ApplierMemory is what an agent remembers about an applier that an error has stopped. The zero value is an applier that runs.
//
// Some errors end by themselves, or when a user ends their cause: a lock that a client held, a lack of memory, a plugin that was missing.
// So the agent starts the applier again. An attempt loses nothing: the applier begins with the transaction that failed.
type ApplierMemory struct {
	// after is what was applied when the error stopped it. next is when the next attempt is due, zero for an applier that runs. The agent
	// waits for pause after that attempt.
	after GTIDSet
	next  time.Time
	pause time.Duration
}

// Observe returns what to remember after another observation of the member.
func (m ApplierMemory) Observe(now time.Time, server Server) ApplierMemory {
	hasFailed, isNew := server.Channel.SQLErrno != 0, m.next.IsZero() || !server.Executed.Equal(m.after)
	switch {
	case hasFailed && isNew:
		return ApplierMemory{after: server.Executed, next: now.Add(firstRetry), pause: 2 * firstRetry}
	case isNew:
		return ApplierMemory{}
	}
	return m // it may apply the same transaction once more
}

// IsDue reports whether the applier should be started again.
func (m ApplierMemory) IsDue(now time.Time) bool { return !m.next.IsZero() && !now.Before(m.next) }

// Tried returns what to remember after an attempt.
func (m ApplierMemory) Tried(now time.Time) ApplierMemory {
	m.next, m.pause = now.Add(m.pause), min(2*m.pause, longestRetry)
	return m
}

// stoppedApplier is the step of a member whose applier an error has stopped.
func stoppedApplier(local Observed) Step {
	channel := local.Server.Channel
	step := Step{Verb: VerbNone, State: StateBroken, Message: fmt.Sprintf("applying stopped: error %d: %s", channel.SQLErrno, channel.SQLError)}
	if local.AppliesAgain {
		step.Verb = VerbApplyReceived
	}
	return step
}
