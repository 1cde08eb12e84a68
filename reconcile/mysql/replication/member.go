package replication

// Role is what a member is asked to be.
type Role string

const (
	// RolePrimary takes writes.
	RolePrimary Role = "Primary"
	// RoleReplica follows the primary and serves reads.
	RoleReplica Role = "Replica"
)

// Protocol is the version of what operator and agents say to each other. It rises when something that a decision rests on gets
// another meaning, or is missing on one side; a field that may be ignored is no reason (protocol.go).
const Protocol = 1

// Assignment is what the operator asks of one member. It is complete: a member needs nothing else to know its place.
type Assignment struct {
	// Protocol is the operator's.
	Protocol int `json:"protocol,omitempty"`
	// Record is the record that the assignment follows from; the member keeps it beside its data, so that the data tells
	// whose it was, should everything else be lost.
	Record Record `json:"record"`
	// Role is the part to play.
	Role Role `json:"role"`
	// Boot repeats the token that the member reported: an assignment is good for one start of mysqld, so that a member which was
	// away never takes writes, or acknowledges, on old orders.
	Boot string `json:"boot,omitempty"`
	// Acks, on a primary, is how many semi-synchronous acknowledgements a commit waits for; 0 waits for none.
	Acks int `json:"acks,omitempty"`
	// Silent, on a primary, names the members in sync that can certainly acknowledge no more. They leave the record once the
	// primary has looked at itself after it was told: what it has executed by then is everything that they may have acknowledged.
	Silent []string `json:"silent,omitempty"`
	// Members, on a primary, is how many members there shall be, itself among them; 0 where an operator of a former release does not say.
	Members int `json:"members,omitempty"`
	// InSync, on a replica, says that the record counts on what this member has: its data must not be replaced.
	InSync bool `json:"inSync,omitempty"`
	// Acknowledge, on a replica, allows it to acknowledge commits.
	Acknowledge bool `json:"acknowledge,omitempty"`
	// SourceHost and SourcePort, on a replica, say where the primary listens.
	SourceHost string `json:"sourceHost,omitempty"`
	SourcePort int    `json:"sourcePort,omitempty"`
	// CopyLimit, on a replica, is how fast it copies the primary's data at most, in bytes per second; 0 only where an older release said so,
	// and is DefaultCopyLimit. It is not among the terms of an assignment (order.go).
	CopyLimit int64 `json:"copyLimit,omitempty"`
}

// DefaultCopyLimit is how fast the primary is read for a copy, in bytes per second, where nobody has said anything: it has clients.
const DefaultCopyLimit = 64 << 20

// Relaxes says whether the assignment lets the member do something that rests on the record: take writes, let commits go on with
// fewer acknowledgements, acknowledge, or have its data replaced. Whoever sends such an assignment first makes certain that the
// record is still the cluster's.
func (a Assignment) Relaxes(now Status) bool {
	if a.Role == RolePrimary {
		return !now.Writable || a.Acks < now.AcksEnforced
	}
	mayBeReplaced := !a.InSync && (now.Assignment == nil || now.Assignment.InSync)
	return mayBeReplaced || a.Acknowledge && !now.Acknowledging
}

// State is where a member stands, in the words that status, events, logs, metrics and docs/ use.
type State string

const (
	// StateStarting: mysqld does not answer yet.
	StateStarting State = "Starting"
	// StateWaiting: mysqld answers, read-only, and the member has no valid assignment.
	StateWaiting State = "Waiting"
	// StateCloning: the member's data is being copied from the primary.
	StateCloning State = "Cloning"
	// StateCatchingUp: replication runs, or is being set up, but the member is not yet up to date.
	StateCatchingUp State = "CatchingUp"
	// StateReplicating: the member follows the primary closely.
	StateReplicating State = "Replicating"
	// StatePromoting: the member is to be the primary and does not take writes yet.
	StatePromoting State = "Promoting"
	// StateWriting: the member is the primary and takes writes.
	StateWriting State = "Writing"
	// StateErrant: the member has transactions that the primary does not have, and that are not hollow; it serves nobody.
	StateErrant State = "Errant"
	// StateBroken: replication stopped on an error that does not pass by itself.
	StateBroken State = "Broken"
)

// AnswersBut begins the message of a member in StateStarting whose mysqld answers: something else has to be done first.
const AnswersBut = "mysqld answers, but"

// Origin says how a member came by its data directory.
type Origin string

const (
	// OriginInitializing: mysqld --initialize may not have finished it, and nobody has used it.
	OriginInitializing Origin = "Initializing"
	// OriginFresh: made by mysqld --initialize and never part of any cluster; nothing in it can be missed.
	OriginFresh Origin = "Fresh"
	// OriginMember: it has played a part in a cluster.
	OriginMember Origin = "Member"
)

// unused says that a data directory has never played a part in a cluster.
func (o Origin) unused() bool { return o == OriginInitializing || o == OriginFresh }

// DiskLevel says how full a member's volume is (agent.diskLevel).
type DiskLevel string

const (
	// DiskRoomy: there is room.
	DiskRoomy DiskLevel = ""
	// DiskPressure: less than 15 % are free.
	DiskPressure DiskLevel = "Pressure"
	// DiskFull: less than 5 %, or than 512 MiB, are free, and commits hang soon.
	DiskFull DiskLevel = "Full"
)

