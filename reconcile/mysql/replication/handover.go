package replication

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A replica takes over from a primary that has failed: it has lost its data, its mysqld does not run, its container restarts, its volume
// fails, or the network cuts it off from its replicas.
// Two records lead there. The first names no primary, and the former one in FormerPrimary. Its epoch is later than any that a member knows,
// so members that have accepted it acknowledge no commit of the former primary any more: they are fenced. RequiredAcks stays as it was, and
// so does InSync, except for a primary that has lost its data. Every acknowledged commit is on RequiredAcks of the other members in sync.
// So if all but RequiredAcks - 1 of them are fenced and read, together they have every acknowledged commit. The second record names the new
// primary: one that has everything that they have.
//
// No member is chosen before the former primary has accepted the first record and certainly takes no writes, its lease has ended
// (lease.go), or a user has said that it need not. If it is back with its data meanwhile, and no other member can take over, it continues.
//
// Any operator can continue from either record.

// replacePrimary begins to replace a primary that has lost its data, if enough members answer. why says what it has lost.
func (c Cluster) replacePrimary(decision Decision, why string) Decision {
	decision.Scale = c.scaleToAnswer()
	if _, problem := c.whyNotReplaced(); problem != "" && !c.mayForce() {
		decision.Note = c.withForce(&Note{Reason: ReasonPrimaryDataLost, Message: why + "; no replica takes over: " + problem, Blocked: true})
		return decision
	}
	decision = c.fence(decision, why)
	decision.Record.InSync = removed(decision.Record.InSync, c.Record.Primary) // its data does not count any more
	return decision
}

// replaceDown begins to replace a primary if enough members answer. Its mysqld does not run, its container restarts, its volume fails
// (disk.go), or the replicas get nothing from it. While its agent does not answer, the operator does so only if the primary has a lease
// (lease.go), or a user asks for it: the agent cannot say whether mysqld still runs.
func (c Cluster) replaceDown(decision Decision) Decision {
	down := cmp.Or(c.primaryDown().Message, c.primaryRestarts().Message, c.primaryCutOff().Message, c.primaryLost().Message, c.primaryVolume().Message)
	gone := c.primaryGone().Message
	if down == "" && gone == "" {
		return decision
	}
	problem := c.whyNotNow(down)
	switch {
	case c.mayForce():
		return c.fence(decision, cmp.Or(down, gone)+", and a user asked for another one")
	case problem != "":
		decision.Note = &Note{Reason: ReasonPrimaryDown, Message: cmp.Or(down, gone) + "; no replica takes over: " + problem}
		if _, unsafe := c.whyNotReplaced(); unsafe != "" {
			decision.Note = c.withForce(decision.Note)
		}
		return decision
	case down == "" && !c.isRequested():
		message := gone + ", so the operator cannot know whether it still runs; a replica can take over without the loss of an acknowledged commit"
		decision.Note = &Note{Reason: ReasonPrimaryDown, Message: message, Request: c.Record.names(c.Record.Primary)}
		return decision
	}
	return c.fence(decision, cmp.Or(down, gone+", and a user asked for it"))
}

// scaleToAnswer is how many members the StatefulSet has while the primary is down or being replaced. A user may bring members back that
// must answer. If scaling in has just removed members in sync, and the others that answer are too few, the operator brings them back.
func (c Cluster) scaleToAnswer() int {
	scale, others := max(c.Scale, c.Replicas), removed(c.Record.InSync, c.Record.lastPrimary())
	if c.tooFew(c.witnesses(answers)) == "" || len(others) < c.Record.witnessesNeeded() {
		return scale
	}
	for _, member := range c.Members {
		if c.Record.Acknowledges(member.Name) {
			scale = max(scale, member.Ordinal+1)
		}
	}
	return scale
}

// whyNotNow returns why no replica takes over now from a primary that is down; empty if one does. A primary that is only gone may be
// replaced later.
func (c Cluster) whyNotNow(down string) string {
	if _, problem := c.whyNotReplaced(); problem != "" || down == "" {
		return problem
	}
	name, problem := c.soonest()
	if down == c.primaryVolume().Message {
		problem = cmp.Or(problem, c.noBetterVolume(name), c.cannotFence(func(s Status) bool { return !s.Probe.IsSound() }))
	}
	return cmp.Or(problem, c.cannotFence(Status.hasVolumeFailed))
}

