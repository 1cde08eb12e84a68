package replication

import (
	"strings"
	"testing"
	"time"
)

// In these stories db-0 is the primary on record. The story's own member is db-1 unless it is the primary.
const (
	bootNow, bootBefore = "this start", "an earlier start"
	primaryUUID         = uuidA
)

// scene is one member's Local, described step by step.
type scene struct {
	t     *testing.T
	local Observed
}

func member(t *testing.T) *scene {
	t.Helper()
	return &scene{t: t, local: Observed{Boot: bootNow, Origin: OriginMember, CredentialsCurrent: true, Server: Server{
		SuperReadOnly: true, ServerUUID: uuidB, Executed: gtids(t, "A:1-10"), Channel: Channel{IO: "No", SQL: "No"},
	}}}
}

// asPrimary assigns the role of the primary, confirmed for this start.
func (s *scene) asPrimary(acks int) *scene {
	s.local.Assignment = &Assignment{Record: Record{Epoch: 3, Primary: "db-0"}, Role: RolePrimary, Boot: bootNow, Acks: acks}
	return s
}

func (s *scene) asReplica() *scene {
	s.local.Assignment = &Assignment{Record: Record{Epoch: 3, Primary: "db-0"}, Role: RoleReplica, SourceHost: "db-0.pods", SourceAddress: "10.0.0.1", SourcePort: 3306}
	return s
}

func (s *scene) acknowledging() *scene {
	s.local.Assignment.Acknowledge, s.local.Assignment.InSync = true, true
	return s
}

// following configures the channel from db-0, with both threads running and no lag.
func (s *scene) following() *scene {
	lag := int64(0)
	s.local.Server.Channel = Channel{Configured: true, SourceHost: "10.0.0.1", SourcePort: 3306, IO: "Yes", SQL: "Yes", LagSeconds: &lag}
	return s
}

func (s *scene) stopped() *scene {
	s.local.Server.Channel.IO, s.local.Server.Channel.SQL = "No", "No"
	return s
}

func (s *scene) received(set string) *scene {
	s.local.Server.Channel.Retrieved = gtids(s.t, set)
	return s
}

// source sets what the member observes of the primary.
func (s *scene) source(executed, purged string) *scene {
	s.local.Source = &Source{ServerUUID: primaryUUID, Executed: gtids(s.t, executed), Purged: gtids(s.t, purged)}
	return s
}

// replacedPrimary is a member that was the primary until it was replaced, and has these transactions alone.
func replacedPrimary(t *testing.T, alone string) *scene {
	t.Helper()
	s := member(t).asReplica().having("A:1-10,B:1-6").source("A:1-12,B:1-4", "")
	s.local.HadAsPrimary = gtids(t, "A:1-10,B:1-4").Union(gtids(t, alone))
	return s
}

func (s *scene) with(change func(*Observed)) *scene {
	change(&s.local)
	return s
}

type stepStory struct {
	scene *scene
	verb  Verb
	state State
	// says is a part of the message. needsCopy is the expected NeedsCopy.
	says      string
	needsCopy bool
}

func tellSteps(t *testing.T, stories map[string]stepStory) {
	t.Helper()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := NextStep(story.scene.local)
			if got.Verb != story.verb || got.State != story.state || got.NeedsCopy != story.needsCopy {
				t.Errorf("got %s in state %s (needs a copy: %t: %s), want %s in state %s (%t)", got.Verb, got.State, got.NeedsCopy, got.Message, story.verb, story.state, story.needsCopy)
			}
			if got.Message == "" || !strings.Contains(got.Message, story.says) {
				t.Errorf("the message is %q, which should contain %q", got.Message, story.says)
			}
		})
	}
}

func TestStepWithoutAssignment(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a member that has just started waits for its role": {
			scene: member(t), verb: VerbNone, state: StateWaiting},
		"a primary whose agent restarted continues to take writes": {
			scene: member(t).with(func(l *Observed) { l.Server.SuperReadOnly = false }), verb: VerbNone, state: StateWriting},
		"a replica whose agent restarted continues to replicate": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Assignment = nil }), verb: VerbNone, state: StateCatchingUp},
	})
}

