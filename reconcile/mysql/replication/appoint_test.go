package replication

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecideAppointsTheFirstPrimaryOfANewCluster(t *testing.T) {
	t.Parallel()
	first := Record{Epoch: 1, Revision: 1, Primary: "db-0"}
	t.Run("nothing exists: the StatefulSet gets its members", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 3)
		wantNote(t, s, ReasonWaitingForMembers, false, "first member")
		if got := Decide(s.c); got.Scale != 3 || got.Record.Primary != "" {
			t.Errorf("got scale %d and primary %q", got.Scale, got.Record.Primary)
		}
	})
	t.Run("the first member is starting: the operator waits for it, although the second answers", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2).hears(0, StateStarting, fresh).hears(1, StateWaiting, fresh)
		wantNote(t, s, ReasonWaitingForMembers, false)
	})
	t.Run("the first member answers: it is the primary of epoch 1, in sync once it writes", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2).hears(0, StateWaiting, fresh)
		wantRecord(t, s, first)
	})
	t.Run("its assignment has the token of its start, and commits do not wait yet", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2).hears(0, StateWaiting, fresh).hears(1, StateWaiting, fresh)
		s.c.Record = first
		want := map[string]Assignment{
			"db-0": {Protocol: Protocol, Record: first, Role: RolePrimary, Boot: "boot-db-0", Members: 2},
			"db-1": {Protocol: Protocol, Record: first, Role: RoleReplica, Boot: "boot-db-1", SourceHost: "db-0.pods", SourceAddress: "10.0.0.1", SourcePort: 3306, CopyLimit: DefaultCopyLimit},
		}
		if diff := cmp.Diff(want, Decide(s.c).Assignments); diff != "" {
			t.Errorf("assignments (-want +got):\n%s", diff)
		}
	})
	t.Run("it writes: it is the first member in sync", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2)
		s.c.Record = first
		wantRecord(t, s.hears(0, StateWriting, enforces(0, 0)), rec(1, 0, "db-0"))
	})
	t.Run("until then no other member joins", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2)
		s.c.Record = first
		wantRecord(t, s.hears(0, StatePromoting).hears(1, StateReplicating), first)
	})
}

