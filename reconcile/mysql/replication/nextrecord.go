package replication

import (
	"slices"
	"time"
)

// rule checks for one reason to change the record. It returns the record unchanged if there is none.
type rule func(Cluster) Record

// nextRecord applies the first rule that changes the record: one change and one write for each observation.
func nextRecord(c Cluster) Record {
	rules := []rule{
		release,      // the primary may lead without a lease
		firstPrimary, // a new cluster's primary takes writes: it is the first member in sync
		fewerMembers, // the user wants fewer members: require fewer acknowledgements before a member leaves
		degrade,      // too few replicas acknowledge for too long: continue with fewer, if the user allows it
		leave,        // the primary has locked out a member
		dismiss,      // a member that the user does not want may not follow any more
		admit,        // a member certainly does not acknowledge: it may follow the primary
		join,         // a replica has caught up: it may acknowledge from now on
		outdate,      // a user has asked to replace a primary that is back
		raise,        // the primary enforces more acknowledgements than promised, and enough replicas hold its data
		extend,       // the lease of the primary may last longer
		engage,       // the primary has a lease, or a shorter one
	}
	for _, apply := range rules {
		if next := apply(c); !next.Equal(c.Record) {
			return next
		}
	}
	return c.Record
}

// outdate makes a request for another primary invalid once the primary answers. Otherwise it would hold for the next time when it does
// not.
func outdate(c Cluster) Record {
	next := c.Record
	_, isForced := c.forced()
	if status := c.primaryStatus(); status != nil && status.State != StateStarting && (c.isRequested() || isForced) {
		next.Revision++
	}
	return next
}

func (c Cluster) primaryStatus() *Status {
	primary, _ := c.member(c.Record.Primary)
	return primary.Status
}

func firstPrimary(c Cluster) Record {
	status := c.primaryStatus()
	if len(c.Record.InSync) > 0 || status == nil || status.State != StateWriting {
		return c.Record
	}
	return c.Record.with(c.Record.Primary)
}

// fewerMembers waits for the primary: if it is lost, the promise shows which members have everything.
func fewerMembers(c Cluster) Record {
	next := c.Record
	primary, _ := c.member(c.Record.Primary)
	if !c.wanted(primary) || !primary.Status.leads() {
		return next // no member leaves
	}
	return next.promising(min(next.RequiredAcks, FullAcks(c.Replicas)))
}

func degrade(c Cluster) Record {
	status := c.primaryStatus()
	short := status.leads() && status.AckClients < c.Record.RequiredAcks
	if !short || !c.Durability.Continue || seconds(status.AcksShortSeconds) < c.Durability.Grace {
		return c.Record
	}
	return c.Record.promising(status.AckClients)
}

// leave removes one member that cannot acknowledge any more. What it held does not count any longer. So RequiredAcks shrinks to the number
// of other replicas that are seen to hold everything that it may have acknowledged. That is what the primary had executed after the member
// fell silent, and what was in progress there. If enough others are connected, they will hold it soon, and the member leaves then, without
// a weaker promise.
func leave(c Cluster) Record {
	status := c.primaryStatus()
	// An assignment of an earlier record says nothing: one that was sent since may let the member follow again.
	if !status.speaksOurProtocol() || status.ObservedUnder != c.Record.Version() {
		return c.Record
	}
	for _, name := range c.silent() {
		next := c.Record.without(name)
		holders := c.holders(next, status.Executed.Union(status.Pending))
		isWeaker := holders < next.RequiredAcks
		soon := isWeaker && (status.AckClients >= next.RequiredAcks || c.isLost(name))
		if soon || !slices.Contains(status.Silent, name) {
			continue
		}
		if restsOnReplicas(next.LeaseLasts) {
			next.LeaseLasts = LongLease // it may have given evidence later than the others
		}
		return next.promising(min(next.RequiredAcks, holders))
	}
	return c.Record
}

// silent names the in-sync replicas that the primary must make silent: those that certainly do not acknowledge any more, and those that are
// lost.
func (c Cluster) silent() []string {
	var names []string
	for _, name := range c.Record.InSync {
		if name != c.Record.Primary && (c.certainlySilent(name) || c.isLost(name)) {
			names = append(names, name)
		}
	}
	return names
}

// certainlySilent reports whether the StatefulSet no longer includes the member and its Pod is gone, or the member's data must be replaced
// and its acknowledgements are off.
func (c Cluster) certainlySilent(name string) bool {
	member, known := c.member(name)
	if !known || !member.Pod && member.Ordinal >= c.Scale {
		return true
	}
	status := member.Status
	return status.speaksOurProtocol() && !status.Acknowledging && (status.Origin.unused() || status.NeedsCopy)
}

const (
	// LostAfter is how long a member may not answer before the others do without it. It is longer than a Pod takes to restart.
	LostAfter = 30 * time.Second
	// UnheardAfter is the least for a replica that the primary does not hear either, and whose Pod is not about to start or to end.
	UnheardAfter = 2 * time.Second
)