func TestPrimaryStep(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a new cluster's primary takes writes": {
			scene: member(t).asPrimary(0), verb: VerbAcceptWrites, state: StatePromoting},
		"a primary whose mysqld restarted waits for a new confirmation": {
			scene: member(t).asPrimary(0).with(func(l *Observed) { l.Assignment.Boot = bootBefore }), verb: VerbNone, state: StateWaiting, says: "restarted"},
		"a primary with a new volume does not serve an empty database": {
			scene: member(t).asPrimary(0).with(func(l *Observed) {
				l.Origin, l.Assignment.Record.InSync = OriginFresh, []string{"db-0", "db-1"}
			}), verb: VerbNone, state: StateWaiting, says: "refuses to serve"},
		"a primary that takes writes needs no new confirmation if only its agent restarted": {
			scene: member(t).asPrimary(0).with(func(l *Observed) { l.Assignment.Boot, l.Server.SuperReadOnly = bootBefore, false }), verb: VerbNone, state: StateWriting},
		"acknowledgements are in force before the primary takes its first write": {
			scene: member(t).asPrimary(1), verb: VerbEnforceAcks, state: StatePromoting, says: "1"},
		"with them in force it takes writes": {
			scene: member(t).asPrimary(1).with(func(l *Observed) { l.Server.SourceAcks = 1 }), verb: VerbAcceptWrites, state: StatePromoting},
		"a user opens it half way before it is confirmed: it waits": {
			scene: member(t).asPrimary(0).with(func(l *Observed) {
				l.Assignment.Boot, l.Server.SuperReadOnly, l.Server.ReadOnly = bootBefore, false, true
			}), verb: VerbNone, state: StateWaiting, says: "restarted"},
		"or with a new volume: it refuses": {
			scene: member(t).asPrimary(0).with(func(l *Observed) {
				l.Origin, l.Assignment.Record.InSync = OriginFresh, []string{"db-0", "db-1"}
				l.Server.SuperReadOnly, l.Server.ReadOnly = false, true
			}), verb: VerbNone, state: StateWaiting, says: "refuses to serve"},
		"a primary that has opened half way, when its agent ended, opens": {
			scene: member(t).asPrimary(1).with(func(l *Observed) { l.Server.SourceAcks, l.Server.SuperReadOnly, l.Server.ReadOnly = 1, false, true }), verb: VerbAcceptWrites, state: StatePromoting},
		"but only with acknowledgements in force": {
			scene: member(t).asPrimary(1).with(func(l *Observed) { l.Server.SuperReadOnly, l.Server.ReadOnly = false, true }), verb: VerbEnforceAcks, state: StatePromoting},
		"a primary that takes writes requires more acknowledgements without a pause": {
			scene: member(t).asPrimary(2).with(func(l *Observed) { l.Server.SourceAcks, l.Server.SuperReadOnly = 1, false }), verb: VerbEnforceAcks, state: StateWriting},
		"and fewer": {
			scene: member(t).asPrimary(1).with(func(l *Observed) { l.Server.SourceAcks, l.Server.SuperReadOnly = 2, false }), verb: VerbEnforceAcks, state: StateWriting},
		"and none once the record allows it": {
			scene: member(t).asPrimary(0).with(func(l *Observed) { l.Server.SourceAcks, l.Server.SuperReadOnly = 1, false }), verb: VerbStopEnforcingAcks, state: StateWriting},
		"a primary that matches its assignment stays as it is": {
			scene: member(t).asPrimary(1).with(func(l *Observed) { l.Server.SourceAcks, l.Server.SuperReadOnly = 1, false }), verb: VerbNone, state: StateWriting},
		"a former replica stops acknowledging before it takes writes": {
			scene: member(t).asPrimary(0).with(func(l *Observed) { l.Server.ReplicaAcks = true }), verb: VerbStopAcknowledging, state: StatePromoting},
	})
}

