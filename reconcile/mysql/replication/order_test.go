package replication

import (
	"errors"
	"strings"
	"testing"
)

// offered is an assignment of this release to a replica, for the start of mysqld that boot names.
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
		"the first one ever":                                   {nil, offered(1, 1, "now"), ""},
		"the same again, for this start of mysqld":             {&last, offered(3, 7, "now"), ""},
		"a later revision":                                     {&last, offered(3, 8, "now").acknowledging(), ""},
		"a later epoch":                                        {&last, offered(4, 1, "now").under("db-1"), ""},
		"an earlier revision":                                  {&last, offered(3, 6, "now"), "revision 6"},
		"an earlier epoch of a higher revision":                {&last, offered(2, 9, "now"), "epoch 2"},
		"another primary in the same epoch":                    {&last, offered(3, 8, "now").under("db-1"), `"db-1"`},
		"something else in the same revision: one was earlier": {&last, offered(3, 7, "now").acknowledging(), "different assignment"},
		"meant for an earlier start of mysqld":                 {&last, offered(3, 8, "before"), "restarted"},
		"the first one ever, meant for the Pod that was there": {nil, offered(1, 1, "before"), "restarted"},
		"the first one ever, meant for no start of mysqld":     {nil, offered(1, 1, ""), "restarted"},
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
				t.Errorf("got %v, want a refusal that speaks of %q", err, test.refused)
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
		"told nothing yet":                  {Status{Protocol: Protocol}, false},
		"told this":                         {Status{Protocol: Protocol, Assignment: &wanted}, true},
		"told this in an earlier revision":  {Status{Protocol: Protocol, Assignment: &before}, false},
		"told this, by an agent of another": {Status{Protocol: Protocol + 1, Assignment: &wanted}, true},
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
		t.Error("an agent that was told something else is taken to follow")
	}
	slow, fast := wanted, wanted
	slow.CopyLimit, fast.CopyLimit = 1<<20, 2<<20
	if !slow.Followed(Status{Protocol: Protocol, Assignment: &wanted}) {
		t.Error("an agent that does not know the limit of copies is told again and again")
	}
	if slow.Followed(Status{Protocol: Protocol, Assignment: &fast}) {
		t.Error("an agent is not told that the limit of copies has changed")
	}
}

// TestDecideTellsAgentsThatDoNotKnowTheLimitOfCopiesOnce: they keep and repeat what they were told without it.
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
			t.Errorf("%s: the record is written anew: %+v", what, got.Record)
		}
		for name, wanted := range got.Assignments {
			if member, _ := s.c.member(name); !wanted.Followed(*member.Status) {
				t.Errorf("%s: %s is told again: %+v", what, name, wanted)
			}
			if limit := wanted.CopyLimit; wanted.Role == RoleReplica && limit == 0 {
				t.Errorf("%s: %s is told nothing, which is how agents repeat what they do not know", what, name)
			}
		}
	}
}

// TestAFormerAgentDoesNotRepeatHowManyMembersThereShallBe: it is told once all the same, and nobody counts revisions on for it.
func TestAFormerAgentDoesNotRepeatHowManyMembersThereShallBe(t *testing.T) {
	t.Parallel()
	told := Assignment{Protocol: Protocol, Record: Record{Epoch: 3, Revision: 7, Primary: "db-0"}, Role: RolePrimary, Boot: "now"}
	wanted := told
	wanted.Members = 3
	if wanted.contradicts(&told) || !wanted.Followed(Status{Protocol: Protocol, Assignment: &told}) {
		t.Error("it is asked again and again")
	}
	more := wanted
	more.Members = 5
	if more.contradicts(&wanted) || more.Followed(Status{Protocol: Protocol, Assignment: &wanted}) {
		t.Error("an agent of this release does not hear that there shall be more")
	}
}

// accepted is what members say that accepted what they are told in the story's record.
func (s *story) accepted() *story {
	for name, assignment := range assignments(s.c) {
		member, _ := s.c.member(name)
		member.Status.Assignment, member.Status.Last = &assignment, &assignment
	}
	return s
}

