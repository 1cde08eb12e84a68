package replication

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// primaryDataLost describes how the primary on record has lost data; empty if it has not. Such a primary must not take writes. An empty one
// would be served and copied to the others. One that went back in time would give the GTIDs of lost transactions to new ones, and replicas
// that have the lost ones would silently skip the new ones.
//
// mayReplace reports whether another member may take over without a person. A primary that seems to have gone back in time was observed
// before its replicas, and may be about to take writes again.
func (c Cluster) primaryDataLost() (lost string, mayReplace bool) {
	primary, found := c.member(c.Record.Primary)
	switch {
	case !found:
		return "", false
	case lostItsData(primary, c.Record):
		return "member " + primary.Name + " is the primary on record but came back with an empty volume; the operator does not let it serve an empty database, and does not copy it to the others", true
	case c.hasForgotten(primary):
		return "member " + primary.Name + " was chosen as the primary, and its Pod or its machine failed before it could lead; it may have lost acknowledged commits", true
	}
	lacks, has := c.wentBack(primary)
	if lacks.Empty() {
		return "", false
	}
	return fmt.Sprintf("member %s is the primary on record but came back without %d transactions that it made and that %s has (%s): its volume was restored from an older copy, or its disk lost writes; the operator does not let it take writes: restore the missing transactions, or delete this resource and apply it again to adopt the data of the others", primary.Name, lacks.Count(), has, lacks), false
}

// Limits are for how long a primary may be away before a replica takes over, in whole seconds.
type Limits struct {
	// NotReady is for how long mysqld may not run, or not answer after a start. A start takes seconds, and a recovery from the redo log may
	// take longer than a replica needs to take over.
	NotReady time.Duration
	// Unreachable is for how long a primary that may run may not answer, its agent or the operator. A shorter hang, as of a machine that is
	// paused to be moved, ends by itself sooner.
	Unreachable time.Duration
	// RestartsCrashed means that a primary whose mysqld has crashed gets NotReady, even if a replica could take over at once.
	RestartsCrashed bool
}

// silent is for how long replicas must have got nothing from a primary that may run. They may have got the last heartbeat later than the
// agent its last answer.
func (l Limits) silent() time.Duration { return l.Unreachable - time.Second }

// ShortAfter is for how long a primary that runs must have had too few acknowledgements. Replicas connect to one that has just started
// within this time.
const ShortAfter = 5 * time.Second

// primaryDown judges a primary whose mysqld has not answered its agent for too long, and certainly takes no writes or hangs.
func (c Cluster) primaryDown() Verdict {
	v, status := Verdict{Rule: RuleDown}, c.primaryStatus()
	if !v.must("its agent answers", status.speaksOurProtocol()) || !v.must("its mysqld does not answer the agent", status.IsLate()) {
		return v
	}
	switch {
	case c.isReplacedAtOnce() && status.LeaseLost:
		return v.saying("the primary %s gets too few acknowledgements, and its mysqld has ended with its lease", c.Record.Primary)
	case c.isReplacedAtOnce():
		return v.saying("mysqld of the primary %s has ended", c.Record.Primary)
	}
	limit, late := c.Limits.NotReady, "has not been ready"
	if status.Closed == nil {
		limit, late = c.Limits.Unreachable, "has not answered"
		v.mustLast(replicasQuiet, c.quietFor(c.Record.witnessesNeeded(), anyReplica), c.Limits.silent()) // no commit returns to a client
	}
	v.mustLast("its mysqld "+late, status.UnansweredFor, limit)
	return v.saying("mysqld of the primary %s %s for more than %d seconds", c.Record.Primary, late, int(limit.Seconds()))
}

// isReplacedAtOnce reports whether mysqld of the primary has crashed, and enough replicas are left to keep the promise of the record
// without it. Its agent holds the next start for a moment: before, it can cut off what only this member has.
func (c Cluster) isReplacedAtOnce() bool {
	status := c.primaryStatus()
	return status != nil && status.StartHeld && c.couldReplaceAtOnce(answers)
}

