package replication

import (
	"fmt"
	"time"
)

// Server is what the agent observed of its own mysqld.
type Server struct {
	// SuperReadOnly reports whether mysqld refuses all writes: super_read_only and read_only are on. It starts so. A pending SET already shows
	// super_read_only on, while commits still return; read_only follows when it is done (seen on 9.7.4).
	SuperReadOnly bool
	// ReadOnly reports whether mysqld refuses the writes of clients without CONNECTION_ADMIN. Alone it is on while mysqld opens.
	ReadOnly   bool
	ServerUUID string
	Executed   GTIDSet
	Purged     GTIDSet
	// Pending is gtid_owned, read before Executed: transactions in progress. On a primary it includes those that wait for acknowledgements.
	Pending GTIDSet
	// SourceAcks is the number of acknowledgements in force, 0 if semi-synchronous replication is off on the source side, also if MySQL has
	// switched it off by itself, or if a user has changed what commits wait for.
	SourceAcks int
	// SourceEnabled reports whether the source side is on, for a certain number of acknowledgements or not.
	SourceEnabled bool
	// ReplicaAcks reports whether rpl_semi_sync_replica_enabled is on.
	ReplicaAcks bool
	// RelayLogLimit is relay_log_space_limit, in bytes; 0 for none.
	RelayLogLimit int64
	// Channel is the state of the default replication channel.
	Channel Channel
}

// isClosed reports whether clients without CONNECTION_ADMIN cannot write: mysqld has not opened, or only half way.
func (s Server) isClosed() bool { return s.SuperReadOnly || s.ReadOnly }

// enforces reports whether commits may wait for acknowledgements.
func (s Server) enforces() bool { return s.SourceEnabled || s.SourceAcks != 0 }

// mayAcknowledge reports whether a receiver acknowledges commits, or would if it started.
func (s Server) mayAcknowledge() bool { return s.ReplicaAcks || s.Channel.AckActive }

// Source is what the agent observed of the primary over its own connection, after it observed its own server. If that failed, Err says why
// and the other fields are empty.
type Source struct {
	// Host is the name by which the server knows itself (report_host). IsClosed reports whether it refuses all writes.
	Host       string
	IsClosed   bool
	ServerUUID string
	Executed   GTIDSet
	Purged     GTIDSet
	// Pending is gtid_owned, read before Executed: transactions in progress there, which the primary may have sent to replicas already.
	Pending GTIDSet
	Err     string
}

// Observed is everything that decides a member's next step.
type Observed struct {
	Assignment *Assignment
	// Boot is the token of this start of mysqld.
	Boot   string
	Origin Origin
	Server Server
	// Source is observed only for a replica, when NeedsSource returns true; nil before that.
	Source *Source
	// Known is the last successful observation of the same primary; nil if there was none since the agent started. Errant is what that
	// observation found.
	Known  *Source
	Errant GTIDSet
	// WasShared is what Shared returned at the last look at a primary since the agent started.
	WasShared GTIDSet
	// TablesWithoutRows are the tables whose rows are missing since the member was made.
	TablesWithoutRows Tables
	// Hollow are transactions of this member that its agent found to change no row, out of those that ToInspect returned.
	Hollow GTIDSet
	// HeldRole is the role that the member had before its agent started. Unassigned is for how long it has waited for the next assignment.
	HeldRole   Role
	Unassigned time.Duration
	// CredentialsCurrent reports whether the channel was set up with the credentials that are in force now. The agent knows that only for
	// channels that it set up itself.
	CredentialsCurrent bool
	// DisconnectedFor is for how long the receiver has not been connected to the primary; 0 while it is connected.
	DisconnectedFor time.Duration
	// ReceiverFor is for how long the receiver has run that the agent started last, and ReceiverAcks reports whether it was started to
	// acknowledge. ReceiverFor is 0 if the agent has started none.
	ReceiverFor  time.Duration
	ReceiverAcks bool
	// HadAsPrimary is what the member had made itself when it was replaced as the primary, until it follows another one; otherwise empty.
	// SetAside is the part of it of which the agent has kept a copy.
	HadAsPrimary, SetAside GTIDSet
	// InDoubt are transactions that the member made as the primary, and that a client may have been told had succeeded although no other
	// member has them.
	InDoubt GTIDSet
	// CannotSetAside means that the agent has tried to set transactions aside, and failed.
	CannotSetAside bool
	// IsForgetful means that the member may have lost transactions that it has acknowledged, and has not observed its primary since.
	IsForgetful bool
	// AppliesAgain means that it is time to start the applier again that an error has stopped (ApplierMemory).
	AppliesAgain bool
	// RelayLogFull means that the member cannot receive more for now (Room).
	RelayLogFull bool
	// IsReopening means that this mysqld was started to open by its replicas: from its start on, it lets exactly the assignment's Receivers
	// follow. Opened is what its agent saw before.
	IsReopening bool
	Opened      Opened
}

