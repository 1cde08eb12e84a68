package replication

import (
	"errors"
	"strings"
	"testing"
)

// offered is an assignment of this release to a replica, for the start of mysqld with the token boot.
func offered(epoch, revision int64, boot string) Assignment {
	return Assignment{Protocol: Protocol, Record: Record{Epoch: epoch, Revision: revision, Primary: "db-0"}, Role: RoleReplica, Boot: boot, InSync: true}
}

func (a Assignment) acknowledging() Assignment { a.Acknowledge = true; return a }
func (a Assignment) under(primary string) Assignment {
	a.Record.Primary = primary
	return a
}

func TestAcceptRefusesWhatComesTooLate(t *testing.T) {
	t.Parallel()
	last := offered(3, 7, "before")
	tests := map[string]struct {
		last    *Assignment
		next    Assignment
		refused string
	}{
		"the first one ever":                                            {nil, offered(1, 1, "now"), ""},
		"the same again, for this start of mysqld":                      {&last, offered(3, 7, "now"), ""},
		"a later revision":                                              {&last, offered(3, 8, "now").acknowledging(), ""},
		"a later epoch":                                                 {&last, offered(4, 1, "now").under("db-1"), ""},
		"an earlier revision":                                           {&last, offered(3, 6, "now"), "revision 6"},
		"an earlier epoch of a higher revision":                         {&last, offered(2, 9, "now"), "epoch 2"},
		"another primary in the same epoch":                             {&last, offered(3, 8, "now").under("db-1"), `"db-1"`},
		"a different one of the same revision: another one was earlier": {&last, offered(3, 7, "now").acknowledging(), "different assignment"},
		"meant for an earlier start of mysqld":                          {&last, offered(3, 8, "before"), "restarted"},
		"the first one ever, meant for the Pod that was there":          {nil, offered(1, 1, "before"), "restarted"},
		"the first one ever, meant for no start of mysqld":              {nil, offered(1, 1, ""), "restarted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var held Record
			if test.last != nil {
				held = test.last.Record
			}
			err := Accept(held, test.last, "now", test.next)
			if test.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var stale *StaleError
			if !errors.As(err, &stale) || !strings.Contains(stale.Reason, test.refused) {
				t.Errorf("got %v, want a refusal that contains %q", err, test.refused)
			}
		})
	}
}

