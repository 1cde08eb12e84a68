package replication

import (
	"strings"
	"testing"
	"time"
)

// The members of these stories: db-0 is the primary on record, the story's own member is db-1 unless it is the primary.
const (
	bootNow, bootBefore = "this start", "an earlier start"
	primaryUUID         = uuidA
)

// scene is one member's Local, told step by step.
type scene struct {
	t     *testing.T
	local Local
}

func member(t *testing.T) *scene {
	t.Helper()
	return &scene{t: t, local: Local{Boot: bootNow, Origin: OriginMember, Pointed: true, Server: Server{
		SuperReadOnly: true, ServerUUID: uuidB, Executed: gtids(t, "A:1-10"), Channel: Channel{IO: "No", SQL: "No"},
	}}}
}

// asPrimary assigns the primary's role, confirmed for this start.
func (s *scene) asPrimary(acks int) *scene {
	s.local.Assignment = &Assignment{Record: Record{Epoch: 3, Primary: "db-0"}, Role: RolePrimary, Boot: bootNow, Acks: acks}
	return s
}

func (s *scene) asReplica() *scene {
	s.local.Assignment = &Assignment{Record: Record{Epoch: 3, Primary: "db-0"}, Role: RoleReplica, SourceHost: "db-0.pods", SourcePort: 3306}
	return s
}

func (s *scene) acknowledging() *scene {
	s.local.Assignment.Acknowledge, s.local.Assignment.InSync = true, true
	return s
}

// following configures the channel from db-0 with both threads running, up to date.
func (s *scene) following() *scene {
	lag := int64(0)
	s.local.Server.Channel = Channel{Configured: true, SourceHost: "db-0.pods", SourcePort: 3306, IO: "Yes", SQL: "Yes", LagSeconds: &lag}
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

// source is what the member sees of the primary.
func (s *scene) source(executed, purged string) *scene {
	s.local.Source = &Source{ServerUUID: primaryUUID, Executed: gtids(s.t, executed), Purged: gtids(s.t, purged)}
	return s
}

func (s *scene) with(change func(*Local)) *scene {
	change(&s.local)
	return s
}

type stepStory struct {
	scene *scene
	verb  Verb
	state State
	// says is a part of the message; needsCopy what is reported with it.
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
				t.Errorf("it says %q, which should contain %q", got.Message, story.says)
			}
		})
	}
}

func TestStepWithoutAssignment(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a member that just started waits for its role": {
			scene: member(t), verb: VerbNone, state: StateWaiting},
		"a primary whose agent restarted goes on writing, undisturbed": {
			scene: member(t).with(func(l *Local) { l.Server.SuperReadOnly = false }), verb: VerbNone, state: StateWriting},
		"a replica whose agent restarted goes on replicating, undisturbed": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Assignment = nil }), verb: VerbNone, state: StateCatchingUp},
	})
}