// isLost reports whether a replica has been away for so long that the others should do without it. Otherwise it would count among the
// members to read if the primary is lost, too. The promise must not depend on it: enough others acknowledge, and the primary hears them.
func (c Cluster) isLost(name string) bool {
	member, known := c.member(name)
	status := c.primaryStatus()
	if !known || status == nil || status.State != StateWriting || c.Record.RequiredAcks == 0 || !c.isAway(member, status.Lease) {
		return false
	}
	others := 0
	for _, other := range c.replicas() {
		if c.Record.Acknowledges(other.Name) && acknowledges(other) && !status.Lease.Lacks(other.Name) {
			others++
		}
	}
	return others >= c.Record.RequiredAcks
}

// isAway reports whether a replica has been away for too long: its agent or its mysqld. If the operator has asked its agent in vain while
// Kubernetes says that this one runs, and the primary does not hear the replica either, that takes less time.
func (c Cluster) isAway(replica Member, lease *Lease) bool {
	if replica.Status != nil {
		return replica.Status.State == StateStarting && replica.Status.UnansweredFor >= LostAfter
	}
	soon := max(UnheardAfter, c.Limits.Unreachable)
	return replica.UnheardFor >= LostAfter || lease.Lacks(replica.Name) && replica.MissingFor >= soon
}

// holders counts the in-sync replicas that hold the whole set.
func (c Cluster) holders(record Record, set GTIDSet) int {
	count := 0
	for _, member := range c.replicas() {
		if record.Acknowledges(member.Name) && member.Status != nil && member.Status.Received.Contains(set) {
			count++
		}
	}
	return count
}

// dismiss removes one member that must not follow the primary any more.
func dismiss(c Cluster) Record {
	for _, name := range c.Record.Joining {
		if member, known := c.member(name); !known || !c.wanted(member) || name == c.Record.Primary {
			return c.Record.without(name)
		}
	}
	return c.Record
}

// admit lets one member follow that has accepted not to acknowledge, under this very record. It refuses whatever was sent to it before. So
// only a later record, with the member in sync, makes it acknowledge. A receiver acknowledges commits whenever its own member allows that,
// so the primary must refuse all other members: one that was not reached may still acknowledge as an earlier record allowed.
func admit(c Cluster) Record {
	if len(c.Record.InSync) == 0 || !c.primaryStatus().speaksOurProtocol() {
		return c.Record
	}
	for _, member := range c.replicas() {
		if c.wanted(member) && !c.Record.Allows(member.Name) && member.Status.IsSilent(c.Record) {
			return c.Record.joining(member.Name)
		}
	}
	return c.Record
}

// IsSilent reports whether the member was observed not to acknowledge, after it had accepted an assignment of this very record that does
// not allow it.
func (s *Status) IsSilent(under Record) bool {
	return s.speaksOurProtocol() && s.ObservedUnder == under.Version() && !s.Acknowledging && s.Last != nil && s.Last.Record.Equal(under) && s.Last.Role == RoleReplica && !s.Last.Acknowledge
}

func join(c Cluster) Record {
	for _, member := range c.replicas() {
		if c.wanted(member) && slices.Contains(c.Record.Joining, member.Name) && follows(member, c.Record) {
			return c.Record.with(member.Name)
		}
	}
	return c.Record
}

// follows reports whether the member replicates closely from the primary on record. A member that has not connected to this primary yet may
// still report that it replicates. So it must also have compared its transactions with this primary's: a member in sync that has others
// could not be rebuilt.
func follows(member Member, record Record) bool {
	status := member.Status
	return status.speaksOurProtocol() && status.State == StateReplicating && status.Held.Epoch == record.Epoch && status.Held.Primary == record.Primary &&
		status.ObservedUnder.Epoch == record.Epoch && status.HasNoOthers
}

// raise promises more. What the primary enforces must come from an assignment of this very record: then no assignment that was sent before
// can lower it (order.go), and no member outside of the record can acknowledge.
func raise(c Cluster) Record {
	status := c.primaryStatus()
	if !status.speaksOurProtocol() || status.State != StateWriting || status.ObservedUnder != c.Record.Version() {
		return c.Record
	}
	next := c.Record
	// A number above the connected replicas would degrade the record at once, then be raised again, and so on without end.
	enforced := min(status.acksToCome(), status.AckClients, FullAcks(c.Replicas))
	// Transactions in progress count: a member that has left since may have acknowledged them.
	if enforced > c.Record.RequiredAcks && c.holders(c.Record, status.Executed.Union(status.Pending)) >= enforced {
		return next.promising(enforced)
	}
	return next
}

// acksToCome is how many acknowledgements commits wait for, and will wait for after the primary's next step. The primary may have accepted
// an assignment that requires fewer without having carried it out yet.
func (s Status) acksToCome() int {
	if s.Assignment == nil {
		return 0
	}
	return min(s.AcksEnforced, s.Assignment.Acks)
}