func TestFollowed(t *testing.T) {
	t.Parallel()
	wanted := offered(3, 7, "now")
	before := offered(3, 6, "now")
	tests := map[string]struct {
		now  Status
		want bool
	}{
		"no assignment yet":                      {Status{Protocol: Protocol}, false},
		"this assignment":                        {Status{Protocol: Protocol, Assignment: &wanted}, true},
		"this assignment in an earlier revision": {Status{Protocol: Protocol, Assignment: &before}, false},
		"this assignment, reported by an agent of another protocol": {Status{Protocol: Protocol + 1, Assignment: &wanted}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := wanted.Followed(test.now); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
	if wanted.acknowledging().Followed(Status{Protocol: Protocol, Assignment: &wanted}) {
		t.Error("an agent with another assignment counts as following this one")
	}
	slow, fast := wanted, wanted
	slow.CopyLimit, fast.CopyLimit = 1<<20, 2<<20
	if !slow.Followed(Status{Protocol: Protocol, Assignment: &wanted}) {
		t.Error("an agent that does not know the limit of copies gets it again and again")
	}
	if slow.Followed(Status{Protocol: Protocol, Assignment: &fast}) {
		t.Error("an agent does not get the changed limit of copies")
	}
	there, moved := wanted, wanted
	there.SourceAddress, moved.SourceAddress = "10.0.0.1", "10.0.0.2"
	if moved.Followed(Status{Protocol: Protocol, Assignment: &there}) || !moved.contradicts(&there) {
		t.Error("the new address of the primary's Pod needs no record of its own, so that a late assignment brings the former one back")
	}
	if there.contradicts(&wanted) || wanted.contradicts(&there) {
		t.Error("an address that was not known needs a record of its own")
	}
	if !there.Followed(Status{Protocol: Protocol - 1, Assignment: &wanted}) {
		t.Error("an agent that does not know addresses gets its assignment again and again")
	}
}

// TestDecideTellsAgentsThatDoNotKnowTheLimitOfCopiesOnce: they keep and repeat their assignment without the limit.
func TestDecideTellsAgentsThatDoNotKnowTheLimitOfCopiesOnce(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string]int64{"a limit": 32 << 20, "none": 0} {
		s := healthy(t, 3, 1)
		s.c.CopyLimit = limit
		s.accepted()
		for at := range s.c.Members {
			status := s.c.Members[at].Status
			status.Assignment.CopyLimit = 0
			kept := *status.Assignment
			status.Last = &kept
		}
		got := Decide(s.c)
		if !got.Record.Equal(s.c.Record) {
			t.Errorf("%s: the record is written again: %+v", what, got.Record)
		}
		for name, wanted := range got.Assignments {
			if member, _ := s.c.member(name); !wanted.Followed(*member.Status) {
				t.Errorf("%s: %s gets the assignment again: %+v", what, name, wanted)
			}
			if limit := wanted.CopyLimit; wanted.Role == RoleReplica && limit == 0 {
				t.Errorf("%s: %s gets no limit, as if its agent did not know the field", what, name)
			}
		}
	}
}

// TestAFormerAgentDoesNotRepeatHowManyMembersThereShallBe: it gets the number once nevertheless, and the operator does not keep raising the
// revision for it.
func TestAFormerAgentDoesNotRepeatHowManyMembersThereShallBe(t *testing.T) {
	t.Parallel()
	told := Assignment{Protocol: Protocol, Record: Record{Epoch: 3, Revision: 7, Primary: "db-0"}, Role: RolePrimary, Boot: "now"}
	wanted := told
	wanted.Members = 3
	if wanted.contradicts(&told) || !wanted.Followed(Status{Protocol: Protocol, Assignment: &told}) {
		t.Error("the agent gets the assignment again and again")
	}
	more := wanted
	more.Members = 5
	if more.contradicts(&wanted) || more.Followed(Status{Protocol: Protocol, Assignment: &wanted}) {
		t.Error("an agent of this release does not get the higher number of members")
	}
}

// accepted makes all members report the assignments of the story's record as accepted.
func (s *story) accepted() *story {
	for name, assignment := range assignments(s.c) {
		member, _ := s.c.member(name)
		member.Status.Assignment, member.Status.Last = &assignment, &assignment
	}
	return s
}

func TestDecideSaysSomethingElseOnlyInALaterRevision(t *testing.T) {
	t.Parallel()
	t.Run("all assignments are still right: nothing is written", func(t *testing.T) {
		t.Parallel()
		s := healthy(t, 3, 1).accepted()
		wantRecord(t, s, s.c.Record)
		if again := Decide(s.c); len(again.Assignments) != 3 {
			t.Errorf("the operator assigns %v", again.Assignments)
		}
	})
	differs := map[string]*story{
		"the primary was assigned one acknowledgement more": healthy(t, 3, 1).accepted().hears(0, StateWriting, enforces(1, 2), lastTold(Assignment{Role: RolePrimary, Acks: 2})),
		"the primary must get the silent members":           healthy(t, 3, 1).accepted().hears(2, StateWaiting, fresh),
		"before its agent restarted, without an assignment since": healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), lastTold(Assignment{Role: RolePrimary, Acks: 2}),
			func(_ *testing.T, s *Status) { s.Assignment = nil }),
	}
	for name, s := range differs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := s.c.Record
			want.Revision++
			wantRecord(t, s, want)
			s.c.Record = want
			if got := Decide(s.c); !got.Record.Equal(want) || got.Assignments["db-0"].Record.Revision != want.Revision {
				t.Errorf("the next pass decides %+v, want an assignment of revision %d", got, want.Revision)
			}
		})
	}
	t.Run("a restart of mysqld does not change the record", func(t *testing.T) {
		t.Parallel()
		s := healthy(t, 2, 1).accepted()
		s.c.Members[0].Status.Boot = "another"
		wantRecord(t, s, s.c.Record)
	})
}

// TestReplicasLeaveTheFormerPodOfTheirPrimary: it was deleted by force, and its mysqld may run on with replicas connected to it. The next
// Pod of this name has another address. The replicas are told in a later revision, so that nothing late brings them back, and the next
// mysqld is confirmed for this start only.
func TestReplicasLeaveTheFormerPodOfTheirPrimary(t *testing.T) {
	t.Parallel()
	const next = "10.0.0.9"
	s := healthy(t, 3, 1).accepted()
	s.c.Members[0].Address = next
	s.hears(0, StateWaiting, wasPrimary, func(_ *testing.T, now *Status) { now.Boot = "another" })
	want := s.c.Record
	want.Revision++
	wantRecord(t, s, want)
	s.c.Record = want
	got := Decide(s.c).Assignments
	if primary := got["db-0"]; primary.Role != RolePrimary || primary.Boot != "another" {
		t.Errorf("the primary is assigned %+v", primary)
	}
	for _, name := range []string{"db-1", "db-2"} {
		told := got[name]
		if told.SourceAddress != next || told.Record.Revision != want.Revision {
			t.Errorf("%s is assigned %+v", name, told)
		}
		replica := member(t).asReplica().acknowledging().following()
		replica.local.Assignment.SourceAddress = told.SourceAddress
		replica.local.Server.ReplicaAcks, replica.local.Server.Channel.AckActive = true, true
		if step := NextStep(replica.local); step.Verb != VerbStopReceiver {
			t.Errorf("%s acknowledges to the former Pod, and its next step is %+v", name, step)
		}
	}
}

