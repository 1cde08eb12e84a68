package replication

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// leased is the record with the lease that it should have.
func leased(r Record) Record {
	r.LeaseLasts = Cluster{Record: r, Limits: usual()}.wantedLease()
	return r
}

// lasting is the record with a lease that lasts so long.
func lasting(lease time.Duration, r Record) Record {
	r.LeaseLasts = lease
	return r
}

// leaseOf is a lease for so many replicas, of which so much is left.
func leaseOf(needs int, lasts, left time.Duration) *Lease {
	return &Lease{Needs: needs, Lasts: lasts, Left: left, Ends: supervisor.Lease{Lasts: lasts}.Ends(left)}
}

// engaged is a primary with a lease for so many replicas, of which so many seconds have passed since the last evidence.
func engaged(needs, passed int) saying {
	return func(_ *testing.T, s *Status) {
		order := Assignment{Role: RolePrimary, Record: s.Held, Acks: s.AcksEnforced, Lease: needs, LeaseLasts: leased(s.Held).LeaseLasts}
		s.Assignment = &order
		s.Lease = leaseOf(needs, order.LeaseLasts, order.LeaseLasts-seconds(passed))
		s.Lease.IsHeard = s.Lease.Left > 0
	}
}

// wantsLease is the same cluster, whose primary needs a lease.
func wantsLease(s *story) *story { return s.with(func(c *Cluster) { c.WantsLease = true }) }

// unreachable is a cluster with leases whose primary db-0 has not answered for so long. All replicas have got nothing from it for a while.
func unreachable(t *testing.T, replicas, acks int, unheard time.Duration) *story {
	t.Helper()
	s := wantsLease(healthy(t, replicas, acks)).silent(0)
	s.c.Record = leased(s.c.Record)
	s.c.Members[0].UnheardFor, s.c.Members[0].IsRunning = unheard, true
	for ordinal := 1; ordinal < replicas; ordinal++ {
		s.c.Members[ordinal].Status.SourceSilentFor = usual().Unreachable
	}
	return s
}

// awaiting is the same cluster after the fence. Its members have been silent for so long.
func awaiting(t *testing.T, replicas, acks int, silent time.Duration) *story {
	t.Helper()
	s := healthy(t, replicas, acks)
	s.c.Record = leased(fencing(acks, s.c.Record.InSync...))
	s.silent(0)
	for ordinal := 1; ordinal < replicas; ordinal++ {
		s.hears(ordinal, StateCatchingUp, stopped(s.c.Record)).grow(ordinal).SilentFor = silent
	}
	return s
}

// deafFor is the same cluster, whose replicas have heard nothing for so long.
func deafFor(s *story, long time.Duration) *story {
	for i := range s.c.Members[1:] {
		s.c.Members[i+1].Status.DeafFor = long
	}
	return s
}