func TestDecideAdoptsRetainedData(t *testing.T) {
	t.Parallel()
	last := rec(4, 1, "db-1", "db-0", "db-2")
	adopting := func(t *testing.T, replicas int) *story {
		t.Helper()
		return wanting(t, replicas).scaled(replicas).older(0, 1, 2)
	}
	whole := func(t *testing.T, replicas int) *story {
		t.Helper()
		s := adopting(t, replicas).hears(0, StateWaiting, holding(last)).hears(1, StateWaiting, holding(last), wasPrimary)
		if replicas > 2 {
			s.hears(2, StateWaiting, holding(last))
		}
		return s
	}
	t.Run("all members must report first", func(t *testing.T) {
		t.Parallel()
		wantNote(t, whole(t, 3).silent(1), ReasonWaitingForMembers, false, "db-1")
		wantNote(t, whole(t, 3).hears(2, StateStarting), ReasonWaitingForMembers, false, "db-2")
	})
	t.Run("the former primary is the primary again, although it is not the first member", func(t *testing.T) {
		t.Parallel()
		wantRecord(t, whole(t, 3), rec(5, 0, "db-1"))
	})
	t.Run("another one may have replaced it, and is not read", func(t *testing.T) {
		t.Parallel()
		alone := func(replicas int, older ...int) *story {
			return wanting(t, replicas).scaled(replicas).older(older...).hears(0, StateWaiting, holding(rec(4, 1, "db-0", "db-1", "db-2")), wasPrimary)
		}
		wantNote(t, alone(1, 0, 2), ReasonAdoptionBlocked, true, "which may have replaced it: db-2", "raise spec.replicas")
		wantNote(t, whole(t, 2), ReasonAdoptionBlocked, true, "which may have replaced it: db-2", "raise spec.replicas")
		wantRecord(t, alone(1, 0), rec(5, 0, "db-0")) // there is nothing else to read
	})
	t.Run("a former primary whose mysqld is still starting has not reported what it has", func(t *testing.T) {
		t.Parallel()
		s := whole(t, 3).hears(1, StateStarting, holding(last), wasPrimary, has(""))
		s.c.Replicas = 1
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-1", "spec.replicas")
	})
	t.Run("a former replica that holds more is chosen: its commit waited for the primary's acknowledgement", func(t *testing.T) {
		t.Parallel()
		wantRecord(t, whole(t, 3).hears(2, StateWaiting, holding(last), has("A:1-11")), rec(5, 0, "db-2"))
	})
	t.Run("a member whose own data does not count still knows the last epoch: the next one is later", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2).older(0, 1).hears(0, StateWaiting, holding(last), wasPrimary)
		later := rec(6, 0, "db-0")
		later.Revision = 30
		got := Decide(s.hears(1, StateWaiting, fresh, holding(later)).c).Record
		if got.Epoch != 7 || got.Revision != 31 {
			t.Errorf("it would be refused: %+v", got)
		}
	})
	t.Run("of two records of one epoch, the later one shows which members were in sync", func(t *testing.T) {
		t.Parallel()
		before, later := rec(4, 1, "db-1", "db-0", "db-2"), rec(4, 0, "db-1")
		later.Revision = 2
		s := wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, holding(before)).hears(1, StateWaiting, fresh, holding(Record{})).hears(2, StateWaiting, holding(later))
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-1", "restore")
	})
	t.Run("what was received and not applied counts", func(t *testing.T) {
		t.Parallel()
		s := whole(t, 3).hears(2, StateWaiting, holding(last), func(t *testing.T, s *Status) { t.Helper(); s.Received = gtids(t, "A:1-11") })
		wantRecord(t, s, rec(5, 0, "db-2"))
	})
	t.Run("a primary that takes writes stays the primary, although a replica was observed later and holds more", func(t *testing.T) {
		t.Parallel()
		s := whole(t, 3).hears(1, StateWriting, holding(last), wasPrimary).hears(2, StateReplicating, holding(last), has("A:1-11"))
		wantRecord(t, s, rec(5, 0, "db-1"))
	})
	t.Run("a primary that may open by its replicas stays the primary, although a replica was observed later and holds more", func(t *testing.T) {
		t.Parallel()
		s := whole(t, 3).hears(1, StateWaiting, holding(last), wasPrimary, reopening).hears(2, StateReplicating, holding(last), has("A:1-11"))
		wantRecord(t, s, rec(5, 0, "db-1"))
	})
	t.Run("a primary that takes writes on an older record than others have seen is not preferred", func(t *testing.T) {
		t.Parallel()
		s := whole(t, 3).hears(0, StateWriting, holding(rec(3, 1, "db-0", "db-1")), wasPrimary).hears(2, StateWaiting, holding(last), has("A:1-11"))
		wantRecord(t, s, rec(5, 0, "db-2"))
	})
	t.Run("a user must decide between volumes that have diverged", func(t *testing.T) {
		t.Parallel()
		s := whole(t, 3).hears(2, StateWaiting, holding(last), has("A:1-9,B:1"))
		wantNote(t, s, ReasonAdoptionBlocked, true, "drop data", "db-2", uuidB+":1")
		wantRecord(t, s, Record{})
	})
	t.Run("the higher epoch shows which member was the last primary", func(t *testing.T) {
		t.Parallel()
		s := adopting(t, 3).hears(0, StateWaiting, holding(rec(3, 1, "db-0", "db-1")), wasPrimary).hears(1, StateWaiting, holding(last), wasPrimary).hears(2, StateWaiting, holding(last))
		wantRecord(t, s, rec(5, 0, "db-1"))
	})
	t.Run("old volumes without data make a new cluster", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2).older(0, 1).hears(0, StateWaiting, fresh).hears(1, StateWaiting, fresh)
		wantRecord(t, s, Record{Epoch: 1, Primary: "db-0"})
	})
	t.Run("copies of a primary that never took a write do not block the adoption", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 2).scaled(2).older(0, 1).hears(0, StateWaiting, fresh, holding(Record{Epoch: 1, Primary: "db-0"})).
			hears(1, StateWaiting, has(""), holding(Record{Epoch: 1, Primary: "db-0"}))
		wantRecord(t, s, rec(2, 0, "db-1"))
	})
	t.Run("data without any record is adopted if all volumes are read", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 1).scaled(1).older(0).hears(0, StateWaiting, holding(Record{}))
		wantRecord(t, s, rec(1, 0, "db-0"))
	})
	t.Run("but not if another volume may be the primary's", func(t *testing.T) {
		t.Parallel()
		s := wanting(t, 1).scaled(1).older(0, 1).hears(0, StateWaiting, holding(Record{}))
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-1", "spec.replicas")
	})
}

