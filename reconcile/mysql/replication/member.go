package replication

import (
	"slices"
	"time"
)

// Role is the role that a member is assigned.
type Role string

const (
	// RolePrimary takes writes.
	RolePrimary Role = "Primary"
	// RoleReplica follows the primary and serves reads.
	RoleReplica Role = "Replica"
)

// Protocol is the version of the protocol between operator and agents. It rises when something that a decision relies on gets another
// meaning, or is missing on one side. A field that may be ignored does not raise it (protocol.go).
const Protocol = 11

// Assignment is what the operator assigns to one member. It is complete: a member needs nothing else to know its role.
type Assignment struct {
	// Protocol is the operator's protocol.
	Protocol int `json:"protocol,omitempty"`
	// Record is the record that the assignment follows from. The member keeps it next to its data, so that the data shows to which cluster
	// state it belongs even if everything else is lost.
	Record Record `json:"record"`
	// Cluster is the UID of the MySQLCluster. It is not among the terms of an assignment (order.go).
	Cluster string `json:"cluster,omitempty"`
	// Role is the role of the member.
	Role Role `json:"role"`
	// Boot repeats the token that the member reported. An assignment is valid for one start of mysqld. So a member that was away never
	// takes writes, or acknowledges, because of an old assignment.
	Boot string `json:"boot,omitempty"`
	// Acks, on a primary, is how many semi-synchronous acknowledgements a commit waits for; 0 means none.
	Acks int `json:"acks,omitempty"`
	// Lease, on a primary, is for how many replicas it must have a lease to take writes (lease.go); 0 if it needs none.
	Lease int `json:"lease,omitempty"`
	// LeaseLasts, on a primary, is how long this lease lasts after the last evidence that the member leads; 0 if it needs none.
	LeaseLasts time.Duration `json:"leaseLasts,omitempty"`
	// ConfirmedAt, on a primary, is the time by its own clock (Status.Clock) after which the operator read the record; 0 if it did not. It is
	// not among the terms of an assignment (order.go).
	ConfirmedAt time.Duration `json:"confirmedAt,omitempty"`
	// Silent, on a primary, names the in-sync members that must not acknowledge any more. The primary ends their connections and accepts no
	// others. They leave the record once it has observed itself after that. What it has executed by then is everything that they may have
	// acknowledged.
	Silent []string `json:"silent,omitempty"`
	// Members, on a primary, is how many members the cluster must have, including itself; 0 if an operator of an earlier release does not
	// set it.
	Members int `json:"members,omitempty"`
	// InSync, on a replica, means that the record relies on this member's data: the data must not be replaced.
	InSync bool `json:"inSync,omitempty"`
	// Acknowledge, on a replica, allows it to acknowledge commits.
	Acknowledge bool `json:"acknowledge,omitempty"`
	// SourceHost, on a replica, is the DNS name of the primary, SourcePort the port on which it listens.
	SourceHost string `json:"sourceHost,omitempty"`
	SourcePort int    `json:"sourcePort,omitempty"`
	// SourceAddress, on a replica, is the IP address of the primary's Pod; empty if the operator has not seen any.
	SourceAddress string `json:"sourceAddress,omitempty"`
	// Events, on a replica, are the scheduled events that it must enable if it becomes the primary. They are not among the terms of an
	// assignment (order.go).
	Events []ScheduledEvent `json:"events,omitempty"`
	// CopyLimit, on a replica, limits how fast it copies another member's data, in bytes per second. It is 0 only in assignments of an older
	// release, and then means DefaultCopyLimit. It is not among the terms of an assignment (order.go).
	CopyLimit int64 `json:"copyLimit,omitempty"`
	// Donor, on a replica, is the replica whose data it copies if it needs a copy; nil for the primary's (donor.go). It is not among the
	// terms of an assignment (order.go).
	Donor *Donor `json:"donor,omitempty"`
}

// Receivers names the members that a primary lets follow it: those that the record allows, without those that must be silent.
func (a Assignment) Receivers() []string {
	var names []string
	for _, name := range slices.Concat(a.Record.InSync, a.Record.Joining) {
		if name != a.Record.Primary && !slices.Contains(a.Silent, name) {
			names = append(names, name)
		}
	}
	return names
}

// DefaultCopyLimit is the default of how fast a member is read for a copy, in bytes per second. It is limited because that member has
// clients.
const DefaultCopyLimit = 64 << 20