func TestDecideReplacesAnUnreachablePrimary(t *testing.T) {
	t.Parallel()
	whole, five := []string{"db-0", "db-1", "db-2"}, []string{"db-0", "db-1", "db-2", "db-3", "db-4"}
	chosen := func(acks int, inSync ...string) Record {
		return Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: inSync, RequiredAcks: acks}
	}
	over, overLong := Record{LeaseLasts: ShortLease}.leaseLimit(), Record{LeaseLasts: LongLease}.leaseLimit()
	stories := map[string]struct {
		story *story
		want  Record
	}{
		"the replicas stop acknowledging first": {
			unreachable(t, 3, 1, UnheardLeast), leased(fencing(1, whole...))},
		"a pair": {
			unreachable(t, 2, 1, UnheardLeast), leased(fencing(1, whole[:2]...))},
		"it has not answered for a moment": {
			unreachable(t, 3, 1, UnheardLeast-1), leased(rec(1, 1, whole...))},
		"a replica got something less long ago": {
			unreachable(t, 3, 1, time.Hour).with(func(c *Cluster) { c.Members[1].Status.SourceSilentFor-- }), leased(rec(1, 1, whole...))},
		"Kubernetes starts its Pod again": {
			starting(unreachable(t, 3, 1, UnheardLeast)), leased(fencing(1, whole...))},
		"Kubernetes starts its Pod again for an update": {
			starting(unreachable(t, 3, 1, LostAfter-1)).with(func(c *Cluster) { c.IsUpdating = true }), leased(rec(1, 1, whole...))},
		"Kubernetes starts its Pod again, and the container of a replica restarts": {
			stopping(starting(unreachable(t, 3, 1, LostAfter-1)), 1), leased(rec(1, 1, whole...))},
		"Kubernetes starts its Pod again, and the user gives a crashed primary time": {
			patient(unreachable(t, 3, 1, LostAfter-1)), leased(rec(1, 1, whole...))},
		"Kubernetes starts its Pod again, and the user waits longer for a mysqld that is not ready": {
			patient(unreachable(t, 3, 1, LostAfter)).with(func(c *Cluster) { c.Limits.NotReady = time.Minute }), leased(rec(1, 1, whole...))},
		"Kubernetes starts its Pod again, and the only replica is needed": {
			starting(unreachable(t, 2, 1, LostAfter-1)), leased(rec(1, 1, whole[:2]...))},
		"Kubernetes does not start it in time": {
			starting(unreachable(t, 2, 1, LostAfter)), leased(fencing(1, whole[:2]...))},
		"it may lead without a lease": {
			unreachable(t, 3, 1, time.Hour).with(func(c *Cluster) { c.Record.LeaseLasts = 0 }), rec(1, 1, whole...)},
		"a replica hears it: only its agent is gone": {
			unreachable(t, 3, 1, time.Hour).with(func(c *Cluster) { c.Members[2].Status.SourceSilentFor = 0 }), leased(rec(1, 1, whole...))},
		"one of four replicas hears it": {
			unreachable(t, 5, 2, time.Hour).with(func(c *Cluster) { c.Members[4].Status.SourceSilentFor = 0 }), leased(rec(1, 2, five...))},
		"a replica does not answer either, and may hear it": {
			unreachable(t, 3, 1, time.Hour).silent(2), leased(rec(1, 1, whole...))},
		"one of four replicas does not answer, and two others acknowledge each commit": {
			unreachable(t, 5, 2, time.Hour).silent(4), leased(fencing(2, five...))},
		"commits needed no acknowledgement": {
			unreachable(t, 3, 0, time.Hour), leased(rec(1, 0, whole...))},

		"its lease has certainly ended: another one is chosen": {
			awaiting(t, 3, 1, over), chosen(1, whole[1:]...)},
		"its lease may last": {
			awaiting(t, 3, 1, over-1), leased(fencing(1, whole...))},
		"the lease of a pair lasts longer": {
			awaiting(t, 2, 1, overLong-1), leased(fencing(1, whole[:2]...))},
		"the lease of a pair has ended": {
			awaiting(t, 2, 1, overLong), chosen(0, "db-1")},
		"it may have the longer lease that it had before": {
			awaiting(t, 3, 1, over).with(func(c *Cluster) {
				c.Record.LeaseLasts = LongLease
				for _, member := range c.Members[1:] {
					member.Status.Last.Record.LeaseLasts = LongLease
				}
			}), lasting(LongLease, fencing(1, whole...))},
		"the others have heard nothing from it for as long": {
			deafFor(awaiting(t, 3, 1, 1), over), chosen(1, whole[1:]...)},
		"one of them heard it later": {
			deafFor(awaiting(t, 3, 1, 1), over).with(func(c *Cluster) { c.Members[2].Status.DeafFor = over - 1 }), leased(fencing(1, whole...))},
		"one of them does not know when it heard it": {
			deafFor(awaiting(t, 3, 1, 1), over).with(func(c *Cluster) { c.Members[2].Status.DeafFor = 0 }), leased(fencing(1, whole...))},
		"one of them may hear it again": {
			deafFor(awaiting(t, 3, 1, 1), over).hears(2, StateCatchingUp, stopped(leased(fencing(1, whole...))), func(_ *testing.T, s *Status) {
				s.DeafFor, s.ObservedUnder = over, Version{}
			}).with(func(c *Cluster) { c.Members[2].SilentFor = 0 }), leased(fencing(1, whole...))},
		"the operator may have confirmed a primary with a long lease since they heard it": {
			deafFor(awaiting(t, 2, 1, 1), overLong), leased(fencing(1, whole[:2]...))},
		"with one replica it may have kept its lease": {
			awaiting(t, 3, 1, over).with(func(c *Cluster) { c.Members[2].SilentFor = over - 1 }), leased(fencing(1, whole...))},
		"with one of four replicas it could not, because it needs two": {
			awaiting(t, 5, 2, over).with(func(c *Cluster) { c.Members[4].SilentFor = 0 }), chosen(2, five[1:]...)},
		"it had no lease": {
			awaiting(t, 3, 1, time.Hour).with(func(c *Cluster) {
				c.Record.LeaseLasts = 0
				for _, member := range c.Members[1:] {
					member.Status.Last.Record.LeaseLasts = 0
				}
			}), fencing(1, whole...)},
		"it is back and continues: its next lease is not recorded yet": {
			awaiting(t, 3, 1, over).silent(2).hears(0, StateCatchingUp, stopped(leased(fencing(1, whole...))), closed, has("A:1-12")),
			Record{Epoch: 2, Revision: 3, Primary: "db-0", InSync: whole, RequiredAcks: 1}},
	}
	for name, told := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.want)
		})
	}
	wantNote(t, awaiting(t, 3, 1, over-1), ReasonReplacingPrimary, false, "db-0", "3 seconds")
	apart := awaiting(t, 5, 2, over).with(func(c *Cluster) {
		for i, silent := range []time.Duration{4, 1, 3, 2} {
			c.Members[i+1].SilentFor = silent * time.Second
		}
	})
	if got := apart.c.silentFor(); got != 2*time.Second {
		t.Errorf("three of four have been silent for %s, want 2s", got)
	}
	for silent, want := range map[time.Duration]time.Duration{0: 0, time.Second: over - time.Second, over: 0, 2 * over: 0} {
		if got := awaiting(t, 3, 1, silent).c.LeaseEndsIn(); got != want {
			t.Errorf("silent for %s: the lease ends in %s, want %s", silent, got, want)
		}
	}
	if note := Decide(awaiting(t, 3, 1, over-1).c).Note; note.Request != "" {
		t.Errorf("users may ask for %q, although the lease ends first", note.Request)
	}
	late := awaiting(t, 3, 1, 0).with(func(c *Cluster) { c.Members[0].UnheardFor = 2 * LostAfter })
	if note := Decide(late.c).Note; note.Request != "db-0.2.2" {
		t.Errorf("users may ask for %q", note.Request)
	}
	wantNote(t, unreachable(t, 3, 1, UnheardLeast), ReasonReplacingPrimary, false, "db-0 does not answer", "got nothing from it")
}

