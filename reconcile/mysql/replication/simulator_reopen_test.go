package replication

import "testing"

// sees simulates an agent that remembers what its mysqld had when that took writes.
func (m *simulated) sees(step Step, local Observed, under Version) {
	if order := local.Assignment; step.State == StateWriting && order != nil && order.Role == RolePrimary && under == order.Record.Version() {
		m.agent.opened = Opened{Under: under, Executed: local.Server.Executed}
	}
}

// bootHeld starts mysqld. If its start was held, and the operator has said nothing, it may open by its replicas.
func (m *simulated) bootHeld() {
	order := m.agent.assignment
	isAlone := m.sql.held && order != nil && order.Boot != m.agent.status.Boot && m.agent.opened.MayReopen(order)
	m.boot()
	if isAlone {
		m.sql.reopens, m.sql.barrier, m.sql.receivers = true, -1, order.Receivers()
	}
}

// seesStart simulates an agent that sees its mysqld for the first time since a start (beginReopening). If that lacks something, it does not
// open, and no report says that it may.
func (m *simulated) seesStart(executed GTIDSet) {
	local := Observed{Assignment: m.agent.assignment, Origin: m.vol.origin, IsReopening: m.sql.reopens, Opened: m.agent.opened}
	local.Server.Executed, local.Server.Channel.Configured = executed, m.vol.source != ""
	if m.sql.reopens && !m.sql.isSeen && !local.Reopens() {
		m.sql.reopens, m.sql.receivers = false, nil
	}
	m.sql.isSeen = true
}

// reopen lets clients write when replicas have acknowledged an empty transaction, and the lease rests on them.
func (w *world) reopen(m *simulated) {
	s, seen, order := &m.sql, m.agent.view.Assignment, m.agent.assignment
	if s.barrier < 0 && len(w.ledger) < w.mayWrite && !m.fault.isBlocked() {
		s.barrier = w.logs(m)
		w.hollow.add(s.barrier)
	}
	w.askAgain(m)
	stillLeads := order.Role == RolePrimary && order.Record.Epoch == seen.Record.Epoch
	shown := Shown{Acknowledged: s.barrier >= 0 && m.vol.executed.has(s.barrier)}
	shown.IsHeard = w.leads(m, seen.Lease, seen.LeaseLasts, 0) && w.restsOnReplicas(m)
	if !stillLeads || shown.Lacks() != "" {
		return
	}
	w.say("%s: opens by its replicas", m.name)
	w.absence.reopened = true
	s.readOnly, s.opens = false, false
	if copies := w.holders(m, m.logged()); copies < w.record.RequiredAcks {
		w.violated("clients can read what %s has and %d other members in sync, the record promises %d", m.name, copies, w.record.RequiredAcks)
	}
}

// absence is a time in which no operator runs, or none reaches the primary, whose mysqld crashes then.
type absence struct {
	isLikely, reopened bool
	// events is how many more events no operator runs for, of the primary that none reaches, for deafFor more events.
	events  int
	of      *simulated
	deafFor int
}

// goAway begins such a time, or continues it.
func (w *world) goAway() {
	a, primary := &w.absence, w.named(w.record.Primary)
	a.events, a.deafFor = max(0, a.events-1), max(0, a.deafFor-1)
	if a.of != nil && a.deafFor == 0 {
		a.of.deaf, a.of = false, nil
	}
	isQuiet := a.isLikely && a.events == 0 && a.of == nil && primary != nil && w.record.RequiredAcks > 0
	if !isQuiet || w.random.IntN(60) > 0 || primary.agent.status.State != StateWriting || !primary.isOpen() {
		return
	}
	if w.random.IntN(2) == 0 {
		w.say("no operator runs, and mysqld of %s is killed", primary.name)
		a.events = 100 + w.random.IntN(600)
	} else {
		w.say("%s: no operator reaches it, and its mysqld is killed", primary.name)
		primary.deaf, a.of, a.deafFor = true, primary, 100+w.random.IntN(600)
	}
	primary.crash()
}

// deserted returns a cluster at full strength whose operators are often away when its primary crashes.
func deserted(seed uint64) *world {
	w := newWorld(seed)
	w.absence.isLikely, w.isolated.isLikely, w.calm = true, false, []int{100, 400, 5000}[w.random.IntN(3)]
	w.replicas = 2 + w.random.IntN(mostMembers-1)
	if w.isPair {
		w.replicas = 2
	}
	for n := 0; n < 100 && !w.strong(); n++ {
		w.roll(-n)
		w.write()
		w.round()
	}
	return w
}

func TestSimulatedPrimariesOpenWithoutAnOperator(t *testing.T) {
	t.Parallel()
	simulateAll(t, *simulatorSeeds/4, deserted)
}

// TestManySimulatedPrimariesOpenAgain: the simulation above has what it is for.
func TestManySimulatedPrimariesOpenAgain(t *testing.T) {
	t.Parallel()
	const lives = 60
	count := 0
	for seed := range uint64(lives) {
		w := deserted(seed + 1)
		w.live(func(int) bool { return false })
		if w.absence.reopened {
			count++
		}
	}
	t.Logf("in %d of %d lives, a primary opened by its replicas", count, lives)
	if count < lives/3 {
		t.Errorf("only in %d of %d lives, a primary opened by its replicas", count, lives)
	}
}
