package replication

import (
	"fmt"
	"time"
)

// Hollow transactions. A replica gets GTIDs of its own although no client writes there: FLUSH STATUS of a monitoring account, ANALYZE
// TABLE, or the TRUNCATE that mysqld itself runs when a MEMORY table is first used after a start. Such a transaction changes no row. It
// must not count in decisions that rely on a member's transactions, and must not be taken for a write:
//
//   - The agent judges by what is in its own binary log (reconcile/mysql/mysqld/logbook.go), as soon as the member has transactions of its
//     own (ToInspect). A transaction that it does not understand, or does not find, is not hollow. What the member has only received, it
//     applies first (applyErrant).
//   - The member continues to replicate and to serve (markErrant, attachStep). It reports its hollow transactions that are missing on its
//     primary.
//   - The operator asks the primary to commit empty transactions with those GTIDs (Matching), so that both have the same set again.
//   - If there is no primary to compare with, hollow transactions neither qualify nor disqualify a member in an election (elect).
//
// A GTID identifies one content everywhere and forever. An empty transaction in place of a hollow one respects that, because neither has
// content.

// judgeUnassigned is for how long a member that may have been a primary waits for its assignment before it judges its own transactions. The
// transactions of a primary are its writes, and reading them would delay its taking writes again.
const judgeUnassigned = 3 * time.Second

// MostHollow is how many transactions one request may match, and how many of its own a member judges while it knows no primary.
const MostHollow = 1000

// judgeShared is for how long a member that is no longer connected to a primary does not judge what that primary had, too. A former primary
// would read all that it wrote, and delay its own election by that.
const judgeShared = 30 * time.Second

// ToInspect returns the transactions whose content matters: those of a replica that are missing on its primary or, while it knows no
// primary, the latest of its own. Transactions in progress on the primary are judged as well, because they count for a member that needs a
// copy. A transaction that is only received is not in the binary log yet.
func ToInspect(local Observed) GTIDSet {
	server := local.Server
	switch {
	case !server.SuperReadOnly:
		return GTIDSet{}
	case local.Assignment != nil && local.Assignment.Role == RoleReplica && local.sourceObserved():
		return Errant(server.Executed, *local.Source)
	case local.Assignment != nil && local.Assignment.Role == RoleReplica && local.Known != nil:
		return local.Errant.Both(server.Executed)
	case local.DisconnectedFor < judgeShared:
		return latestOwn(local).Subtract(local.WasShared)
	}
	return latestOwn(local)
}

// latestOwn returns the latest transactions of the member's own if it is a replica and knows no primary; otherwise it returns none.
func latestOwn(local Observed) GTIDSet {
	isReplica := local.Assignment != nil && local.Assignment.Role == RoleReplica ||
		local.Assignment == nil && (local.HeldRole == RoleReplica || local.Unassigned >= judgeUnassigned)
	if !isReplica || !local.Server.SuperReadOnly {
		return GTIDSet{}
	}
	return local.Server.Executed.OfServer(local.Server.ServerUUID).Latest(MostHollow)
}

// hollowToReport returns the hollow transactions that a replica reports: those that its primary neither has nor has in progress or, while
// it knows no primary, all that are judged. An election needs the latter. When there is a primary again, matching leaves out those that it
// already has.
func hollowToReport(local Observed, errant GTIDSet) GTIDSet {
	if local.sourceObserved() || local.Known != nil {
		return errant.Both(local.Hollow)
	}
	return latestOwn(local).Both(local.Hollow)
}

// HasNothingOwn reports whether a running replica certainly has no transactions that are missing on its primary.
func HasNothingOwn(local Observed) bool {
	a, server := local.Assignment, local.Server
	if a == nil || a.Role != RoleReplica || server.Channel.IO != "Yes" || !server.Channel.follows(*a) {
		return false
	}
	seen := local.Known
	if local.Source != nil {
		seen = local.Source
	}
	return seen != nil && seen.Err == "" && Errant(server.Executed, *seen).Empty()
}

// Matching asks the primary to commit empty transactions with the GTIDs of hollow ones. It is not part of an assignment: no decision relies
// on it, so it needs no place in the order of records.
//
// A late or repeated request is harmless. The primary skips what is committed already, and refuses a request of an earlier start or epoch.
// If the request arrives in the very moment in which the start or epoch ends, its GTIDs still name transactions without content, here as on
// the member that made them.
type Matching struct {
	Epoch   int64   `json:"epoch"`
	Primary string  `json:"primary"`
	Boot    string  `json:"boot"`
	GTIDs   GTIDSet `json:"gtids"`
}

// RefusedMatchingError says why a primary does not match hollow transactions.
type RefusedMatchingError struct{ Reason string }

func (e *RefusedMatchingError) Error() string {
	return "refuse to match hollow transactions: " + e.Reason
}

// AcceptMatching decides whether a member with this status accepts the request. It returns nil, or a RefusedMatchingError with the reason.
func AcceptMatching(now Status, asked Matching) error {
	refuse := func(reason string) error { return &RefusedMatchingError{reason} }
	switch {
	case now.HeldRole != RolePrimary || now.Held.Epoch != asked.Epoch || now.Held.Primary != asked.Primary:
		return refuse(fmt.Sprintf("this member is not the primary %q of epoch %d", asked.Primary, asked.Epoch))
	case now.Boot != asked.Boot || !now.confirmed():
		return refuse("mysqld or the agent restarted after the operator decided it")
	case now.State != StateWriting || !now.Writable:
		return refuse("this member does not take writes")
	case now.AckClients < now.AcksEnforced:
		return refuse("too few replicas acknowledge commits, so a commit would wait")
	case asked.GTIDs.Count() > MostHollow:
		return refuse(fmt.Sprintf("it names more than %d transactions", MostHollow))
	case now.ServerUUID == "" || !asked.GTIDs.OfServer(now.ServerUUID).Empty():
		return refuse("it names transactions of this server itself")
	}
	return nil
}

// matching returns what the primary must match; nil for nothing. It waits while commits would wait. It leaves out members that are about to
// lose their data, because what they made before is then of no use to them. If another member has the same GTID and does not report it as
// hollow, it may hold rows: a user must decide. A copy of the member that made it holds the same, and cannot tell.
func matching(c Cluster) *Matching {
	status := c.primaryStatus()
	if status == nil {
		return nil
	}
	var hollow, doubtful GTIDSet
	for _, member := range c.replicas() {
		if !member.HasReported() {
			continue
		}
		doubtful = doubtful.Union(member.Status.Received.Subtract(member.Status.Hollow).WithoutServer(member.Status.CopiedFrom))
		if !member.Status.NeedsCopy && !member.Status.Origin.unused() {
			hollow = hollow.Union(member.Status.Hollow)
		}
	}
	if hollow.Empty() {
		return nil
	}
	missing := hollow.Subtract(doubtful).Subtract(status.Executed).Subtract(status.Pending)
	asked := Matching{
		Epoch: c.Record.Epoch, Primary: c.Record.Primary, Boot: status.Boot, GTIDs: missing.WithoutServer(status.ServerUUID).Latest(MostHollow),
	}
	if asked.GTIDs.Empty() || AcceptMatching(*status, asked) != nil {
		return nil
	}
	return &asked
}