func TestDecideRecordsLeases(t *testing.T) {
	t.Parallel()
	pair := []string{"db-0", "db-1"}
	whole := []string{"db-0", "db-1", "db-2", "db-3", "db-4"}
	engages := func(replicas, acks, needs, passed int) *story {
		return wantsLease(healthy(t, replicas, acks)).hears(0, StateWriting, enforces(acks, replicas-1), engaged(needs, passed))
	}
	stories := map[string]struct {
		story *story
		want  Record
	}{
		"the primary has a lease": {
			engages(2, 1, 1, 1), leased(rec(1, 1, pair...))},
		"it has one for fewer replicas": {
			engages(5, 2, 1, 1), rec(1, 2, whole...)},
		"it has been told so, and has none yet": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Members[0].Status.Lease.Needs = 0 }), rec(1, 1, pair...)},
		"it has been told to do without": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Members[0].Status.Assignment.Lease = 0 }), rec(1, 1, pair...)},
		"only the operator's confirmation keeps it": {
			engages(2, 1, 1, 5), rec(1, 1, pair...)},
		"it has said so under an earlier record": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Members[0].Status.ObservedUnder.Revision-- }), rec(1, 1, pair...)},
		"it does not take writes yet": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Members[0].Status.State = StatePromoting }), rec(1, 1, pair...)},
		"commits need no acknowledgement": {
			engages(2, 0, 1, 1), rec(1, 0, pair...)},
		"the user does not want it": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.WantsLease = false }), rec(1, 1, pair...)},
		"its kernel cannot say which replicas are connected": {
			engages(2, 1, 1, 1).with(func(c *Cluster) {
				c.Record.LeaseLasts, c.Members[0].Status.Lease.IsImpossible = LongLease, true
			}), rec(1, 1, pair...)},
		"its agent knows nothing of leases": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts, c.Members[0].Status.Protocol = LongLease, Protocol-1 }), rec(1, 1, pair...)},
		"the user does not want it any more": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.WantsLease, c.Record.LeaseLasts = false, LongLease }), rec(1, 1, pair...)},
		"all replicas are needed: it lasts for long": {
			engages(2, 1, 1, 1), lasting(LongLease, rec(1, 1, pair...))},
		"a replica can be away: it is short": {
			engages(3, 1, 1, 1), lasting(ShortLease, rec(1, 1, whole[:3]...))},
		"it was long and is short now": {
			engages(3, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts = LongLease }), lasting(ShortLease, rec(1, 1, whole[:3]...))},
		"it was long, and it has been told to have a short one that ends soon": {
			engages(3, 1, 1, 2).with(func(c *Cluster) { c.Record.LeaseLasts = LongLease }), lasting(LongLease, rec(1, 1, whole[:3]...))},
		"it was long and may still be": {
			engages(3, 1, 1, 1).with(func(c *Cluster) {
				c.Record.LeaseLasts, c.Members[0].Status.Lease.Lasts = LongLease, LongLease
			}), lasting(LongLease, rec(1, 1, whole[:3]...))},
		"it has been told to have a long one": {
			engages(3, 1, 1, 1).with(func(c *Cluster) {
				c.Record.LeaseLasts, c.Members[0].Status.Assignment.LeaseLasts = LongLease, LongLease
			}), lasting(LongLease, rec(1, 1, whole[:3]...))},
		"a primary may be unreachable for longer": {
			engages(3, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts, c.Limits.Unreachable = ShortLease, 30*time.Second }), lasting(30*time.Second+evidenceAge, rec(1, 1, whole[:3]...))},
		"while the primary does not answer, it cannot last longer": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts, c.Members[0].Status = ShortLease, nil }), lasting(ShortLease, rec(1, 1, pair...))},
		"it was short, and no replica can be away any more": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts = ShortLease }), lasting(LongLease, rec(1, 1, pair...))},
		"too few replicas have been heard lately: the operator may confirm a long one": {
			engages(3, 1, 1, 2).with(func(c *Cluster) { c.Record.LeaseLasts = ShortLease }), lasting(LongLease, rec(1, 1, whole[:3]...))},
		"replicas have not been heard since the operator confirmed it": {
			engages(3, 1, 1, 5).with(func(c *Cluster) {
				c.Record.LeaseLasts, c.Members[0].Status.Lease.Ends = LongLease, false
			}), lasting(LongLease, rec(1, 1, whole[:3]...))},
		"its mysqld has ended: the operator must confirm it before it opens": {
			engages(3, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts, c.Members[0].Status.State = ShortLease, StateStarting }), lasting(LongLease, rec(1, 1, whole[:3]...))},
		"it stays short if a replica takes over, because its container restarts": {
			stopping(engages(3, 1, 1, 1).with(func(c *Cluster) { c.Record.LeaseLasts, c.Members[0].Status.State = ShortLease, StateStarting }), 0), lasting(ShortLease, rec(1, 1, whole[:3]...))},
		"a stronger promise needs another lease": {
			engages(5, 1, 1, 1).with(func(c *Cluster) { c.Record = leased(c.Record) }).hears(0, StateWriting, enforces(2, 4), engaged(1, 1)), rec(1, 2, whole...)},
		"a weaker promise keeps it": {
			engages(5, 2, 2, 1).with(func(c *Cluster) { c.Record = leased(c.Record) }).hears(0, StateWriting, enforces(2, 1), shortFor(60), engaged(2, 1)).silent(2).silent(3).silent(4), leased(rec(1, 1, whole...))},
		"without a promise there is none": {
			engages(2, 1, 1, 1).with(func(c *Cluster) { c.Record = leased(c.Record) }).hears(0, StateWriting, enforces(1, 0), shortFor(60), engaged(1, 1)).silent(1), rec(1, 0, pair...)},
	}
	for name, told := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.want)
		})
	}
}

