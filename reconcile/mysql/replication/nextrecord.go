package replication

import (
	"slices"
	"time"
)

// rule looks for one reason to change the record; it returns the record unchanged when it finds none.
type rule func(Cluster) Record

// nextRecord applies the first rule that changes the record: one change, one write, then another look.
func nextRecord(c Cluster) Record {
	rules := []rule{
		firstPrimary, // a new cluster's primary has answered: it is the first member in sync
		fewerMembers, // the user wants fewer members: ask for fewer acknowledgements before any leaves
		degrade,      // too few replicas acknowledge for too long: go on with less, if the user allows it
		leave,        // a member can certainly acknowledge no more
		join,         // a replica has caught up: it may acknowledge from now on
		raise,        // the primary enforces more acknowledgements than promised, and the replicas are there
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
		return next // nobody leaves
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

// leave takes out one member that cannot acknowledge any more. What it held does not count any longer, so the promise shrinks to
// what the others are seen to hold of everything that it may have acknowledged: what the primary had executed after the member
// fell silent, and what was under way there. While enough others are connected they will hold it soon, and the member is let go
// then, without a promise less.
func leave(c Cluster) Record {
	status := c.primaryStatus()
	if !status.understood() {
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

// silent names the replicas in sync that can certainly acknowledge no more.
func (c Cluster) silent() []string {
	var names []string
	for _, name := range c.Record.InSync {
		if name != c.Record.Primary && c.certainlySilent(name) {
			names = append(names, name)
		}
	}
	return names
}

// certainlySilent: a member that the StatefulSet no longer asks for and whose Pod is gone, or one whose data has to be replaced and
// whose acknowledgements are off.
func (c Cluster) certainlySilent(name string) bool {
	member, known := c.member(name)
	if !known || !member.Pod && member.Ordinal >= c.Scale {
		return true
	}
	status := member.Status
	return status.understood() && !status.Acknowledging && (status.Origin.unused() || status.NeedsCopy)
}

// holders counts the replicas in sync that hold all of a set.
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

// follows says whether a member replicates closely from the primary on record.
func follows(member Member, record Record) bool {
	status := member.Status
	return status.understood() && status.State == StateReplicating && status.Held.Epoch == record.Epoch && status.Held.Primary == record.Primary
}

// raise promises more. What the primary enforces must be what it was told under this very record: then nothing that was sent before can
// lower it any more (order.go).
func raise(c Cluster) Record {
	status := c.primaryStatus()
	if !status.understood() || status.State != StateWriting || status.Held.Epoch != c.Record.Epoch || status.Held.Revision != c.Record.Revision {
		return c.Record
	}
	next := c.Record
	// Fewer replicas connected than that would degrade the record at once, and so on for ever.
	enforced := min(status.acksToCome(), status.AckClients, FullAcks(c.Replicas))
	// What is under way counts: it may have the acknowledgement of a member that has left since.
	if enforced > c.Record.RequiredAcks && c.holders(c.Record, status.Executed.Union(status.Pending)) >= enforced {
		next.RequiredAcks = enforced
	}
	return next
}

// acksToCome is how many acknowledgements commits wait for and will go on to wait for, whatever the primary is about to do: an
// assignment that asks for fewer may have been accepted and not been carried out.
func (s Status) acksToCome() int {
	if s.Assignment == nil {
		return 0
	}
	return min(s.AcksEnforced, s.Assignment.Acks)
}
