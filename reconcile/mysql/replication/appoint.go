package replication

import (
	"fmt"
	"strings"
)

// appoint finds the first primary of a cluster whose Record names none: member 0 of a new cluster, or, where volumes of an earlier
// life were found, the member that certainly has all that was ever acknowledged.
func appoint(c Cluster) Decision {
	decision := Decision{Record: c.Record, Scale: max(c.Scale, c.Replicas)}
	if silent := c.silentWithOlderData(true); len(silent) > 0 {
		decision.Note = &Note{ReasonWaitingForMembers, "volumes from before this resource may hold data; waits for their members to answer: " + strings.Join(silent, ", "), false}
		return decision
	}
	former := c.formerMembers()
	leftBehind := c.silentWithOlderData(false)
	if len(former) == 0 && len(leftBehind) == 0 {
		return appointFirst(c, decision)
	}
	held := newestHeld(c.Members)
	chosen, problem := writing(held, former), ""
	if chosen == "" {
		chosen, problem = elect(held, former, leftBehind)
	}
	if problem != "" {
		decision.Note = &Note{ReasonAdoptionBlocked, problem, true}
		return decision
	}
	decision.Record = Record{Epoch: held.Epoch + 1, Revision: c.nextRevision(), Primary: chosen, InSync: []string{chosen}}
	return decision
}

func appointFirst(c Cluster, decision Decision) Decision {
	if len(c.Members) == 0 || !c.Members[0].read() {
		decision.Note = &Note{ReasonWaitingForMembers, "waits for the first member to start", false}
		return decision
	}
	decision.Record = Record{Epoch: newestHeld(c.Members).Epoch + 1, Revision: c.nextRevision(), Primary: c.Members[0].Name}
	return decision
}

// nextRevision is later than any that a member has told of.
func (c Cluster) nextRevision() int64 {
	latest := c.Record.Revision
	for _, member := range c.Members {
		latest = max(latest, member.held().Revision)
	}
	return latest + 1
}

// silentWithOlderData names the members, wanted or not, that may hold data of an earlier life and have not told.
func (c Cluster) silentWithOlderData(wanted bool) []string {
	var names []string
	for _, member := range c.Members {
		if member.OlderData && !member.read() && c.wanted(member) == wanted {
			names = append(names, member.Name)
		}
	}
	return names
}

// read says whether the member has told what it has: its agent answers, and its mysqld answered the agent.
func (m Member) read() bool { return m.Status != nil && m.Status.State != StateStarting }

// formerMembers have been part of a cluster before, and have told what they have.
func (c Cluster) formerMembers() []Member {
	var former []Member
	for _, member := range c.Members {
		if member.read() && member.Status.Origin == OriginMember {
			former = append(former, member)
		}
	}
	return former
}

// newestHeld is the latest record that any member tells of, also one whose own data counts as nothing.
func newestHeld(members []Member) Record {
	var newest Record
	for _, member := range members {
		if !member.read() {
			continue
		}
		if newest.before(member.Status.Held) {
			newest = member.Status.Held
		}
	}
	return newest
}

// writing names the primary that takes writes at this moment although the cluster's record is gone: its resource was deleted without its
// members. It has all that was ever acknowledged, since it acknowledges. A replica that seems to hold more has received what the primary is
// about to execute, or was asked later.
func writing(held Record, former []Member) string {
	for _, member := range former {
		status := member.Status
		if member.Name == held.Primary && status.State == StateWriting && status.HeldRole == RolePrimary && status.Held.Epoch == held.Epoch {
			return member.Name
		}
	}
	return ""
}

// elect chooses the member that holds every transaction that any reachable member holds, hollow ones aside, if enough members of the old
// in-sync set can be read to be certain that nothing acknowledged is missing. Of several, choose decides.
func elect(held Record, former []Member, leftBehind []string) (string, string) {
	all := worthHaving(former)
	// Copies of a primary that was deleted before it took its first write keep a record, and nothing that could be missed.
	unused := len(held.InSync) == 0 && all.Empty() && len(leftBehind) == 0
	if problem := enoughRead(held, former, leftBehind); problem != "" && !unused {
		return "", problem
	}
	var holders []Member
	for _, member := range former {
		if member.Status.Received.Contains(all) {
			holders = append(holders, member)
		}
	}
	if len(holders) == 0 {
		return "", "no member holds every transaction found on the retained volumes, so choosing one would drop data: " + holdings(former)
	}
	chosen := choose(held.Primary, holders)
	if chosen == "" {
		return "", rowsMissing(held.Primary, holders)
	}
	return chosen, ""
}

// worthHaving is everything that members hold, but for transactions that hold nothing: a member that has only those cannot be missed. Each
// speaks of those that it made: another one may hold rows under the same GTID.
func worthHaving(members []Member) GTIDSet {
	var all, hollow GTIDSet
	for _, member := range members {
		all = all.Union(member.Status.Received)
		hollow = hollow.Union(member.Status.Hollow.OfServer(member.Status.ServerUUID))
	}
	return all.Subtract(hollow)
}

// enoughRead checks that the members read intersect every set of members that may have acknowledged a commit (doc.go). Without the
// former primary that holds only if every volume that is there is read: a member that was away keeps an old record, and the
// members that it names may not be the ones that acknowledged last.
func enoughRead(held Record, former []Member, leftBehind []string) string {
	replicasRead := 0
	for _, member := range former {
		if member.Name == held.Primary {
			return ""
		}
		if held.Acknowledges(member.Name) {
			replicasRead++
		}
	}
	switch {
	case len(leftBehind) > 0 && held.Primary == "":
		return fmt.Sprintf("the retained volumes do not tell which of them was the primary's, and these are not part of the cluster as it is asked for: %s; raise spec.replicas so that all are read", strings.Join(leftBehind, ", "))
	case len(leftBehind) > 0:
		return fmt.Sprintf("the data of the former primary %s was not read, and these volumes are not part of the cluster as it is asked for: %s; raise spec.replicas so that all are read, since one of them may have commits that the others lack", held.Primary, strings.Join(leftBehind, ", "))
	case held.Primary == "", held.RequiredAcks > 0 && replicasRead >= len(held.InSync)-held.RequiredAcks:
		return ""
	}
	return fmt.Sprintf("the data of the former primary %s was not found, and the others may lack commits that were acknowledged; restore the volume of %s", held.Primary, held.Primary)
}

func holdings(members []Member) string {
	texts := make([]string, 0, len(members))
	for _, member := range members {
		texts = append(texts, fmt.Sprintf("%s has %q", member.Name, member.Status.Received))
	}
	return strings.Join(texts, ", ")
}