// TestTheOperatorConfirmsAPrimaryInTime: also if nothing else in its assignment changes.
func TestTheOperatorConfirmsAPrimaryInTime(t *testing.T) {
	t.Parallel()
	const clock, lasts = time.Hour, LongLease
	const short = lasts / 2
	assigned := Assignment{Protocol: Protocol, Role: RolePrimary, Acks: 1, Lease: 1, LeaseLasts: LongLease, Record: Record{LeaseLasts: LongLease}}
	first := assigned
	first.Record.LeaseLasts = 0
	for name, test := range map[string]struct {
		wanted Assignment
		state  State
		lease  *Lease
		want   bool
	}{
		"replicas are connected":                              {assigned, StateWriting, leaseOf(1, lasts, lasts), false},
		"too few are":                                         {assigned, StateWriting, leaseOf(1, lasts, short), true},
		"too few are, for long":                               {assigned, StateWriting, leaseOf(1, lasts, -time.Hour), true},
		"it has no lease yet":                                 {assigned, StateWriting, leaseOf(0, lasts, short), false},
		"it says nothing":                                     {assigned, StateWriting, nil, false},
		"it is about to open":                                 {assigned, StatePromoting, leaseOf(0, lasts, short), true},
		"it is about to open, in time":                        {assigned, StatePromoting, leaseOf(0, lasts, lasts), false},
		"it is about to open for the first time":              {first, StatePromoting, leaseOf(0, lasts, short), true},
		"its mysqld does not answer":                          {assigned, StateStarting, leaseOf(1, lasts, short), true},
		"its supervisor does not know yet that it needs none": {Assignment{Protocol: Protocol, Role: RolePrimary, Acks: 1}, StateWriting, leaseOf(1, lasts, short), true},
		"its mysqld does not run":                             {assigned, StateStarting, leaseOf(0, lasts, short), false},
		"it needs no lease":                                   {Assignment{Protocol: Protocol, Role: RolePrimary, Acks: 1}, StateWriting, leaseOf(0, lasts, short), false},
		"it is a replica":                                     {Assignment{Protocol: Protocol, Role: RoleReplica, Lease: 1}, StateReplicating, leaseOf(1, lasts, short), false},
	} {
		now := Status{Protocol: Protocol, State: test.state, Lease: test.lease, Clock: clock, Assignment: &test.wanted, AcksEnforced: 1}
		if got := !test.wanted.Followed(now); got != test.want {
			t.Errorf("%s: sent again: %t", name, got)
		}
		if sent := test.wanted.ConfirmedFor(now); test.want && (sent.ConfirmedAt != clock || !test.wanted.Relaxes(now)) {
			t.Errorf("%s: sent %+v, and the record is read first: %t", name, sent, test.wanted.Relaxes(now))
		}
	}
	lower := Assignment{Protocol: Protocol, Role: RolePrimary, Acks: 1}
	if now := (Status{State: StateWriting, AcksEnforced: 1, Lease: leaseOf(1, lasts, lasts), Clock: clock}); !lower.Relaxes(now) {
		t.Error("a primary is told to do without a lease, and the record is not read first")
	}
	confirmed := assigned
	confirmed.ConfirmedAt = clock
	if confirmed.contradicts(&assigned) || !confirmed.Followed(Status{Protocol: Protocol, Assignment: &assigned}) {
		t.Error("a confirmation is another assignment")
	}
	brief := assigned
	brief.LeaseLasts = ShortLease
	now := Status{State: StateWriting, AcksEnforced: 1, Lease: leaseOf(1, brief.LeaseLasts, brief.LeaseLasts), Clock: clock}
	if !assigned.Relaxes(now) || brief.Relaxes(now) {
		t.Error("a primary is told to have a longer lease, and the record is not read first; or it is for the same one")
	}
	if !lower.contradicts(&assigned) || !brief.contradicts(&assigned) {
		t.Error("one revision allows two leases")
	}
}