func TestPrimaryStep(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a new cluster's primary takes writes": {
			scene: member(t).asPrimary(0), verb: VerbAcceptWrites, state: StatePromoting},
		"a member that lost its mysqld waits for a new confirmation": {
			scene: member(t).asPrimary(0).with(func(l *Local) { l.Assignment.Boot = bootBefore }), verb: VerbNone, state: StateWaiting, says: "restarted"},
		"a primary with a new volume does not serve an empty database": {
			scene: member(t).asPrimary(0).with(func(l *Local) {
				l.Origin, l.Assignment.Record.InSync = OriginFresh, []string{"db-0", "db-1"}
			}), verb: VerbNone, state: StateWaiting, says: "refuses to serve"},
		"a primary that is writing needs no confirmation again when only its agent restarted": {
			scene: member(t).asPrimary(0).with(func(l *Local) { l.Assignment.Boot, l.Server.SuperReadOnly = bootBefore, false }), verb: VerbNone, state: StateWriting},
		"acknowledgements are in force before the first write is taken": {
			scene: member(t).asPrimary(1), verb: VerbEnforceAcks, state: StatePromoting, says: "1"},
		"with them in force it takes writes": {
			scene: member(t).asPrimary(1).with(func(l *Local) { l.Server.SourceAcks = 1 }), verb: VerbAcceptWrites, state: StatePromoting},
		"a writing primary asks for more acknowledgements without a pause": {
			scene: member(t).asPrimary(2).with(func(l *Local) { l.Server.SourceAcks, l.Server.SuperReadOnly = 1, false }), verb: VerbEnforceAcks, state: StateWriting},
		"and for fewer": {
			scene: member(t).asPrimary(1).with(func(l *Local) { l.Server.SourceAcks, l.Server.SuperReadOnly = 2, false }), verb: VerbEnforceAcks, state: StateWriting},
		"and for none once the record allows it": {
			scene: member(t).asPrimary(0).with(func(l *Local) { l.Server.SourceAcks, l.Server.SuperReadOnly = 1, false }), verb: VerbStopEnforcingAcks, state: StateWriting},
		"a primary as it should be is left alone": {
			scene: member(t).asPrimary(1).with(func(l *Local) { l.Server.SourceAcks, l.Server.SuperReadOnly = 1, false }), verb: VerbNone, state: StateWriting},
		"a former replica stops acknowledging before it takes writes": {
			scene: member(t).asPrimary(0).with(func(l *Local) { l.Server.ReplicaAcks = true }), verb: VerbStopAcknowledging, state: StatePromoting},
	})
}

func TestPromotedReplicaLosesNothingItReceived(t *testing.T) {
	t.Parallel()
	promoted := func() *scene { return member(t).asReplica().following().asPrimary(0) }
	tellSteps(t, map[string]stepStory{
		"first it receives no more": {
			scene: promoted().received("A:1-12"), verb: VerbStopReceiver, state: StatePromoting},
		"a receiver that only tries to connect is stopped as well": {
			scene: promoted().with(func(l *Local) { l.Server.Channel.IO = "Connecting" }), verb: VerbStopReceiver, state: StatePromoting},
		"then it waits until all is applied": {
			scene: promoted().received("A:1-12").with(func(l *Local) { l.Server.Channel.IO = "No" }), verb: VerbNone, state: StatePromoting, says: "applies"},
		"an applier that stands still is started, and no receiver": {
			scene: promoted().received("A:1-12").stopped(), verb: VerbApplyReceived, state: StatePromoting},
		"an applier that fails is reported, and nothing thrown away": {
			scene: promoted().received("A:1-12").stopped().with(func(l *Local) {
				l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = 1062, "Duplicate entry"
			}),
			verb: VerbNone, state: StateBroken, says: "Duplicate entry"},
		"when all is applied it stops": {
			scene: promoted().received("A:1-10").with(func(l *Local) { l.Server.Channel.IO = "No" }), verb: VerbStopReplica, state: StatePromoting},
		"and forgets its source": {
			scene: promoted().received("A:1-10").stopped(), verb: VerbForgetSource, state: StatePromoting},
	})
}

func TestReplicaStep(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a member that could be written to stops that first": {
			scene: member(t).asReplica().with(func(l *Local) { l.Server.SuperReadOnly, l.Server.SourceAcks = false, 1 }), verb: VerbSetReadOnly, state: StateCatchingUp},
		"then it no longer waits for acknowledgements": {
			scene: member(t).asReplica().with(func(l *Local) { l.Server.SourceAcks = 1 }), verb: VerbStopEnforcingAcks, state: StateCatchingUp},
		"one that may not acknowledge stops that at once": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Server.ReplicaAcks = true }), verb: VerbStopAcknowledging, state: StateCatchingUp},
		"one that follows another primary drains that channel": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.SourceHost = "db-2.pods" }), verb: VerbStopReceiver, state: StateCatchingUp},
		"so does one whose primary moved to another port": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.SourcePort = 3307 }), verb: VerbStopReceiver, state: StateCatchingUp},
		"it looks at the primary before it attaches": {
			scene: member(t).asReplica(), verb: VerbNone, state: StateCatchingUp},
		"a primary that cannot be reached is waited for": {
			scene: member(t).asReplica().with(func(l *Local) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateCatchingUp, says: "no route"},
		"an applier that failed is not restarted blindly": {
			scene: member(t).asReplica().following().stopped().with(func(l *Local) {
				l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = 1032, "Can't find record"
			}),
			verb: VerbNone, state: StateBroken, says: "Can't find record"},
	})
}

