package replication

import (
	"slices"
	"time"
)

// A primary that does not answer may run on. It acknowledges nothing once the others have stopped acknowledging (handover.go), but it would
// serve what was there before, and take writes that are never acknowledged. So another member takes over by itself only from a primary that
// needs a lease, after that lease has certainly ended.
//
// The primary has a lease for some seconds after each piece of evidence that it leads:
//
//   - RequiredAcks replicas are connected to it that acknowledge commits. Members that accept the record of another primary close these
//     connections before they report to be silent (IsSilent). So once all but RequiredAcks - 1 of the others in sync are silent, there can
//     be no later evidence.
//   - The operator has read the record, live, after a time by the primary's own clock. It does so if too few replicas are connected. The
//     record of another primary is written before any member accepts it. So there can be no later evidence of this kind either.
//
// The first lease needs evidence of the first kind. So where replicas are never seen, as behind a proxy, no primary depends on the
// operator.
//
// A lease of less than LongLease rests on replicas alone: no operator confirms it. Evidence has the time of sending (package
// supervisor). So a replica that has heard nothing for some time (Status.DeafFor) has given no evidence of that time, and the lease counts
// from its beginning. If the operator must confirm the primary, the record first makes the lease long. Then it is counted from when the
// members are silent.
//
// Its supervisor ends mysqld when the lease ends (package supervisor). The record says how long the lease lasts at most
// (LeaseLasts), or that the primary may lead without. Less is written after the primary has reported that. More, or that it may lead
// without, is written before the primary is allowed that.
//
// An operator measures the end of the lease by its own clock, and a member measures by its own for how long it has heard nothing. No time
// passes from one machine to another.

const (
	// ShortLease is how long a lease lasts at least after the last evidence. The operator must have time to make it long, and to confirm a
	// primary without replicas.
	ShortLease = 2500 * time.Millisecond
	// LongLease is for a primary that needs all its replicas, or else the operator. The machine of a replica may fail together with
	// the operator's leader, and the next leader may begin after 15 seconds.
	LongLease = 20 * time.Second
	// evidenceAge is how old the last evidence is at most when a replica hears the primary no more. The primary sends something five times a
	// second, and the supervisor looks ten times a second.
	evidenceAge = 500 * time.Millisecond
	// leaseMargin is for the supervisor to look at its clock, which it does twenty times a second, and for mysqld to end. Clocks may also
	// differ by a clockPart of the lease.
	leaseMargin = 300 * time.Millisecond
	clockPart   = 100
)

// Lease is what a primary reports about its lease.
type Lease struct {
	// Needs is for how many replicas the lease certainly is until the next report, unless the assignment requires fewer.
	Needs int `json:"needs,omitempty"`
	// Lasts is how long it lasts at most after the last evidence, and Left how long it lasts without further evidence.
	Lasts time.Duration `json:"lasts,omitempty"`
	Left  time.Duration `json:"left,omitempty"`
	// Ends reports whether it ends soon unless the operator confirms the primary (supervisor.Lease.Ends).
	Ends bool `json:"ends,omitempty"`
	// Unheard are the replicas in sync that the primary's machine has not heard lately.
	Unheard []string `json:"unheard,omitempty"`
	// IsHeard reports whether so many replicas have been heard lately, and since the operator confirmed the primary last: the lease rests on
	// them alone.
	IsHeard bool `json:"heard,omitempty"`
	// IsImpossible means that the member can have no lease, because its kernel does not say which replicas are connected.
	IsImpossible bool `json:"impossible,omitempty"`
}

// IsEnding reports whether the operator must confirm the primary soon, because too few replicas are connected.
func (l *Lease) IsEnding() bool { return l != nil && l.Ends }

// Lacks reports whether the primary has not heard a replica in sync lately.
func (l *Lease) Lacks(replica string) bool { return l != nil && slices.Contains(l.Unheard, replica) }

