package replication

import (
	"fmt"
	"slices"
	"time"
)

// Rule is a reason to replace a primary that fails.
type Rule string

const (
	// RuleDown: its mysqld does not run, or hangs.
	RuleDown Rule = "mysqld fails"
	// RuleRestarts: its mysqld takes no writes because its container restarts.
	RuleRestarts Rule = "its container restarts"
	// RuleCutOff: it runs, and the network between it and the replicas fails.
	RuleCutOff Rule = "cut off from the replicas"
	// RuleVolume: its volume stands still, fails, or is full.
	RuleVolume Rule = "its volume fails"
	// RuleLost: nothing answers for it, and its lease ends.
	RuleLost Rule = "nothing answers for it"
	// RuleGone: its agent does not answer. That alone replaces it only if a user asks.
	RuleGone Rule = "its agent is away"
)

// Verdict is what a rule finds about the primary. Message describes the failure; it is empty unless all Checks hold. Checks after the first
// that fails may be left out.
type Verdict struct {
	Rule    Rule    `json:"rule"`
	Checks  []Check `json:"checks"`
	Message string  `json:"message,omitempty"`
}

// Check is something that must hold for a Verdict, and whether it does.
type Check struct {
	What  string `json:"what"`
	Holds bool   `json:"holds"`
	// Seconds is for how long What is so, if it must be so for NeededSeconds.
	Seconds       int `json:"seconds,omitempty"`
	NeededSeconds int `json:"neededSeconds,omitempty"`
	// IsMemory means that only the operator that makes the passes knows Seconds: it counts them.
	IsMemory bool `json:"isMemory,omitempty"`
}

// FailedFor is for how long the primary has certainly not worked: its agent, or else the replicas, have heard nothing from it, or its
// volume has failed. It is 0 if that is not known.
func (c Cluster) FailedFor() time.Duration {
	quiet, status := c.unheardFor(), c.primaryStatus()
	switch {
	case status == nil:
		return quiet
	case status.IsLate() && quiet > 0:
		return min(status.UnansweredFor, quiet)
	case status.IsLate():
		return status.UnansweredFor
	case status.AcksShortSeconds > 0:
		return max(seconds(status.AcksShortSeconds), quiet)
	}
	return status.volumeFailedFor()
}

// unheardFor is for how long all replicas in sync that answer have got nothing from the primary; 0 if one of them does, or none answers.
func (c Cluster) unheardFor() time.Duration {
	var quiet []time.Duration
	for _, member := range c.replicas() {
		if status := member.Status; status != nil && c.Record.Acknowledges(member.Name) {
			if !status.hearsNothing() {
				return 0
			}
			quiet = append(quiet, status.SourceSilentFor)
		}
	}
	if len(quiet) == 0 {
		return 0
	}
	return slices.Min(quiet)
}

const (
	noAnswer      = "its agent does not answer"
	replicasQuiet = "enough replicas in sync have got nothing from it"
)

// must adds a check, and returns whether it holds.
func (v *Verdict) must(what string, holds bool) bool {
	v.Checks = append(v.Checks, Check{What: what, Holds: holds})
	return holds
}

// mustLast adds a check of something that must have been so for a time.
func (v *Verdict) mustLast(what string, lasted, needed time.Duration) {
	v.Checks = append(v.Checks, Check{What: what, Holds: lasted >= needed, Seconds: max(0, int(lasted.Seconds())), NeededSeconds: int(needed.Seconds())})
}

// mustBeUnheard adds a check of for how long the operator has not heard the primary.
func (v *Verdict) mustBeUnheard(primary Member, needed time.Duration) {
	v.mustLast("the operator has asked it in vain", primary.UnheardFor, needed)
	v.Checks[len(v.Checks)-1].IsMemory = true
}

// saying sets the message if all checks hold.
func (v Verdict) saying(format string, values ...any) Verdict {
	for _, check := range v.Checks {
		if !check.Holds {
			return v
		}
	}
	v.Message = fmt.Sprintf(format, values...)
	return v
}