func TestDecideAdoptsWithoutTheFormerPrimaryOnlyWhatIsCertain(t *testing.T) {
	t.Parallel()
	last := rec(4, 1, "db-0", "db-1", "db-2")
	lost := func(t *testing.T, record Record) *story {
		t.Helper()
		return wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, fresh, holding(Record{})).
			hears(1, StateWaiting, holding(record)).hears(2, StateWaiting, holding(record), has("A:1-12"))
	}
	t.Run("the replicas that acknowledged are read: the one that has all transactions is the primary", func(t *testing.T) {
		t.Parallel()
		wantRecord(t, lost(t, last), rec(5, 0, "db-2"))
	})
	t.Run("no acknowledgement was required: the newest commits may be lost", func(t *testing.T) {
		t.Parallel()
		wantNote(t, lost(t, rec(4, 0, "db-0", "db-1", "db-2")), ReasonAdoptionBlocked, true, "db-0", "restore")
	})
	t.Run("a replica that may have acknowledged lost its data, too", func(t *testing.T) {
		t.Parallel()
		wantNote(t, lost(t, last).hears(1, StateWaiting, fresh, holding(Record{})), ReasonAdoptionBlocked, true, "db-0")
	})
	t.Run("a replica that may have acknowledged was on a machine that failed", func(t *testing.T) {
		t.Parallel()
		forgetful := func(_ *testing.T, s *Status) { s.IsForgetful = true }
		wantNote(t, lost(t, last).hears(1, StateWaiting, holding(last), forgetful), ReasonAdoptionBlocked, true, "db-0", "machines", "db-1")
		three := rec(4, 2, "db-0", "db-1", "db-2")
		wantRecord(t, lost(t, three).hears(1, StateWaiting, holding(three), forgetful), rec(5, 0, "db-2"))
	})
	t.Run("a volume beyond spec.replicas may be the one that acknowledged, even if an old record does not name it", func(t *testing.T) {
		t.Parallel()
		before := rec(4, 1, "db-0", "db-1") // db-1 was away when db-2 joined
		s := wanting(t, 2).scaled(2).older(0, 1, 2).hears(0, StateWaiting, fresh, holding(Record{})).hears(1, StateWaiting, holding(before))
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-2", "spec.replicas")
	})
}

// TestAnAdoptedMemberThatForgotDoesNotLead: the former primary's volume is lost, and the machine of the member that was chosen fails before
// it has accepted that.
func TestAnAdoptedMemberThatForgotDoesNotLead(t *testing.T) {
	t.Parallel()
	adopted := rec(5, 0, "db-2")
	chosen := func(acks int, says ...saying) *story {
		last := holding(rec(4, acks, "db-0", "db-1", "db-2"))
		s := wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, fresh, holding(Record{})).hears(1, StateWaiting, last)
		s.c.Record = adopted
		return s.hears(2, StateWaiting, append([]saying{last}, says...)...)
	}
	more := func(s *story) *story {
		return s.hears(1, StateWaiting, holding(rec(4, 2, "db-0", "db-1", "db-2")), has("A:1-12"))
	}
	for name, told := range map[string]struct {
		story *story
		asked int
	}{
		"nothing failed: it leads, and the others follow":                                        {chosen(1), 3},
		"its machine failed after it had accepted that, and so had flushed its volume: it leads": {chosen(1, holding(adopted), wasPrimary, forgetfulMember), 3},
		"the other one has every acknowledged commit, and it has all of them: it leads first":    {chosen(2, forgetfulMember), 1},
		"it had forgotten before it was chosen, and the former primary's volume is there": {
			chosen(1, forgetfulMember, has("A:1-12")).hears(0, StateWaiting, holding(rec(4, 1, "db-0", "db-1", "db-2")), wasPrimary), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Decide(told.story.c); len(got.Assignments) != told.asked || got.Assignments["db-2"].Role != RolePrimary {
				t.Errorf("the operator decides %+v, and the note is %+v", got, got.Note)
			}
		})
	}
	for name, told := range map[string]*story{
		"it may have been the only one with a commit": chosen(1, forgetfulMember),
		"another one has more":                        more(chosen(2, forgetfulMember)),
		"its mysqld starts":                           chosen(2).hears(2, StateStarting, holding(rec(4, 2, "db-0", "db-1", "db-2")), forgetfulMember),
		"another one follows it already, so it was in no doubt when it was chosen": chosen(2, forgetfulMember).hears(1, StateWaiting, holding(adopted)),
	} {
		t.Run(name+": it waits for a user", func(t *testing.T) {
			t.Parallel()
			wantNote(t, told, ReasonPrimaryDataLost, true, "db-2 was chosen as the primary", "may be on the primary alone")
			if got := Decide(told.c); len(got.Assignments) > 0 || !got.Record.Equal(adopted) {
				t.Errorf("the operator decides %+v", got)
			}
			wantRecord(t, forcing(told, "db-1.5.1"), Record{Epoch: 6, Revision: 2, FormerPrimary: "db-2"})
		})
	}
	t.Run("the note has a command for another one, and a user may also name the one that was chosen", func(t *testing.T) {
		t.Parallel()
		if note := Decide(more(chosen(2, forgetfulMember)).c).Note; note == nil || note.Force != "db-1.5.1" {
			t.Errorf("the note is %+v", note)
		}
		wantRecord(t, forcing(chosen(1, forgetfulMember), "db-2.5.1"), Record{Epoch: 6, Revision: 2, FormerPrimary: "db-2"})
	})
	t.Run("it does not answer for a moment: the others are assigned nothing meanwhile, and it leads afterwards", func(t *testing.T) {
		t.Parallel()
		if got := Decide(chosen(2, forgetfulMember).silent(2).c); len(got.Assignments) > 0 || !got.Record.Equal(adopted) {
			t.Errorf("the operator decides %+v", got)
		}
	})
	t.Run("a member with a later record does not answer: only that one has the latest commit", func(t *testing.T) {
		t.Parallel()
		last, later := holding(rec(4, 2, "db-0", "db-1", "db-2")), holding(rec(5, 1, "db-0", "db-3"))
		s := wanting(t, 4).scaled(4).older(0, 1, 2, 3).hears(0, StateWaiting, fresh, holding(Record{}))
		s = s.hears(1, StateWaiting, last).hears(2, StateWaiting, last, forgetfulMember).hears(3, StateWaiting, later, has("A:1-12"))
		s.c.Record = rec(6, 0, "db-2")
		for _, what := range []string{"it answers", "it does not answer"} {
			if got := Decide(s.c); len(got.Assignments) > 0 || got.Note == nil || got.Note.Reason != ReasonPrimaryDataLost {
				t.Errorf("%s: the operator decides %+v", what, got)
			}
			s.silent(3)
		}
	})
	t.Run("the resource is applied once more: it does not count as the last primary", func(t *testing.T) {
		t.Parallel()
		s := chosen(1, forgetfulMember).hears(1, StateWaiting, holding(adopted))
		s.c.Record = Record{}
		wantNote(t, s, ReasonAdoptionBlocked, true, "db-2", "machines")
	})
}

