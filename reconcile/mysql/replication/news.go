package replication

import (
	"slices"
	"strconv"
	"time"
)

// AlarmAfter is for how long a replica must have got nothing from its primary, or mysqld must not have answered its agent, before the
// operator should learn of it. The primary sends something five times a second (Ear).
const AlarmAfter = time.Second

// Told is the part of a member's report that the status of its cluster repeats, except for messages. It can be compared.
type Told struct {
	state              State
	version, rootError string
	// lacksAcks reports whether this primary gets too few acknowledgements, hangs whether no commit succeeds, delays whether it delays
	// commits.
	lacksAcks, hangs, delays bool
	// behind is how far this replica has been behind within the last five minutes, in coarse steps.
	behind int
	// syncs reports whether what this replica acknowledges is on its disk.
	syncs bool
	// refusesClients keeps readers away from the member.
	refusesClients bool
	// tls identifies the certificates that it uses: the next step of their rotation waits for all members.
	tls string
	// tables is its report about tables, barred the accounts that no client can log in to. That a member found none is not the same as that
	// it has not looked.
	tables, barred string
	// disk is how much room its volume has, isUnsound reports whether that stands still or fails.
	disk      DiskLevel
	isUnsound bool
	// left reports whether transactions are left prepared, knowsLeft whether the member knows.
	left, knowsLeft bool
	// eventsOff reports whether scheduled events do not run, knowsEvents whether the member knows.
	eventsOff, knowsEvents bool
}

// Told returns what the status of the cluster repeats.
func (s Status) Told() Told {
	left, off := s.Transactions.Left, s.ReplicaSideDisabled
	return Told{
		state: s.State, version: s.Version, rootError: s.RootError, lacksAcks: s.AcksShortSeconds > 0, hangs: s.CommitsHang(), delays: s.DelaysCommits,
		behind: s.BehindLately, syncs: s.SyncsRelayLog, refusesClients: s.RefusesClients, tls: s.TLS, tables: s.toldTables(), barred: s.barred(), disk: s.Disk.Level, isUnsound: !s.Probe.IsSound(),
		left: left != nil && *left > 0, knowsLeft: left != nil, eventsOff: off != nil && *off > 0, knowsEvents: off != nil,
	}
}

func (s Status) toldTables() string {
	told := ""
	if s.OtherEngines != nil {
		told = strconv.Itoa(s.OtherEngines.Count())
		if !s.OtherEngines.Empty() {
			told += s.OtherEngines.String()
		}
	}
	if s.TablesWithoutRows != nil {
		told += "/" + s.TablesWithoutRows.String()
	}
	return told
}

func (s Status) barred() string {
	if s.LockedOut == nil {
		return ""
	}
	return s.LockedOut.String()
}

// News is the part of a member's report that the operator should learn at once, and not only when it looks next. It can be compared.
type News struct {
	told Told
	// boot changes when mysqld has started again, or must be confirmed for another reason.
	boot string
	// isLate reports whether mysqld does not answer, hearsNothing whether this replica gets nothing from its primary, lacksReplicas whether
	// this primary has not heard all replicas, leaseEnds whether its lease ends unless the operator confirms it.
	isLate, hearsNothing, lacksReplicas, leaseEnds bool
	// hasVolumeFailed reports whether its volume has stood still or failed for long.
	hasVolumeFailed bool
	// observedUnder, isClosed and acknowledges are what the operator waits for after it has sent an assignment.
	observedUnder          Version
	isClosed, acknowledges bool
	// hollow are the transactions of this replica that the primary must match, events identifies the events that the replicas must know of.
	hollow string
	events uint64
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
		told: s.Told(), boot: s.Boot, isLate: s.IsLate(), hearsNothing: s.hearsNothing(),
		lacksReplicas: s.Lease.LacksAny(), leaseEnds: s.Lease.IsEnding() && s.Lease.Needs > 0, hasVolumeFailed: s.hasVolumeFailed(),
		observedUnder: s.ObservedUnder, isClosed: s.Closed != nil, acknowledges: s.Acknowledging, hollow: s.Hollow.String(), events: s.Events.digest(),
	}
}
