package replication

import (
	"slices"
	"time"
)

// AlarmAfter is for how long a replica must have got nothing from its primary, or mysqld must not have answered its agent, before the
// operator should learn of it. The primary sends something five times a second (Ear).
const AlarmAfter = time.Second

// News is the part of a member's report that the operator should learn at once, and not only when it looks next.
type News struct {
	state State
	// boot changes when mysqld has started again, or must be confirmed for another reason.
	boot string
	// isLate reports whether mysqld does not answer, hearsNothing whether this replica gets nothing from its primary, lacksAcks whether this
	// primary gets too few acknowledgements, lacksReplicas whether it has not heard all replicas, leaseEnds whether its lease ends unless the
	// operator confirms it.
	isLate, hearsNothing, lacksAcks, lacksReplicas, leaseEnds bool
	// hasVolumeFailed reports whether its volume has stood still or failed for long.
	hasVolumeFailed bool
	// observedUnder, isClosed and acknowledges are what the operator waits for after it has sent an assignment.
	observedUnder          Version
	isClosed, acknowledges bool
	// refusesClients keeps readers away from the member.
	refusesClients bool
	// delaysCommits reports whether this primary delays commits, hangs whether none succeeds, isUnsound whether its volume stands still or
	// fails, and disk how much room that has.
	delaysCommits, hangs, isUnsound bool
	disk                            DiskLevel
	// hasHollow reports whether the primary must match transactions of this replica, and events which events the replicas must know of.
	hasHollow bool
	events    uint64
	// tls identifies the certificates that it uses: the next step of their rotation waits for all members.
	tls string
}

// IsLate reports whether mysqld does not answer its agent, or takes long for it.
func (s Status) IsLate() bool { return s.State == StateStarting || s.UnansweredFor >= AlarmAfter }

// hearsNothing reports whether this replica gets nothing from its primary.
func (s Status) hearsNothing() bool { return s.SourceSilentFor >= AlarmAfter }

// HearNothing reports whether replicas in sync answer, and none of those gets anything from its primary.
func HearNothing(members []Member, inSync []string) bool {
	isSilent := false
	for _, member := range members {
		if member.Status == nil || !slices.Contains(inSync, member.Name) {
			continue
		}
		if !member.Status.hearsNothing() {
			return false
		}
		isSilent = true
	}
	return isSilent
}

// News returns what of the report the operator should learn at once.
func (s Status) News() News {
	return News{
		state: s.State, boot: s.Boot, isLate: s.IsLate(), hearsNothing: s.hearsNothing(), lacksAcks: s.AcksShortSeconds > 0,
		lacksReplicas: s.Lease.LacksAny(), leaseEnds: s.Lease.IsEnding() && s.Lease.Needs > 0, hasVolumeFailed: s.hasVolumeFailed(),
		observedUnder: s.ObservedUnder, isClosed: s.Closed != nil, acknowledges: s.Acknowledging,
		refusesClients: s.RefusesClients, delaysCommits: s.DelaysCommits, hangs: s.CommitsHang(), isUnsound: !s.Probe.IsSound(), disk: s.Disk.Level,
		hasHollow: !s.Hollow.Empty(), events: s.Events.digest(), tls: s.TLS,
	}
}