// TestConfirmationOfWhatAPrimaryFollows: it must not wait for what the other members say.
func TestConfirmationOfWhatAPrimaryFollows(t *testing.T) {
	t.Parallel()
	record := lasting(LongLease, rec(1, 1, "db-0", "db-1", "db-2"))
	order := Assignment{Role: RolePrimary, Record: record, Boot: "first", Acks: 1, Lease: 1, LeaseLasts: LongLease}
	short := func() Status {
		follows := order
		return Status{State: StateWriting, Boot: "first", Assignment: &follows, Clock: time.Hour, Lease: leaseOf(1, order.LeaseLasts, time.Second)}
	}
	brief := func(s *Status) {
		s.Assignment.LeaseLasts, s.Assignment.Record.LeaseLasts = ShortLease, ShortLease
	}
	for what, test := range map[string]struct {
		change func(*Status)
		isSent bool
	}{
		"too few replicas are connected": {func(*Status) {}, true},
		"the lease is longer than it knows": {func(s *Status) {
			brief(s)
			s.Assignment.Record.Revision--
		}, true},
		"replicas are connected":       {func(s *Status) { s.Lease.Ends = false }, false},
		"it has no assignment":         {func(s *Status) { s.Assignment = nil }, false},
		"it follows an earlier record": {func(s *Status) { s.Assignment.Record.Revision-- }, false},
		"it follows another record, with a shorter lease": {func(s *Status) {
			brief(s)
			s.Assignment.Record.Revision--
			s.Assignment.Record.RequiredAcks = 2
		}, false},
		"it follows a record of long ago": {func(s *Status) {
			brief(s)
			s.Assignment.Record.Revision -= 2
		}, false},
		"its lease rests on replicas":  {func(s *Status) { s.Assignment.LeaseLasts = ShortLease }, false},
		"its mysqld has started again": {func(s *Status) { s.Boot = "second" }, false},
		"it is a replica":              {func(s *Status) { s.Assignment.Role = RoleReplica }, false},
	} {
		status := short()
		test.change(&status)
		again := status.Confirmation(record)
		if (again != nil) != test.isSent {
			t.Errorf("%s: it gets %+v", what, again)
		} else if test.isSent && (again.Confirmed() != time.Hour || again.contradicts(&order) || !again.Record.Equal(record) || !again.Relaxes(status)) {
			t.Errorf("%s: it gets %+v", what, again)
		}
	}
	if late := (Assignment{LeaseLasts: ShortLease, ConfirmedAt: time.Hour}); late.Confirmed() != 0 {
		t.Error("an operator confirms a lease that rests on replicas")
	}
}