// Verb is one action of an agent on its mysqld.
type Verb string

// The verbs. reconcile/mysql/mysqld implements and explains each under the same name.
const (
	VerbNone               Verb = "None"
	VerbSetReadOnly        Verb = "SetReadOnly"
	VerbStopReplica        Verb = "StopReplica"
	VerbStopReceiver       Verb = "StopReceiver"
	VerbApplyReceived      Verb = "ApplyReceived"
	VerbForgetSource       Verb = "ForgetSource"
	VerbEnforceAcks        Verb = "EnforceAcks"
	VerbStopEnforcingAcks  Verb = "StopEnforcingAcks"
	VerbStartAcknowledging Verb = "StartAcknowledging"
	VerbStopAcknowledging  Verb = "StopAcknowledging"
	VerbAcceptWrites       Verb = "AcceptWrites"
	VerbReopen             Verb = "Reopen"
	VerbSetAside           Verb = "SetAside"
	VerbClone              Verb = "Clone"
	VerbPointToSource      Verb = "PointToSource"
	VerbTurnToSource       Verb = "TurnToSource"
	VerbStartReplica       Verb = "StartReplica"
	VerbRestartReceiver    Verb = "RestartReceiver"
)

// Step is the next action, and the state of the member meanwhile.
type Step struct {
	Verb    Verb
	State   State
	Message string
	// NeedsCopy means that the member can follow the primary only after a copy of the primary's data, or a replica's, has replaced its own.
	NeedsCopy bool
	// Errant is what the member has and what is missing on its primary, as far as known. Those of them that are also in Hollow change no
	// row.
	Errant, Hollow GTIDSet
	// SetAside is what VerbSetAside keeps a copy of.
	SetAside GTIDSet
	// Acknowledge means that VerbPointToSource starts a receiver that acknowledges.
	Acknowledge bool
}

// CertainAcks is how many acknowledgements commits certainly wait for from this observation to the next one: the number in force or, if the
// step lowers it, the lower one.
func (s Step) CertainAcks(local Observed) int {
	if s.Verb == VerbStopEnforcingAcks {
		return 0
	}
	if s.Verb == VerbEnforceAcks {
		return min(local.Server.SourceAcks, local.Assignment.Acks)
	}
	return local.Server.SourceAcks
}

// NextStep returns a member's next step: one action. The agent observes again after each.
func NextStep(local Observed) Step { return nextStep(local).explainMissingRows(local) }

func nextStep(local Observed) Step {
	a := local.Assignment
	if a == nil {
		step := unassigned(local.Server)
		step.Hollow = latestOwn(local).Both(local.Hollow)
		return step
	}
	if a.Role == RolePrimary && local.Server.isClosed() && local.Origin.unused() && len(a.Record.InSync) > 0 {
		return Step{Verb: VerbNone, State: StateWaiting, Message: "refuses to serve: the record says that the primary has data, and this volume is new"}
	}
	if a.Role == RolePrimary {
		return primaryStep(*a, local)
	}
	asked := *a
	asked.Acknowledge = a.Acknowledge && !local.RelayLogFull
	step := replicaStep(asked, local)
	if local.RelayLogFull {
		step = relayLogFullStep(step, local.Server.Channel)
	}
	step.Errant = local.currentErrant()
	step.Hollow = hollowToReport(local, step.Errant)
	if local.Server.Channel.running() {
		return markErrant(step, local)
	}
	return step
}