func TestAttachStep(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a fresh member copies the primary": {
			scene: member(t).asReplica().source("A:1-20", "").with(func(l *Local) { l.Origin, l.Server.Executed = OriginFresh, GTIDSet{} }),
			verb:  VerbClone, state: StateCloning, needsCopy: true},
		"a fresh member that the record counts on waits to be taken out first": {
			scene: member(t).asReplica().acknowledging().source("A:1-20", "").with(func(l *Local) { l.Origin, l.Server.Executed = OriginFresh, GTIDSet{} }),
			verb:  VerbNone, state: StateWaiting, needsCopy: true, says: "in-sync"},
		"a member that was away too long copies the primary": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50"), verb: VerbClone, state: StateCloning, needsCopy: true},
		"one in sync that may not acknowledge any more waits all the same": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50").with(func(l *Local) { l.Assignment.InSync = true }), verb: VerbNone, state: StateWaiting, needsCopy: true},
		"so does one in sync, until it is taken out": {
			scene: member(t).asReplica().acknowledging().source("A:1-90", "A:1-50"), verb: VerbNone, state: StateWaiting, needsCopy: true},
		"a member that lacks only what the primary still has turns to it": {
			scene: member(t).asReplica().source("A:1-90", "A:1-10"), verb: VerbPointToSource, state: StateCatchingUp},
		"one that was set up by somebody before is set up anew: its password may be an earlier life's": {
			scene: member(t).asReplica().following().stopped().source("A:1-20", "").with(func(l *Local) { l.Pointed = false }), verb: VerbPointToSource, state: StateCatchingUp},
		"but only once all that it received is applied": {
			scene: member(t).asReplica().following().stopped().received("A:1-12").source("A:1-20", "").with(func(l *Local) { l.Pointed = false }), verb: VerbApplyReceived, state: StateCatchingUp},
		"one that is set up already starts": {
			scene: member(t).asReplica().following().stopped().source("A:1-20", ""), verb: VerbStartReplica, state: StateCatchingUp},
		"one that shall acknowledge turns that on before it connects": {
			scene: member(t).asReplica().acknowledging().following().stopped().source("A:1-20", ""), verb: VerbStartAcknowledging, state: StateCatchingUp},
		"a former replica of another primary applies what it received first": {
			scene: member(t).asReplica().following().stopped().received("A:1-12").source("A:1-20", "").with(func(l *Local) { l.Server.Channel.SourceHost = "db-2.pods" }),
			verb:  VerbApplyReceived, state: StateCatchingUp},
		"and then turns to the new one": {
			scene: member(t).asReplica().following().stopped().received("A:1-10").source("A:1-20", "").with(func(l *Local) { l.Server.Channel.SourceHost = "db-2.pods" }),
			verb:  VerbPointToSource, state: StateCatchingUp},
	})
}

func TestErrantMembersAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	tellSteps(t, map[string]stepStory{
		"a member with a transaction of its own serves nobody": {
			scene: member(t).asReplica().source("A:1-20", "").with(func(l *Local) { l.Server.Executed = gtids(t, "A:1-10,B:1") }),
			verb:  VerbNone, state: StateErrant, says: uuidB + ":1"},
		"not even when a copy would be needed anyway": {
			scene: member(t).asReplica().source("A:1-90", "A:1-50").with(func(l *Local) { l.Server.Executed = gtids(t, "A:1-10,B:1-3") }),
			verb:  VerbNone, state: StateErrant, says: "3 transactions"},
		"a fresh one neither: somebody wrote to it": {
			scene: member(t).asReplica().source("A:1-90", "").with(func(l *Local) { l.Origin, l.Server.Executed = OriginFresh, gtids(t, "B:1") }),
			verb:  VerbNone, state: StateErrant},
		"what was received from a former primary and never applied counts: it may have been acknowledged": {
			scene: member(t).asReplica().following().stopped().received("B:1-4").source("A:1-90", "A:1-50"),
			verb:  VerbNone, state: StateErrant, says: "4 transactions"},
		"a commit of the primary that still waits for acknowledgements there is not errant": {
			scene: member(t).asReplica().following().stopped().received("A:1-21").source("A:1-20", "").with(func(l *Local) { l.Server.Executed = gtids(t, "A:1-21") }),
			verb:  VerbStartReplica, state: StateCatchingUp},
	})
}

