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
		firstPrimary, // a new cluster's primary takes writes: it is the first member in sync
		fewerMembers, // the user wants fewer members: require fewer acknowledgements before a member leaves
		degrade,      // too few replicas acknowledge for too long: continue with fewer, if the user allows it
		leave,        // a member certainly cannot acknowledge any more
		join,         // a replica has caught up: it may acknowledge from now on
		raise,        // the primary enforces more acknowledgements than promised, and enough replicas hold its data
	}
	for _, apply := range rules {
		if next := apply(c); !next.Equal(c.Record) {
			return next
		}
	}
	return c.Record
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

func fewerMembers(c Cluster) Record {
	next := c.Record
	if primary, _ := c.member(c.Record.Primary); !c.wanted(primary) {
		return next // no member leaves
	}
	next.RequiredAcks = min(next.RequiredAcks, FullAcks(c.Replicas))
	return next
}

func degrade(c Cluster) Record {
	status := c.primaryStatus()
	short := status != nil && status.State == StateWriting && status.AckClients < c.Record.RequiredAcks
	if !short || !c.Durability.Continue || time.Duration(status.AcksShortSeconds)*time.Second < c.Durability.Grace {
		return c.Record
	}
	next := c.Record
	next.RequiredAcks = status.AckClients
	return next
}

// leave removes one member that cannot acknowledge any more. What it held does not count any longer. So RequiredAcks shrinks to the number
// of other replicas that are seen to hold everything that it may have acknowledged. That is what the primary had executed after the member
// fell silent, and what was in progress there. If enough others are connected, they will hold it soon, and the member leaves then, without
// a weaker promise.
func leave(c Cluster) Record {
	status := c.primaryStatus()
	if !status.speaksOurProtocol() {
		return c.Record
	}
	for _, name := range c.silent() {
		next := c.Record.without(name)
		holders := c.holders(next, status.Executed.Union(status.Pending))
		soon := holders < next.RequiredAcks && status.AckClients >= next.RequiredAcks
		if soon || !slices.Contains(status.Silent, name) {
			continue
		}
		next.RequiredAcks = min(next.RequiredAcks, holders)
		return next
	}
	return c.Record
}

// silent names the in-sync replicas that certainly cannot acknowledge any more.
func (c Cluster) silent() []string {
	var names []string
	for _, name := range c.Record.InSync {
		if name != c.Record.Primary && c.certainlySilent(name) {
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

func join(c Cluster) Record {
	for _, member := range c.replicas() {
		if c.wanted(member) && !c.Record.Acknowledges(member.Name) && len(c.Record.InSync) > 0 && follows(member, c.Record) {
			return c.Record.with(member.Name)
		}
	}
	return c.Record
}

// follows reports whether the member replicates closely from the primary on record.
func follows(member Member, record Record) bool {
	status := member.Status
	return status.speaksOurProtocol() && status.State == StateReplicating && status.Held.Epoch == record.Epoch && status.Held.Primary == record.Primary
}

// raise promises more. What the primary enforces must come from an assignment of this very record: then no assignment that was sent before
// can lower it (order.go).
func raise(c Cluster) Record {
	status := c.primaryStatus()
	if !status.speaksOurProtocol() || status.State != StateWriting || status.Held.Epoch != c.Record.Epoch || status.Held.Revision != c.Record.Revision {
		return c.Record
	}
	next := c.Record
	// A number above the connected replicas would degrade the record at once, then be raised again, and so on without end.
	enforced := min(status.acksToCome(), status.AckClients, FullAcks(c.Replicas))
	// Transactions in progress count: a member that has left since may have acknowledged them.
	if enforced > c.Record.RequiredAcks && c.holders(c.Record, status.Executed.Union(status.Pending)) >= enforced {
		next.RequiredAcks = enforced
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
