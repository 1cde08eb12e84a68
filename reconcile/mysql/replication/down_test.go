package replication

import (
	"strings"
	"testing"
	"time"
)

// usual are the limits of a cluster whose user sets none.
func usual() Limits { return Limits{NotReady: 10 * time.Second, Unreachable: 2 * time.Second} }

// down is a member whose mysqld has not run for so long that a replica may take over.
func down(_ *testing.T, s *Status) {
	s.UnansweredFor, s.Closed = usual().NotReady, &Version{}
}

// notRunning is a member whose mysqld does not run since it has accepted the record.
func notRunning(_ *testing.T, s *Status) {
	accepted := s.Held.Version()
	s.ObservedUnder, s.Closed = Version{}, &accepted
}

// downPrimary is a cluster whose primary db-0 does not start.
func downPrimary(t *testing.T, replicas, acks int) *story {
	t.Helper()
	return healthy(t, replicas, acks).hears(0, StateStarting, down)
}

// crashedPrimary is a cluster of which mysqld of the primary db-0 has just crashed, and its start is held.
func crashedPrimary(t *testing.T, replicas, acks int) *story {
	t.Helper()
	return healthy(t, replicas, acks).hears(0, StateStarting, func(_ *testing.T, s *Status) { s.Closed, s.StartHeld = &Version{}, true })
}

// stoppedPrimary is a cluster whose primary db-0 takes no writes, because its container restarts.
func stoppedPrimary(t *testing.T, replicas, acks int) *story {
	t.Helper()
	s := healthy(t, replicas, acks).hears(0, StateStarting, func(_ *testing.T, s *Status) { s.Closed = &Version{} })
	return stopping(s, 0)
}

// stopping is the same cluster if the container of a member stops.
func stopping(s *story, ordinal int) *story {
	return s.with(func(c *Cluster) { c.Members[ordinal].Status.IsRestarting = true })
}

// behind is the same cluster in which db-1 has everything, and has not applied all of it.
func behind(t *testing.T, s *story) *story {
	t.Helper()
	return s.hears(1, StateReplicating, has("A:1-12"), func(t *testing.T, s *Status) { t.Helper(); s.Executed = gtids(t, "A:1-11") })
}

// hungPrimary is a cluster whose primary db-0 may take writes, and does not answer. So many replicas have got nothing from it for a while.
func hungPrimary(t *testing.T, silent int, length time.Duration) *story {
	t.Helper()
	s := downPrimary(t, 3, 1)
	s.c.Members[0].Status.Closed, s.c.Members[0].Status.UnansweredFor = nil, usual().Unreachable
	for ordinal := 1; ordinal <= silent; ordinal++ {
		s.c.Members[ordinal].Status.SourceSilentFor = length
	}
	return s
}

// cutOff is a cluster whose primary db-0 takes writes and gets no acknowledgements. So many replicas have got nothing from it for a while.
func cutOff(t *testing.T, replicas, acks, connected, silent int) *story {
	t.Helper()
	s := healthy(t, replicas, acks).hears(0, StateWriting, enforces(acks, connected), shortFor(int(ShortAfter.Seconds())))
	for ordinal := replicas - silent; ordinal < replicas; ordinal++ {
		s.c.Members[ordinal].Status.SourceSilentFor = usual().silent()
	}
	return s
}

// asking is the same cluster with a user's request.
func asking(s *story, request string) *story {
	s.c.Request = request
	return s
}

// fencedFromDown is the same cluster once its members have accepted that db-0 is replaced.
func fencedFromDown(t *testing.T, replicas, acks int) *story {
	t.Helper()
	s := healthy(t, replicas, acks)
	s.c.Record = fencing(acks, s.c.Record.InSync...)
	s.hears(0, StateStarting, stopped(s.c.Record), notRunning)
	for ordinal := 1; ordinal < replicas; ordinal++ {
		s.hears(ordinal, StateCatchingUp, stopped(s.c.Record))
	}
	return s
}

