package replication

import (
	"cmp"
	"fmt"
	"slices"
)

// Donors. A member that needs a copy reads all data of another one. That loads the other's disk for as long as the copy takes, and the
// primary has clients. So the operator names a replica as the donor where one is certain to do; otherwise the member copies the primary.
//
// A replica has less than the primary, but a copy of it is as good if the following holds:
//
//   - Everything that the member has is on the primary (attachStep), and the record does not rely on the member (cloneStep). A copy of the
//     primary needs that, too. The donor itself need not have it.
//   - The member can follow the primary afterwards: the donor has executed all that the primary has purged. What the donor has only
//     received is not in a copy, and comes from the primary later.
//   - The donor has nothing that the primary does not have, or a copy would spread that. Hollow transactions count as well: only the
//     member that made them can tell that they are hollow.
//   - No rows are missing in the donor. A copy shows only which of its own tables are not InnoDB.
//
// The operator chooses by what members report. The agent looks at donor and primary once more before it gives up its data (Problem).

// Donor is the replica whose data a member copies. UUID is its server_uuid, which changes if a copy replaces its data.
type Donor struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	UUID    string `json:"uuid"`
}

// SeenDonor is what an agent saw of a donor. Host is the name by which the server knows itself (report_host). Primary means that clients
// can write there. Pending is gtid_owned, read before Executed.
type SeenDonor struct {
	Host                string
	ServerUUID, Version string
	Primary             bool
	Executed, Pending   GTIDSet
}

// Problem says why a member of this MySQL version must not copy the donor; empty if it may. The agent looked at the primary, then at the
// donor, and then at the primary again.
func (d Donor) Problem(version string, before Source, seen SeenDonor, after Source) string {
	missing := after.Purged.Subtract(seen.Executed)
	alone := Errant(seen.Executed.Union(seen.Pending), after).Subtract(after.Pending)
	switch {
	case seen.Host != d.Host || seen.ServerUUID != d.UUID:
		return fmt.Sprintf("the server at %s is %q with the server_uuid %s: the Pod has another address by now, or its data was replaced", d.Address, seen.Host, seen.ServerUUID)
	case seen.Primary:
		return "it takes writes"
	case seen.Version != version:
		return fmt.Sprintf("it runs MySQL %s, and this member %s", seen.Version, version)
	case before.ServerUUID != after.ServerUUID:
		return "the primary's data was replaced meanwhile"
	case !missing.Empty():
		return fmt.Sprintf("it has not applied transactions that the primary could not send again: %s", missing)
	case !alone.Empty():
		return fmt.Sprintf("it has transactions that the primary does not have: %s", alone)
	}
	return ""
}

// donorLag is how many seconds a donor may be behind.
const donorLag = 10

// donors names a donor for each member that is not in sync. A member without one copies the primary.
func donors(c Cluster) map[string]*Donor {
	able := c.ableDonors()
	chosen := map[string]*Donor{}
	for _, member := range c.recipients() {
		donor := member.donor(able, c.Port)
		if donor == nil {
			continue
		}
		chosen[member.Name] = donor
		able = slices.DeleteFunc(able, func(other Member) bool { return other.Name == donor.Name }) // MySQL sends one copy at a time
	}
	return chosen
}

// recipients are the members that may need a copy: those that copy come first, because they keep their donors, then those that certainly
// need one. The record relies on none of them.
func (c Cluster) recipients() []Member {
	all := slices.DeleteFunc(c.replicas(), func(m Member) bool {
		return m.Status == nil || !m.Status.TakesDonor || c.Record.Acknowledges(m.Name)
	})
	rank := func(m Member) int {
		switch {
		case m.Status.CloneProgress != nil:
			return 0
		case m.Status.NeedsCopy, m.Status.Origin.unused():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(one, other Member) int { return cmp.Compare(rank(one), rank(other)) })
	return all
}

// donor chooses the member's donor; nil for the primary. It keeps the last one if it can. A copy that runs continues whatever the operator
// says. After a failure with one donor the member tries another one, and the primary after all of them.
func (m Member) donor(able []Member, port int) *Donor {
	var last *Donor
	if m.Status.Assignment != nil {
		last = m.Status.Assignment.Donor
	}
	if m.Status.CloneProgress != nil {
		return last
	}
	var best *Donor
	for _, from := range able {
		version := m.Status.Version
		if slices.Contains(m.Status.TriedDonors, from.Name) || version != "" && version != from.Status.Version {
			continue
		}
		donor := Donor{Name: from.Name, Host: from.Host, Address: from.Address, Port: port, UUID: from.Status.ServerUUID}
		if last != nil && donor == *last {
			return last
		}
		best = cmp.Or(best, &donor)
	}
	return best
}

// ableDonors are the replicas that can be donors, the best first. The one that would take over from the primary comes last, the others in
// the order of their lag.
func (c Cluster) ableDonors() []Member {
	primary := c.primaryStatus()
	if primary == nil || primary.State != StateWriting {
		return nil
	}
	able := slices.DeleteFunc(c.replicas(), func(m Member) bool { return !c.canDonate(m) })
	if len(able) < 2 {
		return able
	}
	able = c.bySuitability(able)
	able = append(able[1:], able[0])
	slices.SortStableFunc(able[:len(able)-1], func(one, other Member) int {
		return cmp.Compare(*one.Status.LagSeconds, *other.Status.LagSeconds)
	})
	return able
}

// canDonate reports whether a replica is certain to do as a donor, as far as the operator knows. MySQL writes to the donor's volume while
// it copies, so that must work and have room.
func (c Cluster) canDonate(m Member) bool {
	if m.Address == "" || !c.wanted(m) || !c.Record.Acknowledges(m.Name) || !follows(m, c.Record) || !m.Status.hasAllRows() || m.Status.RefusesClients {
		return false
	}
	isClose := m.Status.LagSeconds != nil && *m.Status.LagSeconds <= donorLag
	return isClose && m.Status.Hollow.Empty() && m.Status.Disk.Level == DiskRoomy && m.Status.Probe.IsSound()
}

// hasAllRows reports whether the member certainly has all rows of what it has executed.
func (s *Status) hasAllRows() bool {
	hasRows := s.TablesWithoutRows != nil && s.TablesWithoutRows.Empty()
	return hasRows && s.ServerUUID != "" && s.Origin == OriginMember && !s.NeedsCopy && !s.IsForgetful
}