func TestPromotedReplicaLosesNothingItReceived(t *testing.T) {
	t.Parallel()
	promoted := func() *scene { return member(t).asReplica().following().asPrimary(0) }
	tellSteps(t, map[string]stepStory{
		"first it stops receiving": {
			scene: promoted().received("A:1-12"), verb: VerbStopReceiver, state: StatePromoting},
		"it also stops a receiver that only tries to connect": {
			scene: promoted().with(func(l *Observed) { l.Server.Channel.IO = "Connecting" }), verb: VerbStopReceiver, state: StatePromoting},
		"then it waits until everything is applied": {
			scene: promoted().received("A:1-12").with(func(l *Observed) { l.Server.Channel.IO = "No" }), verb: VerbNone, state: StatePromoting, says: "applies"},
		"it starts a stopped applier, without the receiver": {
			scene: promoted().received("A:1-12").stopped(), verb: VerbApplyReceived, state: StatePromoting},
		"it reports an applier that fails, and deletes nothing": {
			scene: promoted().received("A:1-12").stopped().with(func(l *Observed) {
				l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = 1062, "Duplicate entry"
			}),
			verb: VerbNone, state: StateBroken, says: "Duplicate entry"},
		"it starts that again from time to time": {
			scene: promoted().received("A:1-12").stopped().with(func(l *Observed) { l.Server.Channel.SQLErrno, l.AppliesAgain = 1205, true }),
			verb:  VerbApplyReceived, state: StateBroken, says: "1205"},
		"when everything is applied, it stops the channel": {
			scene: promoted().received("A:1-10").with(func(l *Observed) { l.Server.Channel.IO = "No" }), verb: VerbStopReplica, state: StatePromoting},
		"then it takes writes: clients wait for that": {
			scene: promoted().received("A:1-10").stopped(), verb: VerbAcceptWrites, state: StatePromoting},
		"and then it removes its source": {
			scene: promoted().received("A:1-10").stopped().with(func(l *Observed) { l.Server.SuperReadOnly = false }), verb: VerbForgetSource, state: StateWriting},
	})
}