func TestFollowStep(t *testing.T) {
	t.Parallel()
	lag := func(seconds int64) func(*Local) {
		return func(l *Local) { l.Server.Channel.LagSeconds = &seconds }
	}
	cut := func(unheard time.Duration) func(*Local) {
		return func(l *Local) {
			l.Server.Channel.IO, l.Server.Channel.LagSeconds, l.Unheard = "Connecting", nil, unheard
			l.Server.Channel.IOErrno, l.Server.Channel.IOError = 2003, "Can't connect"
		}
	}
	acking := func() *scene { return member(t).asReplica().acknowledging().following() }
	tellSteps(t, map[string]stepStory{
		"a replica close behind serves": {
			scene: member(t).asReplica().following(), verb: VerbNone, state: StateReplicating},
		"at the limit it still does": {
			scene: member(t).asReplica().following().with(lag(MaxServingLagSeconds)), verb: VerbNone, state: StateReplicating},
		"beyond it does not": {
			scene: member(t).asReplica().following().with(lag(MaxServingLagSeconds + 1)), verb: VerbNone, state: StateCatchingUp, says: "behind"},
		"one that does not know its lag does not": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.LagSeconds = nil }), verb: VerbNone, state: StateCatchingUp},
		"one that is asked to acknowledge begins": {
			scene: acking(), verb: VerbStartAcknowledging, state: StateReplicating},
		"which takes a new connection": {
			scene: acking().with(func(l *Local) { l.Server.ReplicaAcks = true }), verb: VerbRestartReceiver, state: StateReplicating},
		"then it is as it should be": {
			scene: acking().with(func(l *Local) { l.Server.ReplicaAcks, l.Server.Channel.AckActive = true, true }), verb: VerbNone, state: StateReplicating},
		"while the primary restarts it serves on": {
			scene: member(t).asReplica().following().with(cut(5 * time.Second)), verb: VerbNone, state: StateReplicating},
		"but not for ever": {
			scene: member(t).asReplica().following().with(cut(MaxServingLagSeconds*time.Second + 1)), verb: VerbNone, state: StateCatchingUp, says: "Can't connect"},
		"a receiver that is merely stopped is started again": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.IO = "No" }), verb: VerbStartReplica, state: StateCatchingUp},
		"also one that acknowledged before and shall again": {
			scene: acking().with(func(l *Local) { l.Server.ReplicaAcks, l.Server.Channel.IO = true, "No" }), verb: VerbStartReplica, state: StateCatchingUp},
		"a receiver that failed lets the applier finish what was received": {
			scene: member(t).asReplica().following().received("A:1-12").with(func(l *Local) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno = "No", 1045
			}),
			verb: VerbNone, state: StateCatchingUp, says: "applies"},
		"a password that is no longer in force stops all, to be set up anew": {
			scene: member(t).asReplica().following().with(cut(0)).with(func(l *Local) { l.Server.Channel.IOErrno = 1045 }), verb: VerbStopReplica, state: StateCatchingUp, says: "1045"},
		"then all stops, so that the primary is looked at": {
			scene: member(t).asReplica().following().with(func(l *Local) {
				l.Server.Channel.IO, l.Server.Channel.IOErrno, l.Server.Channel.IOError = "No", 13114, "purged required binary logs"
			}),
			verb: VerbStopReplica, state: StateCatchingUp, says: "purged"},
		"an applier that is merely stopped is started": {
			scene: member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.SQL = "No" }), verb: VerbStartReplica, state: StateCatchingUp},
		"one that failed is reported": {
			scene: member(t).asReplica().following().with(func(l *Local) {
				l.Server.Channel.SQL, l.Server.Channel.SQLErrno, l.Server.Channel.SQLError = "No", 1062, "Duplicate entry"
			}),
			verb: VerbNone, state: StateBroken, says: "1062"},
	})
}

