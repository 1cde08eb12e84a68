package replication

import "time"

const (
	// stuckFor is for how long a receiver must wait for room in the relay log, and complete nothing, before the log counts as full.
	stuckFor = 5 * time.Second
	// flowsFor is for how long the receiver must run without waiting before the log no longer counts as full. It is longer than it takes to
	// fill the room that one applied file frees.
	flowsFor = time.Minute
)

// RelayLogMonitor is what an agent remembers about the room in its member's relay log (relay_log_space_limit). The zero value is a log with
// room.
//
// A receiver that waits for room acknowledges nothing, but stays connected as one that acknowledges. The primary's commits would wait for
// it indefinitely, and no observer would see that too few replicas acknowledge. So a member whose relay log is full turns off its
// acknowledgements, and continues to receive. It turns them on again once half of the log is applied, or once the receiver has not waited
// for a while.
type RelayLogMonitor struct {
	// stuck is the time since when the receiver has waited and completed nothing, zero while it does not wait. flows is the time since when
	// it has run without waiting.
	stuck, flows time.Time
	retrieved    GTIDSet
	full         bool
}

// Full reports whether the relay log is full.
func (r RelayLogMonitor) Full() bool { return r.full }

// Observe returns what to remember after another observation of the member.
func (r RelayLogMonitor) Observe(now time.Time, server Server) RelayLogMonitor {
	channel := server.Channel
	grew := !channel.Retrieved.Equal(r.retrieved)
	r.retrieved = channel.Retrieved
	r.stuck = since(r.stuck, now, channel.WaitsForRoom && !grew)
	r.flows = since(r.flows, now, channel.IO == "Yes" && !channel.WaitsForRoom)
	if !r.full {
		r.full = !r.stuck.IsZero() && now.Sub(r.stuck) >= stuckFor
		return r
	}
	isRoomy := channel.RelayLogSpace < server.RelayLogLimit/2 || server.RelayLogLimit == 0
	hasFlown := !r.flows.IsZero() && now.Sub(r.flows) >= flowsFor
	if isRoomy || hasFlown {
		r.full, r.stuck = false, time.Time{}
	}
	return r
}

// since returns the time at which a condition that holds now began; zero if it does not hold.
func since(began, now time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case began.IsZero():
		return now
	}
	return began
}

// relayLogFullStep returns the step of a member whose relay log is full.
func relayLogFullStep(step Step, channel Channel) Step {
	why := "the applier does not keep up: an ALTER TABLE, a large transaction or a lock delays it (see SHOW PROCESSLIST)"
	if channel.SQL != "Yes" {
		why = "the applier does not run"
	}
	step.Message += "; acknowledges no commits while its relay log is full, because " + why
	return step
}
