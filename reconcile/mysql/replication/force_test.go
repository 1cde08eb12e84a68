package replication

import (
	"strings"
	"testing"
)

// away is the same cluster with members that have not answered for as long as it takes to count as lost.
func away(s *story, ordinals ...int) *story {
	for _, ordinal := range ordinals {
		s.lost(ordinal)
	}
	return s
}

// forcing is the same cluster with a user's request to make a member the primary, whatever is lost.
func forcing(s *story, request string) *story {
	s.c.Force = request
	return s
}

// lastOfThree is a cluster of three of which db-0, the primary, and db-1 do not answer. Both may have commits that db-2 lacks.
func lastOfThree(t *testing.T) *story {
	t.Helper()
	return away(healthy(t, 3, 1), 0, 1)
}

// lastOfThreeFenced is the same cluster once db-2 has accepted that db-0 is replaced.
func lastOfThreeFenced(t *testing.T) *story {
	t.Helper()
	return away(fencedFromDown(t, 3, 1), 0, 1)
}

func TestAUserMakesAMemberThePrimary(t *testing.T) {
	t.Parallel()
	under := fencing(1, "db-0", "db-1", "db-2")
	chosen := func(primary string, acks int, inSync ...string) Record {
		return Record{Epoch: 2, Revision: 3, Primary: primary, InSync: inSync, RequiredAcks: acks, ForcedEpoch: 2}
	}
	for name, told := range map[string]struct {
		story *story
		want  Record
	}{
		"the only member that is left: it must stop acknowledging first": {
			forcing(lastOfThree(t), "db-2.1.1"), under},
		"then it leads alone": {
			forcing(lastOfThreeFenced(t), "db-2.1.1"), chosen("db-2", 0, "db-2")},
		"the user asks after that": {
			forcing(lastOfThreeFenced(t), "db-2.2.2"), chosen("db-2", 0, "db-2")},
		"it may have lost what it acknowledged": {
			forcing(lastOfThreeFenced(t), "db-2.1.1").hears(2, StateCatchingUp, stopped(under), forgetfulMember), chosen("db-2", 0, "db-2")},
		"the replica of a primary whose commits did not wait for it": {
			forcing(away(fencedFromDown(t, 2, 0), 0).with(func(c *Cluster) { c.Record.InSync = []string{"db-0"} }).hears(1, StateCatchingUp, stopped(Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0", InSync: []string{"db-0"}})), "db-1.1.1"),
			chosen("db-1", 0, "db-1")},
		"of two with different transactions, the other one does not stay in sync": {
			forcing(away(fencedFromDown(t, 3, 1), 0).hears(1, StateCatchingUp, stopped(under), has("A:1-10,B:1")).hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:2")), "db-2.1.1"),
			chosen("db-2", 0, "db-2")},
		"another one that has less stays in sync, and one that has as much counts": {
			forcing(away(fencedFromDown(t, 5, 1), 0, 4).hears(2, StateCatchingUp, stopped(fencing(1, "db-0", "db-1", "db-2", "db-3", "db-4")), has("A:1-9")), "db-1.1.1"),
			chosen("db-1", 1, "db-1", "db-2", "db-3")},
		"a safe choice comes first, whomever the user names": {
			forcing(away(fencedFromDown(t, 3, 1), 0).with(func(c *Cluster) { c.Members[0].UnfencedFor = LostAfter }), "db-2.1.1"),
			Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}},
		"so does the former primary, which is back": {
			forcing(fencedFromDown(t, 3, 1), "db-2.1.1").silent(1).hears(0, StateCatchingUp, stopped(under), closed),
			Record{Epoch: 2, Revision: 3, Primary: "db-0", InSync: under.InSync, RequiredAcks: 1}},
		"the primary answers: the request is outdated": {
			forcing(healthy(t, 3, 1), "db-2.1.1"), Record{Epoch: 1, Revision: 2, Primary: "db-0", InSync: under.InSync, RequiredAcks: 1}},
		"the former primary, which has lost its data and found it again": {
			forcing(lostAndFound(t), "db-0.2.2"), chosen("db-0", 0, "db-0")},
		"the chosen primary that may have lost something, and is the only one left: it is fenced": {
			forcing(away(chosenForgets(t), 0, 2), "db-1.2.3"), Record{Epoch: 3, Revision: 4, FormerPrimary: "db-1", InSync: []string{"db-2"}, RequiredAcks: 1}},
		"a member that cannot apply all that it has does not count": {
			forcing(away(fencedFromDown(t, 4, 1), 0, 3).hears(1, StateBroken, stopped(fencing(1, "db-0", "db-1", "db-2", "db-3")), func(t *testing.T, s *Status) { t.Helper(); s.Executed = gtids(t, "A:1-9") }).
				hears(2, StateCatchingUp, stopped(fencing(1, "db-0", "db-1", "db-2", "db-3")), has("A:1-9")), "db-2.1.1"),
			chosen("db-2", 0, "db-2")},
		"the primary has lost its data, and so has another member": {
			forcing(away(lostPrimary(t, 3, 1), 1), "db-2.1.1"), fencing(1, "db-1", "db-2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.want)
		})
	}
}

// answersLate is a cluster whose members wait for the end of a lease. db-1 may have lost something. The former primary db-0 has not
// answered for long, and does so just now. It has more.
func answersLate(t *testing.T) *story {
	t.Helper()
	s := awaiting(t, 3, 1, 10*LostAfter).hears(0, StateWaiting, has("A:1-12"), wasPrimary, func(_ *testing.T, s *Status) { s.ObservedUnder, s.Closed = Version{}, &Version{} })
	s.c.Members[1].Status.IsForgetful = true
	return s
}

// lostAndFound is a pair whose primary db-0 came back with an empty volume, and was fenced. Now its real volume is back, with more than
// db-1 has.
func lostAndFound(t *testing.T) *story {
	t.Helper()
	s := healthy(t, 2, 0)
	s.c.Record = Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0"}
	return s.hears(0, StateCatchingUp, stopped(s.c.Record), closed, has("A:1-12")).hears(1, StateCatchingUp, stopped(s.c.Record))
}

// TestAUserCannotForceWhatWouldLoseMore than necessary, or what could corrupt the others.
func TestAUserCannotForceWhatWouldLoseMore(t *testing.T) {
	t.Parallel()
	under := fencing(1, "db-0", "db-1", "db-2")
	for name, told := range map[string]struct {
		story *story
		note  string
	}{
		"another member has more": {
			forcing(away(fencedFromDown(t, 4, 1), 0, 3).hears(2, StateCatchingUp, stopped(fencing(1, "db-0", "db-1", "db-2", "db-3")), has("A:1-9")), "db-2.1.1"),
			"db-1 has all that db-2 has, and more"},
		"it does not answer": {forcing(lastOfThreeFenced(t), "db-1.1.1"), "db-1 does not answer"},
		"its data is new": {
			forcing(lastOfThreeFenced(t), "db-2.1.1").hears(2, StateWaiting, stopped(under), fresh), "the data of db-2 is new"},
		"it has lost transactions that it made itself": {
			forcing(away(fencedFromDown(t, 3, 1), 0).hears(1, StateCatchingUp, stopped(under), forgetfulMember, has("A:1-10,B:1-3")).hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:1-2"), func(_ *testing.T, s *Status) { s.ServerUUID = uuidB }), "db-2.1.1"),
			"db-2 has lost transactions that it made itself"},
		"it may still acknowledge": {
			forcing(lastOfThreeFenced(t), "db-2.1.1").hears(2, StateReplicating, acking), "must stop acknowledging commits and taking writes first: db-2"},
		"another one may be back soon": {
			forcing(lastOfThreeFenced(t).with(func(c *Cluster) { c.Members[1].UnheardFor = LostAfter / 2 }), "db-2.1.1"), "may be back: db-1"},
		"it is the former primary": {
			forcing(away(fencedFromDown(t, 3, 1), 1).hears(0, StateCatchingUp, stopped(under)), "db-0.1.1"), "db-0 was the primary"},
		"the former primary has just answered, after the end of its lease": {
			forcing(answersLate(t), "db-2.2.2"), "db-0 has all that db-2 has, and more"},
		"the former primary has just answered, and has as much": {
			forcing(answersLate(t).with(func(c *Cluster) { c.Members[0].Status.Received = c.Members[2].Status.Received }), "db-2.2.2"),
			"must stop acknowledging commits and taking writes first: db-0"},
		"another one has more, and its agent is of another release": {
			forcing(away(fencedFromDown(t, 3, 1), 0).hears(1, StateReplicating, acking, has("A:1-12"), func(_ *testing.T, s *Status) { s.Protocol-- }), "db-2.1.1"),
			"db-1 has all that db-2 has, and more"},
		"its own agent is of another release": {
			forcing(lastOfThreeFenced(t).hears(2, StateCatchingUp, func(_ *testing.T, s *Status) { s.Protocol-- }), "db-2.1.1"), "the agent of db-2 is of another release"},
		"one that does not answer had transactions that it has made itself": {
			forcing(lastOfThreeFenced(t), "db-2.1.1").hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:1-2"), func(_ *testing.T, s *Status) { s.ServerUUID = uuidB }).
				with(func(c *Cluster) { c.Members[1].Had = gtids(t, "A:1-10,B:1-3") }),
			"db-2 has lost transactions that it made itself, and that db-1 has"},
		"another one has the rows that it lacks": {
			forcing(away(fencedFromDown(t, 4, 1), 0, 3).hears(1, StateCatchingUp, stopped(fencing(1, "db-0", "db-1", "db-2", "db-3")), lackingRows), "db-1.1.1"),
			"db-2 has all that db-1 has, and more"},
		"it never stops acknowledging": {
			forcing(lastOfThreeFenced(t), "db-2.1.1").hears(2, StateReplicating, acking).with(func(c *Cluster) { c.Members[2].UnfencedFor = fenceWait }),
			"first: db-2; it does not stop acknowledging: delete its Pod"},
		"the former primary has more, and does not stop taking writes": {
			forcing(answersLate(t).with(func(c *Cluster) { c.Members[0].UnfencedFor = LostAfter }), "db-2.2.2"), "db-0 has all that db-2 has, and more; it does not stop"},
		"the former primary is back with its real volume": {
			forcing(lostAndFound(t), "db-1.1.1"), "db-0 has all that db-1 has, and more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.story.c.Record)
			if note := Decide(told.story.c).Note; note == nil || note.Reason != ReasonReplacingPrimary || !strings.Contains(note.Refusal, told.note) {
				t.Errorf("the note is %+v, want %q", note, told.note)
			}
		})
	}
	for name, s := range map[string]*story{
		"the request is of another epoch":                  forcing(lastOfThree(t), "db-2.2.1"),
		"it is of another revision":                        forcing(lastOfThree(t), "db-2.1.2"),
		"it names no member":                               forcing(lastOfThree(t), "db-7.1.1"),
		"it is empty":                                      forcing(lastOfThree(t), ""),
		"the resource was restored from an older copy":     forcing(lastOfThree(t), "db-2.1.1").hears(2, StateReplicating, holding(Record{Epoch: 1, Revision: 7, Primary: "db-0"})),
		"the primary was not away for long, it may return": forcing(healthy(t, 3, 1).silent(0).silent(1), "db-2.1.1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, s, s.c.Record)
		})
	}
}

// TestTheOperatorOffersToForce when nothing else helps: only then, and once the members are fenced with one that has most.
func TestTheOperatorOffersToForce(t *testing.T) {
	t.Parallel()
	four := fencing(1, "db-0", "db-1", "db-2", "db-3")
	for name, told := range map[string]struct {
		story *story
		want  string
	}{
		"the only member that is left": {lastOfThree(t), "db-2.1.1"},
		"it is fenced":                 {lastOfThreeFenced(t), "db-2.2.2"},
		"a safe takeover can begin":    {away(healthy(t, 3, 1), 0), ""},
		"another member may be back":   {lastOfThree(t).with(func(c *Cluster) { c.Members[1].UnheardFor = LostAfter / 2 }), ""},
		"no member has data":           {away(healthy(t, 3, 1), 0, 1, 2), ""},
		"the member that has most": {
			away(fencedFromDown(t, 4, 1), 0, 3).hears(1, StateCatchingUp, stopped(four), has("A:1-8")), "db-2.2.2"},
		"a member that has all rows": {
			away(fencedFromDown(t, 4, 1), 0, 3).hears(1, StateCatchingUp, stopped(four), lackingRows), "db-2.2.2"},
		"a member whose applier works": {
			away(healthy(t, 4, 1), 0, 3).hears(1, StateBroken), "db-2.1.1"},
		"the user has named one that does not answer": {
			forcing(lastOfThree(t), "db-1.1.1"), "db-2.1.1"},
		"a replica has everything, and must still apply it": {
			away(behind(t, healthy(t, 3, 1)), 0).hears(2, StateReplicating, has("A:1-12")), ""},
		"one that has all rows, also before they are fenced": {
			away(healthy(t, 4, 1), 0, 3).hears(1, StateReplicating, lackingRows), "db-2.1.1"},
		"the former primary, which has lost its data and found it again": {
			lostAndFound(t), "db-0.2.2"},
		"the chosen primary that may have lost something, and is the only one left": {
			away(chosenForgets(t), 0, 2), "db-1.2.3"},
		"the former primary has just answered": {
			answersLate(t), ""},
		"one that has stopped acknowledging": {
			away(fencedFromDown(t, 4, 1), 0, 3).hears(1, StateReplicating, acking).with(func(c *Cluster) { c.Members[1].UnfencedFor = LostAfter }), "db-2.2.2"},
		"the user has named one that does not stop": {
			forcing(away(fencedFromDown(t, 4, 1), 0, 3).hears(1, StateReplicating, acking).with(func(c *Cluster) { c.Members[1].UnfencedFor = LostAfter }), "db-1.1.1"), "db-2.2.2"},
		"all members answer": {
			healthy(t, 3, 0).hears(0, StateStarting, down), ""},
		"the primary has lost its data":         {away(lostPrimary(t, 3, 1), 1), "db-2.1.1"},
		"commits did not wait for the replica":  {away(healthy(t, 2, 0), 0), "db-1.1.1"},
		"the resource is older than its record": {lastOfThree(t).hears(2, StateReplicating, holding(Record{Epoch: 1, Revision: 7, Primary: "db-0"})), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			note := Decide(told.story.c).Note
			if note == nil || note.Force != told.want {
				t.Errorf("the note is %+v, want %q", note, told.want)
			}
		})
	}
}

// TestAForcedPrimaryMayLackRows: the note says so, because no GTID does.
func TestAForcedPrimaryMayLackRows(t *testing.T) {
	t.Parallel()
	s := forcing(lastOfThreeFenced(t), "db-2.1.1").hears(2, StateCatchingUp, stopped(fencing(1, "db-0", "db-1", "db-2")), lackingRows)
	wantNote(t, s, ReasonReplacingPrimary, false, "a user makes db-2 the primary", `lacks the rows of "shop"."carts"`)
	if loses := s.c.Takeover().Loses; !strings.Contains(loses, "not known: a user makes db-2 the primary") {
		t.Errorf("the takeover loses %s", loses)
	}
}

// TestAnAdoptedClusterKeepsTheForcedEpoch: a former primary may learn only from the next resource that a user has chosen another one.
func TestAnAdoptedClusterKeepsTheForcedEpoch(t *testing.T) {
	t.Parallel()
	held := rec(5, 0, "db-1")
	held.ForcedEpoch = 5
	want := rec(6, 0, "db-1")
	want.ForcedEpoch = 5
	wantRecord(t, wanting(t, 2).scaled(2).older(0, 1).hears(0, StateWaiting, holding(rec(4, 1, "db-0", "db-1"))).hears(1, StateWaiting, holding(held), wasPrimary), want)
}

// TestWhatIsLost: members that answer have it, or had it when they answered last. TestTheNextRecordsKeepTheForcedEpoch, also without a
// user: a former primary may learn only from one of them that a user has chosen another one.
func TestTheNextRecordsKeepTheForcedEpoch(t *testing.T) {
	t.Parallel()
	s := fencedFromDown(t, 3, 1)
	s.c.Record.ForcedEpoch = 1
	for ordinal := 1; ordinal < 3; ordinal++ {
		s.hears(ordinal, StateCatchingUp, stopped(s.c.Record))
	}
	if next := Decide(s.c).Record; next.Primary == "" || next.ForcedEpoch != 1 {
		t.Errorf("the next record is %+v", next)
	}
}

func TestWhatIsLost(t *testing.T) {
	t.Parallel()
	s := away(fencedFromDown(t, 4, 1), 0, 1).hears(2, StateCatchingUp, has("A:1-10,B:1")).hears(3, StateCatchingUp, has("A:1-9"))
	s.c.Members[0].Had = gtids(t, "A:1-12")
	if got := s.c.Lost(Record{Primary: "db-3"}).String(); got != strings.ToLower(gtids(t, "A:10-12,B:1").String()) {
		t.Errorf("db-3 lacks %s", got)
	}
}

// TestAForcedPrimaryMayHaveForgotten what it acknowledged before it was chosen: the user knows. What it had then must be there.
func TestAForcedPrimaryMayHaveForgotten(t *testing.T) {
	t.Parallel()
	s := away(healthy(t, 3, 1), 0, 1)
	fence := fencing(1, "db-0", "db-1", "db-2")
	s.c.Record = Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-2"}, ForcedEpoch: 2}
	s.hears(2, StateCatchingUp, holding(rec(1, 1, "db-0", "db-1", "db-2")), forgetfulMember, holding(fence))
	wantRecord(t, s, s.c.Record)
	if order, found := Decide(s.c).Assignments["db-2"]; !found || order.Role != RolePrimary {
		t.Errorf("the operator assigns %+v", order)
	}
	wantNote(t, s.hears(2, StateCatchingUp, holding(fence), forgetfulMember), ReasonPrimaryDataLost, true, "db-2 was chosen as the primary")
}

// TestAgentsThatWouldDropWhatAForcedPrimaryLacksAreNotAsked: those of protocol 8.
func TestAgentsThatWouldDropWhatAForcedPrimaryLacksAreNotAsked(t *testing.T) {
	t.Parallel()
	older := func(_ *testing.T, s *Status) { s.Protocol = 8 }
	s := healthy(t, 3, 1).hears(1, StateReplicating, older)
	if _, isAsked := assignments(s.c)["db-1"]; !isAsked {
		t.Error("such an agent follows no record at all")
	}
	s.c.Record.ForcedEpoch = 1
	if _, isAsked := assignments(s.c)["db-1"]; isAsked || len(assignments(s.c)) != 2 {
		t.Errorf("the operator assigns %v", assignments(s.c))
	}
}

// TestAForcedRecordForgets what earlier primaries have acknowledged, and not what later ones have.
func TestAForcedRecordForgets(t *testing.T) {
	t.Parallel()
	for epoch, want := range map[int64]bool{3: true, 4: true, 5: false, 6: false} {
		if got := (Record{Epoch: 7, ForcedEpoch: 5}).Forgets(epoch); got != want {
			t.Errorf("what a primary of epoch %d acknowledged may be missing: %t", epoch, got)
		}
	}
}