func TestDecideSaysSomethingElseOnlyInALaterRevision(t *testing.T) {
	t.Parallel()
	t.Run("everybody was told what is still right: nothing is written", func(t *testing.T) {
		t.Parallel()
		s := healthy(t, 3, 1).accepted()
		wantRecord(t, s, s.c.Record)
		if again := Decide(s.c); len(again.Assignments) != 3 {
			t.Errorf("it assigns %v", again.Assignments)
		}
	})
	differs := map[string]*story{
		"the primary was told to wait for one acknowledgement more": healthy(t, 3, 1).accepted().hears(0, StateWriting, enforces(1, 2), lastTold(Assignment{Role: RolePrimary, Acks: 2})),
		"the primary shall be told who is silent":                   healthy(t, 3, 1).accepted().hears(2, StateWaiting, fresh),
		"before its agent restarted, and nobody has spoken since": healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), lastTold(Assignment{Role: RolePrimary, Acks: 2}),
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
				t.Errorf("the next pass decides %+v, want that it is told in revision %d", got, want.Revision)
			}
		})
	}
	t.Run("a new start of mysqld is no reason", func(t *testing.T) {
		t.Parallel()
		s := healthy(t, 2, 1).accepted()
		s.c.Members[0].Status.Boot = "another"
		wantRecord(t, s, s.c.Record)
	})
}

// lastTold is the last assignment that a member of the story's record accepted.
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
		t.Errorf("it does something all the same: %+v", got)
	}
	foreign := healthy(t, 3, 1)
	foreign.c.Members[2].Status.Held.Epoch = 5
	wantNote(t, foreign, ReasonRecordOutdated, true, "db-2", "epoch 5", "its own volume")
	got := Decide(foreign.c)
	if _, told := got.Assignments["db-2"]; told || len(got.Assignments) != 2 {
		t.Errorf("the others are to go on without it: %+v", got.Assignments)
	}
	for what, s := range map[string]*story{"the primary holds this record": healthy(t, 3, 1), "the primary is not heard": healthy(t, 3, 1).silent(0)} {
		s.c.Members[2].Status.Held.Revision = 12
		wantNote(t, s, ReasonRecordOutdated, true, "db-2", "revision 12")
		got := Decide(s.c)
		if _, told := got.Assignments["db-2"]; told || !got.Record.Equal(s.c.Record) {
			t.Errorf("a replica holds a later revision and %s: the record becomes %+v, told are %+v", what, got.Record, got.Assignments)
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
				t.Errorf("they are not told their roles: %+v", got.Assignments)
			}
			stays := map[string]*story{
				"does not join":                healthy(t, 2, 1).on(1, 0, "db-0").hears(0, StateWriting, enforces(0, 0)).hears(1, StateReplicating, other),
				"is not believed to be silent": healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2")).hears(2, StateWaiting, fresh, other),
				"raises nothing":               healthy(t, 2, 1).on(1, 0, "db-0", "db-1").hears(0, StateWriting, enforces(1, 1), other).hears(1, StateReplicating, acking),
				"lets nobody leave":            healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), knows("db-2"), other).hears(2, StateWaiting, fresh),
			}
			for what, s := range stays {
				if got := Decide(s.c).Record; !sameSay(got, s.c.Record) {
					t.Errorf("such a member %s, but the record becomes %+v", what, got)
				}
			}
			degraded := healthy(t, 2, 1).hears(0, StateWriting, enforces(1, 0), shortFor(60), other).silent(1)
			if got := Decide(degraded.c).Record; got.RequiredAcks != 0 {
				t.Errorf("a promise that cannot be kept is not taken back: %+v", got)
			}
		})
	}
}

// sameSay compares records without their numbers.
func sameSay(a, b Record) bool {
	a.Revision = b.Revision
	return a.Equal(b)
}