// Relaxes reports whether the assignment lets the member do something that relies on the record: take writes, require fewer
// acknowledgements for commits, acknowledge, or have its data replaced. Before the operator sends such an assignment, it makes certain that
// the record is still current.
func (a Assignment) Relaxes(now Status) bool {
	if a.Role == RolePrimary {
		return now.State != StateWriting || a.Acks < now.AcksEnforced || a.mustConfirm(now) || a.weakens(now.Lease)
	}
	mayBeReplaced := !a.InSync && (now.Assignment == nil || now.Assignment.InSync)
	return mayBeReplaced || a.Acknowledge && !now.Acknowledging
}

// State is the state of a member, in the words that status, events, logs, metrics and docs/ use.
type State string

const (
	// StateStarting: mysqld does not answer yet.
	StateStarting State = "Starting"
	// StateWaiting: mysqld answers, read-only, and the member has no valid assignment.
	StateWaiting State = "Waiting"
	// StateCloning: the member's data is being replaced by a copy of the primary's, or of a replica's.
	StateCloning State = "Cloning"
	// StateCatchingUp: replication runs, or is being set up, but the member is not yet up to date.
	StateCatchingUp State = "CatchingUp"
	// StateReplicating: the member follows the primary closely.
	StateReplicating State = "Replicating"
	// StatePromoting: the member becomes the primary and does not take writes yet.
	StatePromoting State = "Promoting"
	// StateWriting: the member is the primary and takes writes.
	StateWriting State = "Writing"
	// StateErrant: the member has transactions that the primary does not have, and that are not hollow. It serves no clients.
	StateErrant State = "Errant"
	// StateBroken: an error has stopped the applier. The agent starts it again from time to time (ApplierMemory).
	StateBroken State = "Broken"
)

// AnswersBut begins the message of a member in StateStarting whose mysqld answers, but for which something else must be done first.
const AnswersBut = "mysqld answers, but"

// Origin says where a member's data directory comes from.
type Origin string

const (
	// OriginInitializing: mysqld --initialize may not have finished it, and no cluster has used it.
	OriginInitializing Origin = "Initializing"
	// OriginFresh: mysqld --initialize made it, and it has never been part of a cluster. It holds no data that could be lost.
	OriginFresh Origin = "Fresh"
	// OriginMember: it has been part of a cluster.
	OriginMember Origin = "Member"
)

// unused reports whether the data directory has never been part of a cluster.
func (o Origin) unused() bool { return o == OriginInitializing || o == OriginFresh }

// DiskLevel is how full a member's volume is (agent.diskLevel).
type DiskLevel string

const (
	// DiskRoomy: the volume has room.
	DiskRoomy DiskLevel = ""
	// DiskPressure: less than 15 % are free.
	DiskPressure DiskLevel = "Pressure"
	// DiskFull: less than 5 %, or than 512 MiB, are free, and commits hang soon.
	DiskFull DiskLevel = "Full"
)

// Disk is the size of a member's volume and its free space, in bytes.
type Disk struct {
	Size  int64     `json:"size"`
	Free  int64     `json:"free"`
	Level DiskLevel `json:"level,omitempty"`
}

// Transactions is what a member observed of transactions within the last minute.
type Transactions struct {
	// Prepared is how many transactions are in the state of XA PREPARE. Left is how many of them have been prepared for so long that their
	// coordinator seems to have left them; nil until the agent has watched for that long.
	Prepared int  `json:"prepared,omitempty"`
	Left     *int `json:"left,omitempty"`
	// OldestSeconds is for how long the oldest transaction has been open.
	OldestSeconds int64 `json:"oldestSeconds,omitempty"`
	// CommitWaitSeconds is for how long sessions have waited to commit without any commit, as observed within the last five seconds.
	CommitWaitSeconds int64 `json:"commitWaitSeconds,omitempty"`
	// History is the length of InnoDB's history list.
	History int64 `json:"history,omitempty"`
}

// SetAside are transactions that only a former primary had, and that no client was told had succeeded. Its volume keeps a copy of them, in
// the folder unacknowledged, which has a folder for each Epoch in which that happened.
type SetAside struct {
	Epoch int64   `json:"epoch"`
	GTIDs GTIDSet `json:"gtids"`
}

