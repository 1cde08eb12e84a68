package replication

import "time"

// AlarmAfter is for how long a replica must have got nothing from its primary before the operator should learn of it. The primary sends
// something every second (Ear).
const AlarmAfter = 3 * time.Second

// News is the part of a member's report that the operator should learn at once, and not only when it looks next.
type News struct {
	state State
	// boot changes when mysqld has started again, or must be confirmed for another reason.
	boot string
	// isSilent reports whether this replica gets nothing from its primary, lacksAcks whether this primary gets too few acknowledgements,
	// lacksReplicas whether its lease ends unless the operator confirms it.
	isSilent, lacksAcks, lacksReplicas bool
	// observedUnder, isClosed and acknowledges are what the operator waits for after it has sent an assignment.
	observedUnder          Version
	isClosed, acknowledges bool
}

// News returns what of the report the operator should learn at once.
func (s Status) News() News {
	return News{
		state: s.State, boot: s.Boot, isSilent: seconds(s.SourceSilentSeconds) >= AlarmAfter, lacksAcks: s.AcksShortSeconds > 0,
		lacksReplicas: s.Lease.IsShort() && s.Lease.Needs > 0,
		observedUnder: s.ObservedUnder, isClosed: s.Closed != nil, acknowledges: s.Acknowledging,
	}
}
