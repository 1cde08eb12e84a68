package replication

import (
	"strings"
	"testing"
)

// fencing is the record of a cluster with these other members in sync while the successor of db-0 is chosen, which has lost its data.
func fencing(acks int, inSync ...string) Record {
	return Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0", InSync: inSync, RequiredAcks: acks}
}

// lostPrimary is a cluster whose primary db-0 came back with an empty volume. Its replicas still follow the record of epoch 1.
func lostPrimary(t *testing.T, replicas, acks int) *story {
	t.Helper()
	return healthy(t, replicas, acks).hears(0, StateWaiting, fresh)
}

// fenced is a cluster whose members follow no other and acknowledge nothing, while the successor of db-0 is chosen.
func fenced(t *testing.T, replicas, acks int) *story {
	t.Helper()
	s := healthy(t, replicas, acks)
	s.c.Record = fencing(acks, s.c.Record.InSync[1:]...)
	s.hears(0, StateCatchingUp, fresh, stopped(s.c.Record), closed)
	for ordinal := 1; ordinal < replicas; ordinal++ {
		s.hears(ordinal, StateCatchingUp, stopped(s.c.Record))
	}
	return s
}

// chosenForgets is a cluster whose new primary db-1 was chosen, and came back from a failure of its machine before it had accepted that.
func chosenForgets(t *testing.T) *story {
	t.Helper()
	s := healthy(t, 3, 1)
	s.c.Record = Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}
	return s.silent(0).hears(1, StateWaiting, holding(fencing(1, "db-1", "db-2")), forgetfulMember).hears(2, StateCatchingUp)
}

// stopped is a member that has accepted to acknowledge nothing under this record, and was observed since.
func stopped(of Record) saying {
	return func(_ *testing.T, s *Status) { s.Last = &Assignment{Role: RoleReplica, Record: of} }
}

// closed is a member whose mysqld takes no writes since it has accepted the record.
func closed(_ *testing.T, s *Status) { s.Closed = &s.ObservedUnder }

func lackingRows(_ *testing.T, s *Status) {
	s.TablesWithoutRows = &Tables{Named: []Table{{"shop", "carts", "MyISAM"}}}
}

func forgetfulMember(_ *testing.T, s *Status) { s.IsForgetful, s.ForgotUnder = true, s.Held.Version() }

func TestDecideReplacesAPrimaryThatLostItsData(t *testing.T) {
	t.Parallel()
	stories := map[string]struct {
		story *story
		want  Record
	}{
		"all replicas answer: they stop acknowledging the former primary first": {
			lostPrimary(t, 3, 1), fencing(1, "db-1", "db-2")},
		"one replica is enough where both acknowledged each commit": {
			lostPrimary(t, 3, 2).silent(2), fencing(2, "db-1", "db-2")},
		"no member acknowledges any more: the first of those that have everything takes over, and the others have all of it": {
			fenced(t, 3, 1), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}},
		"the one that received more takes over, and the other one has less than was promised": {
			fenced(t, 3, 1).hears(2, StateCatchingUp, stopped(fencing(1, "db-1", "db-2")), has("A:1-12")),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2"}}},
		"what it received and has not applied counts": {
			fenced(t, 3, 1).hears(2, StateCatchingUp, stopped(fencing(1, "db-1", "db-2")), func(t *testing.T, s *Status) { t.Helper(); s.Received = gtids(t, "A:1-12") }),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2"}}},
		"a pair: the replica takes over alone": {
			fenced(t, 2, 1), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1"}}},
		"of those that have everything, the one that has the least to apply takes over": {
			fenced(t, 3, 1).hears(1, StateCatchingUp, stopped(fencing(1, "db-1", "db-2")), func(t *testing.T, s *Status) { t.Helper(); s.Executed = gtids(t, "A:1-7") }),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}},
		"one whose applier has failed comes last": {
			fenced(t, 3, 1).hears(1, StateBroken, stopped(fencing(1, "db-1", "db-2"))),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}},
		"one that the user does not want any more comes last": {
			fenced(t, 4, 2).with(func(c *Cluster) { c.Members[1].Ordinal = 7 }),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2", "db-3"}, RequiredAcks: 2}},
		"a member that answers and does not stop is left out after a while": {
			fenced(t, 3, 2).hears(2, StateReplicating, acking).with(func(c *Cluster) { c.Members[2].UnfencedFor = fenceWait }),
			Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1"}}},
		"the member that was chosen lost power before it could lead: it is replaced as well": {
			chosenForgets(t), Record{Epoch: 3, Revision: 4, FormerPrimary: "db-1", InSync: []string{"db-2"}, RequiredAcks: 1}},
		"the former primary is away again: without its data it cannot take writes": {
			fenced(t, 3, 1).silent(0), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}},
		"one whose applier has failed comes after one with a newer MySQL": {
			fenced(t, 3, 1).hears(1, StateBroken, stopped(fencing(1, "db-1", "db-2"))).with(func(c *Cluster) {
				c.Members[1].Status.Version, c.Members[2].Status.Version = "8.4.6", "9.7.4"
			}), Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1}},
		"five members, one of which does not answer": {
			fenced(t, 5, 2).silent(4), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1", "db-2", "db-3"}, RequiredAcks: 2}},
		"a member that is not in sync is not chosen, whatever it has": {
			fenced(t, 3, 1).with(func(c *Cluster) { c.Record.InSync = []string{"db-2"} }).hears(1, StateCatchingUp, has("A:1-50")).
				hears(2, StateCatchingUp, stopped(fencing(1, "db-2"))),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-2"}}},
	}
	for name, told := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.want)
		})
	}
}