func TestReplicaStep(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a member that takes writes first stops that": {
			scene: member(t).asReplica().with(func(l *Observed) { l.Server.SuperReadOnly, l.Server.SourceAcks = false, 1 }), verb: VerbSetReadOnly, state: StateCatchingUp},
		"then it no longer waits for acknowledgements": {
			scene: member(t).asReplica().with(func(l *Observed) { l.Server.SourceAcks = 1 }), verb: VerbStopEnforcingAcks, state: StateCatchingUp},
		"a replica that may not acknowledge stops that at once": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.ReplicaAcks = true }), verb: VerbStopAcknowledging, state: StateCatchingUp},
		"a replica that follows another address turns to its primary, and first applies nothing": {
			scene: member(t).asReplica().following().received("A:1-12").source("A:1-20", "").with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }),
			verb:  VerbTurnToSource, state: StateCatchingUp, says: "db-0 at 10.0.0.1"},
		"so does a replica whose primary moved to another port": {
			scene: member(t).asReplica().following().source("A:1-20", "").with(func(l *Observed) { l.Server.Channel.SourcePort = 3307 }), verb: VerbTurnToSource, state: StateCatchingUp},
		"but one whose applier has stopped applies first: MySQL would delete its relay log": {
			scene: member(t).asReplica().following().received("A:1-12").source("A:1-20", "").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.IO, l.Server.Channel.SQL = "10.0.0.2", "No", "No"
			}),
			verb: VerbApplyReceived, state: StateCatchingUp},
		"it serves reads meanwhile if it has followed this primary before": {
			scene: member(t).asReplica().following().source("A:1-20", "").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Known = "10.0.0.2", &Source{ServerUUID: primaryUUID, Executed: gtids(t, "A:1-10")}
			}),
			verb: VerbTurnToSource, state: StateReplicating},
		"it serves no reads meanwhile if it has been without its primary for too long": {
			scene: member(t).asReplica().following().source("A:1-20", "").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.IO, l.DisconnectedFor, l.Known = "10.0.0.2", "Connecting", time.Minute, l.Source
			}),
			verb: VerbTurnToSource, state: StateCatchingUp},
		"it stops receiving from there, and asks the primary first": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }), verb: VerbStopReceiver, state: StateCatchingUp, says: "asks the primary"},
		"it waits for a primary that it cannot ask": {
			scene: member(t).asReplica().following().with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.IO, l.Source = "10.0.0.2", "No", &Source{Err: "no route"}
			}),
			verb: VerbNone, state: StateCatchingUp, says: "no route"},
		"it does not follow a primary that lacks what it has": {
			scene: member(t).asReplica().following().received("A:1-10,B:1").source("A:1-20", "").with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }),
			verb:  VerbStopReceiver, state: StateErrant, says: uuidB + ":1"},
		"and then waits": {
			scene: member(t).asReplica().following().received("A:1-10,B:1").source("A:1-20", "").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.IO = "10.0.0.2", "No"
			}),
			verb: VerbNone, state: StateErrant, says: uuidB + ":1"},
		"what changes no row does not keep it": {
			scene: member(t).asReplica().following().received("A:1-10,B:1").source("A:1-20", "").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Hollow = "10.0.0.2", gtids(t, "B:1")
			}),
			verb: VerbTurnToSource, state: StateCatchingUp},
		"a channel that asks for a position in a file is set up again, after it has applied everything": {
			scene: member(t).asReplica().following().with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.ByPosition = "10.0.0.2", true
			}),
			verb: VerbStopReceiver, state: StateCatchingUp},
		"a replica that turned, and has not started to receive, does so although it has not applied everything": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Observed) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno, l.Server.Channel.IOError = "No", 2003, "Can't connect to MySQL server on '10.0.0.2'"
			}),
			verb: VerbStartReplica, state: StateCatchingUp},
		"so does one whose account was locked when it last tried": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Observed) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno, l.Server.Channel.IOError = "No", 3118, "Account is locked"
			}),
			verb: VerbStartReplica, state: StateCatchingUp},
		"one that lacks purged transactions first applies what it received": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Observed) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno, l.Server.Channel.IOError = "No", 13114, "the source has purged required binary logs"
			}),
			verb: VerbNone, state: StateCatchingUp, says: "applies"},
		"without a running applier that would delete what it received, so it applies that": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.IO, l.Server.Channel.SQL, l.Server.Channel.IOErrno = "10.0.0.2", "No", "No", 0
				l.Source = &Source{ServerUUID: primaryUUID, Executed: gtids(t, "A:1-20")}
			}),
			verb: VerbApplyReceived, state: StateCatchingUp},
		"and stops receiving before it does": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Observed) {
				l.Server.Channel.SourceHost, l.Server.Channel.SQL = "10.0.0.2", "No"
			}),
			verb: VerbStopReceiver, state: StateCatchingUp},
		"a replica that does not know the address of its primary stops receiving from any other": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Assignment.SourceAddress = "" }), verb: VerbStopReceiver, state: StateCatchingUp},
		"a member that is fenced stops receiving": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Assignment.Record.Primary, l.Assignment.SourceAddress = "", "" }), verb: VerbStopReceiver, state: StateCatchingUp},
		"and then waits for the choice of a primary": {
			scene: member(t).asReplica().following().stopped().with(func(l *Observed) { l.Assignment.Record.Primary, l.Assignment.SourceAddress = "", "" }),
			verb:  VerbNone, state: StateCatchingUp, says: "until a primary is chosen"},
		"and says if its applier has failed": {
			scene: member(t).asReplica().following().stopped().with(func(l *Observed) {
				l.Assignment.Record.Primary, l.Assignment.SourceAddress, l.Server.Channel.SQLErrno = "", "", 1032
			}),
			verb: VerbNone, state: StateBroken, says: "1032"},
		"before all else it stops acknowledging, also if a client may write there": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.SuperReadOnly, l.Server.ReplicaAcks = false, true }), verb: VerbStopAcknowledging, state: StateCatchingUp},
		"also if only its receiver still does": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.AckActive = true }), verb: VerbStopAcknowledging, state: StateCatchingUp},
		"it queries the primary before it attaches": {
			scene: member(t).asReplica(), verb: VerbNone, state: StateCatchingUp},
		"it waits for a primary that it cannot reach": {
			scene: member(t).asReplica().with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateCatchingUp, says: "no route"},
		"it does not restart an applier that failed": {
			scene: member(t).asReplica().following().stopped().with(func(l *Observed) {
				l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = 1032, "Can't find record"
			}),
			verb: VerbNone, state: StateBroken, says: "Can't find record"},
		"it does so from time to time, without the receiver": {
			scene: member(t).asReplica().following().stopped().with(func(l *Observed) { l.Server.Channel.SQLErrno, l.AppliesAgain = 1032, true }),
			verb:  VerbApplyReceived, state: StateBroken, says: "1032"},
	})
}

