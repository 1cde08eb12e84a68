package replication

import (
	"fmt"
	"time"
)

// A primary can do nothing without its volume. One whose volume stands still, returns errors or is full is replaced by a replica whose own
// volume works and has room. Commits hang on it meanwhile, and replicas still hear it: heartbeats need no disk. The agent writes to the
// volume about once a second, and reports how that goes (VolumeProbe).

// VolumeProbe is what an agent has found in writing to its member's volume. The zero value is not known.
type VolumeProbe struct {
	// IsKnown reports whether the agent writes to the volume at all.
	IsKnown bool `json:"known,omitempty"`
	// StuckFor is for how long a write has not returned, if that is more than a moment.
	StuckFor time.Duration `json:"stuckFor,omitempty"`
	// FailingFor is for how long all writes have failed, and Failure how the last one did. No room is no such failure.
	FailingFor time.Duration `json:"failingFor,omitempty"`
	Failure    string        `json:"failure,omitempty"`
	// WasUnsound means that a write was stuck or failed a short while ago: one of the last thirty.
	WasUnsound bool `json:"wasUnsound,omitempty"`
}

// LongWait is how long nothing may be committed while sessions wait: as long as writing one large transaction takes.
const LongWait = 15 * time.Second

// CommitsHang reports whether nothing has been committed on this primary for long although clients try.
func (s Status) CommitsHang() bool {
	return s.State == StateWriting && seconds(int(s.Transactions.CommitWaitSeconds)) >= LongWait
}

// IsSound reports whether the volume takes writes, as far as is known. It may have no room.
func (p VolumeProbe) IsSound() bool { return p.StuckFor < StuckLeast && p.FailingFor == 0 }

const (
	// StuckLeast is for how long a write takes at least that counts as stuck. Network storage takes a second or two at times.
	StuckLeast = 3 * time.Second
	// StuckAfter is for how long a write to the primary's volume must be stuck. Storage that moves to another machine stands still for
	// seconds, and then continues. A user who waits longer for a primary that is not ready (Limits.NotReady) also waits longer for its volume.
	StuckAfter = 10 * time.Second
	// FailingAfter is for how long writes to the primary's volume must fail. An error of a disk does not go away like a delay, but one may.
	FailingAfter = 3 * time.Second
	// HangAfter is for how long commits must hang on a volume with less than nearlyNone bytes. The agent purges binary logs before, and looks
	// every five seconds.
	HangAfter  = 30 * time.Second
	nearlyNone = 8 << 20
	// HangsWithRoom is the same while there is more room. mysqld may continue: it tries again after a minute (MySQL source,
	// wait_for_free_space).
	HangsWithRoom = 75 * time.Second

	// PauseAfterTakeover is for how long after any takeover the primary stays although its volume stands still or fails.
	PauseAfterTakeover = time.Minute
	// PauseWhileFull is the same for a full volume: clients that fill one volume after another should not make primaries take turns.
	PauseWhileFull = 10 * time.Minute
)

// hasVolumeFailed reports whether the member's volume has stood still or failed for so long that the primary may be replaced.
func (s Status) hasVolumeFailed() bool {
	return s.Probe.StuckFor >= StuckAfter || s.Probe.FailingFor >= FailingAfter
}

// volumeFailedFor is for how long the member's volume has certainly let nothing be committed.
func (s Status) volumeFailedFor() time.Duration {
	failed := max(s.Probe.StuckFor, s.Probe.FailingFor)
	if failed == 0 && s.isFullAndHangs() {
		return seconds(int(s.Transactions.CommitWaitSeconds))
	}
	return failed
}

// primaryVolume judges a primary that runs, and whose volume stands still, fails or is full.
func (c Cluster) primaryVolume() Verdict {
	v, status := Verdict{Rule: RuleVolume}, c.primaryStatus()
	if !v.must("its agent answers", status.speaksOurProtocol()) {
		return v
	}
	name, pause := c.Record.Primary, PauseAfterTakeover
	var message string
	switch probe := status.Probe; {
	case probe.FailingFor >= FailingAfter, probe.FailingFor > 0 && probe.StuckFor == 0:
		v.mustLast("writes to its volume fail", probe.FailingFor, FailingAfter)
		message = fmt.Sprintf("the volume of the primary %s returns errors (%s)", name, probe.Failure)
	case probe.StuckFor > 0:
		limit := max(StuckAfter, c.Limits.NotReady)
		v.mustLast("a write to its volume does not return", probe.StuckFor, limit)
		message = fmt.Sprintf("the volume of the primary %s has taken no write for more than %d seconds", name, int(limit.Seconds()))
	case status.isFullAndHangs():
		pause = PauseWhileFull
		v.must("it gets enough acknowledgements", status.AcksShortSeconds == 0)
		limit := HangAfter
		if status.Disk.Free >= nearlyNone {
			limit = HangsWithRoom
		}
		v.mustLast("its volume is full, and its commits hang", seconds(int(status.Transactions.CommitWaitSeconds)), limit)
		message = fmt.Sprintf("the volume of the primary %s is full, and its commits have hung for more than %d seconds", name, int(limit.Seconds()))
	default:
		v.must("its volume stands still, fails, or is full while commits hang", false)
		return v
	}
	if c.SinceTakeover > 0 {
		v.mustLast("no takeover has begun a short while ago", c.SinceTakeover, pause)
	}
	return v.saying("%s", message)
}

// isFullAndHangs reports whether the member's volume is full, and nothing is committed although clients try.
func (s Status) isFullAndHangs() bool {
	return s.Disk.Level == DiskFull && s.Transactions.CommitWaitSeconds > 0
}

// noBetterVolume explains why a member's volume is not better than the one of the primary, which has failed; empty if it is.
func (c Cluster) noBetterVolume(name string) string {
	member, found := c.member(name)
	if !found || member.Status == nil {
		return ""
	}
	isFull := c.primaryStatus().Probe.IsSound()
	switch status := member.Status; {
	case !status.Probe.IsKnown || status.Disk.Size == 0:
		return "whether the volume of " + name + ", which has everything, works is not known"
	case !status.Probe.IsSound():
		return "the volume of " + name + ", which has everything, stands still or fails, too"
	case status.Probe.WasUnsound:
		return "the volume of " + name + ", which has everything, stood still or failed a short while ago, too"
	case status.Disk.Level == DiskFull, isFull && status.Disk.Level != DiskRoomy:
		return "the volume of " + name + ", which has everything, has little room, too"
	}
	return ""
}

// cannotFence explains that a takeover could not end: too few of the members that must store that they acknowledge no more have a volume
// that takes writes. Empty if enough have.
func (c Cluster) cannotFence(fails func(Status) bool) string {
	failed := c.witnesses(func(member Member) bool { return answers(member) && fails(*member.Status) })
	if len(failed) == 0 || len(c.witnesses(answers))-len(failed) >= c.Record.witnessesNeeded() {
		return ""
	}
	return "the volume of " + failed[0].Name + ", which must store that it acknowledges no more commits of the primary, stands still or fails"
}

// hasPoorVolume reports whether the member could hardly lead because of its volume.
func (s Status) hasPoorVolume() bool { return !s.Probe.IsSound() || s.Disk.Level == DiskFull }