// stays reports whether a member answers, and its container does not restart.
func stays(member Member) bool { return answers(member) && !member.Status.IsRestarting }

// couldReplaceRestarting reports whether a replica may take over from a primary because its container restarts, once it takes no writes. An
// update restarts the primary in its turn (ADR 38).
func (c Cluster) couldReplaceRestarting() bool { return !c.IsUpdating && c.couldReplaceAtOnce(stays) }

// couldReplaceAtOnce reports whether a replica may take over without time for the primary to come back. Only the replicas count for which
// counts returns true.
func (c Cluster) couldReplaceAtOnce(counts func(Member) bool) bool {
	return !c.Limits.RestartsCrashed && c.enoughAreLeft(counts)
}

// enoughAreLeft reports whether, without the primary, enough replicas count: one leads, and RequiredAcks others acknowledge.
func (c Cluster) enoughAreLeft(counts func(Member) bool) bool {
	return c.Record.RequiredAcks > 0 && len(c.witnesses(counts)) > c.Record.RequiredAcks
}

// primaryRestarts judges a primary that takes no writes because its container restarts, as it does when its node is drained. The next
// container may wait for a node, an image or a volume.
func (c Cluster) primaryRestarts() Verdict {
	v, status := Verdict{Rule: RuleRestarts}, c.primaryStatus()
	if !v.must("its agent answers", status.speaksOurProtocol()) || !v.must("its agent reports that", status.IsRestarting) {
		return v
	}
	v.must("its mysqld takes no writes", status.Closed != nil)
	v.must("no update of the members is in progress, or held back", !c.IsUpdating)
	v.must("spec.failover.whenPrimaryCrashes is Replace", !c.Limits.RestartsCrashed)
	v.must("enough replicas are left", c.enoughAreLeft(stays))
	return v.saying("mysqld of the primary %s takes no writes, because its container restarts", c.Record.Primary)
}

// primaryGone judges a primary whose agent has not answered for too long.
func (c Cluster) primaryGone() Verdict {
	v := Verdict{Rule: RuleGone}
	primary, found := c.member(c.Record.Primary)
	if !v.must(noAnswer, found && primary.Status == nil) {
		return v
	}
	v.mustBeUnheard(primary, LostAfter)
	return v.saying("the primary %s has not answered for more than %d seconds", primary.Name, int(LostAfter.Seconds()))
}

// primaryCutOff judges a primary that runs and whose commits wait, because the network between it and the replicas failed. All
// replicas in sync that answer must have got nothing from it: one that has could be the only one with its latest commits. And they must be
// enough to keep the promise of the record without it.
func (c Cluster) primaryCutOff() Verdict {
	v, status := Verdict{Rule: RuleCutOff}, c.primaryStatus()
	if !v.must("its agent answers", status.speaksOurProtocol()) || !v.must("its mysqld is open to replicas", status.leads()) ||
		!v.must("it hears fewer replicas than must acknowledge", c.heardBy(*status) < c.Record.RequiredAcks) {
		return v
	}
	v.must("it was not tried a short while ago to replace it", !c.HasContinued)
	limit := ShortAfter
	if status.State != StateWriting { // it has just started, and the replicas connect again
		limit = max(limit, c.Limits.NotReady)
	}
	v.mustLast("it gets too few acknowledgements", seconds(status.AcksShortSeconds), limit)
	quiet := c.quietFor(max(len(c.witnesses(answers)), c.Record.witnessesNeeded(), c.Record.RequiredAcks+1), func(replica Status) bool { return replica.Acknowledging }) // its relay log has room
	v.mustLast(replicasQuiet, quiet, c.Limits.silent())
	return v.saying("the primary %s gets too few acknowledgements, and the replicas have got nothing from it for more than %d seconds", c.Record.Primary, int(c.Limits.silent().Seconds()))
}

