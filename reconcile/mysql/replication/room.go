package replication

import "time"

const (
	// stuckFor is for how long a receiver waits for room in the relay log, and completes nothing, before the log counts as full.
	stuckFor = 5 * time.Second
	// flowsFor is for how long it has not waited when the log counts as full no more: longer than it takes to fill what one applied file gives
	// free.
	flowsFor = time.Minute
)

// Room is what an agent remembers of the room in its member's relay log (relay_log_space_limit). The zero value has seen no lack of it.
//
// A receiver that waits for room acknowledges nothing, and stays connected as one that does: the primary's commits would wait for it for
// ever, and nobody would know that too few replicas acknowledge. So a member whose relay log is full acknowledges no more, and receives on.
// It begins again once half of the log is applied, or once the receiver has not waited for a while.
type Room struct {
	// stuck is since when the receiver has waited and completed nothing, zero while it does not. flows is since when it has run without
	// waiting.
	stuck, flows time.Time
	retrieved    GTIDSet
	full         bool
}

// Full says whether the relay log is full.
func (r Room) Full() bool { return r.full }

// Look is what is remembered after another look at the member.
func (r Room) Look(now time.Time, server Server) Room {
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

// since is when a condition began that holds now, zero where it does not.
func since(began, now time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case began.IsZero():
		return now
	}
	return began
}

// roomless is the step of a member whose relay log is full.
func roomless(step Step, channel Channel) Step {
	why := "the applier does not keep up: a change of a table, a large transaction or a lock holds it up (SHOW PROCESSLIST)"
	if channel.SQL != "Yes" {
		why = "the applier does not run"
	}
	step.Message += "; acknowledges no commits while its relay log is full, since " + why
	return step
}