// TestALeaseIsMadeLongInTime: before the other members are asked, because they may hang. Then the primary is confirmed.
func TestALeaseIsMadeLongInTime(t *testing.T) {
	t.Parallel()
	lonely := func(recorded, follows time.Duration) *story {
		s := wantsLease(healthy(t, 3, 1)).hears(0, StateWriting, enforces(1, 2), engaged(1, 2)).silent(1).silent(2)
		s.c.Record = lasting(recorded, s.c.Record)
		status := s.c.Members[0].Status
		status.Assignment.Record, status.Assignment.LeaseLasts, status.Assignment.Boot = s.c.Record, follows, status.Boot
		status.Held, status.Clock, status.Lease = s.c.Record, time.Hour, leaseOf(1, follows, time.Second)
		return s
	}
	const short, long = ShortLease, LongLease
	for what, test := range map[string]struct {
		story *story
		isDue bool
	}{
		"too few replicas are heard":                      {lonely(short, short), true},
		"the record does not say yet that it does":        {lonely(long, short), true},
		"nor that it has a lease":                         {lonely(0, short), true},
		"it has no lease yet":                             {lonely(0, short).with(func(c *Cluster) { c.Members[0].Status.Lease.Needs = 0 }), false},
		"the record has changed for that":                 {lonely(0, short).with(func(c *Cluster) { c.Record.Revision++ }), false},
		"enough are":                                      {lonely(short, short).with(func(c *Cluster) { c.Members[0].Status.Lease.Ends = false }), false},
		"the lease is long":                               {lonely(long, long), false},
		"the primary does not answer":                     {lonely(short, short).silent(0), false},
		"the user does not want a lease":                  {lonely(short, short).with(func(c *Cluster) { c.WantsLease = false }), false},
		"the resource is older than the primary's record": {lonely(short, short).with(func(c *Cluster) { c.Members[0].Status.Held.Revision++ }), false},
		"the primary has lost its data":                   {lonely(short, short).with(func(c *Cluster) { c.Members[0].Status.Origin = OriginFresh }), false},
	} {
		next, isDue := test.story.c.Urgent()
		want := test.story.c.Record
		if test.isDue {
			want.Revision++
			if want.LeaseLasts > 0 {
				want.LeaseLasts = long
			}
		}
		if isDue != test.isDue || !next.Equal(want) {
			t.Errorf("%s: %t %+v", what, isDue, next)
		}
		if !test.isDue {
			continue
		}
		again := test.story.c.Members[0].Status.Confirmation(next)
		if again == nil || again.LeaseLasts != long || again.Confirmed() != time.Hour {
			t.Errorf("%s: it gets %+v", what, again)
		}
		test.story.c.Record = next
		if wanted := assignments(test.story.c)["db-0"]; again != nil && wanted.contradicts(again) {
			t.Errorf("%s: it gets %+v and then %+v", what, again, wanted)
		}
	}
}