// NeedsSource reports whether the next step depends on what the primary has. That is so for a replica whose replication does not run, for
// one that runs and has transactions of unknown origin, and for one that may connect again, or whose receiver may start again.
func NeedsSource(local Observed) bool {
	if local.Assignment == nil || local.Assignment.Role != RoleReplica || local.Assignment.Record.Primary == "" || !local.Server.SuperReadOnly {
		return false
	}
	channel := local.Server.Channel
	if !channel.running() || !channel.follows(*local.Assignment) {
		return true
	}
	isConnecting := channel.IO != "Yes" && channel.IO != "No"
	return local.Reconnects() || !isConnecting && (local.IsForgetful || local.Known == nil || !errantNotPending(local.Server, *local.Known).Empty())
}

// unassigned leaves a running server as it is: an agent that restarted must not disturb a healthy member while it waits for the operator.
// mysqld itself starts read-only and with replication stopped, so an unsafe server cannot keep running.
func unassigned(server Server) Step {
	if !server.SuperReadOnly && server.ReadOnly {
		return Step{Verb: VerbNone, State: StatePromoting, Message: "takes writes of administrators only; the agent restarted and waits for the operator to confirm"}
	}
	if !server.SuperReadOnly {
		return Step{Verb: VerbNone, State: StateWriting, Message: "takes writes; the agent restarted and waits for the operator to confirm"}
	}
	if server.Channel.running() {
		return Step{Verb: VerbNone, State: StateCatchingUp, Message: "replicates; the agent restarted and waits for the operator to confirm"}
	}
	return Step{Verb: VerbNone, State: StateWaiting, Message: "waits for the operator to assign a role"}
}

// primaryStep returns the step of a primary. While it is closed and nothing is assigned for this start of mysqld, it waits.
func primaryStep(a Assignment, local Observed) Step {
	step := leadStep(a, local)
	if local.Server.SuperReadOnly && a.Boot != local.Boot {
		step.State = StateWaiting
	}
	return step
}

func leadStep(a Assignment, local Observed) Step {
	server := local.Server
	promoting := func(verb Verb, message string) Step { return Step{Verb: verb, State: StatePromoting, Message: message} }
	switch {
	case server.isClosed() && a.Boot != local.Boot && !local.Reopens():
		return Step{Verb: VerbNone, State: StateWaiting, Message: "mysqld restarted; waits for the operator to confirm that this member is still the primary"}
	case server.Channel.running() || server.Channel.unapplied(server.Executed):
		return drain(local, StatePromoting)
	case server.ReplicaAcks:
		return promoting(VerbStopAcknowledging, "stops acknowledging as a replica")
	case a.Acks > 0 && server.SourceAcks != a.Acks:
		return writingOr(server, VerbEnforceAcks, fmt.Sprintf("makes commits wait for %d acknowledgements", a.Acks))
	case a.Acks == 0 && server.enforces():
		return writingOr(server, VerbStopEnforcingAcks, "lets commits return without acknowledgements")
	case server.isClosed():
		return openStep(a, local)
	}
	return writing(server)
}

// writing is the step of a primary that takes writes. It removes its former source now: clients need not wait until relay logs are deleted.
func writing(server Server) Step {
	step := Step{Verb: VerbNone, State: StateWriting, Message: "takes writes"}
	if server.Channel.Configured {
		step.Verb = VerbForgetSource
	}
	return step
}

// drain ends a replication channel without losing a transaction: it stops receiving, applies everything that was received, and then stops
// the channel. For a stopped channel, CHANGE REPLICATION SOURCE and RESET REPLICA delete relay logs (manual, "CHANGE REPLICATION SOURCE TO
// Statement"), and an unapplied transaction in them may have been acknowledged.
func drain(local Observed, state State) Step {
	server, channel := local.Server, local.Server.Channel
	switch {
	case channel.IO != "No":
		return Step{Verb: VerbStopReceiver, State: state, Message: "stops receiving"}
	case channel.unapplied(server.Executed) && channel.SQL == "Yes":
		return Step{Verb: VerbNone, State: state, Message: "applies what it received"}
	case channel.unapplied(server.Executed) && channel.SQLErrno != 0:
		return stoppedApplier(local)
	case channel.unapplied(server.Executed):
		return Step{Verb: VerbApplyReceived, State: state, Message: "applies what it received"}
	}
	return Step{Verb: VerbStopReplica, State: state, Message: "stops replication"}
}

func writingOr(server Server, verb Verb, message string) Step {
	if server.isClosed() {
		return Step{Verb: verb, State: StatePromoting, Message: message}
	}
	return Step{Verb: verb, State: StateWriting, Message: message}
}

