package replication

import (
	"fmt"
	"strings"
	"time"
)

// Failover reports whether a replica could take over from the primary now, if mysqld of the primary failed, with a reason and what users
// read. It depends on what members are, and not on how far each has got, so that it does not change with every transaction. How far the
// replicas are behind is coarse in it (lagSteps).
func (c Cluster) Failover() (isReady bool, reason Reason, message string) {
	switch {
	case c.Record.FormerPrimary != "":
		return false, ReasonReplacingPrimary, "another member takes over from " + c.Record.FormerPrimary
	case c.Record.Primary == "":
		return false, ReasonWaitingForMembers, noPrimaryYet
	case c.Replicas < 2:
		return false, ReasonSingleMember, "a cluster of one member has no replica"
	}
	if reason, problem := c.whyNotReplaced(); problem != "" {
		return false, reason, problem
	}
	if reason, problem := c.whyNotLater(); problem != "" {
		return false, reason, problem
	}
	able := c.witnesses(func(member Member) bool {
		return answers(member) && c.couldLead(member) && !member.Status.hasVolumeFailed()
	})
	if len(able) == 0 {
		return false, ReasonReplicasCatchUp, "each replica that could take over has to apply what it received first" + c.whyDelayed()
	}
	names := make([]string, 0, len(able))
	for _, member := range able {
		names = append(names, member.Name)
	}
	message = fmt.Sprintf("%s takes over about %s, unless it is back before", strings.Join(names, " or "), c.afterFailures())
	if c.Record.LeaseLasts > 0 {
		message += fmt.Sprintf(", or %d after nothing answers for it any more", roundUp(c.untilLeaseEnds()+takingOver))
	}
	return true, ReasonReplicaCanTakeOver, message + c.whyLater(able) + "; no acknowledged commit is lost" + c.whyNotLeased() + c.whyDelayed()
}

// whyDelayed says that the primary delays commits; empty if it does not. It does not say how long, because that changes every second.
func (c Cluster) whyDelayed() string {
	if primary := c.primaryStatus(); primary == nil || primary.State != StateWriting || !primary.DelaysCommits {
		return ""
	}
	return "; " + c.Record.Primary + " delays commits, because clients make them faster than its replicas apply them"
}

// afterFailures says how soon a replica takes over after mysqld of the primary has failed.
func (c Cluster) afterFailures() string {
	fails := fmt.Sprintf("%d seconds after mysqld of %s fails", int((c.Limits.NotReady + takingOver).Seconds()), c.Record.Primary)
	if !c.couldReplaceAtOnce(answers) {
		return fails
	}
	return fmt.Sprintf("%d seconds after mysqld of %s crashes, or %d after it fails otherwise", int(takingOver.Seconds()), c.Record.Primary, int((c.Limits.NotReady + takingOver).Seconds()))
}

// untilLeaseEnds is about how long after its last packet the lease of a primary has ended for which nothing answers.
func (c Cluster) untilLeaseEnds() time.Duration {
	if restsOnReplicas(c.Record.LeaseLasts) && c.Limits.Unreachable < receiverTimeout {
		return max(c.Limits.Unreachable, c.Record.leaseLimit()) // it is counted from then
	}
	return c.Limits.Unreachable + c.Record.leaseLimit()
}

const noPrimaryYet = "the cluster has no primary yet"

// receiverTimeout is for how long a receiver waits for its primary (replica_net_timeout). After that, it does not know when that was heard.
const receiverTimeout = 10 * time.Second

// takingOver is how long a takeover takes on a busy machine, apart from what it waits for.
const takingOver = 2 * time.Second

// whyNotLeased explains why a replica does not take over by itself if nothing answers for the primary; empty if one does, or will.
func (c Cluster) whyNotLeased() string {
	if c.Record.LeaseLasts > 0 {
		return ""
	}
	const waits = "; if nothing answers for it, the cluster waits, because "
	if !c.WantsLease {
		return waits + "spec.failover.whenPrimaryUnreachable is Wait"
	}
	if status := c.primaryStatus(); status != nil && status.Lease != nil && status.Lease.IsImpossible {
		return waits + "its node does not show which replicas are connected (sock_diag)"
	}
	return ""
}

// whyNotLater returns what would stop a takeover later, although it does not show before; empty for nothing.
func (c Cluster) whyNotLater() (Reason, string) {
	if primary := c.primaryStatus(); primary != nil && !primary.speaksOurProtocol() {
		return ReasonAgentRelease, "the agent of " + c.Record.Primary + " is of another release than the operator"
	}
	if lost, mayReplace := c.primaryDataLost(); lost != "" && !mayReplace {
		return ReasonPrimaryDataLost, lost
	}
	failed := c.witnesses(func(member Member) bool { return answers(member) && member.Status.State == StateBroken })
	if len(failed) > 0 && len(c.witnesses(answers))-len(failed) < c.Record.witnessesNeeded() {
		return ReasonReplicationBroken, "the applier of " + failed[0].Name + ", which may be the only one with a commit, has failed"
	}
	if problem := c.cannotFence(Status.hasVolumeFailed); problem != "" {
		return ReasonTooFewReplicas, problem
	}
	return "", ""
}

// couldLead reports whether the replica could lead at once. While the primary does not lead, no replica follows it closely.
func (c Cluster) couldLead(member Member) bool {
	status := member.Status
	isWaiting := status.State == StateCatchingUp && c.isDrained(*status)
	return (status.State == StateReplicating || isWaiting) && status.KnownTablesWithoutRows().Empty()
}

// whyNotReplaced returns why no replica may take over by itself; empty if one may.
func (c Cluster) whyNotReplaced() (Reason, string) {
	if c.Record.RequiredAcks == 0 {
		return ReasonCommitsNotReplicated, "acknowledged commits may be on the primary alone"
	}
	if later := c.heldLater(); later != "" {
		return ReasonRecordOutdated, later + " holds a later record than this resource, which was restored from an older copy"
	}
	for _, member := range c.Members {
		if member.Status != nil && member.Status.State == StateErrant && c.Record.Acknowledges(member.Name) {
			return ReasonErrantMember, member.Name + " has errant transactions, which would spread if it took over. " + c.whenToRebuild()
		}
	}
	witnesses := c.witnesses(answers)
	if problem := c.tooFew(witnesses); problem != "" {
		return ReasonTooFewReplicas, problem
	}
	if choose(c.Record.Primary, witnesses) == "" {
		return ReasonIncompleteMembers, rowsMissing(c.Record.Primary, witnesses)
	}
	return "", ""
}

// whenToRebuild says when a user may rebuild a member that is in sync and errant. While the primary takes no writes, that member may have
// the only copy of a commit, also of one that is not errant.
func (c Cluster) whenToRebuild() string {
	if primary := c.primaryStatus(); primary == nil || primary.State != StateWriting {
		return "Do not rebuild it while the primary takes no writes: it may have the only copy of a commit"
	}
	return "Do not rebuild it before you have read them: it may have the only copy of a commit"
}

// answers reports whether the member's agent and mysqld answer, in this release's protocol.
func answers(member Member) bool { return member.HasReported() && member.Status.speaksOurProtocol() }