func TestAttachStep(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a fresh member copies the primary": {
			scene: member(t).asReplica().source("A:1-20", "").with(func(l *Observed) { l.Origin, l.Server.Executed = OriginFresh, GTIDSet{} }),
			verb:  VerbClone, state: StateCloning, needsCopy: true},
		"a fresh member in sync waits until it is taken out of the in-sync set": {
			scene: member(t).asReplica().acknowledging().source("A:1-20", "").with(func(l *Observed) { l.Origin, l.Server.Executed = OriginFresh, GTIDSet{} }),
			verb:  VerbNone, state: StateWaiting, needsCopy: true, says: "in-sync"},
		"a member that was away for too long copies the primary": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50"), verb: VerbClone, state: StateCloning, needsCopy: true},
		"a member in sync that may no longer acknowledge waits as well": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50").with(func(l *Observed) { l.Assignment.InSync = true }), verb: VerbNone, state: StateWaiting, needsCopy: true},
		"so does a member in sync, until it is taken out": {
			scene: member(t).asReplica().acknowledging().source("A:1-90", "A:1-50"), verb: VerbNone, state: StateWaiting, needsCopy: true},
		"a member that needs only what the primary still has follows it": {
			scene: member(t).asReplica().source("A:1-90", "A:1-10"), verb: VerbPointToSource, state: StateCatchingUp},
		"a channel that another agent set up is set up again: its password may be from an earlier cluster": {
			scene: member(t).asReplica().following().stopped().source("A:1-20", "").with(func(l *Observed) { l.CredentialsCurrent = false }), verb: VerbPointToSource, state: StateCatchingUp},
		"but only once everything received is applied": {
			scene: member(t).asReplica().following().stopped().received("A:1-12").source("A:1-20", "").with(func(l *Observed) { l.CredentialsCurrent = false }), verb: VerbApplyReceived, state: StateCatchingUp},
		"a channel that is already set up starts": {
			scene: member(t).asReplica().following().stopped().source("A:1-20", ""), verb: VerbStartReplica, state: StateCatchingUp},
		"a member that must acknowledge turns that on before it connects": {
			scene: member(t).asReplica().acknowledging().following().stopped().source("A:1-20", ""), verb: VerbStartAcknowledging, state: StateCatchingUp},
		"a former replica of another primary applies what it received first": {
			scene: member(t).asReplica().following().stopped().received("A:1-12").source("A:1-20", "").with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }),
			verb:  VerbApplyReceived, state: StateCatchingUp},
		"and then follows the new one": {
			scene: member(t).asReplica().following().stopped().received("A:1-10").source("A:1-20", "").with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }),
			verb:  VerbPointToSource, state: StateCatchingUp},
	})
}

func TestErrantMembersAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a member with a transaction of its own serves no clients": {
			scene: member(t).asReplica().source("A:1-20", "").with(func(l *Observed) { l.Server.Executed = gtids(t, "A:1-10,B:1") }),
			verb:  VerbNone, state: StateErrant, says: uuidB + ":1"},
		"not even if it needs a copy anyway": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50").with(func(l *Observed) { l.Server.Executed = gtids(t, "A:1-10,B:1-3") }),
			verb:  VerbNone, state: StateErrant, says: "3 transactions"},
		"a replaced primary keeps a copy of what only it has": {
			scene: replacedPrimary(t, "B:5-6"), verb: VerbSetAside, state: StateCatchingUp, says: "2 transactions"},
		"it needs help if that fails": {
			scene: replacedPrimary(t, "B:5-6").with(func(l *Observed) { l.CannotSetAside = true }), verb: VerbSetAside, state: StateErrant, says: "2 transactions"},
		"then it is copied": {
			scene: replacedPrimary(t, "B:5-6").with(func(l *Observed) { l.SetAside = gtids(t, "B:5-6") }), verb: VerbClone, state: StateCloning, needsCopy: true},
		"also if the copy was interrupted": {
			scene: replacedPrimary(t, "B:5-6").with(func(l *Observed) { l.SetAside, l.Origin = gtids(t, "B:5-6"), OriginFresh }), verb: VerbClone, state: StateCloning, needsCopy: true},
		"what a user wrote on it since stays": {
			scene: replacedPrimary(t, "B:5-6").having("A:1-10,B:1-7"), verb: VerbNone, state: StateErrant, says: "3 transactions"},
		"what clients may have been told had succeeded stays": {
			scene: replacedPrimary(t, "B:5-6").with(func(l *Observed) { l.InDoubt = gtids(t, "B:3-5") }), verb: VerbNone, state: StateErrant, says: "told that " + uuidB + ":5 had succeeded"},
		"what others have is not in doubt any more": {
			scene: replacedPrimary(t, "B:5-6").with(func(l *Observed) { l.InDoubt = gtids(t, "B:3-4") }), verb: VerbSetAside, state: StateCatchingUp, says: "2 transactions"},
		"more than can have waited for acknowledgements stays": {
			scene: replacedPrimary(t, "B:5-10006").having("A:1-10,B:1-10006"), verb: VerbNone, state: StateErrant, says: "10002 transactions"},
		"a member that has lost what it made itself is copied: a receiver would never get that back": {
			scene: replacedPrimary(t, "").having("A:1-10,B:1-3"), verb: VerbClone, state: StateCloning, needsCopy: true},
		"a replaced primary without such transactions follows": {
			scene: replacedPrimary(t, "").having("A:1-10,B:1-4"), verb: VerbPointToSource, state: StateCatchingUp},
		"a replaced primary that the record relies on is not copied": {
			scene: replacedPrimary(t, "B:5-6").with(func(l *Observed) { l.SetAside, l.Assignment.InSync = gtids(t, "B:5-6"), true }), verb: VerbNone, state: StateWaiting, needsCopy: true},
		"nor a fresh member to which a client wrote": {
			scene: member(t).asReplica().source("A:1-90", "").with(func(l *Observed) { l.Origin, l.Server.Executed = OriginFresh, gtids(t, "B:1") }),
			verb:  VerbNone, state: StateErrant},
		"transactions received from a former primary and never applied count: they may have been acknowledged": {
			scene: member(t).asReplica().following().stopped().received("B:1-4").source("A:1-90", "A:1-50"),
			verb:  VerbApplyReceived, state: StateErrant, says: "4 transactions"},
		"a commit of the primary that still waits for acknowledgements there is not errant": {
			scene: member(t).asReplica().following().stopped().received("A:1-21").source("A:1-20", "").with(func(l *Observed) { l.Server.Executed = gtids(t, "A:1-21") }),
			verb:  VerbStartReplica, state: StateCatchingUp},
	})
}