// lastTold is the last assignment of the story's record that a member accepted.
func lastTold(a Assignment) saying {
	return func(_ *testing.T, s *Status) {
		a.Record = s.Held
		s.Last = &a
	}
}

func TestDecideRaisesOnlyWhatNothingLateCanLower(t *testing.T) {
	t.Parallel()
	s := healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1)).hears(1, StateReplicating, acking)
	s.c.Record.Revision = 9
	wantRecord(t, s, s.c.Record)
	s.c.Members[0].Status.Held = s.c.Record
	wantRecord(t, s, s.c.Record) // what it reports was observed before
	s.c.Members[0].Status.ObservedUnder = s.c.Record.Version()
	want := s.c.Record
	want.RequiredAcks = 1
	wantRecord(t, s, want)
}

func TestDecideStandsStillWhenTheResourceIsOlderThanItsMembers(t *testing.T) {
	t.Parallel()
	restored := healthy(t, 3, 1)
	restored.c.Members[0].Status.Held.Revision = 12
	wantNote(t, restored, ReasonRecordOutdated, true, "db-0", "revision 12", "delete it and apply it again")
	if got := Decide(restored.c); got.Assignments != nil || !got.Record.Equal(restored.c.Record) || got.Scale != 3 {
		t.Errorf("the operator acts nevertheless: %+v", got)
	}
	foreign := healthy(t, 3, 1)
	foreign.c.Members[2].Status.Held.Epoch = 5
	wantNote(t, foreign, ReasonRecordOutdated, true, "db-2", "epoch 5", "its own volume")
	got := Decide(foreign.c)
	if _, told := got.Assignments["db-2"]; told || len(got.Assignments) != 2 {
		t.Errorf("the others must continue without it: %+v", got.Assignments)
	}
	for what, s := range map[string]*story{"the primary holds this record": healthy(t, 3, 1), "the primary does not answer": healthy(t, 3, 1).silent(0)} {
		s.c.Members[2].Status.Held.Revision = 12
		wantNote(t, s, ReasonRecordOutdated, true, "db-2", "revision 12")
		got := Decide(s.c)
		if _, told := got.Assignments["db-2"]; told || !got.Record.Equal(s.c.Record) {
			t.Errorf("a replica holds a later revision and %s: the record becomes %+v, the assignments are %+v", what, got.Record, got.Assignments)
		}
	}
}

func TestDecideDoesNotCountOnAgentsOfAnotherRelease(t *testing.T) {
	t.Parallel()
	speaking := func(protocol int) saying { return func(_ *testing.T, s *Status) { s.Protocol = protocol } }
	for name, protocol := range map[string]int{"older": Protocol - 1, "newer": Protocol + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := speaking(protocol)
			s := healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), other).hears(2, StateReplicating, acking, other)
			wantRecord(t, s, s.c.Record)
			wantNote(t, s, ReasonAgentRelease, false, name+" release", "db-0, db-2", "--agent-image")
			if got := Decide(s.c); len(got.Assignments) != 3 || got.Assignments["db-0"].Boot != "boot-db-0" {
				t.Errorf("they do not get their roles: %+v", got.Assignments)
			}
			stays := map[string]*story{
				"does not join":            healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating, other),
				"does not count as silent": healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2")).hears(2, StateWaiting, fresh, other),
				"does not raise a promise": healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), other).hears(1, StateReplicating, acking),
				"lets no member leave":     healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2"), other).hears(2, StateWaiting, fresh),
			}
			for what, s := range stays {
				if got := Decide(s.c).Record; !sameSay(got, s.c.Record) {
					t.Errorf("such a member %s, but the record becomes %+v", what, got)
				}
			}
			degraded := healthy(t, 2, 1).hears(0, StateWriting, enforces(1, 0), shortFor(60), other).silent(1)
			if got := Decide(degraded.c).Record; got.RequiredAcks != 0 {
				t.Errorf("a promise that cannot be kept is not lowered: %+v", got)
			}
		})
	}
}

// sameSay compares records without their revisions.
func sameSay(a, b Record) bool {
	a.Revision = b.Revision
	return a.Equal(b)
}
