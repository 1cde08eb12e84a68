package replication

import (
	"fmt"
	"time"
)

// Takeover is how it would go if another member took over from the primary now.
type Takeover struct {
	// To names the member; empty if none may take over. Reason and Problem are then why.
	To      string `json:"to,omitempty"`
	Reason  Reason `json:"reason,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Deferred is why To does not take over from a primary that is only down: it may be back sooner.
	Deferred string `json:"deferred,omitempty"`
	// BehindSeconds is how far To is behind the primary in what it has to apply first; 0 for a few seconds at most, or if that is not known.
	BehindSeconds int `json:"behindSeconds,omitempty"`
	// Seconds is about how long To needs to take writes after the takeover has begun and To has applied what it received; 0 if it waits for
	// what UntilThen says.
	Seconds   int    `json:"seconds,omitempty"`
	UntilThen string `json:"untilThen,omitempty"`
	// Loses is what would be lost.
	Loses string `json:"loses"`
}

// Takeover returns how it would go if another member took over from the primary now, or how the present takeover continues.
func (c Cluster) Takeover() Takeover {
	if c.Record.FormerPrimary != "" {
		return c.presentTakeover()
	}
	if c.Record.Primary == "" {
		return Takeover{Reason: ReasonWaitingForMembers, Problem: noPrimaryYet, Loses: "nothing: there is no primary"}
	}
	found := Takeover{Loses: c.loses()}
	if found.Reason, found.Problem = c.whyNotReplaced(); found.Problem != "" {
		return found
	}
	if found.Reason, found.Problem = c.whyNotLater(); found.Problem != "" {
		return found
	}
	to, problem := c.soonest()
	if to == "" {
		found.Reason, found.Problem = ReasonPrimaryDown, problem
		return found
	}
	found.To, found.Deferred, found.BehindSeconds = to, problem, c.behindNow(to)
	former, _ := c.member(c.Record.Primary)
	found.Seconds, found.UntilThen = c.closes(former)
	return found
}

// presentTakeover is how the takeover continues that has begun.
func (c Cluster) presentTakeover() Takeover {
	found := Takeover{Loses: c.loses()}
	former, _ := c.member(c.Record.FormerPrimary)
	chosen, _, note := c.successor()
	if note != nil {
		found.Reason, found.Problem = note.Reason, note.Message
		return found
	}
	found.To, found.BehindSeconds = chosen, c.behindNow(chosen)
	if c.notClosed(former) == nil {
		found.Seconds = int(takingOver.Seconds())
		return found
	}
	found.Seconds, found.UntilThen = c.closes(former)
	return found
}

// closes returns about how long a takeover from this primary takes after it has begun, and what it waits for.
func (c Cluster) closes(former Member) (within int, waits string) {
	switch {
	case former.Status != nil && former.Status.Probe.IsSound():
		return int(takingOver.Seconds()), former.Name + " answers, and stops"
	case former.Status != nil && c.Record.LeaseLasts > 0:
		waits = fmt.Sprintf("the volume of %s fails, so its mysqld may not end: its lease of %s must end, and %s more must pass", former.Name, c.Record.LeaseLasts, c.Record.leaseMargin())
		return roundUp(c.Record.leaseLimit() + takingOver), waits
	case former.Status != nil:
		return 0, "the volume of " + former.Name + " fails, so its mysqld may not end, and it has no lease: it must end, or a user must ask for the takeover"
	case c.Record.LeaseLasts > 0:
		waits = fmt.Sprintf("%s does not answer: its lease of %s must end, and %s more must pass", former.Name, c.Record.LeaseLasts, c.Record.leaseMargin())
		return roundUp(c.Record.leaseLimit() + takingOver), waits
	}
	return 0, former.Name + " does not answer and has no lease: it must be back, or a user must ask for the takeover"
}

// loses describes what a takeover loses.
func (c Cluster) loses() string {
	primary, _ := c.member(c.Record.lastPrimary())
	switch {
	case c.Record.FormerPrimary != "" && !c.canChoose() && c.forcing() != "":
		return "not known: " + c.forcing()
	case c.Record.RequiredAcks == 0:
		return "not known: acknowledged commits may be on " + primary.Name + " alone"
	case !primary.HasReported():
		return "no acknowledged commit; " + primary.Name + " does not say whether it has others: it keeps a copy of them when it is back"
	}
	alone := c.alone(primary)
	if alone.Empty() {
		return "nothing: the other members have all that " + primary.Name + " has"
	}
	return fmt.Sprintf("no acknowledged commit; %d transactions that only %s has, and that no client was told had succeeded: it keeps a copy of them", alone.Count(), primary.Name)
}

// alone are the transactions that no other member that answers has.
func (c Cluster) alone(member Member) GTIDSet {
	own := member.Status.Received.Union(member.Status.Executed).Union(member.Status.Pending)
	for _, other := range c.Members {
		if other.Name != member.Name && other.HasReported() {
			own = own.Subtract(other.Status.Received)
		}
	}
	return own
}

// Evidence is what is known of one member, as far as a takeover depends on it.
type Evidence struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Answers reports whether its agent answers. Unreachable says why not, IsRunning whether Kubernetes says that it runs.
	Answers     bool   `json:"answers"`
	Unreachable string `json:"unreachable,omitempty"`
	IsRunning   bool   `json:"isRunning"`
	// IsWitness means that it counts among the members that together have every acknowledged commit.
	IsWitness bool   `json:"isWitness"`
	State     State  `json:"state,omitempty"`
	Message   string `json:"message,omitempty"`
	// TakesNoWrites means that this is certain. UnansweredSeconds is for how long mysqld has not answered its agent.
	TakesNoWrites     bool `json:"takesNoWrites"`
	UnansweredSeconds int  `json:"unansweredSeconds,omitempty"`
	// QuietSeconds is for how long a replica has got nothing from its primary; 0 if that is not known.
	QuietSeconds    int  `json:"quietSeconds,omitempty"`
	IsAcknowledging bool `json:"isAcknowledging"`
	// Connected counts the replicas that are connected to a primary, AckClients those of them that acknowledge.
	Connected        int `json:"connected,omitempty"`
	AckClients       int `json:"ackClients,omitempty"`
	AcksShortSeconds int `json:"acksShortSeconds,omitempty"`
	// ToApply counts received transactions that are not executed, Lacks those of the witnesses that it lacks, Alone those that no other has.
	ToApply int64 `json:"toApply"`
	Lacks   int64 `json:"lacks"`
	Alone   int64 `json:"alone"`
	// Accepted is the record of the assignment that it accepted last, AcceptedAs the role there.
	Accepted   Version `json:"accepted"`
	AcceptedAs Role    `json:"acceptedAs,omitempty"`
	// Lease is the lease that a primary has; LeaseLeft how long it lasts without further evidence, in seconds.
	HasLease  bool `json:"hasLease"`
	LeaseLeft int  `json:"leaseLeft,omitempty"`
	// VolumeStuckSeconds is for how long a write to its volume has not returned. VolumeFailure is how writes fail, Disk how full it is; empty
	// for roomy.
	VolumeStuckSeconds int       `json:"volumeStuckSeconds,omitempty"`
	VolumeFailure      string    `json:"volumeFailure,omitempty"`
	Disk               DiskLevel `json:"disk,omitempty"`
	// IsRestarting means that the container of its mysqld stops, or that mysqld has not answered in the next one yet.
	IsRestarting bool `json:"isRestarting,omitempty"`
	// CommitWaitSeconds is for how long sessions have waited to commit without any commit.
	CommitWaitSeconds int64 `json:"commitWaitSeconds,omitempty"`
	// IsForgetful means that it may have lost what it acknowledged, NeedsCopy that its data must be replaced, IsOtherRelease that its agent
	// speaks another protocol.
	IsForgetful    bool `json:"isForgetful"`
	NeedsCopy      bool `json:"needsCopy"`
	IsOtherRelease bool `json:"isOtherRelease"`
}

// Evidence returns what is known of each member.
func (c Cluster) Evidence() []Evidence {
	witnesses := c.witnesses(answers)
	counts := worthHaving(witnesses)
	all := make([]Evidence, 0, len(c.Members))
	for _, member := range c.Members {
		one := Evidence{Name: member.Name, Role: c.Record.roleOf(member.Name), Answers: member.Status != nil, Unreachable: member.Unreachable, IsRunning: member.IsRunning}
		for _, witness := range witnesses {
			one.IsWitness = one.IsWitness || witness.Name == member.Name
		}
		if member.Status != nil {
			one.take(*member.Status)
		}
		if member.HasReported() {
			one.Lacks, one.Alone = counts.Subtract(member.Status.Received).Count(), c.alone(member).Count()
		}
		all = append(all, one)
	}
	return all
}

func (e *Evidence) take(s Status) {
	e.State, e.Message, e.TakesNoWrites, e.UnansweredSeconds = s.State, s.Message, s.Closed != nil, int(s.UnansweredFor.Seconds())
	e.IsRestarting = s.IsRestarting
	e.QuietSeconds, e.IsAcknowledging = int(s.SourceSilentFor.Seconds()), s.Acknowledging
	e.Connected, e.AckClients, e.AcksShortSeconds = s.ConnectedReplicas, s.AckClients, s.AcksShortSeconds
	e.ToApply = s.Received.Subtract(s.Executed).Count()
	e.Accepted, e.AcceptedAs = s.Held.Version(), s.HeldRole
	e.IsForgetful, e.NeedsCopy, e.IsOtherRelease = s.IsForgetful, s.NeedsCopy, !s.speaksOurProtocol()
	e.VolumeStuckSeconds, e.VolumeFailure, e.Disk, e.CommitWaitSeconds = int(s.Probe.StuckFor.Seconds()), s.Probe.Failure, s.Disk.Level, s.Transactions.CommitWaitSeconds
	if s.Lease != nil && s.Lease.Needs > 0 {
		e.HasLease, e.LeaseLeft = true, int(s.Lease.Left/time.Second)
	}
}

// roleOf names the role of a member in the record.
func (r Record) roleOf(member string) string {
	switch {
	case member == r.Primary:
		return "primary"
	case member == r.FormerPrimary:
		return "former primary"
	case r.Acknowledges(member):
		return "in sync"
	case r.Allows(member):
		return "joining"
	}
	return "not on record"
}

// Verdicts are what each rule that replaces a failed primary finds; none while the cluster has no primary.
func (c Cluster) Verdicts() []Verdict {
	if c.Record.Primary == "" {
		return nil
	}
	return []Verdict{c.primaryDown(), c.primaryRestarts(), c.primaryCutOff(), c.primaryVolume(), c.primaryLost(), c.primaryGone()}
}