func TestDecideReplacesAPrimaryWhoseMysqldDoesNotRun(t *testing.T) {
	t.Parallel()
	whole := []string{"db-0", "db-1", "db-2"}
	back := func(ordinal int, s *story, says ...saying) *story {
		return s.hears(ordinal, StateCatchingUp, append([]saying{stopped(s.c.Record), closed}, says...)...)
	}
	older := func(_ *testing.T, s *Status) { s.ServerUUID = uuidA }
	stories := map[string]struct {
		story *story
		want  Record
	}{
		"the replicas stop acknowledging first": {
			downPrimary(t, 3, 1), fencing(1, whole...)},
		"a replica that has everything takes over, and the former primary is not in sync": {
			fencedFromDown(t, 3, 1), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},
		"a pair": {
			fencedFromDown(t, 2, 1), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1"}}},
		"the primary is back, but a replica can take over: what only the primary has was never acknowledged": {
			back(0, fencedFromDown(t, 3, 1), has("A:1-12")), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},
		"the primary is back, before the replicas have stopped acknowledging: the choice waits for them": {
			back(0, fencedFromDown(t, 3, 1).hears(1, StateCatchingUp, accepts(rec(1, 1, whole...), true)), has("A:1-12")), fencing(1, whole...)},
		"the primary is back, and a replica has not stopped for long: the primary continues": {
			back(0, fencedFromDown(t, 3, 1).hears(1, StateCatchingUp, accepts(rec(1, 1, whole...), true)), has("A:1-12")).with(func(c *Cluster) { c.Members[1].UnfencedFor = fenceWait }),
			Record{Epoch: 2, Revision: 3, Primary: "db-0", InSync: whole, RequiredAcks: 1}},
		"the primary is back, and a replica failed meanwhile: the primary continues, and nothing has changed": {
			back(0, fencedFromDown(t, 3, 1).silent(2), has("A:1-12")), Record{Epoch: 2, Revision: 3, Primary: "db-0", InSync: whole, RequiredAcks: 1}},
		"of an upgraded and another replica, the other one takes over": {
			fencedFromDown(t, 3, 1).with(func(c *Cluster) { c.Members[1].Status.Version, c.Members[2].Status.Version = "9.7.4", "8.4.6" }),
			Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: whole[1:], RequiredAcks: 1}},

		"it has crashed, and two replicas are left": {
			crashedPrimary(t, 3, 1), fencing(1, whole...)},
		"it has crashed, and one replica is left, which alone could promise nothing": {
			crashedPrimary(t, 2, 1), rec(1, 1, whole[:2]...)},
		"it has crashed, and the user wants it to restart": {
			crashedPrimary(t, 3, 1).with(func(c *Cluster) { c.Limits.RestartsCrashed = true }), rec(1, 1, whole...)},
		"it has crashed, and one of two replicas does not answer": {
			crashedPrimary(t, 3, 1).silent(2), rec(1, 1, whole...)},
		"it has crashed, and commits waited for no replica": {
			crashedPrimary(t, 3, 0), rec(1, 0, whole...)},
		"it has crashed, and the member that has everything has not applied all of it": {
			behind(t, crashedPrimary(t, 3, 1)), rec(1, 1, whole...)},

		"its container restarts, and it has closed": {
			stoppedPrimary(t, 3, 1), fencing(1, whole...)},
		"its container restarts, and it takes writes still": {
			stopping(healthy(t, 3, 1), 0), rec(1, 1, whole...)},
		"its container restarts, and so does that of a replica": {
			stopping(stoppedPrimary(t, 3, 1), 2), rec(1, 1, whole...)},
		"its container restarts, and one replica is left, which alone could promise nothing": {
			stoppedPrimary(t, 2, 1), rec(1, 1, whole[:2]...)},
		"its container restarts, and the user wants it to restart": {
			stoppedPrimary(t, 3, 1).with(func(c *Cluster) { c.Limits.RestartsCrashed = true }), rec(1, 1, whole...)},
		"its container restarts, because an update restarts it": {
			stoppedPrimary(t, 3, 1).with(func(c *Cluster) { c.IsUpdating = true }), rec(1, 1, whole...)},
		"its mysqld starts in a container that stays": {
			stoppedPrimary(t, 3, 1).with(func(c *Cluster) { c.Members[0].Status.IsRestarting = false }), rec(1, 1, whole...)},
		"its container restarts, and commits waited for no replica": {
			stoppedPrimary(t, 3, 0), rec(1, 0, whole...)},
		"of two replicas, the one takes over whose container does not restart": {
			stopping(fencedFromDown(t, 3, 1), 1), Record{Epoch: 2, Revision: 3, Primary: "db-2", InSync: whole[1:], RequiredAcks: 1}},
		"a replica whose container restarts takes over before an upgraded one": {
			stopping(fencedFromDown(t, 3, 1), 1).with(func(c *Cluster) { c.Members[1].Status.Version, c.Members[2].Status.Version = "8.4.6", "9.7.4" }),
			Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},
		"a replica whose container restarts takes over before one whose applier has failed": {
			stopping(fencedFromDown(t, 3, 1), 1).with(func(c *Cluster) { c.Members[2].Status.State = StateBroken }),
			Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},

		"it hangs, and no replica hears it": {
			hungPrimary(t, 2, usual().silent()), fencing(1, whole...)},
		"it has hung for a moment": {
			hungPrimary(t, 2, usual().silent()).with(func(c *Cluster) { c.Members[0].Status.UnansweredFor-- }), rec(1, 1, whole...)},
		"it hangs, and the user wants to wait longer": {
			hungPrimary(t, 2, usual().silent()).with(func(c *Cluster) { c.Limits.Unreachable *= 2 }), rec(1, 1, whole...)},
		"it does not start, and the user wants to wait longer": {
			downPrimary(t, 3, 1).with(func(c *Cluster) { c.Limits.NotReady += time.Second }), rec(1, 1, whole...)},
		"it hangs, and a replica hears it: commits may still return": {
			hungPrimary(t, 1, usual().silent()), rec(1, 1, whole...)},
		"it hangs, and no replica has heard it for a moment": {
			hungPrimary(t, 2, usual().silent()-time.Second), rec(1, 1, whole...)},

		"the replicas are cut off from it, and can acknowledge commits of one of them": {
			cutOff(t, 3, 1, 0, 2), fencing(1, whole...)},
		"three of five members are cut off from the primary and another one, which may be the only one with its latest commits": {
			cutOff(t, 5, 2, 1, 3), rec(1, 2, "db-0", "db-1", "db-2", "db-3", "db-4")},
		"all but one of five members are cut off, and one of them does not answer": {
			cutOff(t, 5, 2, 0, 4).silent(4), fencing(2, "db-0", "db-1", "db-2", "db-3", "db-4")},
		"two of four members are: neither side can keep the promise": {
			cutOff(t, 4, 2, 1, 2), rec(1, 2, "db-0", "db-1", "db-2", "db-3")},
		"the only replica is: alone it could promise no more than the primary": {
			cutOff(t, 2, 1, 0, 1), rec(1, 1, "db-0", "db-1")},
		"one of them is: the other one acknowledges": {
			cutOff(t, 3, 1, 1, 1), rec(1, 1, whole...)},
		"they hear nothing, and it gets acknowledgements": {
			cutOff(t, 3, 1, 1, 2), rec(1, 1, whole...)},
		"they have not connected yet to a primary that has just started": {
			cutOff(t, 3, 1, 0, 2).hears(0, StateWriting, enforces(1, 0), shortFor(int(ShortAfter.Seconds())-1)), rec(1, 1, whole...)},
		"they do not connect to a primary that has just started, and waits for them before it opens to clients": {
			cutOff(t, 3, 1, 0, 2).hears(0, StatePromoting, enforces(1, 0), shortFor(10)), fencing(1, whole...)},
		"they have not connected yet to such a primary": {
			cutOff(t, 3, 1, 0, 2).hears(0, StatePromoting, enforces(1, 0), shortFor(9)), rec(1, 1, whole...)},
		"they are connected, and hang": {
			cutOff(t, 3, 1, 0, 2).with(func(c *Cluster) { c.Members[0].Status.ConnectedReplicas = 2 }), rec(1, 1, whole...)},
		"replicas are cut off, and mysqld still counts their connections": {
			cutOff(t, 3, 1, 0, 2).with(func(c *Cluster) {
				c.Members[0].Status.ConnectedReplicas = 2
				c.Members[0].Status.Lease = &Lease{Needs: 1, Unheard: []string{"db-1", "db-2"}}
			}), fencing(1, whole...)},
		"one of them has a transaction of its own, so none could lead": {
			cutOff(t, 3, 1, 0, 2).with(func(c *Cluster) {
				own := c.Members[1].Status
				own.ServerUUID, own.Received = uuidB, own.Received.Union(gtids(t, "B:1"))
			}), rec(1, 1, whole...)},
		"no member could take over a moment ago": {
			cutOff(t, 3, 1, 0, 2).with(func(c *Cluster) { c.HasContinued = true }), rec(1, 1, whole...)},
		"they hear nothing because their relay logs are full": {
			cutOff(t, 3, 1, 0, 2).with(func(c *Cluster) { c.Members[1].Status.Acknowledging, c.Members[2].Status.Acknowledging = false, false }), rec(1, 1, whole...)},

		"its agent does not answer, and a user asks for another primary": {
			asking(downPrimary(t, 3, 1).lost(0), "db-0.1.1"), fencing(1, whole...)},
		"then another member is chosen, although the former primary does not say that it is closed": {
			asking(fencedFromDown(t, 3, 1).lost(0), "db-0.1.1"), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},
		"a user asks for it only then": {
			asking(fencedFromDown(t, 3, 1).lost(0), "db-0.2.2"), Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},
		"a user asks, and the primary answers: the request does not hold for later": {
			asking(healthy(t, 3, 1), "db-0.1.1"), Record{Epoch: 1, Revision: 2, Primary: "db-0", InSync: whole, RequiredAcks: 1}},
		"a user asks, and the primary has not answered for a moment": {
			asking(downPrimary(t, 3, 1).silent(0), "db-0.1.1"), rec(1, 1, whole...)},
		"a user has asked to replace another one": {
			asking(downPrimary(t, 3, 1).lost(0), "db-1.1.1"), rec(1, 1, whole...)},
		"a user has asked in an earlier epoch": {
			asking(downPrimary(t, 3, 1).lost(0), "db-0.0.1"), rec(1, 1, whole...)},
		"a user asks, and commits needed no acknowledgement": {
			asking(downPrimary(t, 3, 0).lost(0), "db-0.1.1"), rec(1, 0, whole...)},
		"a user asks, and the former primary answers: it must say that it is closed": {
			asking(fencedFromDown(t, 3, 1).hears(0, StateWriting), "db-0.2.2"), fencing(1, whole...)},
		"a user has asked for it long ago": {
			asking(fencedFromDown(t, 3, 1).lost(0), "db-0.0.1"), fencing(1, whole...)},

		"the member that has everything has not applied all of it": {
			behind(t, downPrimary(t, 3, 1)), rec(1, 1, whole...)},
		"its applier has failed": {
			downPrimary(t, 3, 1).hears(1, StateBroken, has("A:1-12")), rec(1, 1, whole...)},
		"the applier of another one has failed": {
			downPrimary(t, 3, 1).hears(1, StateBroken), fencing(1, whole...)},
		"it answers, and cannot accept that it is replaced: a user says so": {
			asking(fencedFromDown(t, 3, 1).hears(0, StateStarting).with(func(c *Cluster) { c.Members[0].UnfencedFor = LostAfter }), "db-0.2.2"),
			Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: whole[1:], RequiredAcks: 1}},

		"it has not been down for long": {
			downPrimary(t, 3, 1).hears(0, StateStarting, down, func(_ *testing.T, s *Status) { s.UnansweredFor-- }), rec(1, 1, whole...)},
		"its agent does not answer": {
			downPrimary(t, 3, 1).silent(0), rec(1, 1, whole...)},
		"its agent may mean something else": {
			downPrimary(t, 3, 1).hears(0, StateStarting, down, func(_ *testing.T, s *Status) { s.Protocol-- }), rec(1, 1, whole...)},
		"it answers": {
			downPrimary(t, 3, 1).hears(0, StateWaiting, func(_ *testing.T, s *Status) { s.Closed = &Version{} }), rec(1, 1, whole...)},
		"commits needed no acknowledgement": {
			downPrimary(t, 3, 0), rec(1, 0, whole...)},
		"a replica that may have acknowledged does not answer": {
			downPrimary(t, 3, 1).silent(2), rec(1, 1, whole...)},

		"it has not accepted that it is replaced": {
			fencedFromDown(t, 3, 1).hears(0, StateStarting, stopped(fencing(1, whole...)), notRunning, func(_ *testing.T, s *Status) { s.Closed = &Version{1, 1} }), fencing(1, whole...)},
		"it still takes writes": {
			fencedFromDown(t, 3, 1).hears(0, StateWriting, stopped(fencing(1, whole...))), fencing(1, whole...)},
		"its agent does not answer any more": {
			fencedFromDown(t, 3, 1).silent(0), fencing(1, whole...)},
		"the primary is back with an older copy of its data": {
			back(0, fencedFromDown(t, 3, 1).silent(2), has("A:1-8"), older), fencing(1, whole...)},
		"it is back without its data": {
			back(0, fencedFromDown(t, 3, 1).silent(2), fresh), fencing(1, whole...)},
		"it had come back without its data before, and may have an older copy by now": {
			back(0, fenced(t, 3, 1).silent(2)), fencing(1, whole[1:]...)},
	}
	for name, told := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.want)
		})
	}
	wantNote(t, downPrimary(t, 3, 0), ReasonPrimaryDown, false, "db-0", "10 seconds", "no replica takes over", "on the primary alone")
	wantNote(t, downPrimary(t, 3, 1).lost(0), ReasonPrimaryDown, false, "db-0", "30 seconds", "a replica can take over")
	if note := Decide(fencedFromDown(t, 3, 1).lost(0).c).Note; note.Request != "db-0.2.2" {
		t.Errorf("users may ask for %q", note.Request)
	}
	wantNote(t, fencedFromDown(t, 3, 1).silent(0), ReasonReplacingPrimary, false, "db-0", "its agent must answer")
}

