package replication

import (
	"fmt"
	"slices"
	"strings"
)

// appoint chooses the first primary of a cluster whose Record names none. That is member 0 of a new cluster. If there are volumes of an
// earlier cluster, it is the member that certainly has everything that was ever acknowledged.
func appoint(c Cluster) Decision {
	decision := Decision{Record: c.Record, Scale: max(c.Scale, c.Replicas)}
	if silent := c.silentWithOlderData(true); len(silent) > 0 {
		decision.Note = &Note{Reason: ReasonWaitingForMembers, Message: "volumes older than this resource may hold data; the operator waits for their members to answer: " + strings.Join(silent, ", ")}
		return decision
	}
	former := c.formerMembers()
	leftBehind := c.silentWithOlderData(false)
	if len(former) == 0 && len(leftBehind) == 0 {
		return appointFirst(c, decision)
	}
	held := newestHeld(c.Members)
	chosen, problem := writingPrimary(held, former), ""
	if chosen == "" {
		chosen, problem = elect(held, former, leftBehind)
	}
	if problem != "" {
		decision.Note = &Note{Reason: ReasonAdoptionBlocked, Message: problem, Blocked: true}
		return decision
	}
	decision.Record = Record{Epoch: held.Epoch + 1, Revision: c.nextRevision(), Primary: chosen, InSync: []string{chosen}, ForcedEpoch: held.ForcedEpoch}
	return decision
}

func appointFirst(c Cluster, decision Decision) Decision {
	if len(c.Members) == 0 || !c.Members[0].HasReported() {
		decision.Note = &Note{Reason: ReasonWaitingForMembers, Message: "the operator waits for the first member to start"}
		return decision
	}
	held := newestHeld(c.Members)
	decision.Record = Record{Epoch: held.Epoch + 1, Revision: c.nextRevision(), Primary: c.Members[0].Name, ForcedEpoch: held.ForcedEpoch}
	return decision
}

// nextRevision is later than any revision that a member has reported.
func (c Cluster) nextRevision() int64 {
	latest := c.Record.Revision
	for _, member := range c.Members {
		latest = max(latest, member.held().Revision)
	}
	return latest + 1
}

// silentWithOlderData names the members, wanted or not, that may hold data of an earlier cluster and have not reported it.
func (c Cluster) silentWithOlderData(wanted bool) []string {
	var names []string
	for _, member := range c.Members {
		if member.OlderData && !member.HasReported() && c.wanted(member) == wanted {
			names = append(names, member.Name)
		}
	}
	return names
}

// HasReported reports whether the member has reported what it has: its agent answers, and its mysqld answered the agent.
func (m Member) HasReported() bool { return m.Status != nil && m.Status.State != StateStarting }

// formerMembers have been part of a cluster before, and have reported what they have.
func (c Cluster) formerMembers() []Member {
	var former []Member
	for _, member := range c.Members {
		if member.HasReported() && member.Status.Origin == OriginMember {
			former = append(former, member)
		}
	}
	return former
}

// newestHeld is the latest record that any member reports, including members whose own data does not count.
func newestHeld(members []Member) Record {
	var newest Record
	for _, member := range members {
		if !member.HasReported() {
			continue
		}
		if newest.before(member.Status.Held) {
			newest = member.Status.Held
		}
	}
	return newest
}

// writingPrimary names the primary that takes writes now, or is about to (Reopens), although the cluster's record is gone: its resource was
// deleted without its members. It has everything that was ever acknowledged, because every commit is made there. A replica that seems to
// hold more has received what the primary is about to execute, or was observed later.
func writingPrimary(held Record, former []Member) string {
	for _, member := range former {
		status := member.Status
		takes := status.State == StateWriting || status.Reopens()
		if member.Name == held.Primary && takes && status.HeldRole == RolePrimary && status.Held.Epoch == held.Epoch {
			return member.Name
		}
	}
	return ""
}

// elect chooses a member that holds every transaction, apart from hollow ones, that any reachable member holds. It does so only if enough
// members of the old in-sync set are readable to be certain that no acknowledged transaction is missing.
func elect(held Record, former []Member, leftBehind []string) (string, string) {
	// Copies of a primary that was deleted before its first write hold a record, and no data that could be lost.
	unused := len(held.InSync) == 0 && worthHaving(former).Empty() && len(leftBehind) == 0
	if problem := enoughRead(held, former, leftBehind); problem != "" && !unused {
		return "", problem
	}
	return electFrom(held.lastPrimary(), former)
}