func TestFollowStep(t *testing.T) {
	t.Parallel()
	lag := func(seconds int64) func(*Observed) {
		return func(l *Observed) { l.Server.Channel.LagSeconds = &seconds }
	}
	cut := func(unheard time.Duration) func(*Observed) {
		return func(l *Observed) {
			l.Server.Channel.IO, l.Server.Channel.LagSeconds, l.DisconnectedFor = "Connecting", nil, unheard
			l.Server.Channel.IOErrno, l.Server.Channel.IOError = 2003, "Can't connect"
		}
	}
	acking := func() *scene { return member(t).asReplica().acknowledging().following() }
	tellSteps(t, map[string]stepStory{
		"a replica with little lag serves": {
			scene: member(t).asReplica().following(), verb: VerbNone, state: StateReplicating},
		"at the limit it still serves": {
			scene: member(t).asReplica().following().with(lag(MaxServingLagSeconds)), verb: VerbNone, state: StateReplicating},
		"beyond the limit it does not": {
			scene: member(t).asReplica().following().with(lag(MaxServingLagSeconds + 1)), verb: VerbNone, state: StateCatchingUp, says: "behind"},
		"a replica that does not know its lag does not": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.LagSeconds = nil }), verb: VerbNone, state: StateCatchingUp},
		"a replica whose assignment lets it acknowledge begins": {
			scene: acking(), verb: VerbStartAcknowledging, state: StateReplicating},
		"which takes a new connection": {
			scene: acking().with(func(l *Observed) { l.Server.ReplicaAcks = true }), verb: VerbRestartReceiver, state: StateReplicating},
		"a new connection has time to begin to acknowledge": {
			scene: acking().with(func(l *Observed) { l.Server.ReplicaAcks, l.ReceiverFor, l.ReceiverAcks = true, beginsFor-1, true }), verb: VerbNone, state: StateReplicating},
		"but not without end": {
			scene: acking().with(func(l *Observed) { l.Server.ReplicaAcks, l.ReceiverFor, l.ReceiverAcks = true, beginsFor, true }), verb: VerbRestartReceiver, state: StateReplicating},
		"one that was made before does not acknowledge": {
			scene: acking().with(func(l *Observed) { l.Server.ReplicaAcks, l.ReceiverFor = true, 1 }), verb: VerbRestartReceiver, state: StateReplicating},
		"then it matches its assignment": {
			scene: acking().with(func(l *Observed) { l.Server.ReplicaAcks, l.Server.Channel.AckActive = true, true }), verb: VerbNone, state: StateReplicating},
		"while the primary restarts, it continues to serve": {
			scene: member(t).asReplica().following().with(cut(5 * time.Second)), verb: VerbNone, state: StateReplicating},
		"when the primary is back, it connects at once": {
			scene: member(t).asReplica().following().with(cut(reconnectsFor-1)).source("A:1-12", ""), verb: VerbRestartReceiver, state: StateReplicating},
		"it does not abort a connection that is slow": {
			scene: member(t).asReplica().following().with(cut(time.Second)).source("A:1-12", "").with(func(l *Observed) { l.ReceiverFor, l.Server.Channel.IOErrno = connectsFor-1, 0 }), verb: VerbNone, state: StateReplicating},
		"it tries again at once if the primary had not let it in yet": {
			scene: member(t).asReplica().following().with(cut(time.Second)).source("A:1-12", "").with(func(l *Observed) { l.ReceiverFor, l.Server.Channel.IOErrno = connectsFor-1, 3118 }), verb: VerbRestartReceiver, state: StateReplicating},
		"after a while, it leaves that to the receiver": {
			scene: member(t).asReplica().following().with(cut(reconnectsFor)).source("A:1-12", ""), verb: VerbNone, state: StateReplicating},
		"but not indefinitely": {
			scene: member(t).asReplica().following().with(cut(MaxServingLagSeconds*time.Second + 1)), verb: VerbNone, state: StateCatchingUp, says: "Can't connect"},
		"it starts a receiver again that only stopped": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.IO = "No" }), verb: VerbStartReplica, state: StateCatchingUp},
		"also a receiver that acknowledged before and must again": {
			scene: acking().with(func(l *Observed) { l.Server.ReplicaAcks, l.Server.Channel.IO = true, "No" }), verb: VerbStartReplica, state: StateCatchingUp},
		"a receiver that failed lets the applier finish what was received": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Observed) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno = "No", 1045
			}),
			verb: VerbNone, state: StateCatchingUp, says: "applies"},
		"if the password is no longer in force, it stops the channel to set it up again": {
			scene: member(t).asReplica().following().with(cut(0)).with(func(l *Observed) { l.Server.Channel.IOErrno = 1045 }), verb: VerbStopReplica, state: StateCatchingUp, says: "1045"},
		"then it stops the channel and queries the primary": {
			scene: member(t).asReplica().following().with(func(l *Observed) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno, l.Server.Channel.IOError = "No", 13114, "purged required binary logs"
			}),
			verb: VerbStopReplica, state: StateCatchingUp, says: "purged"},
		"it starts an applier that only stopped": {
			scene: member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.SQL = "No" }), verb: VerbStartReplica, state: StateCatchingUp},
		"it reports an applier that failed": {
			scene: member(t).asReplica().following().with(func(l *Observed) {
				l.Server.Channel.SQL, l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = "No", 1062, "Duplicate entry"
			}),
			verb: VerbNone, state: StateBroken, says: "1062"},
		"it starts that again from time to time": {
			scene: member(t).asReplica().following().with(func(l *Observed) {
				l.Server.Channel.SQL, l.Server.Channel.SQLErrno, l.AppliesAgain = "No", 1205, true
			}),
			verb: VerbApplyReceived, state: StateBroken, says: "1205"},
	})
}

// knowing sets the member's last observation of the primary, and what was errant then.
func (s *scene) knowing(executed, errant string) *scene {
	s.local.Known, s.local.Errant = &Source{ServerUUID: primaryUUID, Executed: gtids(s.t, executed)}, gtids(s.t, errant)
	return s
}

func (s *scene) having(set string) *scene {
	s.local.Server.Executed = gtids(s.t, set)
	return s
}