// TestDecideDoesNotAdoptAPrimaryThatMayBeReplaced: a user may have made any member that was not read the primary, without its knowledge.
func TestDecideDoesNotAdoptAPrimaryThatMayBeReplaced(t *testing.T) {
	t.Parallel()
	adopting := func(replicas, acks int, inSync ...string) *story {
		s := wanting(t, 3).scaled(3).older(0, 1, 2)
		s.c.Replicas = replicas
		held := rec(5, acks, inSync...)
		for ordinal := range replicas {
			s.hears(ordinal, StateWaiting, holding(held))
		}
		return s
	}
	whole := []string{"db-0", "db-1", "db-2"}
	wantNote(t, adopting(1, 1, whole...), ReasonAdoptionBlocked, true, "may have replaced it: db-1, db-2", "spec.replicas")
	wantNote(t, adopting(1, 0, whole...), ReasonAdoptionBlocked, true, "may have replaced it")
	wantNote(t, adopting(1, 1, "db-0", "db-1"), ReasonAdoptionBlocked, true, "may have replaced it")
	wantNote(t, adopting(2, 1, whole...), ReasonAdoptionBlocked, true, "may have replaced it: db-2")
	wantNote(t, adopting(1, 0, "db-0"), ReasonAdoptionBlocked, true, "may have replaced it")
	wantRecord(t, adopting(3, 1, whole...), rec(6, 0, "db-0"))
}

