package replication

import (
	"testing"
	"time"
)

// led is the assignment of a primary that crashed, opened is what its agent has seen before.
func led(t *testing.T) (order Assignment, opened Opened) {
	t.Helper()
	record := Record{Epoch: 3, Revision: 7, Primary: "db-0", InSync: []string{"db-0", "db-1", "db-2"}, RequiredAcks: 1, LeaseLasts: 3 * time.Second}
	order = Assignment{Record: record, Role: RolePrimary, Boot: bootBefore, Acks: 1, Lease: 1, LeaseLasts: 3 * time.Second}
	return order, Opened{Under: record.Version(), Executed: gtids(t, "A:1-9")}
}

// TestWhichPrimariesMayOpenByTheirReplicas: only one that has led with this assignment, which demands acknowledgements and a lease.
func TestWhichPrimariesMayOpenByTheirReplicas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Assignment, *Opened)
		want   bool
	}{
		"it has led with this assignment":                  {func(*Assignment, *Opened) {}, true},
		"commits wait for more replicas than promised":     {func(a *Assignment, _ *Opened) { a.Acks = 2 }, true},
		"its agent has started since":                      {func(_ *Assignment, o *Opened) { *o = Opened{} }, false},
		"it was given a later record just before":          {func(a *Assignment, _ *Opened) { a.Record.Revision++ }, false},
		"it was chosen again, and has not led since":       {func(a *Assignment, _ *Opened) { a.Record.Epoch++ }, false},
		"another member takes over":                        {func(a *Assignment, _ *Opened) { a.Role = RoleReplica }, false},
		"the record promises no copies":                    {func(a *Assignment, _ *Opened) { a.Record.RequiredAcks = 0 }, false},
		"commits wait for fewer replicas than is promised": {func(a *Assignment, _ *Opened) { a.Acks = 0 }, false},
		"it leads without a lease":                         {func(a *Assignment, _ *Opened) { a.Lease, a.LeaseLasts = 0, 0 }, false},
		"its lease is for too few replicas":                {func(a *Assignment, _ *Opened) { a.Record.RequiredAcks, a.Acks = 2, 2 }, false},
		"its lease has no end":                             {func(a *Assignment, _ *Opened) { a.LeaseLasts = 0 }, false},
	} {
		order, opened := led(t)
		test.change(&order, &opened)
		if got := opened.MayReopen(&order); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
	if _, opened := led(t); opened.MayReopen(nil) {
		t.Error("a member without an assignment may open")
	}
}

// TestACrashedPrimaryOpensByItsReplicas: step by step, and reports to wait until it is open.
func TestACrashedPrimaryOpensByItsReplicas(t *testing.T) {
	t.Parallel()
	order, opened := led(t)
	s := member(t)
	s.local.Assignment, s.local.Opened, s.local.IsReopening = &order, opened, true
	s.takes("commits wait first", VerbEnforceAcks, StateWaiting)
	s.local.Server.SourceAcks = 1
	s.takes("it asks its replicas", VerbReopen, StateWaiting)
	s.local.Server.SuperReadOnly, s.local.Server.ReadOnly = false, true
	s.takes("it is half open", VerbReopen, StatePromoting)
	s.local.Server.ReadOnly = false
	s.takes("it is open", VerbNone, StateWriting)
	s.local.Server.SuperReadOnly, order.Boot = true, bootNow
	s.takes("the operator confirms it meanwhile", VerbAcceptWrites, StatePromoting)
}

// TestACrashedPrimaryWaitsForTheOperator if anything is not as it was when it led.
func TestACrashedPrimaryWaitsForTheOperator(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Observed){
		"its mysqld was started as usual":        func(l *Observed) { l.IsReopening = false },
		"it lacks a transaction that it had":     func(l *Observed) { l.Server.Executed = gtids(t, "A:1-8") },
		"it was given a later record":            func(l *Observed) { l.Assignment.Record.Revision++ },
		"it may have forgotten transactions":     func(l *Observed) { l.IsForgetful = true },
		"it has been replaced before":            func(l *Observed) { l.HadAsPrimary = gtids(t, "A:1-9") },
		"its data is being replaced":             func(l *Observed) { l.Origin = OriginFresh },
		"a user has made it a replica of others": func(l *Observed) { l.Server.Channel.Configured = true },
	} {
		order, opened := led(t)
		s := member(t)
		s.local.Assignment, s.local.Opened, s.local.IsReopening = &order, opened, true
		s.local.Server.SourceAcks = 1
		change(&s.local)
		s.takes(name, VerbNone, StateWaiting)
	}
}

// reopening is what a primary says that may open by its replicas.
func reopening(_ *testing.T, s *Status) {
	s.Assignment = &Assignment{Record: s.Held, Role: RolePrimary, Boot: "before " + s.Boot}
	s.ObservedUnder = s.Held.Version()
}

// takes checks the member's next step.
func (s *scene) takes(what string, verb Verb, state State) {
	s.t.Helper()
	if step := NextStep(s.local); step.Verb != verb || step.State != state {
		s.t.Errorf("%s: %s in state %s, want %s in state %s: %s", what, step.Verb, step.State, verb, state, step.Message)
	}
}

// TestTheOperatorReturnsToAPrimaryThatOpenedByItself: it assigns what the primary has already, for its new start, and changes nothing else.
func TestTheOperatorReturnsToAPrimaryThatOpenedByItself(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	record, start := x.record, x.p.sql.start
	x.p.crash()
	for n := 0; !x.absence.reopened; n++ {
		if n > 300 {
			t.Fatalf("%s does not open: %s", x.p.name, x.p.agent.status.Message)
		}
		x.unled(n)
	}
	n := len(x.ledger)
	x.write()
	x.until("a write is acknowledged", func() bool { return len(x.ledger) > n && x.acked.has(n) })
	x.until("it is assigned its role", func() bool { return x.p.agent.assignment.Boot == x.p.agent.status.Boot })
	x.rounds(20)
	x.ends()
	if x.record.Primary != x.p.name || x.record.Epoch != record.Epoch || x.p.sql.start != start+1 {
		t.Errorf("the record was %+v and is %+v, after %d starts of mysqld", record, x.record, x.p.sql.start-start)
	}
}

// TestAPrimaryOpensWhenItsReplicasHaveShownEnough: one of both is not enough.
func TestAPrimaryOpensWhenItsReplicasHaveShownEnough(t *testing.T) {
	t.Parallel()
	for shown, opens := range map[Shown]bool{
		{}:                                  false,
		{Acknowledged: true}:                false, // another member may take over without waiting for this one
		{IsHeard: true}:                     false, // replicas may be connected that lack something
		{Acknowledged: true, IsHeard: true}: true,
	} {
		if lacks := shown.Lacks(); (lacks == "") != opens {
			t.Errorf("%+v: it lacks %q", shown, lacks)
		}
	}
}