// isElected reports whether a primary that is in doubt could be chosen once more. Members keep the record by which it was chosen: they are
// assigned nothing meanwhile (assignments). If they have accepted the next one, it was in no doubt when it was chosen.
func (c Cluster) isElected(primary Member) bool {
	if len(c.silentWithOlderData(true)) > 0 {
		return false // it may hold a later record than all others, or what the primary has forgotten
	}
	former := c.formerMembers()
	_, problem := elect(newestHeld(c.Members), former, c.silentWithOlderData(false))
	return problem == "" && primary.HasReported() && primary.Status.Received.Contains(worthHaving(former))
}

// electFrom chooses a member that holds every transaction, apart from hollow ones, that any of these members holds. If there are several
// such members, choose decides.
func electFrom(lastPrimary string, members []Member) (chosen, problem string) {
	all := worthHaving(members)
	var holders []Member
	for _, member := range members {
		if member.Status.Received.Contains(all) {
			holders = append(holders, member)
		}
	}
	if len(holders) == 0 {
		return "", "no member holds every transaction found on the retained volumes, so choosing one would drop data: " + holdings(members)
	}
	if chosen = choose(lastPrimary, holders); chosen == "" {
		return "", rowsMissing(lastPrimary, holders)
	}
	return chosen, ""
}

// worthHaving is everything that members hold, except transactions that change no row: a member that has only those can be lost. Each
// member judges only those that it made, because another member may hold rows under the same GTID.
func worthHaving(members []Member) GTIDSet {
	var all, hollow GTIDSet
	for _, member := range members {
		all = all.Union(member.Status.Received)
		hollow = hollow.Union(member.Status.Hollow.OfServer(member.Status.ServerUUID))
	}
	return all.Subtract(hollow)
}

// enoughRead checks that the readable members intersect every set of members that may have acknowledged a commit (doc.go). If the former
// primary is not readable, that holds only if every existing volume is readable: a member that was away holds an old record, and the
// members that this record names may not be the ones that acknowledged last. A member that is not read may have replaced a primary that is:
// a user can make any the next one (force.go).
func enoughRead(held Record, former []Member, leftBehind []string) string {
	replicasRead := 0
	for _, member := range former {
		if held.isWhole(member, former) && len(leftBehind) == 0 {
			return ""
		}
		if member.Name != held.FormerPrimary && held.Acknowledges(member.Name) && !member.Status.IsForgetful {
			replicasRead++
		}
	}
	switch {
	case len(leftBehind) > 0:
		return notRead(held, former, strings.Join(leftBehind, ", "))
	case held.lastPrimary() == "", held.RequiredAcks > 0 && replicasRead >= held.witnessesNeeded():
		return ""
	}
	return fmt.Sprintf("the data of the former primary %s was not found, and acknowledged commits may be missing on the others%s; restore the volume of %s", held.lastPrimary(), forgetful(former), held.lastPrimary())
}

// notRead explains that the members that spec.replicas does not include must be read.
func notRead(held Record, read []Member, members string) string {
	former, all := held.lastPrimary(), "spec.replicas does not include these members"
	switch {
	case former == "":
		return fmt.Sprintf("the retained volumes do not show which of them was the primary's, and %s: %s; raise spec.replicas so that all are read", all, members)
	case slices.ContainsFunc(read, func(member Member) bool { return held.isWhole(member, read) }):
		return fmt.Sprintf("%s was the primary, and %s, which may have replaced it: %s; raise spec.replicas so that all are read", former, all, members)
	}
	return fmt.Sprintf("the data of the former primary %s was not read, and %s: %s; raise spec.replicas so that all are read, because one of them may have commits that are missing on the others", former, all, members)
}

// isWhole reports whether the member has everything that was ever acknowledged: it was the last primary, and is in no doubt. One that was
// being replaced must have its volume again, and not an older copy of it: it has all of its own transactions that others have.
func (r Record) isWhole(member Member, all []Member) bool {
	if member.Name != r.lastPrimary() || r.isInDoubt(member) {
		return false
	}
	if r.FormerPrimary == "" {
		return true
	}
	own := member.Status.Received.Union(member.Status.Pending)
	lacks := slices.ContainsFunc(all, func(other Member) bool {
		return !other.Status.Received.OfServer(member.Status.ServerUUID).Subtract(own).Empty()
	})
	return !lacks && !member.Status.IsForgetful
}

// forgetful names the members that may have lost transactions; empty if there are none.
func forgetful(members []Member) string {
	var names []string
	for _, member := range members {
		if member.Status.IsForgetful {
			names = append(names, member.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", because these members may have lost what they acknowledged (their machines failed before their relay logs were on disk, or mysqld deleted them): " + strings.Join(names, ", ")
}

func holdings(members []Member) string {
	texts := make([]string, 0, len(members))
	for _, member := range members {
		texts = append(texts, fmt.Sprintf("%s has %q", member.Name, member.Status.Received))
	}
	return strings.Join(texts, ", ")
}