// TestDecideDoesNotGuessWhoHasEverything: before the former primary is given up, and while its successor is chosen.
func TestDecideDoesNotGuessWhoHasEverything(t *testing.T) {
	t.Parallel()
	under := fencing(1, "db-1", "db-2")
	before := map[string]*story{
		"commits needed no acknowledgement":                    lostPrimary(t, 3, 0),
		"a replica that may have acknowledged does not answer": lostPrimary(t, 3, 1).silent(2),
		"its mysqld does not answer":                           lostPrimary(t, 3, 1).hears(2, StateStarting, acking),
		"it may have lost what it acknowledged":                lostPrimary(t, 3, 1).hears(2, StateReplicating, acking, forgetfulMember),
		"it has new data":                                      lostPrimary(t, 3, 1).hears(2, StateWaiting, fresh),
		"its agent may mean something else":                    lostPrimary(t, 3, 1).hears(2, StateReplicating, acking, func(_ *testing.T, s *Status) { s.Protocol-- }),
		"it has errant transactions":                           lostPrimary(t, 3, 1).hears(2, StateErrant, acking),
		"all replicas lack rows of tables that are not InnoDB": lostPrimary(t, 3, 1).hears(1, StateReplicating, acking, lackingRows).hears(2, StateReplicating, acking, lackingRows),
		"the resource was restored from an older copy":         lostPrimary(t, 3, 1).hears(2, StateReplicating, acking, holding(Record{Epoch: 1, Revision: 7, Primary: "db-0"})),
	}
	for what, s := range before {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, s, s.c.Record)
			wantNote(t, s, ReasonPrimaryDataLost, true, "db-0", "no replica takes over")
		})
	}
	meanwhile := map[string]*story{
		"a replica that may have acknowledged does not answer": fenced(t, 3, 1).silent(2),
		"it may still acknowledge":                             fenced(t, 3, 1).hears(2, StateReplicating, stopped(under), acking),
		"it has observed itself under the former record only":  fenced(t, 3, 1).hears(2, StateReplicating, stopped(under), func(_ *testing.T, s *Status) { s.ObservedUnder = Version{1, 1} }),
		"it has not accepted to stop":                          fenced(t, 3, 1).hears(2, StateReplicating),
		"it may have lost what it acknowledged":                fenced(t, 3, 1).hears(2, StateCatchingUp, stopped(under), forgetfulMember),
		"its mysqld does not answer":                           fenced(t, 3, 1).hears(2, StateStarting, stopped(under)),
	}
	for what, s := range meanwhile {
		t.Run("fencing: "+what, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, s, s.c.Record)
			wantNote(t, s, ReasonReplacingPrimary, false, "db-0", "so far: db-1")

			for name, got := range Decide(s.c).Assignments {
				if got.Role != RoleReplica || got.Acknowledge || got.SourceAddress != "" || got.InSync != (name != "db-0") {
					t.Errorf("%s is assigned %+v", name, got)
				}
			}
		})
	}
	t.Run("enough are fenced, and another one answers and is not yet", func(t *testing.T) {
		t.Parallel()
		s := fenced(t, 3, 2).hears(2, StateReplicating, acking)
		wantRecord(t, s, s.c.Record)
		wantNote(t, s, ReasonReplacingPrimary, false, "may still acknowledge: db-2")
	})
	t.Run("a member alone has transactions that were made on it", func(t *testing.T) {
		t.Parallel()
		is := func(_ *testing.T, s *Status) { s.ServerUUID = uuidB }
		s := fenced(t, 3, 1).hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:1"), is)
		wantRecord(t, s, s.c.Record)
		wantNote(t, s, ReasonReplacingPrimary, true, "db-2 alone has 1 transactions")
		hollow := func(t *testing.T, s *Status) { t.Helper(); s.Hollow = gtids(t, "B:1") }
		wantRecord(t, s.hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:1"), is, hollow),
			Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1", "db-2"}, RequiredAcks: 1})
	})
	t.Run("a former primary alone has what it made, and the primary had it, too", func(t *testing.T) {
		t.Parallel()
		is := func(t *testing.T, s *Status) { t.Helper(); s.ServerUUID, s.Shared = uuidB, gtids(t, "B:1") }
		s := fenced(t, 3, 1).hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:1"), is)
		wantRecord(t, s, Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: []string{"db-1", "db-2"}})
		wantNote(t, s.hears(2, StateCatchingUp, stopped(under), has("A:1-10,B:1-2"), is), ReasonReplacingPrimary, true, "db-2 alone has 1 transactions")
	})
	t.Run("the members have diverged", func(t *testing.T) {
		t.Parallel()
		diverged := func(s *story) *story {
			s.hears(2, StateCatchingUp, stopped(s.c.Record), has("A:1-9,B:1"))
			wantRecord(t, s, s.c.Record)
			wantNote(t, s, ReasonReplacingPrimary, true, "db-2", "drop data")
			return s
		}
		const comesBack = "To continue, bring db-0 back with its data"
		if note := Decide(diverged(fenced(t, 3, 1)).c).Note; strings.Contains(note.Message, comesBack) {
			t.Errorf("the former primary has lost its data, and the message says %q", note.Message)
		}
		wantNote(t, diverged(fencedFromDown(t, 3, 1)), ReasonReplacingPrimary, true, comesBack)
	})
}