// LacksAny reports whether that is so for any of them.
func (l *Lease) LacksAny() bool { return l != nil && len(l.Unheard) > 0 }

// mayLease reports whether the primary may need a lease: the user wants it, and its agent and its kernel can do it, as far as is known.
func (c Cluster) mayLease() bool {
	status := c.primaryStatus()
	isUnable := status != nil && (!status.speaksOurProtocol() || status.Lease != nil && status.Lease.IsImpossible)
	return c.WantsLease && !isUnable
}

// lease is for how many replicas the primary must have a lease.
func (c Cluster) lease() int {
	if !c.mayLease() && c.Record.LeaseLasts == 0 {
		return 0
	}
	return c.Record.RequiredAcks
}

// wantedLease is how long the lease of the primary should last. It is longer than the primary may be unreachable without being
// replaced.
func (c Cluster) wantedLease() time.Duration {
	least := ShortLease
	if len(removed(c.Record.InSync, c.Record.lastPrimary())) <= c.Record.RequiredAcks || c.needsOperator() {
		least = LongLease
	}
	return max(least, c.Limits.Unreachable+evidenceAge)
}

// needsOperator reports whether the primary needs the operator to confirm that it leads: to take writes, or because too few replicas have
// been heard.
func (c Cluster) needsOperator() bool {
	status := c.primaryStatus()
	switch {
	case status == nil:
		return false
	case status.State != StateWriting:
		return !status.IsRestarting || !c.couldReplaceRestarting()
	}
	lease := status.Lease
	return lease != nil && (lease.Needs > 0 || c.Record.LeaseLasts > 0) && (lease.IsEnding() || !lease.IsHeard)
}

// restsOnReplicas reports whether no operator confirms a lease that lasts so long.
func restsOnReplicas(lasts time.Duration) bool {
	return lasts > 0 && lasts < LongLease
}

// leaseLasts is how long the lease of the primary must last; 0 if it needs none. If that is more than the record says, the record
// changes first (extend).
func (c Cluster) leaseLasts() time.Duration {
	if c.lease() == 0 {
		return 0
	}
	return c.wantedLease()
}

// mustConfirm reports whether the primary needs the operator to confirm that it leads: to continue, even if mysqld answers slowly or its
// supervisor does not know yet that it needs no lease; or to open.
func (a Assignment) mustConfirm(now Status) bool {
	if a.Role != RolePrimary || !now.Lease.IsEnding() || restsOnReplicas(a.LeaseLasts) {
		return false
	}
	return now.Lease.Needs > 0 || now.State == StatePromoting && a.Lease > 0
}

// weakens reports whether the assignment lets the member lead with less than the lease that it has.
func (a Assignment) weakens(lease *Lease) bool {
	return lease != nil && (a.Lease < lease.Needs || lease.Needs > 0 && a.LeaseLasts > lease.Lasts)
}

// ConfirmedFor returns the assignment with the time of the member's report, if the operator reads the record before it sends it (Relaxes).
func (a Assignment) ConfirmedFor(now Status) Assignment {
	if a.Role == RolePrimary && a.Relaxes(now) {
		a.ConfirmedAt = now.Clock
	}
	a.ConfirmedAt = a.Confirmed()
	return a
}

// Confirmed is the time by the primary's own clock after which the operator read the record; 0 if it did not, or if it does not count.
func (a Assignment) Confirmed() time.Duration {
	if restsOnReplicas(a.LeaseLasts) {
		return 0
	}
	return a.ConfirmedAt
}

