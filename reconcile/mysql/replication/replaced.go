package replication

import "fmt"

// A primary that is replaced may have transactions that no other member has. Its clients were never told that these succeeded: the members
// that were read for the new primary have everything that was acknowledged (handover.go). So they may be dropped, after a copy of them is
// kept. Nothing else that a member has alone may be: its agent knows what the member had when it stopped being the primary, and what of it
// is in doubt (AcksWatch).

// IsReplaced reports whether the primary of the last assignment is replaced by the next one. It need not have seen the record that fenced
// the others: without them, nothing that it made was acknowledged.
//
// An epoch of another resource proves nothing. The volume may be another cluster's, or the data may have been adopted since. Neither does a
// record that knows nothing of the member's last one, because the resource went back in time. A primary whose commits waited for no
// acknowledgement proves nothing either.
func IsReplaced(last *Assignment, next Assignment) bool {
	return last != nil && last.Role == RolePrimary && last.Cluster != "" && last.Cluster == next.Cluster &&
		last.Record.Epoch < next.Record.Epoch && last.Record.Revision < next.Record.Revision && last.Record.Primary != next.Record.Primary &&
		last.Acks > 0
}

// Forgets reports whether the primary of this record may lack commits that a primary of the epoch has acknowledged (force.go). Then what
// that one has alone must not be dropped.
func (r Record) Forgets(epoch int64) bool { return epoch < r.ForcedEpoch }

// errantStep is the step of a member that does not replicate and has transactions that its primary does not have.
func errantStep(a Assignment, local Observed, errant GTIDSet) Step {
	switch {
	case !local.isUnacknowledged(errant):
		return Step{Verb: VerbNone, State: StateErrant, Message: errantMessage(errant, a.Record.Primary) + local.doubts(errant)}
	case !local.SetAside.Contains(errant):
		state := StateCatchingUp
		if local.CannotSetAside {
			state = StateErrant
		}
		message := fmt.Sprintf("keeps a copy of %d transactions that it made as the primary, and that no client was told had succeeded: %s", errant.Count(), errant)
		return Step{Verb: VerbSetAside, State: state, Message: message, SetAside: errant}
	}
	return cloneStep(a)
}

// MostUnacknowledged is more than the transactions that wait for acknowledgements at one time: each has a session. If the member has more
// of them alone, the primary may have lost some.
const MostUnacknowledged = 10_000

// isUnacknowledged reports whether the member made these transactions as the primary, was replaced without them, and no client was told
// that they had succeeded.
func (l Observed) isUnacknowledged(errant GTIDSet) bool {
	return l.HadAsPrimary.Contains(errant) && errant.Count() <= MostUnacknowledged && errant.Both(l.InDoubt).Empty()
}

// doubts says which of these transactions are in doubt; empty if none is.
func (l Observed) doubts(errant GTIDSet) string {
	inDoubt := errant.Both(l.InDoubt)
	if inDoubt.Empty() {
		return ""
	}
	return fmt.Sprintf("; clients may have been told that %s had succeeded: MySQL had stopped waiting for acknowledgements", inDoubt)
}