// knowing is what the member saw of the primary before, and found errant then.
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
	pending := func(set string) func(*Local) { return func(l *Local) { l.Source.Pending = gtids(t, set) } }
	tellSteps(t, map[string]stepStory{
		"one that wrote something itself serves nobody, and replicates on": {
			scene: running().having("A:1-10,B:1-2").source("A:1-10", ""), verb: VerbNone, state: StateErrant, says: uuidB + ":1-2"},
		"what is in its relay log counts": {
			scene: running().received("B:1").source("A:1-10", ""), verb: VerbNone, state: StateErrant, says: "1 transactions"},
		"it still does what it is told": {
			scene: running().acknowledging().having("A:1-10,B:1").source("A:1-10", ""), verb: VerbStartAcknowledging, state: StateErrant},
		"also when it is behind": {
			scene: running().having("A:1-10,B:1").source("A:1-10", "").with(func(l *Local) { l.Server.Channel.LagSeconds = nil }), verb: VerbNone, state: StateErrant},
		"a broken one says what broke": {
			scene: running().having("A:1-10,B:1").source("A:1-10", "").with(func(l *Local) { l.Server.Channel.SQLErrno = 1062 }), verb: VerbNone, state: StateBroken, says: "1062"},
		"while the primary cannot be looked at, what was found before holds": {
			scene: running().having("A:1-10,B:1").knowing("A:1-10", "B:1").with(func(l *Local) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateErrant},
		"and nothing is suspected without a look": {
			scene: running().having("A:1-10,B:1").with(func(l *Local) { l.Source = &Source{Err: "no route"} }), verb: VerbNone, state: StateReplicating},
		"once the primary has it, it serves again": {
			scene: running().having("A:1-10,B:1").knowing("A:1-10", "B:1").source("A:1-10,B:1", ""), verb: VerbNone, state: StateReplicating},
		"a commit that waits for acknowledgements at the primary is not errant, whoever's it is": {
			scene: running().having("A:1-11,B:7").source("A:1-10", "").with(pending("B:7")), verb: VerbNone, state: StateReplicating},
	})
}

func TestNeedsSourceOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scene *scene
		want  bool
	}{
		"no assignment":                                           {member(t), false},
		"a primary":                                               {member(t).asPrimary(1), false},
		"a replica that runs, and a new agent":                    {member(t).asReplica().following(), true},
		"one that has only what the primary had":                  {member(t).asReplica().following().knowing("A:1-10", ""), false},
		"and what began on the primary since":                     {member(t).asReplica().following().having("A:1-99").knowing("A:1-10", ""), false},
		"one that has something of elsewhere":                     {member(t).asReplica().following().having("A:1-10,B:1").knowing("A:1-10", ""), true},
		"one that received it":                                    {member(t).asReplica().following().received("B:1").knowing("A:1-10", ""), true},
		"one that leaves another primary":                         {member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.SourceHost = "db-2.pods" }), false},
		"one that the primary is out of reach of, and suspicious": {member(t).asReplica().following().having("B:1").with(func(l *Local) { l.Server.Channel.IO = "Connecting" }), false},
		"a replica that connects":                                 {member(t).asReplica().following().with(func(l *Local) { l.Server.Channel.IO, l.Server.Channel.SQL = "Connecting", "No" }), false},
		"a replica that stands":                                   {member(t).asReplica().following().stopped(), true},
		"a replica to be":                                         {member(t).asReplica(), true},
		"one still writable":                                      {member(t).asReplica().with(func(l *Local) { l.Server.SuperReadOnly = false }), false},
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