// Confirmation returns what this primary follows already, confirmed; nil if it needs no confirmation, or follows another record. The record
// that Urgent returns is no other one: with it, the primary gets a long lease.
func (s Status) Confirmation(record Record) *Assignment {
	if !s.confirmed() {
		return nil
	}
	again := *s.Assignment
	follows := again.Record
	isLonger := record.LeaseLasts > follows.LeaseLasts || record.LeaseLasts == follows.LeaseLasts && restsOnReplicas(again.LeaseLasts)
	if record.Revision == follows.Revision+1 && isLonger && !restsOnReplicas(record.LeaseLasts) {
		follows.LeaseLasts, follows.Revision = record.LeaseLasts, record.Revision
		if again.LeaseLasts > 0 {
			again.LeaseLasts = max(again.LeaseLasts, record.LeaseLasts, LongLease)
		}
	}
	again.Record = follows
	if !follows.Equal(record) || !again.mustConfirm(s) {
		return nil
	}
	again.ConfirmedAt = s.Clock
	return &again
}

// Urgent returns the record that must be written before the other members are asked, which may hang: it lets the operator confirm a primary
// whose lease rests on replicas and ends soon. isDue is false if there is none, or if something else comes first.
func (c Cluster) Urgent() (next Record, isDue bool) {
	status := c.primaryStatus()
	if status == nil || !status.Lease.IsEnding() || !c.mayLease() || !c.needsOperator() {
		return c.Record, false
	}
	order := status.Assignment
	follows := order != nil && order.Record.Equal(c.Record) && restsOnReplicas(order.LeaseLasts)
	lost, _ := c.primaryDataLost()
	if !follows && !restsOnReplicas(c.Record.LeaseLasts) || lost != "" || c.heldLater() != "" {
		return c.Record, false
	}
	return extend(c).after(c.Record), true
}

// engage records that the primary has a lease, or a shorter one, and does not depend on the operator for it. What it has must come from an
// assignment of this very record (raise).
func engage(c Cluster) Record {
	next, status := c.Record, c.primaryStatus()
	if !c.mayLease() || c.needsOperator() || next.RequiredAcks == 0 || !status.speaksOurProtocol() || status.State != StateWriting || status.ObservedUnder != next.Version() {
		return next
	}
	if lasts := status.leaseFor(next.RequiredAcks); lasts > 0 && (next.LeaseLasts == 0 || lasts < next.LeaseLasts) {
		next.LeaseLasts = lasts
	}
	return next
}

// leaseFor returns how long the primary's lease for so many replicas lasts at most, now and after its next step; 0 if it has none.
func (s Status) leaseFor(acks int) time.Duration {
	order, lease := s.Assignment, s.Lease
	if order == nil || order.Lease < acks || lease == nil || lease.Needs < acks || lease.Lasts > order.LeaseLasts {
		return 0
	}
	return order.LeaseLasts
}

// extend records that the lease of the primary may last longer. While it does not answer, it cannot be assigned that.
func extend(c Cluster) Record {
	next := c.Record
	if next.LeaseLasts > 0 && c.primaryStatus() != nil {
		next.LeaseLasts = max(next.LeaseLasts, c.wantedLease())
	}
	return next
}

// release records that the primary may lead without a lease.
func release(c Cluster) Record {
	next := c.Record
	if !c.mayLease() {
		next.LeaseLasts = 0
	}
	return next
}

// UnheardLeast is for how long a primary has not answered the operator if nothing answers for it: one request may be lost. Replicas say for
// how long in all.
const UnheardLeast = time.Second

// primaryLost judges a primary that does not answer, and from which the replicas get nothing. It must have a lease. All replicas in sync
// that answer must have got nothing: one that has follows a primary that works. If Kubernetes starts its Pod, the primary gets time for
// that during an update of the members, or if no replica may take over at once.
func (c Cluster) primaryLost() Verdict {
	v := Verdict{Rule: RuleLost}
	primary, found := c.member(c.Record.Primary)
	limit := max(LostAfter, c.Limits.NotReady, c.Limits.Unreachable) // Kubernetes starts its Pod
	if primary.IsRunning || c.couldReplaceRestarting() {
		limit = min(UnheardLeast, c.Limits.Unreachable)
	}
	if !v.must(noAnswer, found && primary.Status == nil) {
		return v
	}
	v.must("it has a lease", c.Record.LeaseLasts > 0)
	v.mustBeUnheard(primary, limit)
	v.mustLast(replicasQuiet, c.quietFor(max(len(c.witnesses(answers)), c.Record.witnessesNeeded()), anyReplica), c.Limits.Unreachable)
	return v.saying("the primary %s does not answer, and the replicas have got nothing from it for more than %d seconds", primary.Name, int(c.Limits.Unreachable.Seconds()))
}