// TestALeaseStaysLongWhileItRestsOnTheOperator: also right after a confirmation.
func TestALeaseStaysLongWhileItRestsOnTheOperator(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		recorded time.Duration
		change   func(*Status)
		want     time.Duration
	}{
		"replicas are heard":                  {LongLease, func(*Status) {}, ShortLease},
		"only the operator has confirmed it":  {LongLease, func(s *Status) { s.Lease.IsHeard = false }, LongLease},
		"too few replicas are heard":          {ShortLease, func(s *Status) { s.Lease.Ends = true }, LongLease},
		"it is not recorded, and may end":     {0, func(s *Status) { s.Lease.Ends = true }, LongLease},
		"it has none yet":                     {0, func(s *Status) { s.Lease.Needs, s.Lease.IsHeard, s.Lease.Ends = 0, false, true }, ShortLease},
		"mysqld does not take writes yet":     {LongLease, func(s *Status) { s.State = StatePromoting }, LongLease},
		"its agent says nothing of the lease": {ShortLease, func(s *Status) { s.Lease = nil }, ShortLease},
	} {
		s := wantsLease(healthy(t, 3, 1)).hears(0, StateWriting, enforces(1, 2), engaged(1, 1))
		s.c.Record = lasting(test.recorded, s.c.Record)
		test.change(s.c.Members[0].Status)
		if got := s.c.leaseLasts(); got != test.want {
			t.Errorf("%s: it lasts for %s, want %s", what, got, test.want)
		}
	}
}

// TestAMemberThatLeavesMakesTheLeaseLong: it may have given evidence after the others had heard the primary last.
func TestAMemberThatLeavesMakesTheLeaseLong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ replicas, acks int }{{3, 1}, {5, 2}} {
		s := wantsLease(healthy(t, test.replicas, test.acks))
		s.c.Record = lasting(ShortLease, s.c.Record)
		last := s.c.Members[test.replicas-1].Name
		s.hears(0, StateWriting, enforces(test.acks, test.replicas-1), wasPrimary, engaged(test.acks, 1), knows(last))
		for i := 1; i < test.replicas-1; i++ {
			s.hears(i, StateReplicating, acking)
		}
		if left := Decide(s.lost(test.replicas - 1).c).Record; left.Allows(last) || left.LeaseLasts != LongLease {
			t.Errorf("%d members: the record is %+v", test.replicas, left)
		}
	}
}