// isRequested reports whether a user asks to replace the primary of this record.
func (c Cluster) isRequested() bool { return c.asks(c.Request, c.Record.lastPrimary()) }

// mayForce reports whether a user asks for another primary, and can have it.
func (c Cluster) mayForce() bool {
	named, isForced := c.forced()
	return isForced && c.whyNotForced(named) == "" && c.heldLater() == ""
}

// fence returns the first record of a replacement. why says what is wrong with the primary.
func (c Cluster) fence(decision Decision, why string) Decision {
	next := c.Record
	next.Epoch, next.Revision = max(c.Record.Epoch, newestHeld(c.Members).Epoch)+1, c.nextRevision()
	next.FormerPrimary, next.Primary, next.Joining = c.Record.Primary, "", nil
	decision.Record, decision.Note = next, next.replacing(why)
	return decision
}

// replacing returns what users read while the next primary is chosen.
func (r Record) replacing(waits string) *Note {
	return &Note{Reason: ReasonReplacingPrimary, Message: "another member takes over from " + r.FormerPrimary + ": " + waits}
}

// soonest names the member that would take over. problem is why it could not lead at once; empty if it can. A primary that is only down may
// be back sooner.
func (c Cluster) soonest() (name, problem string) {
	witnesses := c.bySuitability(c.witnesses(answers))
	name, undecided := electFrom(c.Record.Primary, witnesses)
	if undecided = cmp.Or(undecided, ownAmong(witnesses)); undecided != "" {
		return "", undecided
	}
	chosen, _ := c.member(name)
	switch {
	case chosen.Status.State == StateBroken:
		return name, "the applier of " + name + ", which has everything, has failed"
	case !chosen.Status.Executed.Contains(chosen.Status.Received):
		return name, name + ", which has everything, has not applied all of it yet"
	}
	return name, ""
}

// mostUnapplied is how many transactions a replica applies in a second or two, if each is small.
const mostUnapplied = 1000

// MostHeld is for how long a primary that has crashed waits for a replica that applies what it has received. Then its mysqld starts.
const MostHeld = 3 * time.Second

// holdsStart reports whether the primary waits before its mysqld starts after a crash, and a replica will soon have applied what it
// received. The primary waits until the operator assigns it its role.
func (c Cluster) holdsStart() bool {
	if _, problem := c.whyNotReplaced(); problem != "" || !c.isReplacedAtOnce() || c.primaryStatus().UnansweredFor >= MostHeld {
		return false
	}
	name, _ := c.soonest()
	candidate, found := c.member(name)
	if !found || candidate.Status.State == StateBroken {
		return false
	}
	return candidate.Status.Received.Subtract(candidate.Status.Executed).Count() <= mostUnapplied
}

// ownAmong explains that a member alone has transactions that were made on it, which would spread if it took over; empty if none has. What
// its primary also had may spread. Its agent may still have to judge whether the rest changes a row.
func ownAmong(members []Member) string {
	for _, member := range members {
		own := worthHaving([]Member{member}).OfServer(member.Status.ServerUUID).Subtract(member.Status.Shared)
		for _, other := range members {
			if other.Name != member.Name {
				own = own.Subtract(other.Status.Received)
			}
		}
		if len(members) > 1 && !own.Empty() {
			return fmt.Sprintf("%s alone has %d transactions that were made on it (%s)", member.Name, own.Count(), own)
		}
	}
	return ""
}

// witnesses are the members other than the former primary that may have acknowledged its commits, and certainly have what they
// acknowledged.
func (c Cluster) witnesses(isReady func(Member) bool) []Member {
	var found []Member
	for _, member := range c.Members {
		mayAcknowledge := member.Name != c.Record.lastPrimary() && c.Record.Acknowledges(member.Name)
		if mayAcknowledge && isReady(member) && member.Status.Origin == OriginMember && !member.Status.IsForgetful {
			found = append(found, member)
		}
	}
	return found
}