// silentFor is for how long so many members have been silent that the former primary can have no evidence; 0 if too few are.
func (c Cluster) silentFor() time.Duration {
	var silent []time.Duration
	for _, member := range c.Members {
		none := c.noEvidenceFor(member)
		if member.Name != c.Record.FormerPrimary && c.Record.Acknowledges(member.Name) && none > 0 {
			silent = append(silent, none)
		}
	}
	slices.Sort(silent)
	first := len(silent) - c.Record.witnessesNeeded()
	if first < 0 || first >= len(silent) {
		return 0
	}
	return silent[first]
}

// noEvidenceFor is for how long a member has certainly given the former primary no evidence: it is silent, or has heard nothing. 0 if that
// is not known.
func (c Cluster) noEvidenceFor(member Member) time.Duration {
	if !restsOnReplicas(c.Record.LeaseLasts) || !member.Status.IsSilent(c.Record) {
		return member.SilentFor
	}
	return max(member.SilentFor, member.Status.DeafFor)
}

// leaseHasEnded reports whether the former primary certainly has no lease any more.
func (c Cluster) leaseHasEnded() bool {
	return c.Record.LeaseLasts > 0 && c.silentFor() >= c.Record.leaseLimit()
}

// LeaseEndsIn returns after which time the former primary certainly has no lease any more; 0 if that is now, or not known.
func (c Cluster) LeaseEndsIn() time.Duration {
	silent := c.silentFor()
	if c.Record.FormerPrimary == "" || c.Record.LeaseLasts == 0 || silent == 0 {
		return 0
	}
	return max(0, c.Record.leaseLimit()-silent)
}

// leaseLimit is after which time without evidence the lease of a primary has certainly ended.
func (r Record) leaseLimit() time.Duration { return r.LeaseLasts + r.leaseMargin() }

func (r Record) leaseMargin() time.Duration { return leaseMargin + r.LeaseLasts/clockPart }

// IsReleased reports whether the primary needs no lease, as far as it answers. With an assignment that demands one, it may open by its
// replicas after a crash (Observed.Reopens).
func (c Cluster) IsReleased() bool {
	status := c.primaryStatus()
	if status == nil || c.Record.LeaseLasts > 0 {
		return false
	}
	order := status.Assignment
	if status.State == StateWriting || status.State == StatePromoting {
		return order != nil && order.Lease == 0 && (status.Lease == nil || status.Lease.IsImpossible)
	}
	return order == nil || order.Lease == 0
}

// Release returns what lets the primary lead without a lease, although nothing else changes: the operator does not look at the members from
// now on. Record differs from the observed one if it must be written first.
func (c Cluster) Release() Decision {
	c.WantsLease = false
	decision := Decision{Record: release(c), Scale: c.Scale}
	status := c.primaryStatus()
	if !decision.Record.Equal(c.Record) {
		decision.Record = decision.Record.after(c.Record)
		return decision
	}
	if status == nil || status.Last == nil || c.IsReleased() {
		return decision
	}
	wanted := assignments(c)[c.Record.Primary]
	wanted.Acks, wanted.Silent = status.Last.Acks, status.Last.Silent
	if wanted.contradicts(status.Last) {
		decision.Record.Revision++
		return decision
	}
	decision.Assignments = map[string]Assignment{c.Record.Primary: wanted}
	return decision
}
