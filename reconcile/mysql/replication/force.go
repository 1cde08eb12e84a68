package replication

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A user can make a member the primary although acknowledged commits may be missing there: the other members that may have them are lost
// for good. Nothing else gives up an acknowledged commit. The user names the member, and the epoch and the revision of the record, so the
// request holds only for this time. The operator first fences all members that answer, and prefers each way that loses nothing.
//
// The record keeps the epoch in which that happened last (ForcedEpoch). What a member has from before that epoch, and the primary does not
// have, may have been acknowledged. So no agent drops it (IsReplaced): the member counts as errant, and keeps its data.

// names identifies a member in this very record, in requests of users.
func (r Record) names(member string) string {
	return fmt.Sprintf("%s.%d.%d", member, r.Epoch, r.Revision)
}

// asks reports whether a user's request names a member in this record, or in the one before a replacement began.
func (c Cluster) asks(request, member string) bool {
	before := c.Record
	before.Epoch, before.Revision = before.Epoch-1, before.Revision-1
	return request == c.Record.names(member) || c.Record.FormerPrimary != "" && request == before.names(member)
}

// forced is the member that a user makes the primary; isForced is false for none.
func (c Cluster) forced() (named Member, isForced bool) {
	for _, member := range c.Members {
		if c.asks(c.Force, member.Name) {
			return member, true
		}
	}
	return Member{}, false
}

// whyNotForced explains why a member cannot become the primary even at a user's request; empty if it can. What members have changes until
// they have stopped acknowledging. So they are compared only while the next primary is chosen.
func (c Cluster) whyNotForced(member Member) string {
	problem := c.whyUnfit(member)
	if problem != "" || c.Record.FormerPrimary == "" {
		return problem
	}
	for _, other := range c.formerMembers() {
		isFit := (c.whyUnfit(other) == "" || c.mayContinue(other)) && !other.isStuck() || !other.Status.speaksOurProtocol()
		if isFit && hasMore(other, member) {
			return other.Name + " has all that " + member.Name + " has, and more" + c.stopsNever(other)
		}
	}
	return ""
}

// hasMore reports whether a member has all that another one has, and more: transactions, or rows of tables that are not InnoDB.
func hasMore(member, than Member) bool {
	more := worthHaving([]Member{member}).Subtract(than.Status.Received)
	hasRows := member.Status.KnownTablesWithoutRows().Empty() && !than.Status.KnownTablesWithoutRows().Empty()
	return (!more.Empty() || hasRows) && member.Status.Received.Contains(worthHaving([]Member{than}))
}

// stopsNever is what a user can do about a member that answers and has not stopped acknowledging for long; empty for any other.
func (c Cluster) stopsNever(member Member) string {
	if !member.Status.speaksOurProtocol() || c.Record.FormerPrimary != "" && member.UnfencedFor >= fenceWait {
		return "; it does not stop acknowledging: delete its Pod"
	}
	return ""
}

// isStuck reports whether the member cannot apply all that it has received.
func (m Member) isStuck() bool {
	return m.Status.State == StateBroken && !m.Status.Executed.Contains(m.Status.Received)
}

// whyUnfit explains why a member cannot become the primary, whatever others have; empty if it can. One that has lost what it made itself
// would give the same GTIDs to other transactions.
func (c Cluster) whyUnfit(member Member) string {
	switch {
	case c.Record.Primary != "" && len(c.Record.InSync) == 0:
		return c.Record.Primary + " has not taken writes yet"
	case !member.HasReported():
		return member.Name + " does not answer"
	case !member.Status.speaksOurProtocol():
		return "the agent of " + member.Name + " is of another release"
	case member.Status.Origin != OriginMember:
		return "the data of " + member.Name + " is new"
	case c.mayContinue(member):
		return member.Name + " was the primary, and continues by itself if it has everything"
	}
	for _, other := range c.Members {
		has := other.Had
		if other.HasReported() && other.Status.Origin == OriginMember {
			has = other.Status.Received
		}
		if !has.Subtract(member.Status.Received).OfServer(member.Status.ServerUUID).Empty() {
			return member.Name + " has lost transactions that it made itself, and that " + other.Name + " has"
		}
	}
	return ""
}

// mayContinue reports whether a member is the last primary, and may continue without a user.
func (c Cluster) mayContinue(member Member) bool {
	if member.Name != c.Record.lastPrimary() {
		return false
	}
	if c.Record.Primary != "" {
		return !c.hasForgotten(member)
	}
	return c.Record.Acknowledges(member.Name) && !member.Status.IsForgetful
}

// force makes the member that a user names the primary, once all members that answer are fenced. isDone is false if no user asks for that,
// or if it must wait.
func (c Cluster) force() (next Record, isDone bool) {
	named, isForced := c.forced()
	if !isForced || c.whyForceWaits(named) != "" {
		return c.Record, false
	}
	return c.forcedRecord(named), true
}

// whyForceWaits explains why the member that a user names does not become the primary at once; empty if it does.
func (c Cluster) whyForceWaits(named Member) string {
	problem, late, back := c.whyNotForced(named), c.unfenced(named), c.mayReturn()
	switch {
	case problem != "" || c.Record.FormerPrimary == "":
		return problem
	case len(back) > 0:
		return fmt.Sprintf("for %d seconds, these members may be back: %s", int(LostAfter.Seconds()), strings.Join(back, ", "))
	case named.Status.Writable && !slices.Contains(late, named.Name):
		late = added(late, named.Name)
	case len(late) == 0:
		return ""
	}
	return "these members must stop acknowledging commits and taking writes first: " + strings.Join(late, ", ") + c.stopsNever(named)
}