// Status is what a member reports about itself.
type Status struct {
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
	Origin  Origin `json:"origin,omitempty"`
	// Held is the record that the member keeps next to its data: the record of the last assignment it accepted.
	Held Record `json:"held"`
	// HeldRole is the role of that assignment.
	HeldRole Role `json:"heldRole,omitempty"`
	// IsForgetful means that the member may have lost transactions that it has acknowledged: its machine failed before the operating system had
	// written the relay log to the disk, or mysqld may have deleted it. What it has counts, but not what it lacks.
	IsForgetful bool `json:"forgetful,omitempty"`
	// SyncsRelayLog means that what the member acknowledges is on its disk.
	SyncsRelayLog bool `json:"syncsRelayLog,omitempty"`
	// ForgotUnder is the record that it held when it last may have lost some.
	ForgotUnder Version `json:"forgotUnder,omitzero"`
	// NeedsCopy means that the member can follow the primary only after a copy of the primary's data, or a replica's, has replaced its own.
	NeedsCopy bool `json:"needsCopy,omitempty"`
	// SetAside are the transactions that the member had alone when it was last replaced as the primary; nil if it had none.
	SetAside *SetAside `json:"setAside,omitempty"`
	// Protocol is the agent's protocol.
	Protocol int `json:"protocol,omitempty"`
	// Assignment is what the member follows now; nil until the operator has sent one since the agent started.
	Assignment *Assignment `json:"assignment,omitempty"`
	// Last is the last assignment that the member accepted, possibly before its agent started. The member accepts no different assignment
	// with the same revision.
	Last *Assignment `json:"last,omitempty"`
	// Boot is the token that an assignment must repeat.
	Boot string `json:"boot"`
	// UnansweredFor is for how long mysqld has not answered its agent: since State has been StateStarting, or since its last answer if the next
	// one is late. While a member starts, and mysqld may take writes for all that is known, only that time counts.
	UnansweredFor time.Duration `json:"unansweredFor,omitempty"`
	// StartHeld means that mysqld has ended while clients could write, and starts again once the agent knows who leads.
	StartHeld bool `json:"startHeld,omitempty"`
	// LeaseLost means that mysqld was killed because its lease had ended, and has not started since.
	LeaseLost bool `json:"leaseLost,omitempty"`
	// IsRestarting means that the container of mysqld stops or has stopped, and mysqld has not answered in the next one yet.
	IsRestarting bool `json:"isRestarting,omitempty"`
	// Closed is set while mysqld certainly takes no writes: it does not run, or refuses them. It is the version of the record that the member
	// followed before the agent saw that; zero if it followed none.
	Closed *Version `json:"closed,omitempty"`
	// ObservedUnder is the record of the assignment that the member followed before it observed itself: everything reported below was observed
	// later. A primary has locked out everybody else than the assignment's Receivers before. It is zero if the member has not observed itself
	// under its assignment.
	ObservedUnder Version `json:"observedUnder,omitzero"`
	// Silent are the members that this primary had made silent, as its assignment says, before it observed itself: everything reported below
	// was observed later.
	Silent []string `json:"silent,omitempty"`
	// RefusesClients means that clients cannot log in: the member was the primary a moment ago, and nodes may still lead clients to it that
	// look for the primary.
	RefusesClients bool `json:"refusesClients,omitempty"`

	ServerUUID string `json:"serverUUID,omitempty"`
	Version    string `json:"version,omitempty"`
	// Executed is gtid_executed. Received also includes what the relay log holds and is not applied yet.
	Executed GTIDSet `json:"executed"`
	Received GTIDSet `json:"received"`
	// Pending is what is in progress and not executed yet. On a primary, replicas may have acknowledged it already.
	Pending GTIDSet `json:"pending,omitzero"`
	// Hollow are transactions that the member made, that are missing on the primary, and that change no row (hollow.go). While the member
	// knows no primary, they are its own latest hollow ones.
	Hollow GTIDSet `json:"hollow,omitzero"`
	// HasNoOthers means that the primary had all transactions of this replica when the replica looked at it last, except Hollow.
	HasNoOthers bool `json:"hasNoOthers,omitempty"`
	// Shared are the transactions that the member made itself and its primary had at the member's last look at it.
	Shared GTIDSet `json:"shared,omitzero"`
	// Writable reports whether clients can write here: super_read_only is off.
	Writable bool `json:"writable"`
	// AlarmsArrive means that the member can tell the operator that reads this report when it has news.
	AlarmsArrive bool `json:"alarmsArrive,omitempty"`
	// AcksEnforced is how many acknowledgements commits on this member certainly wait for until the next report, unless Assignment requires
	// fewer.
	AcksEnforced int `json:"acksEnforced,omitempty"`
	// AckClients is how many connected replicas acknowledge commits of this member. ConnectedReplicas also counts those that are connected as
	// such, and do not acknowledge.
	AckClients        int `json:"ackClients,omitempty"`
	ConnectedReplicas int `json:"connectedReplicas,omitempty"`
	// AcksShortSeconds is for how long AckClients has been less than AcksEnforced.
	AcksShortSeconds int `json:"acksShortSeconds,omitempty"`
	// Acknowledging reports whether this replica's semi-synchronous acknowledgements are on.
	Acknowledging bool `json:"acknowledging,omitempty"`
	// Lease is the lease of this primary; nil if it has none. Clock is the time of this report by the member's own clock.
	Lease *Lease        `json:"lease,omitempty"`
	Clock time.Duration `json:"clock,omitempty"`
	// DelaysCommits means that this primary delays commits, or has within the last minute, because its replicas apply them too slowly.
	DelaysCommits bool `json:"delaysCommits,omitempty"`
	// LagSeconds is Seconds_Behind_Source; nil when MySQL does not know it.
	LagSeconds *int64 `json:"lagSeconds,omitempty"`
	// BehindLately is the largest LagSeconds of the last five minutes, rounded down to 5, 10, 20 or 30 seconds; 0 if it was less, or is not
	// known.
	BehindLately int `json:"behindLately,omitempty"`
	// SourceSilentFor is for how long this replica has got nothing from its primary, not even a heartbeat; 0 if that is not known.
	SourceSilentFor time.Duration `json:"sourceSilentFor,omitempty"`
	// DeafFor is for how long no data from any primary has certainly arrived at this member's machine. None arrives until its receiver is
	// started. It is 0 if that is not known, or if its receiver may run.
	DeafFor time.Duration `json:"deafFor,omitempty"`
	// CloneProgress is the progress of a running copy, in percent.
	CloneProgress *int `json:"cloneProgress,omitempty"`
	// TakesDonor means that the agent's release copies from Assignment.Donor. TriedDonors names the replicas that it has copied, or tried to
	// copy, since it last followed its primary, or last tried to copy that one.
	TakesDonor  bool     `json:"takesDonor,omitempty"`
	TriedDonors []string `json:"triedDonors,omitempty"`
	// CopiedFrom is the server_uuid of the replica of which the member's data is a copy, until the member follows its primary; otherwise
	// empty.
	CopiedFrom string `json:"copiedFrom,omitempty"`
	// OtherEngines, of a primary, are its tables whose engine is not InnoDB; nil until it has searched for them.
	OtherEngines *Tables `json:"otherEngines,omitempty"`
	// TablesWithoutRows are tables whose rows may be missing on the member, because its data is a copy, or comes from a backup, without them.
	// It is nil if that is not known: the member has not searched yet, or its agent's release does not search.
	TablesWithoutRows *Tables `json:"lacking,omitempty"`
	// RootError says why the user's root password could not be put into force; empty if it is in force.
	RootError string `json:"rootError,omitempty"`
	// Disk is the room on the member's volume; zero while it is not known.
	Disk Disk `json:"disk,omitzero"`
	// Probe is how the agent's writes to the volume go.
	Probe VolumeProbe `json:"volumeProbe,omitzero"`
	// LockedOut are the accounts that no client can log in to while this mysqld runs, because the plugin that authenticates them is not
	// active. It is nil until the agent has checked since mysqld started, or if the agent's release does not check.
	LockedOut *Accounts `json:"barred,omitempty"`
	// Transactions is the last observation, at most a minute old while mysqld answers.
	Transactions Transactions `json:"transactions,omitzero"`
	// ReplicaSideDisabled is how many scheduled events do not run on this primary, because they were created or altered on a former one. It is
	// nil until the agent has looked.
	ReplicaSideDisabled *int `json:"replicaSideDisabled,omitempty"`
	// KeepsEvents means that the agent's release keeps Assignment.Events.
	KeepsEvents bool `json:"keepsEvents,omitempty"`
	// Events are the scheduled events of this primary, at most MostEvents; nil until the agent has looked.
	Events *ScheduledEvents `json:"events,omitempty"`
	// TLS identifies the certificate files that mysqld and the agent use (agent.TLSDigest); empty while they are not known.
	TLS string `json:"tls,omitempty"`
}

// leads reports whether mysqld of the primary is open to its replicas. It is open to clients as well (StateWriting), or will be when enough
// replicas have acknowledged everything that it has.
func (s *Status) leads() bool {
	return s != nil && (s.State == StateWriting || s.State == StatePromoting && s.Writable)
}

// Serves reports whether the member may get client traffic in its role.
func (s Status) Serves() bool { return s.State == StateWriting || s.State == StateReplicating }