func TestRunningReplicasAreLookedAtForErrantTransactions(t *testing.T) {
	t.Parallel()
	running := func() *scene { return member(t).asReplica().following() }
	pending := func(set string) func(*Observed) { return func(l *Observed) { l.Source.Pending = gtids(t, set) } }
	tellSteps(t, map[string]stepStory{
		"a replica with a write of its own serves no clients, and continues to replicate": {
			scene: running().having("A:1-10,B:1-2").source("A:1-10", ""), verb: VerbNone, state: StateErrant, says: uuidB + ":1-2"},
		"what is in its relay log counts": {
			scene: running().received("B:1").source("A:1-10", ""), verb: VerbNone, state: StateErrant, says: "1 transactions"},
		"it still follows its assignment": {
			scene: running().acknowledging().having("A:1-10,B:1").source("A:1-10", ""), verb: VerbStartAcknowledging, state: StateErrant},
		"also when it is behind": {
			scene: running().having("A:1-10,B:1").source("A:1-10", "").with(func(l *Observed) { l.Server.Channel.LagSeconds = nil }), verb: VerbNone, state: StateErrant},
		"a broken replica reports the error": {
			scene: running().having("A:1-10,B:1").source("A:1-10", "").with(func(l *Observed) { l.Server.Channel.SQLErrno = 1062 }), verb: VerbNone, state: StateBroken, says: "1062"},
		"while it cannot query the primary, the last result stays valid": {
			scene: running().having("A:1-10,B:1").knowing("A:1-10", "B:1").with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateErrant},
		"without a query of the primary, nothing is errant": {
			scene: running().having("A:1-10,B:1").with(func(l *Observed) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateReplicating},
		"once the primary has the transaction, the replica serves again": {
			scene: running().having("A:1-10,B:1").knowing("A:1-10", "B:1").source("A:1-10,B:1", ""), verb: VerbNone, state: StateReplicating},
		"a commit that waits for acknowledgements on the primary is not errant, on any server it began": {
			scene: running().having("A:1-11,B:7").source("A:1-10", "").with(pending("B:7")), verb: VerbNone, state: StateReplicating},
	})
}

func TestNeedsSourceOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scene *scene
		want  bool
	}{
		"no assignment":                      {member(t), false},
		"a primary":                          {member(t).asPrimary(1), false},
		"a running replica, and a new agent": {member(t).asReplica().following(), true},
		"a replica that has only what the primary had":                 {member(t).asReplica().following().knowing("A:1-10", ""), false},
		"and transactions that began on the primary since":             {member(t).asReplica().following().having("A:1-99").knowing("A:1-10", ""), false},
		"a replica that has a transaction of another server":           {member(t).asReplica().following().having("A:1-10,B:1").knowing("A:1-10", ""), true},
		"a replica that received one":                                  {member(t).asReplica().following().received("B:1").knowing("A:1-10", ""), true},
		"a member that waits for the choice of a primary":              {member(t).asReplica().with(func(l *Observed) { l.Assignment.Record.Primary = "" }), false},
		"a replica that leaves another primary":                        {member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.SourceHost = "10.0.0.2" }), true},
		"a replica that cannot reach the primary, and may be errant":   {member(t).asReplica().following().having("B:1").with(func(l *Observed) { l.Server.Channel.IO, l.DisconnectedFor = "Connecting", reconnectsFor }), false},
		"a replica whose receiver has stopped, and that may be errant": {member(t).asReplica().following().received("B:1").knowing("A:1-10", "B:1").with(func(l *Observed) { l.Server.Channel.IO = "No" }), true},
		"a replica that has just lost its primary":                     {member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.IO, l.DisconnectedFor = "Connecting", reconnectsFor-1 }), true},
		"a replica that is connecting":                                 {member(t).asReplica().following().with(func(l *Observed) { l.Server.Channel.IO, l.Server.Channel.SQL = "Connecting", "No" }), false},
		"a stopped replica":                                            {member(t).asReplica().following().stopped(), true},
		"a future replica":                                             {member(t).asReplica(), true},
		"a member that is still writable":                              {member(t).asReplica().with(func(l *Observed) { l.Server.SuperReadOnly = false }), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := NeedsSource(test.scene.local); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