// unfenced names the members that answer and have not stopped acknowledging, or have not closed as the former primary. The choice waits for
// the named one without a limit, and for others for a while.
func (c Cluster) unfenced(named Member) []string {
	var names []string
	for _, member := range c.Members {
		isDue := member.Name == named.Name || member.UnfencedFor < fenceWait && c.isAwaited(member)
		if answers(member) && !member.IsFenced(c.Record) && isDue {
			names = append(names, member.Name)
		}
	}
	return names
}

// isAwaited reports whether the choice of a primary waits for a member that answers. A former primary without its data does not count.
func (c Cluster) isAwaited(member Member) bool {
	return member.Name != c.Record.FormerPrimary || c.Record.Acknowledges(member.Name)
}

// forcedRecord makes the member the primary. Members in sync that were read, and have nothing in addition, stay in sync.
func (c Cluster) forcedRecord(named Member) Record {
	next := Record{Epoch: c.Record.Epoch, Primary: named.Name, InSync: []string{named.Name}, ForcedEpoch: c.Record.Epoch}.after(c.Record)
	holders := 0
	for _, member := range c.witnesses(func(member Member) bool { return answers(member) && member.Status.IsSilent(c.Record) }) {
		if member.Name == named.Name || !named.Status.Received.Contains(member.Status.Received) {
			continue
		}
		next.InSync = added(next.InSync, member.Name)
		if member.Status.Received.Contains(named.Status.Received) {
			holders++
		}
	}
	next.RequiredAcks = min(FullAcks(c.Replicas), holders)
	return next
}

// withForce adds to a note why the member that a user names does not become the primary. It adds which member a user can name, if one that
// is needed has been away for long, or has lost its data.
func (c Cluster) withForce(note *Note) *Note {
	with := *note
	if named, isForced := c.forced(); isForced {
		if with.Refusal = c.whyForceWaits(named); with.Refusal != "" {
			with.Refusal = "a user asks for " + named.Name + ": " + with.Refusal
		}
		if c.whyNotForced(named) == "" && c.stopsNever(named) == "" {
			return &with
		}
	}
	if c.heldLater() != "" || len(c.mayReturn()) > 0 || !c.isLacking() || c.canChoose() || len(c.unfenced(Member{})) > 0 && c.Record.FormerPrimary != "" {
		return &with
	}
	if names := c.forceable(); len(names) > 0 {
		with.Force = c.Record.names(names[0])
	}
	return &with
}

// forceable names the members that a user can make the primary: first those that have stopped acknowledging, whose appliers work, and that
// have all rows.
func (c Cluster) forceable() []string {
	members := slices.DeleteFunc(slices.Clone(c.Members), func(member Member) bool { return c.whyNotForced(member) != "" })
	rank := func(member Member) (rank int) {
		if c.stopsNever(member) != "" {
			rank += 4
		}
		if member.Status.State == StateBroken {
			rank += 2
		}
		if !member.Status.KnownTablesWithoutRows().Empty() {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(members, func(one, other Member) int { return rank(one) - rank(other) })
	names := make([]string, 0, len(members))
	for _, member := range members {
		names = append(names, member.Name)
	}
	return names
}

// canChoose reports whether the next primary can be chosen without a user.
func (c Cluster) canChoose() bool {
	if c.Record.FormerPrimary == "" {
		return false
	}
	_, _, waits := c.successor()
	return waits == nil
}

// isLacking reports whether the last primary or a member in sync is away, or has lost its data.
func (c Cluster) isLacking() bool {
	if c.Record.FormerPrimary != "" && !c.Record.Acknowledges(c.Record.FormerPrimary) {
		return true
	}
	return slices.ContainsFunc(c.Members, func(member Member) bool {
		isNeeded := c.Record.Acknowledges(member.Name) || member.Name == c.Record.lastPrimary()
		return isNeeded && (member.awayFor() > 0 || member.Status.Origin.unused() || member.Status.IsForgetful)
	})
}

// mayReturn names the members in sync that have been away for a short time only.
func (c Cluster) mayReturn() []string {
	var names []string
	for _, member := range c.Members {
		if away := member.awayFor(); c.Record.Acknowledges(member.Name) && away > 0 && away < LostAfter {
			names = append(names, member.Name)
		}
	}
	return names
}

// awayFor is for how long the member's agent, or its mysqld, has not answered; 0 while they answer.
func (m Member) awayFor() time.Duration {
	switch {
	case m.Status == nil:
		return max(m.UnheardFor, 1)
	case !m.HasReported():
		return max(m.Status.UnansweredFor, 1)
	}
	return 0
}

// Lost returns what other members have, or had when this operator heard them last, and the primary of a record lacks. There may be more.
func (c Cluster) Lost(next Record) GTIDSet {
	primary, found := c.member(next.Primary)
	if !found || primary.Status == nil {
		return GTIDSet{}
	}
	all := worthHaving(c.formerMembers())
	for _, member := range c.Members {
		all = all.Union(member.Had)
	}
	return all.Subtract(primary.Status.Received)
}

// Worth is everything that the member reports to have, except transactions of its own that change no row.
func (s Status) Worth() GTIDSet { return s.Received.Subtract(s.Hollow.OfServer(s.ServerUUID)) }

// forcing describes the member that a user makes the primary; empty if no user does.
func (c Cluster) forcing() string {
	named, isForced := c.forced()
	if !isForced || c.whyNotForced(named) != "" {
		return ""
	}
	text := "a user makes " + named.Name + " the primary, although it may lack acknowledged commits"
	if rows := named.Status.KnownTablesWithoutRows(); !rows.Empty() {
		text += ", and lacks the rows of " + rows.First(namedTables).String()
	}
	return text
}