// TestDecideLetsACrashedPrimaryStart as soon as no replica can take over at once. Until then, its agent waits.
func TestDecideLetsACrashedPrimaryStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		story *story
		waits bool
	}{
		"a replica applies what it has received": {behind(t, crashedPrimary(t, 3, 1)), true},
		"a replica applies for too long":         {behind(t, crashedPrimary(t, 3, 1)).with(func(c *Cluster) { c.Members[0].Status.UnansweredFor = MostHeld }), false},
		"a replica lags far behind": {crashedPrimary(t, 3, 1).hears(1, StateReplicating, has("A:1-2012"), func(t *testing.T, s *Status) {
			t.Helper()
			s.Executed = gtids(t, "A:1-12")
		}), false},
		"its applier has failed":       {crashedPrimary(t, 3, 1).hears(1, StateBroken, has("A:1-12")), false},
		"the user wants it to restart": {behind(t, crashedPrimary(t, 3, 1)).with(func(c *Cluster) { c.Limits.RestartsCrashed = true }), false},
		"one replica is left":          {crashedPrimary(t, 2, 1), false},
		"it has no replica":            {crashedPrimary(t, 1, 0), false},
		"a replica does not answer":    {crashedPrimary(t, 3, 1).silent(2), false},
	} {
		if _, assigned := Decide(test.story.c).Assignments["db-0"]; assigned == test.waits {
			t.Errorf("%s: the primary is assigned its role: %t", name, assigned)
		}
	}
}

// TestACrashIsToldFromALostLease: users read that the network fails, and not mysqld.
func TestACrashIsToldFromALostLease(t *testing.T) {
	t.Parallel()
	s := crashedPrimary(t, 3, 1)
	if said, want := s.c.primaryDown().Message, "mysqld of the primary db-0 has ended"; said != want {
		t.Errorf("after a crash: %s, want %s", said, want)
	}
	s.c.Members[0].Status.LeaseLost = true
	if said, want := s.c.primaryDown().Message, "the primary db-0 gets too few acknowledgements"; !strings.HasPrefix(said, want) {
		t.Errorf("after its lease: %s, want %s", said, want)
	}
}
