package replication

import "fmt"

// markErrant checks a running replica for transactions that are missing on its primary and are not hollow, for example because a user
// disabled super_read_only. An errant replica serves no reads and continues to replicate. While the primary does not answer, the last
// result stays valid.
func markErrant(step Step, local Observed) Step {
	written := step.Errant.Subtract(step.Hollow)
	if !written.Empty() && step.State != StateBroken {
		step.State, step.Message = StateErrant, errantMessage(written, local.Assignment.Record.Primary)
	}
	return step
}

// errantNotPending returns the transactions that the member has, and that its primary neither has nor has in progress. Transactions that
// are loaded with GTIDs of another server may be here before the primary, which waits for acknowledgements, counts them as executed.
func errantNotPending(server Server, source Source) GTIDSet {
	return Errant(server.Executed.Union(server.Channel.Retrieved), source).Subtract(source.Pending)
}

// HasNoOthers reports whether the primary has all transactions that this replica has, except those that change no row, as far as the last
// look at this primary shows. It is false if there was none.
func (l Observed) HasNoOthers() bool {
	seen := l.Known
	if l.sourceObserved() {
		seen = l.Source
	}
	return seen != nil && errantNotPending(l.Server, *seen).Subtract(l.Hollow).Empty()
}

// Errant returns the transactions that a member has, applied or only received, and that are missing on its primary. Transactions that began
// on the primary itself do not count: under AFTER_SYNC, a replica may have applied one that the primary has not finished because it waits
// for acknowledgements (manual, "Semisynchronous Replication").
func Errant(has GTIDSet, source Source) GTIDSet {
	return has.Subtract(source.Executed).WithoutServer(source.ServerUUID)
}

// Shared returns the transactions that the member made itself, for example as a former primary, and that its primary also has, so they are
// not errant. If the primary was not seen now, the result of the last look stays valid.
func (l Observed) Shared() GTIDSet {
	if !l.sourceObserved() {
		return l.WasShared
	}
	return l.Source.Executed.OfServer(l.Server.ServerUUID).Both(l.Server.Executed.Union(l.Server.Channel.Retrieved))
}

func errantMessage(errant GTIDSet, primary string) string {
	return fmt.Sprintf("has %d transactions that the primary %s does not have: %s; it serves no clients until that is resolved", errant.Count(), primary, errant)
}

// applyErrant is the step of a member that has received something that its primary does not have, and that does not receive any more. It
// applies all that it has received: only then can its agent read in the binary log whether that changes rows (ToInspect). Nothing is lost
// by that. What the member has remains the same, and the operator counts what is received like what is applied.
func applyErrant(a Assignment, local Observed, errant GTIDSet) Step {
	step := drain(local, StateErrant)
	if step.State == StateErrant {
		step.Message = errantMessage(errant, a.Record.Primary) + " (" + step.Message + ")"
	}
	return step
}