func replicaStep(a Assignment, local Observed) Step {
	server := local.Server
	catching := func(verb Verb, message string) Step {
		return Step{Verb: verb, State: StateCatchingUp, Message: message}
	}
	switch {
	case !a.Acknowledge && server.mayAcknowledge():
		return catching(VerbStopAcknowledging, "stops acknowledging commits")
	case !server.SuperReadOnly:
		return catching(VerbSetReadOnly, "stops taking writes: it is a replica")
	case server.enforces():
		return catching(VerbStopEnforcingAcks, "no longer waits for acknowledgements: it is a replica")
	case server.Channel.running() && !server.Channel.follows(a):
		return turnStep(a, local)
	case server.Channel.running():
		return followStep(a, local)
	case server.Channel.SQLErrno != 0 && local.Origin != OriginFresh:
		return stoppedApplier(local)
	case a.Record.Primary == "":
		return catching(VerbNone, "waits until a primary is chosen")
	case !local.sourceObserved():
		return catching(VerbNone, local.askingSource())
	}
	return attachStep(a, local)
}

// askingSource explains why what the primary has is not known.
func (l Observed) askingSource() string {
	if l.Source == nil {
		return "asks the primary which transactions it has"
	}
	return "cannot reach the primary: " + l.Source.Err
}

// attachStep connects a member whose replication does not run to its primary. It uses CLONE if the member's data is new, if the primary has
// purged what the member needs, or if the member was replaced as the primary and has what no client was told had succeeded; otherwise
// replication. Transactions that the primary has in progress do not stop a member from following it, because their commit may wait for
// this very member. But a copy would replace them, so before a copy the primary must have executed them.
func attachStep(a Assignment, local Observed) Step {
	server, source := local.Server, *local.Source
	// If this member has lost transactions that it made, it could give their GTIDs to new ones. With a copy it gets a new server_uuid.
	hasLostOwn := !server.Executed.Union(server.Channel.Retrieved).Contains(source.Executed.OfServer(server.ServerUUID))
	isCopied := local.Origin == OriginFresh || hasLostOwn || !server.Executed.Contains(source.Purged)
	errant := errantNotPending(server, source)
	if isCopied {
		errant = Errant(server.Executed.Union(server.Channel.Retrieved), source)
	}
	errant = errant.Subtract(local.Hollow)
	switch {
	case !errant.Subtract(server.Executed).Empty():
		return applyErrant(a, local, errant)
	case !errant.Empty():
		return errantStep(a, local, errant)
	case isCopied:
		return cloneStep(a)
	case server.Channel.Configured && server.Channel.follows(a) && local.CredentialsCurrent:
		return ackedStart(a, server)
	case server.Channel.Configured && server.Channel.unapplied(server.Executed):
		return drain(local, StateCatchingUp)
	}
	return Step{Verb: VerbPointToSource, State: StateCatchingUp, Message: "sets up replication from the primary " + a.Record.Primary, Acknowledge: a.Acknowledge}
}

// cloneStep copies only over a member that the Record does not rely on. If the data of a member in sync were replaced, the Record would be
// false.
func cloneStep(a Assignment) Step {
	if a.InSync {
		return Step{Verb: VerbNone, State: StateWaiting, Message: "needs a copy of the primary's data; waits to be taken out of the in-sync set first", NeedsCopy: true}
	}
	from := a.Record.Primary
	if a.Donor != nil {
		from = a.Donor.Name + ", a replica"
	}
	return Step{Verb: VerbClone, State: StateCloning, Message: "copies the data of " + from, NeedsCopy: true}
}

func ackedStart(a Assignment, server Server) Step {
	if a.Acknowledge && !server.ReplicaAcks {
		return Step{Verb: VerbStartAcknowledging, State: StateCatchingUp, Message: "starts acknowledging commits"}
	}
	return Step{Verb: VerbStartReplica, State: StateCatchingUp, Message: "starts replication from " + a.Record.Primary}
}

// currentErrant returns what the member has and what is missing on its primary, as far as known: by this observation of the primary or,
// without one, by the last.
func (l Observed) currentErrant() GTIDSet {
	if !l.sourceObserved() {
		return l.Errant
	}
	return errantNotPending(l.Server, *l.Source)
}

// sourceObserved reports whether this observation of the primary succeeded.
func (l Observed) sourceObserved() bool { return l.Source != nil && l.Source.Err == "" }