// heardBy counts the replicas that are connected to the primary, at most those that it has heard lately. mysqld counts a connection for
// longer that is half open.
func (c Cluster) heardBy(primary Status) int {
	if lease := primary.Lease; lease != nil && lease.Needs > 0 {
		return min(primary.ConnectedReplicas, len(c.Record.ReplicasInSync())-len(lease.Unheard))
	}
	return primary.ConnectedReplicas
}

// quietFor is for how long so many replicas in sync have got nothing from the primary, of which something holds; less than any time if
// fewer report that.
func (c Cluster) quietFor(count int, holds func(Status) bool) time.Duration {
	var quiet []time.Duration
	for _, member := range c.replicas() {
		if status := member.Status; c.Record.Acknowledges(member.Name) && status.speaksOurProtocol() && holds(*status) {
			quiet = append(quiet, status.SourceSilentFor)
		}
	}
	if count = max(count, 1); count > len(quiet) {
		return math.MinInt64
	}
	slices.Sort(quiet)
	return quiet[len(quiet)-count]
}

func anyReplica(Status) bool { return true }

// roundUp returns a time in whole seconds.
func roundUp(long time.Duration) int { return int((long + time.Second - 1) / time.Second) }

func seconds(count int) time.Duration { return time.Duration(count) * time.Second }

// forgot reports whether the primary may have lost what it had when it was chosen: it has not accepted its role since then, and flushes its
// volume before it does. A user may make a member the primary that has lost something before.
func forgot(primary Member, record Record) bool {
	status := primary.Status
	return status != nil && status.IsForgetful && status.Held.FormerPrimary != "" && status.Held.Epoch == record.Epoch && status.ForgotUnder == status.Held.Version()
}

// isInDoubt reports whether the primary may have lost something, and has accepted no record of this epoch. So it was chosen in an adoption:
// other primaries have accepted a fence before.
func (r Record) isInDoubt(primary Member) bool {
	status := primary.Status
	return status != nil && status.IsForgetful && status.Origin == OriginMember && status.Held.Epoch < r.Epoch
}

// mayBeInDoubt reports whether a primary that does not answer may be in doubt: no member that answers has accepted a record of this epoch.
func (c Cluster) mayBeInDoubt(primary Member) bool {
	isKnown := slices.ContainsFunc(c.Members, func(member Member) bool { return member.held().Epoch >= c.Record.Epoch })
	return primary.Status == nil && len(c.Record.InSync) > 0 && !isKnown
}

// hasForgotten reports whether the primary may have lost what it had when it was chosen. In an adoption, it may have been chosen although
// it had lost something before: others showed that nothing was missing.
func (c Cluster) hasForgotten(primary Member) bool {
	return forgot(primary, c.Record) || c.Record.isInDoubt(primary) && !c.isElected(primary)
}

// lostItsData reports whether the primary's data is new although the Record says that it had data. InSync is empty only between the
// appointment of a cluster's first primary and the first report of that member as the primary.
func lostItsData(primary Member, record Record) bool {
	return primary.Status != nil && primary.Status.Origin.unused() && len(record.InSync) > 0
}

// confirmed reports whether the operator has assigned the member its role since its mysqld started.
func (s Status) confirmed() bool { return s.Assignment != nil && s.Assignment.Boot == s.Boot }

// lostTransactions returns transactions that the primary made and does not have any more, and a replica that has them. It is certain only
// for a primary that waits to be confirmed and commits nothing, because any other may be writing. What replicas receive is in the primary's
// binary log on disk before (sync_binlog), so crash recovery brings all of it back.
func (c Cluster) wentBack(primary Member) (lacks GTIDSet, has string) {
	status := primary.Status
	if !primary.HasReported() || status.State != StateWaiting || status.Writable || status.confirmed() || status.Reopens() {
		return GTIDSet{}, ""
	}
	for _, replica := range c.replicas() {
		if !replica.HasReported() {
			continue
		}
		lacks = replica.Status.Received.Subtract(status.Received.Union(status.Pending)).OfServer(status.ServerUUID)
		if !lacks.Empty() {
			return lacks, replica.Name
		}
	}
	return GTIDSet{}, ""
}