// TestDecideBringsBackWhatScalingInRemoved: the primary fails while scaling in removes the Pod of db-2, which may have acknowledged commits
// that db-1 does not have.
func TestDecideBringsBackWhatScalingInRemoved(t *testing.T) {
	t.Parallel()
	leaving := func(s *story) *story {
		s.c.Replicas, s.c.Scale = 2, 2
		s.c.Members[2].Pod, s.c.Members[2].Status = false, nil
		return s
	}
	for name, test := range map[string]struct {
		story *story
		want  int
	}{
		"the primary has lost its data":                {leaving(lostPrimary(t, 3, 1)), 3},
		"its mysqld is down":                           {leaving(downPrimary(t, 3, 1)), 3},
		"its successor is being chosen":                {leaving(fenced(t, 3, 1)), 3},
		"the member is back":                           {leaving(fenced(t, 3, 1)).scaled(3), 3},
		"the others suffice: all of them acknowledged": {leaving(fenced(t, 3, 2)), 2},
		"the member was not in sync":                   {leaving(fenced(t, 3, 1)).with(func(c *Cluster) { c.Record.InSync = []string{"db-1"} }), 2},
		"the user wants more members":                  {fenced(t, 3, 1).with(func(c *Cluster) { c.Replicas = 4 }), 4},
		"its volume fails while it takes writes":       {leaving(onVolumes(t, 3, 1, failingFor(FailingAfter))), 3},
		"nothing has failed":                           {leaving(healthy(t, 3, 1)), 2},
		"the primary did not answer once":              {leaving(healthy(t, 3, 1)).silent(0), 2},
		"the primary starts again":                     {leaving(healthy(t, 3, 1)).hears(0, StateStarting, wasPrimary), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Decide(test.story.c).Scale; got != test.want {
				t.Errorf("the StatefulSet has %d members, want %d", got, test.want)
			}
		})
	}
}