// TestAgentsOfAnOlderReleaseCauseNoRecords: they drop what they do not know of an assignment, and report it without that.
func TestAgentsOfAnOlderReleaseCauseNoRecords(t *testing.T) {
	t.Parallel()
	for name, old := range map[string][]int{"all": {0, 1, 2}, "the primary's": {0}, "a replica's": {2}} {
		s := wantsLease(healthy(t, 3, 1))
		if old[0] != 0 {
			s.c.Record = leased(s.c.Record)
		}
		s.accepted()
		for _, ordinal := range old {
			status := s.c.Members[ordinal].Status
			kept := *status.Last
			kept.Lease, kept.LeaseLasts, kept.Record.LeaseLasts = 0, 0, 0
			status.Protocol, status.Assignment, status.Last = Protocol-1, &kept, &kept
		}
		got := Decide(s.c)
		if !got.Record.Equal(s.c.Record) {
			t.Errorf("%s: the next record is %+v", name, got.Record)
		}
		for _, ordinal := range old {
			member := s.c.Members[ordinal]
			if wanted := got.Assignments[member.Name]; !wanted.Followed(*member.Status) {
				t.Errorf("%s: %s gets %+v again and again", name, member.Name, wanted)
			}
		}
	}
}

// TestReleaseComesBeforeAPause: first the record, then the primary.
func TestReleaseComesBeforeAPause(t *testing.T) {
	t.Parallel()
	s := wantsLease(healthy(t, 2, 1))
	s.c.Record = leased(s.c.Record)
	s.hears(0, StateWriting, enforces(1, 1), engaged(1, 1))
	follows := func(order Assignment) {
		s.c.Members[0].Status.Assignment, s.c.Members[0].Status.Last = &order, &order
	}
	follows(*s.c.Members[0].Status.Assignment)
	first := s.c.Release()
	if first.Record.LeaseLasts > 0 || first.Record.Revision != s.c.Record.Revision+1 || first.Assignments != nil || s.c.IsReleased() {
		t.Fatalf("first %+v", first)
	}
	s.c.Record = first.Record
	second := s.c.Release()
	told, found := second.Assignments["db-0"]
	if !found || len(second.Assignments) != 1 || told.Lease != 0 || told.Acks != 1 || !second.Record.Equal(first.Record) || s.c.IsReleased() {
		t.Fatalf("then %+v", second)
	}
	follows(told)
	if s.c.IsReleased() {
		t.Error("it has the assignment, and its supervisor may not know that yet")
	}
	s.c.Members[0].Status.Lease = &Lease{IsImpossible: true}
	if !s.c.IsReleased() {
		t.Error("it can have no lease, and counts as one that needs it")
	}
	s.c.Members[0].Status.Lease = nil
	if done := s.c.Release(); !s.c.IsReleased() || len(done.Assignments) != 0 || !done.Record.Equal(first.Record) {
		t.Errorf("at last %+v", done)
	}

	s.c.Members[0].Status.Assignment = nil
	if again := s.c.Release(); s.c.IsReleased() || again.Assignments["db-0"].Lease != 0 || len(again.Assignments) != 1 {
		t.Errorf("its agent has started again: %+v", again)
	}
	s.c.Members[0].Status.State = StateWaiting
	if !s.c.IsReleased() {
		t.Error("it takes no writes, and counts as one that needs a lease")
	}
	another := told
	another.Lease = 1
	follows(another)
	if s.c.IsReleased() {
		t.Error("it is about to take writes with a lease")
	}
	s.c.Members[0].Status.Boot = "another start"
	if s.c.IsReleased() {
		t.Error("mysqld has started again, and may open by its replicas with a lease")
	}
	s.c.Members[0].Status.State = StateWriting
	if next := s.c.Release(); len(next.Assignments) != 0 || next.Record.Revision != first.Record.Revision+1 {
		t.Errorf("another assignment of the same revision: %+v", next)
	}
	if silent := s.silent(0).c.Release(); s.c.IsReleased() || len(silent.Assignments) != 0 || !silent.Record.Equal(first.Record) {
		t.Errorf("the primary does not answer: %+v", silent)
	}
}