// Disk is the room on a member's volume, in bytes.
type Disk struct {
	Size  int64     `json:"size"`
	Free  int64     `json:"free"`
	Level DiskLevel `json:"level,omitempty"`
}

// Transactions is what a member saw of transactions within the last minute.
type Transactions struct {
	// Prepared is how many are in the state of XA PREPARE, Left how many of them have been for so long that their coordinator seems to have
	// left them; nil while the agent has not looked for so long.
	Prepared int  `json:"prepared,omitempty"`
	Left     *int `json:"left,omitempty"`
	// OldestSeconds is for how long the oldest one has been open.
	OldestSeconds int64 `json:"oldestSeconds,omitempty"`
	// CommitWaitSeconds is for how long nothing has been committed while sessions wait to commit, within the last five seconds.
	CommitWaitSeconds int64 `json:"commitWaitSeconds,omitempty"`
	// History is the length of InnoDB's history list.
	History int64 `json:"history,omitempty"`
}

// Status is what a member reports of itself.
type Status struct {
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
	Origin  Origin `json:"origin,omitempty"`
	// Held is the record that the member keeps beside its data: that of the last assignment it accepted.
	Held Record `json:"held"`
	// HeldRole is the role of that assignment.
	HeldRole Role `json:"heldRole,omitempty"`
	// NeedsCopy says that the member's data has to be replaced by a copy of the primary's before it can follow it.
	NeedsCopy bool `json:"needsCopy,omitempty"`
	// Protocol is the agent's.
	Protocol int `json:"protocol,omitempty"`
	// Assignment is what the member works to now; nil until the operator has spoken since the agent's start.
	Assignment *Assignment `json:"assignment,omitempty"`
	// Last is the last assignment that the member accepted, also before its agent's start: with the same revision it takes no other.
	Last *Assignment `json:"last,omitempty"`
	// Boot is the token that an assignment must repeat.
	Boot string `json:"boot"`
	// Silent is that of the assignment that the member worked to before it looked: what is reported below was seen later.
	Silent []string `json:"silent,omitempty"`

	ServerUUID string `json:"serverUUID,omitempty"`
	Version    string `json:"version,omitempty"`
	// Executed is gtid_executed; Received adds what the relay log holds and is not applied yet.
	Executed GTIDSet `json:"executed"`
	Received GTIDSet `json:"received"`
	// Pending is what is under way and not executed yet. On a primary, replicas may have acknowledged it already.
	Pending GTIDSet `json:"pending,omitzero"`
	// Hollow are transactions that the member made and the primary lacks, and that hold nothing (hollow.go). While the member knows no
	// primary, they are its own latest hollow ones.
	Hollow GTIDSet `json:"hollow,omitzero"`
	// Writable says that clients can write here: super_read_only is off.
	Writable bool `json:"writable"`
	// AcksEnforced is how many acknowledgements commits on this member are certain to wait for until the next report, unless
	// Assignment asks for fewer.
	AcksEnforced int `json:"acksEnforced,omitempty"`
	// AckClients is how many replicas are connected to this member as acknowledging ones.
	AckClients int `json:"ackClients,omitempty"`
	// AcksShortSeconds is for how long AckClients has been less than AcksEnforced.
	AcksShortSeconds int `json:"acksShortSeconds,omitempty"`
	// Acknowledging says that this replica's semi-synchronous acknowledgements are on.
	Acknowledging bool `json:"acknowledging,omitempty"`
	// LagSeconds is Seconds_Behind_Source; nil when MySQL does not know it.
	LagSeconds *int64 `json:"lagSeconds,omitempty"`
	// CloneProgress is the percentage of a running copy.
	CloneProgress *int `json:"cloneProgress,omitempty"`
	// OtherEngines, of a primary, are its tables of other engines than InnoDB; nil while it has not looked for them.
	OtherEngines *Tables `json:"otherEngines,omitempty"`
	// Lacking are tables of which the member may lack rows: it came as a copy, or from a backup, without them. nil while nobody knows: it has
	// not looked yet, or its agent is of a release that does not.
	Lacking *Tables `json:"lacking,omitempty"`
	// RootError says why the user's root password could not be put into force; empty when it is in force.
	RootError string `json:"rootError,omitempty"`
	// Disk is the room on the member's volume; zero while it is not known.
	Disk Disk `json:"disk,omitzero"`
	// Barred are the accounts that nobody can log in to as long as this mysqld runs, since it has no active plugin that authenticates them;
	// nil while the agent has not looked since mysqld's start, or is of a release that does not.
	Barred *Accounts `json:"barred,omitempty"`
	// Transactions is what was seen last, within the minute while mysqld answers.
	Transactions Transactions `json:"transactions,omitzero"`
	// TLS stands for the certificate files that mysqld and the agent use (agent.TLSDigest); empty while that is not known.
	TLS string `json:"tls,omitempty"`
}

// Serves says whether the member may be given client traffic in its role.
func (s Status) Serves() bool { return s.State == StateWriting || s.State == StateReplicating }