// tooFew explains that too few members are certain to have every acknowledged commit; empty if they are enough.
func (c Cluster) tooFew(witnesses []Member) string {
	need := c.Record.witnessesNeeded()
	if len(witnesses) >= need {
		return ""
	}
	names := make([]string, 0, len(witnesses))
	for _, member := range witnesses {
		names = append(names, member.Name)
	}
	are := "none is"
	if len(names) > 0 {
		are = "so far: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("to have every acknowledged commit for certain, %d of the other members in sync must answer, and not have lost what they acknowledged; %s", need, are)
}

// handOver fences the members and chooses the new primary.
func handOver(c Cluster) Decision {
	decision := Decision{Record: c.Record, Scale: c.scaleToAnswer()}
	if name := c.heldLater(); name != "" {
		member, _ := c.member(name)
		decision.Note = heldLaterNote(member, c.Record)
		return decision
	}
	decision.Assignments = fences(c)
	former, _ := c.member(c.Record.FormerPrimary)
	if note := c.notClosed(former); note != nil {
		decision.Note = c.withForce(note)
		return decision
	}
	chosen, witnesses, note := c.successor()
	switch {
	case note == nil:
		decision.Record = c.chosenRecord(chosen, witnesses)
		decision.Note = c.Record.replacing(chosen + " becomes the primary")
	case former.isClosedUnder(c.Record) && c.isBack(former) && len(c.notFenced()) == 0:
		decision.Record = c.Record.resumed()
		decision.Note = c.Record.replacing("it is back, and continues")
	default:
		var isForced bool
		if decision.Record, isForced = c.force(); !isForced {
			decision.Note = c.withForce(note)
			return decision
		}
		decision.Note = c.Record.replacing(c.forcing())
	}
	decision.Assignments = nil
	return decision
}

// successor chooses the new primary among the witnesses. note says what that waits for; nil if one is chosen.
func (c Cluster) successor() (chosen string, witnesses []Member, note *Note) {
	witnesses = c.witnesses(func(member Member) bool { return member.HasReported() && member.Status.IsSilent(c.Record) })
	problem := c.tooFew(witnesses)
	if late := c.notFenced(); problem == "" && len(late) > 0 {
		problem = "members that answer, and may still acknowledge: " + strings.Join(late, ", ")
	}
	if problem != "" {
		return "", nil, c.Record.replacing(problem)
	}
	chosen, undecided := electFrom(c.Record.FormerPrimary, c.bySuitability(witnesses))
	if undecided = cmp.Or(undecided, ownAmong(witnesses)); undecided != "" {
		problem = "no member can: " + undecided
		if c.Record.Acknowledges(c.Record.FormerPrimary) { // otherwise it has lost its data, and cannot continue
			problem += ". To continue, bring " + c.Record.FormerPrimary + " back with its data"
		}
		note = c.Record.replacing(problem)
		note.Blocked = true
		return "", nil, note
	}
	return chosen, witnesses, nil
}

// notClosed explains that the former primary may still take writes; nil if it takes none, or a user has asked not to wait for it.
func (c Cluster) notClosed(former Member) *Note {
	isLate := former.Status == nil && former.UnheardFor >= LostAfter || former.UnfencedFor >= LostAfter
	hasLostData := !c.Record.Acknowledges(c.Record.FormerPrimary) // its agent does not let it take writes
	if hasLostData || former.isClosedUnder(c.Record) || c.leaseHasEnded() || isLate && (c.isRequested() || c.mayForce()) {
		return nil
	}
	return c.waitsForClosed(isLate)
}

// waitsForClosed is what users read meanwhile. What they may ask for would not help sooner than the end of a lease.
func (c Cluster) waitsForClosed(isLate bool) *Note {
	const waits = "its agent must answer, and see that its mysqld takes no writes"
	former, _ := c.member(c.Record.FormerPrimary)
	switch {
	case c.Record.LeaseLasts > 0 && max(former.UnheardFor, former.UnfencedFor) < LostAfter+c.Record.leaseLimit():
		return c.Record.replacing(fmt.Sprintf("%s, or %d seconds must pass, after which it has certainly stopped by itself", waits, roundUp(c.Record.leaseLimit())))
	case isLate:
		note := c.Record.replacing(waits)
		note.Request = c.Record.names(c.Record.FormerPrimary)
		return note
	}
	return c.Record.replacing(waits)
}

// isClosedUnder reports whether the member has accepted this very record, and certainly takes no writes since.
func (m Member) isClosedUnder(record Record) bool {
	return m.Status.speaksOurProtocol() && m.Status.Closed != nil && *m.Status.Closed == record.Version()
}

// IsFenced reports whether a member has stopped acknowledging under a record without a primary and, if it is the former primary, takes no
// writes.
func (m Member) IsFenced(under Record) bool {
	return m.Status.IsSilent(under) && (m.Name != under.FormerPrimary || m.isClosedUnder(under))
}

// isBack reports whether the former primary, which is closed, has everything that was ever acknowledged. One that came back without its
// data may have an older copy of it by now, and the members that would show that may not answer.
func (c Cluster) isBack(former Member) bool {
	if !c.Record.Acknowledges(former.Name) || !former.HasReported() || former.Status.Origin != OriginMember || !former.Status.IsSilent(c.Record) {
		return false
	}
	return c.Record.isWhole(former, c.formerMembers())
}

// resumed makes the former primary the primary again. Members in sync have what they had.
func (r Record) resumed() Record {
	r.Primary, r.FormerPrimary, r.LeaseLasts = r.FormerPrimary, "", 0
	return r.after(r)
}

// bySuitability sorts members that may become the primary. An applier that has failed, or a volume that takes no writes, counts most. Then
// come whether the user wants the member, whether the others can follow its MySQL, whether its container restarts, and what it must apply.
func (c Cluster) bySuitability(members []Member) []Member {
	sorted := slices.Clone(members)
	rank := func(member Member) (int, int64) {
		rank := 0
		if member.Status.State == StateBroken {
			rank += 8
		}
		if member.Status.hasPoorVolume() {
			rank += 8
		}
		if !c.wanted(member) {
			rank += 4
		}
		if slices.ContainsFunc(members, func(other Member) bool { return IsOlderSeries(other.Status.Version, member.Status.Version) }) {
			rank += 2 // MySQL supports no replica that is older than its source (manual, "Replication Compatibility Between MySQL Versions")
		}
		if member.Status.IsRestarting {
			rank++ // it can lead in its next container
		}
		return rank, member.Status.Received.Subtract(member.Status.Executed).Count()
	}
	slices.SortStableFunc(sorted, func(one, other Member) int {
		oneRank, oneLag := rank(one)
		otherRank, otherLag := rank(other)
		return cmp.Or(cmp.Compare(oneRank, otherRank), cmp.Compare(oneLag, otherLag))
	})
	return sorted
}

// fenceWait is how long the choice of a primary waits for members that answer, and do not stop acknowledging, although enough others did.
const fenceWait = 10 * time.Second

// notFenced names the members in sync that answer and may still acknowledge. One that is left out may have received what no other member
// has, and could then not follow the new primary.
func (c Cluster) notFenced() []string {
	var names []string
	for _, member := range c.Members {
		mayAcknowledge := member.Name != c.Record.FormerPrimary && c.Record.Acknowledges(member.Name)
		if mayAcknowledge && member.HasReported() && member.Status.speaksOurProtocol() && !member.Status.IsSilent(c.Record) && member.UnfencedFor < fenceWait {
			names = append(names, member.Name)
		}
	}
	return names
}

// fences assigns every member that answers to follow no member, and to acknowledge nothing.
func fences(c Cluster) map[string]Assignment {
	all := map[string]Assignment{}
	for _, member := range c.Members {
		if member.Status == nil || !member.Status.keepsWhatIsForgotten(c.Record) {
			continue
		}
		all[member.Name] = Assignment{Protocol: Protocol, Cluster: c.UID, Record: c.Record, Role: RoleReplica, Boot: member.Status.Boot, InSync: c.Record.Acknowledges(member.Name), SourcePort: c.Port, Events: c.eventsFor(*member.Status)}
	}
	return all
}

// chosenRecord makes the member the primary. The others that were read stay in sync. What the record promises is what they have.
func (c Cluster) chosenRecord(chosen string, witnesses []Member) Record {
	next := Record{Epoch: c.Record.Epoch, Primary: chosen, ForcedEpoch: c.Record.ForcedEpoch}.after(c.Record)
	all, holders := worthHaving(witnesses), 0
	for _, member := range witnesses {
		next.InSync = added(next.InSync, member.Name)
		if member.Name != chosen && member.Status.Received.Contains(all) {
			holders++
		}
	}
	next.RequiredAcks = min(FullAcks(c.Replicas), holders)
	return next
}
