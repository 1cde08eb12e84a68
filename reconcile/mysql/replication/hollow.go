package replication

import (
	"fmt"
	"time"
)

// Hollow transactions. A replica gets GTIDs of its own without anybody writing there: FLUSH STATUS of a monitoring account, ANALYZE TABLE,
// the TRUNCATE that mysqld makes of a MEMORY table when it is used first after a start. Such a transaction changes no row. It takes part in
// nothing that a member's transactions prove, and must not be taken for a write:
//
//   - The agent judges by what is in its own binary log (reconcile/mysql/mysqld/logbook.go), as soon as there is something of its own (ToJudge). What it
//     does not understand, or does not find, is not hollow.
//   - The member replicates on and serves (markErrant, attachStep). It tells the hollow ones that its primary lacks.
//   - The operator asks the primary to commit empty transactions with those GTIDs (Matching), so that both have the same again.
//   - Where there is no primary to compare with, hollow transactions neither make a member the one to choose, nor keep another from it (elect).
//
// A GTID names one content for ever, everywhere. An empty transaction in place of a hollow one keeps to that, since neither has any.

// judgeUnassigned is for how long a member that may have been a primary waits for its assignment before it judges transactions of its own:
// those of a primary are its writes, and to read them would keep it from taking writes again.
const judgeUnassigned = 3 * time.Second

// MostHollow is how many transactions one request may match, and how many of its own a member judges while it knows no primary.
const MostHollow = 1000

// ToJudge is what depends on its content: what a replica has and its primary lacks, and while it knows nothing of a primary the latest of
// its own. What is under way on the primary is judged as well: it counts for a member that needs a copy. What is only received is not in
// the binary log yet.
func ToJudge(local Local) GTIDSet {
	server := local.Server
	switch {
	case !server.SuperReadOnly:
		return GTIDSet{}
	case local.Assignment != nil && local.Assignment.Role == RoleReplica && local.seesSource():
		return Errant(server.Executed, *local.Source)
	case local.Assignment != nil && local.Assignment.Role == RoleReplica && local.Known != nil:
		return local.Errant.Both(server.Executed)
	case local.Assignment != nil && local.Assignment.Role == RoleReplica,
		local.Assignment == nil && (local.HeldRole == RoleReplica || local.Unassigned >= judgeUnassigned):
		return server.Executed.OfServer(server.ServerUUID).Latest(MostHollow)
	}
	return GTIDSet{}
}

// toTell are the hollow ones that a replica tells: those that its primary lacks and is not about to have, or all that are judged while it
// knows nothing of a primary. An election needs them then, and a primary that shows up has those that it needs left out (matching).
func toTell(local Local, errant GTIDSet) GTIDSet {
	if local.seesSource() || local.Known != nil {
		return errant.Both(local.Hollow)
	}
	return ToJudge(local).Both(local.Hollow)
}

// HasNothingOwn says whether a replica that runs has nothing that its primary lacks, for certain.
func HasNothingOwn(local Local) bool {
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

// Matching asks the primary to commit empty transactions with the GTIDs of hollow ones. It is no part of an assignment: nothing rests on
// it, so it has no place in the order of records.
//
// A late or repeated one is harmless. What was committed already is skipped. One that outlives its primary's start or epoch is refused. If
// it arrives in the very moment in which that ends, the GTIDs still name transactions without content, here as on the member that made
// them.
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

// AcceptMatching says whether a member that reports this takes the request; nil, or a RefusedMatchingError with the reason.
func AcceptMatching(now Status, asked Matching) error {
	refuse := func(reason string) error { return &RefusedMatchingError{reason} }
	switch {
	case now.HeldRole != RolePrimary || now.Held.Epoch != asked.Epoch || now.Held.Primary != asked.Primary:
		return refuse(fmt.Sprintf("this member is not the primary %q of epoch %d", asked.Primary, asked.Epoch))
	case now.Boot != asked.Boot || !now.confirmed():
		return refuse("mysqld or the agent started anew since it was decided")
	case now.State != StateWriting || !now.Writable:
		return refuse("this member does not take writes")
	case now.AckClients < now.AcksEnforced:
		return refuse("too few replicas acknowledge commits, so that one would wait")
	case asked.GTIDs.Count() > MostHollow:
		return refuse(fmt.Sprintf("it names more than %d transactions", MostHollow))
	case now.ServerUUID == "" || !asked.GTIDs.OfServer(now.ServerUUID).Empty():
		return refuse("it names transactions of this very server")
	}
	return nil
}

// matching is what the primary is asked to match; nil for nothing. It waits where commits would wait, and leaves out members that are about
// to lose their data: what they made before is of no use to them then. What another member has under the same GTID and does not know to be
// hollow may be rows: a person has to judge.
func matching(c Cluster) *Matching {
	status := c.primaryStatus()
	if status == nil {
		return nil
	}
	var hollow, doubtful GTIDSet
	for _, member := range c.replicas() {
		if !member.read() {
			continue
		}
		doubtful = doubtful.Union(member.Status.Received.Subtract(member.Status.Hollow))
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
