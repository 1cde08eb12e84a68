package replication

import (
	"fmt"
	"slices"
	"time"
)

// turnStep changes the source of a running channel. While the applier runs, MySQL keeps the relay log, so nothing must be applied first.
// While it does not run, MySQL would delete the relay log (manual, "CHANGE REPLICATION SOURCE TO Statement"). The primary may be another
// one than before, so a member that has errant transactions does not follow it.
func turnStep(a Assignment, local Observed) Step {
	server := local.Server
	if server.Channel.SQL != "Yes" || server.Channel.ByPosition || a.SourceAddress == "" {
		return drain(local, StateCatchingUp)
	}
	turning := Step{Verb: VerbNone, State: StateCatchingUp, Message: local.askingSource()}
	if local.Known != nil && local.DisconnectedFor <= MaxServingLagSeconds*time.Second {
		turning.State = StateReplicating // the same primary, at another address
	}
	if !local.sourceObserved() {
		if server.Channel.IO != "No" {
			turning.Verb = VerbStopReceiver // it must acknowledge to no other server meanwhile, and is sooner to turn
		}
		return turning
	}
	if errant := errantNotPending(server, *local.Source).Subtract(local.Hollow); !errant.Empty() {
		return stopErrant(server, errantMessage(errant, a.Record.Primary))
	}
	turning.Verb, turning.Message = VerbTurnToSource, "receives from the primary "+a.Record.Primary+" at "+a.SourceAddress
	return turning
}

// stopErrant stops the receiver of a member that must not follow its primary.
func stopErrant(server Server, message string) Step {
	step := Step{Verb: VerbNone, State: StateErrant, Message: message}
	if server.Channel.IO != "No" {
		step.Verb = VerbStopReceiver
	}
	return step
}

// reconnectsFor is for how long a replica that has lost its connection asks whether the primary is back. The receiver itself tries only
// once a second (SOURCE_CONNECT_RETRY).
const reconnectsFor = 10 * time.Second

// connectsFor is how long a receiver gets to connect, and beginsFor how long to connect and begin to acknowledge, before the agent starts
// it again: that would abort a connection that is slow.
const (
	connectsFor = time.Second
	beginsFor   = 5 * time.Second
)

// Reconnects reports whether the replica has lost the connection to its primary a short while ago. A receiver that has just started may be
// connecting, unless its first attempt has failed: the primary may have refused it a moment before it let members in.
func (l Observed) Reconnects() bool {
	channel := l.Server.Channel
	connects := l.ReceiverFor > 0 && l.ReceiverFor < connectsFor && channel.IOErrno == 0
	return channel.IO == "Connecting" && channel.SQL == "Yes" && l.DisconnectedFor < reconnectsFor && !connects
}

// begins reports whether the receiver is about to acknowledge.
func (l Observed) begins() bool {
	return l.ReceiverAcks && l.ReceiverFor > 0 && l.ReceiverFor < beginsFor
}

// followStep keeps a running replica as its assignment demands.
func followStep(a Assignment, local Observed) Step {
	if step, isDue := acknowledgeStep(local); a.Acknowledge && isDue {
		return step
	}
	channel := local.Server.Channel
	switch {
	case channel.SQLErrno != 0:
		return stoppedApplier(local)
	case channel.IO == "No":
		return receiveAgain(a, local)
	case channel.IO != "Yes":
		return reconnectStep(channel, local)
	case channel.SQL != "Yes":
		return Step{Verb: VerbStartReplica, State: StateCatchingUp, Message: "starts applying"}
	case channel.LagSeconds == nil || *channel.LagSeconds > MaxServingLagSeconds:
		return Step{Verb: VerbNone, State: StateCatchingUp, Message: lagMessage(channel)}
	}
	return Step{Verb: VerbNone, State: StateReplicating, Message: "follows " + a.Record.Primary}
}