func TestDecideStandsStillWhenThePrimaryLacksWhatItMade(t *testing.T) {
	t.Parallel()
	is := func(uuid string) saying { return func(_ *testing.T, s *Status) { s.ServerUUID = uuid } }
	behind := func(state State, says ...saying) *story {
		return healthy(t, 3, 1).hears(0, state, append([]saying{is(uuidA), has("A:1-8")}, says...)...)
	}
	s := behind(StateWaiting)
	wantNote(t, s, ReasonPrimaryDataLost, true, "db-0", "2 transactions", "db-1")
	if got := Decide(s.c); got.Assignments != nil || !got.Record.Equal(s.c.Record) || got.Scale != 3 {
		t.Errorf("the operator acts nevertheless: %+v", got)
	}
	goesOn := map[string]*story{
		"it takes writes, and its status is older than theirs":  behind(StateWriting, enforces(1, 2)),
		"its mysqld does not answer: its status is from before": behind(StateStarting),
		"it was confirmed, and may take writes by now":          behind(StateWaiting, func(_ *testing.T, s *Status) { s.Assignment = &Assignment{Role: RolePrimary, Boot: s.Boot} }),
		"it is about to take writes":                            behind(StatePromoting),
		"it asks its replicas, and has committed for that":      behind(StateWaiting, reopening),
		"they have transactions that it did not make":           behind(StateWaiting, is(uuidB)),
		"it has these transactions in progress":                 behind(StateWaiting, func(t *testing.T, s *Status) { t.Helper(); s.Pending = gtids(t, "A:9-10") }),
		"it has more than they have":                            behind(StateWaiting, has("A:1-99")),
	}
	for what, s := range goesOn {
		if got := Decide(s.c); noted(got) == ReasonPrimaryDataLost || got.Assignments["db-0"].Role != RolePrimary {
			t.Errorf("%s: the note is %+v", what, got.Note)
		}
	}
}

func TestDecideStandsStillWhenThePrimaryLostItsData(t *testing.T) {
	t.Parallel()
	s := wanting(t, 2).scaled(2).on(1, 0, "db-0", "db-1").hears(0, StateWaiting, fresh).hears(1, StateReplicating)
	wantNote(t, s, ReasonPrimaryDataLost, true, "db-0")
	if got := Decide(s.c); got.Assignments != nil || !got.Record.Equal(s.c.Record) || got.Scale != 2 {
		t.Errorf("the operator acts nevertheless: %+v", got)
	}
	starting := wanting(t, 2).scaled(2).on(1, 0, "db-0", "db-1").hears(0, StateStarting, func(_ *testing.T, s *Status) { s.Origin = OriginInitializing })
	wantNote(t, starting.hears(1, StateReplicating), ReasonPrimaryDataLost, true, "db-0")
	newborn := wanting(t, 1).scaled(1)
	newborn.c.Record = Record{Epoch: 1, Revision: 1, Primary: "db-0"}
	if got := Decide(newborn.hears(0, StateWaiting, fresh).c); got.Note != nil || len(got.Assignments) != 1 {
		t.Errorf("the first start of a new primary was taken for a loss: %+v", got)
	}
}
