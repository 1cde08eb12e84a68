package replication

import (
	"fmt"
	"time"
)

// A primary that does not answer may run on. It acknowledges nothing once the others have stopped acknowledging (handover.go), but it would
// serve what was there before, and take writes that are never acknowledged. So another member takes over by itself only from a primary that
// needs a lease, after that lease has certainly ended.
//
// The primary has a lease for LeaseTime after each piece of evidence that it leads:
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
// Its supervisor ends mysqld when the lease ends (package supervisor). IsLeased in the record means that the primary has such a lease. It
// is written after the primary has reported that. It is taken back before the primary is allowed to do without.
//
// An operator measures the end of the lease by its own clock, from when it has seen that enough members are silent. No time passes from one
// machine to another.

const (
	// LeaseTime is how long a lease lasts after the last evidence. An operator that looks every 10 seconds sees in time that it must
	// confirm.
	LeaseTime = 20 * time.Second
	// leaseMargin is for clocks that run at different speeds, for packets that the network delays, and for mysqld to end.
	leaseMargin = 5 * time.Second
)

// Lease is what a primary reports about its lease.
type Lease struct {
	// Needs is for how many replicas the lease certainly is until the next report, unless the assignment requires fewer.
	Needs int `json:"needs,omitempty"`
	// Left is how long it lasts without further evidence.
	Left time.Duration `json:"left,omitempty"`
	// IsHeard reports whether so many replicas are connected.
	IsHeard bool `json:"heard,omitempty"`
	// IsImpossible means that the member can have no lease, because its kernel does not say which replicas are connected.
	IsImpossible bool `json:"impossible,omitempty"`
}

// IsShort reports whether the operator must confirm the primary soon, because too few replicas are connected. While enough are, at most
// four seconds have passed since the last evidence. Three looks of the operator fit into what is left then.
func (l *Lease) IsShort() bool { return l != nil && l.Left < LeaseTime*3/4 }

// mayLease reports whether the primary may need a lease: the user wants it, and its agent and its kernel can do it, as far as is known.
func (c Cluster) mayLease() bool {
	status := c.primaryStatus()
	isUnable := status != nil && (!status.speaksOurProtocol() || status.Lease != nil && status.Lease.IsImpossible)
	return c.WantsLease && !isUnable
}

// lease is for how many replicas the primary must have a lease.
func (c Cluster) lease() int {
	if !c.mayLease() && !c.Record.IsLeased {
		return 0
	}
	return c.Record.RequiredAcks
}

// mustConfirm reports whether the primary needs the operator to confirm that it leads: to continue, even if mysqld answers slowly or its
// supervisor does not know yet that it needs no lease; or to open.
func (a Assignment) mustConfirm(now Status) bool {
	if a.Role != RolePrimary || !now.Lease.IsShort() {
		return false
	}
	return now.Lease.Needs > 0 || now.State == StatePromoting && a.Lease > 0
}

// ConfirmedFor returns the assignment with the time of the member's report, if the operator reads the record before it sends it (Relaxes).
func (a Assignment) ConfirmedFor(now Status) Assignment {
	if a.Role == RolePrimary && a.Relaxes(now) {
		a.ConfirmedAt = now.Clock
	}
	return a
}

// engage records that the primary has a lease, and does not depend on the operator for it. What it has must come from an assignment of this
// very record (raise).
func engage(c Cluster) Record {
	next, status := c.Record, c.primaryStatus()
	if next.IsLeased || !c.mayLease() || next.RequiredAcks == 0 || !status.speaksOurProtocol() || status.State != StateWriting || status.ObservedUnder != next.Version() {
		return next
	}
	isAssigned := status.Assignment != nil && status.Assignment.Lease >= next.RequiredAcks
	next.IsLeased = isAssigned && status.Lease != nil && status.Lease.Needs >= next.RequiredAcks && status.Lease.IsHeard
	return next
}

// release records that the primary may lead without a lease.
func release(c Cluster) Record {
	next := c.Record
	next.IsLeased = next.IsLeased && c.mayLease()
	return next
}

// primaryLost describes a primary that does not answer, and from which the replicas get nothing; empty if that is not so, or if it may lead
// without a lease. All replicas in sync that answer must have got nothing: one that has follows a primary that works.
func (c Cluster) primaryLost() string {
	primary, found := c.member(c.Record.Primary)
	limit := max(LostAfter, c.Limits.Unreachable)
	if primary.IsRunning {
		limit = c.Limits.Unreachable // Kubernetes does not start it again
	}
	if !found || !c.Record.IsLeased || primary.Status != nil || primary.UnheardFor < limit {
		return ""
	}
	deaf := c.getNothing(func(Status) bool { return true })
	if deaf < max(len(c.witnesses(answers)), c.Record.witnessesNeeded()) {
		return ""
	}
	return fmt.Sprintf("the primary %s has not answered for more than %d seconds, and the replicas have got nothing from it for more than %d", primary.Name, int(limit.Seconds()), int(c.Limits.silent().Seconds()))
}

// leaseHasEnded reports whether the former primary certainly has no lease any more.
func (c Cluster) leaseHasEnded() bool {
	silent := 0
	for _, member := range c.Members {
		if member.Name != c.Record.FormerPrimary && c.Record.Acknowledges(member.Name) && member.SilentFor >= LeaseTime+leaseMargin {
			silent++
		}
	}
	return c.Record.IsLeased && silent >= c.Record.witnessesNeeded()
}

// IsReleased reports whether the primary needs no lease, as far as it answers. After a start of mysqld, it does not take writes before the
// operator looks at it again.
func (c Cluster) IsReleased() bool {
	status := c.primaryStatus()
	if status == nil || c.Record.IsLeased {
		return false
	}
	order := status.Assignment
	if status.State == StateWriting || status.State == StatePromoting {
		return order != nil && order.Lease == 0 && (status.Lease == nil || status.Lease.IsImpossible)
	}
	return order == nil || order.Lease == 0 || order.Boot != status.Boot // otherwise it is about to take writes
}

// Release returns what lets the primary lead without a lease, although nothing else changes: the operator does not look at the members from
// now on. Record differs from the observed one if it must be written first.
func (c Cluster) Release() Decision {
	c.WantsLease = false
	decision := Decision{Record: release(c), Scale: c.Scale}
	status := c.primaryStatus()
	if decision.Record.IsLeased != c.Record.IsLeased {
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