// acknowledgeStep makes a replica acknowledge commits. isDue is false if it does, or is not connected.
func acknowledgeStep(local Observed) (step Step, isDue bool) {
	switch channel := local.Server.Channel; {
	case !local.Server.ReplicaAcks:
		return Step{Verb: VerbStartAcknowledging, State: StateReplicating, Message: "starts acknowledging commits"}, true
	case channel.AckActive || channel.IO != "Yes":
		return Step{}, false
	case local.begins():
		return Step{Verb: VerbNone, State: StateReplicating, Message: "connects to acknowledge commits"}, true
	}
	return Step{Verb: VerbRestartReceiver, State: StateReplicating, Message: "reconnects to acknowledge commits"}, true
}

// receiveAgain returns the step of a replica that applies and does not receive. If it has received something that its primary does not
// have, it stops, and the agent compares it with the primary again (attachStep). What a user wrote on a replica that runs stops nothing.
func receiveAgain(a Assignment, local Observed) Step {
	server, channel := local.Server, local.Server.Channel
	errant := local.currentErrant().Subtract(local.Hollow).Both(channel.Retrieved)
	switch {
	case !errant.Empty():
		return applyErrant(a, local, errant)
	case channel.IOErrno == 0 || isConnectError(channel.IOErrno):
		return Step{Verb: VerbStartReplica, State: StateCatchingUp, Message: "receives from " + a.Record.Primary + " again"}
	case channel.unapplied(server.Executed):
		return Step{Verb: VerbNone, State: StateCatchingUp, Message: "applies what it received before"}
	}
	return Step{Verb: VerbStopReplica, State: StateCatchingUp, Message: fmt.Sprintf("receiving failed: error %d: %s", channel.IOErrno, channel.IOError)}
}

// isConnectError reports whether an error of the receiver came from an attempt to connect. A stopped receiver still shows it. These are the
// errors of clients, and those of a server that refuses the connection for now; a refused password is another case.
func isConnectError(number int) bool {
	const tooMany, tooManyErrors, hostNotAllowed, refusesClients, accountLocked = 1040, 1129, 1130, 3032, 3118
	return number >= 2000 && number < 3000 || slices.Contains([]int{tooMany, tooManyErrors, hostNotAllowed, refusesClients, accountLocked}, number)
}

// reconnectStep returns the step of a replica that tries to connect to its primary.
func reconnectStep(channel Channel, local Observed) Step {
	switch {
	case channel.Refused():
		return Step{Verb: VerbStopReplica, State: StateCatchingUp, Message: "sets up replication again: the primary refuses the account " + connectProblem(channel)}
	case local.Reconnects() && local.sourceObserved():
		return Step{Verb: VerbRestartReceiver, State: StateReplicating, Message: "connects to the primary, which is back"}
	case channel.SQL == "Yes" && local.DisconnectedFor <= MaxServingLagSeconds*time.Second:
		return Step{Verb: VerbNone, State: StateReplicating, Message: "continues to serve reads while it cannot reach the primary"}
	}
	return Step{Verb: VerbNone, State: StateCatchingUp, Message: "connects to the primary " + connectProblem(channel)}
}

// Refused reports whether the primary does not accept the channel's account and password any more.
func (c Channel) Refused() bool { return c.IO == "Connecting" && c.IOErrno == errAccessDenied }

// errAccessDenied is ER_ACCESS_DENIED_ERROR: the channel was set up with a password that is no longer in force.
const errAccessDenied = 1045

// MaxServingLagSeconds is the replica lag up to which a replica serves reads. It is also for how long a replica serves reads without its
// primary.
const MaxServingLagSeconds = 30

func lagMessage(channel Channel) string {
	if channel.LagSeconds == nil {
		return "does not know yet how far it is behind the primary"
	}
	return fmt.Sprintf("more than %d seconds behind the primary", MaxServingLagSeconds)
}

func connectProblem(channel Channel) string {
	if channel.IOErrno == 0 {
		return ""
	}
	return fmt.Sprintf("(error %d: %s)", channel.IOErrno, channel.IOError)
}