// TestDecideAdoptsMembersWhoseSuccessorWasBeingChosen: the resource was deleted in that moment. The former primary counts only if it has
// its volume again.
func TestDecideAdoptsMembersWhoseSuccessorWasBeingChosen(t *testing.T) {
	t.Parallel()
	under := fencing(1, "db-1", "db-2")
	adopting := func() *story {
		return wanting(t, 3).scaled(3).older(0, 1, 2).hears(0, StateWaiting, fresh, holding(under)).
			hears(1, StateWaiting, holding(under)).hears(2, StateWaiting, holding(under), has("A:1-12"))
	}
	wantRecord(t, adopting(), rec(3, 0, "db-2"))
	wantNote(t, adopting().hears(2, StateWaiting, fresh, holding(under)), ReasonAdoptionBlocked, true, "db-0", "restore")
	fewer := adopting()
	fewer.c.Replicas = 2
	wantNote(t, fewer.silent(2), ReasonAdoptionBlocked, true, "db-2", "spec.replicas")
	back := adopting().hears(0, StateWaiting, holding(under), has("A:1-12")).hears(2, StateWaiting, fresh, holding(under))
	wantRecord(t, back, rec(3, 0, "db-0"))
	wantNote(t, back.hears(0, StateWaiting, holding(under), has("A:1-12"), forgetfulMember), ReasonAdoptionBlocked, true, "db-0", "restore")
	older := func(_ *testing.T, s *Status) { s.ServerUUID = uuidA }
	wantNote(t, back.hears(0, StateWaiting, holding(under), has("A:1-8"), older), ReasonAdoptionBlocked, true, "db-0", "restore")
}

// empty gives all members that answer no transaction at all.
func empty(s *story) *story {
	for _, member := range s.c.Members {
		if member.Status != nil {
			member.Status.Executed, member.Status.Received = GTIDSet{}, GTIDSet{}
		}
	}
	return s
}

// TestAClusterWithoutATransactionIsTakenOver: no client has written yet. Members that have nothing have everything that there is.
func TestAClusterWithoutATransactionIsTakenOver(t *testing.T) {
	t.Parallel()
	whole := []string{"db-0", "db-1", "db-2"}
	chosen := Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}
	for what, told := range map[string]struct {
		story *story
		want  Record
	}{
		"its mysqld has crashed":           {crashedPrimary(t, 3, 1), fencing(1, whole...)},
		"its mysqld does not start":        {downPrimary(t, 3, 1), fencing(1, whole...)},
		"nothing answers for it":           {unreachable(t, 3, 1, UnheardLeast), leased(fencing(1, whole...))},
		"its volume is lost":               {lostPrimary(t, 3, 1), fencing(1, whole[1:]...)},
		"the members are fenced":           {fencedFromDown(t, 3, 1), chosen},
		"without the volume of the former": {fenced(t, 3, 1), chosen},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, empty(told.story), told.want)
		})
	}
}

// TestATakeoverPromisesOnlyWhatTheOthersHold: the other replica has received less than the one that takes over. Until it has all of it, the
// next primary cannot be replaced in turn.
func TestATakeoverPromisesOnlyWhatTheOthersHold(t *testing.T) {
	t.Parallel()
	whole, two := []string{"db-0", "db-1", "db-2"}, []string{"db-1", "db-2"}
	ahead := fencedFromDown(t, 3, 1).hears(2, StateCatchingUp, stopped(fencing(1, whole...)), has("A:1-12"))
	chosen := Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: two}
	wantRecord(t, ahead, chosen)

	leads := func(replica string) *story {
		s := wanting(t, 3).scaled(3).silent(0)
		s.c.Record = chosen
		return s.hears(2, StateWriting, has("A:1-12"), enforces(1, 1), wasPrimary).hears(1, StateReplicating, has(replica), acking)
	}
	wantRecord(t, leads("A:1-11"), chosen)
	failed := leads("A:1-11").hears(2, StateStarting, has("A:1-12"), down)
	wantRecord(t, failed, chosen)
	wantNote(t, failed, ReasonPrimaryDown, false, "db-2", "no replica takes over", "on the primary alone")

	kept := chosen
	kept.RequiredAcks = 1
	wantRecord(t, leads("A:1-12"), kept)
	again := leads("A:1-12").with(func(c *Cluster) { c.Record = kept }).hears(2, StateStarting, has("A:1-12"), down)
	wantRecord(t, again, Record{Epoch: 3, Revision: 4, FormerPrimary: "db-2", InSync: two, RequiredAcks: 1})
}
