package replication

import "testing"

// A machine that fails loses what its operating system had not written to the disk yet: the end of a replica's relay log (sync_relay_log),
// and nothing that mysqld has committed.

// losePower ends a member's machine. The promise still counts what its relay log has lost, until the member leaves the record.
func (w *world) losePower(m *simulated) {
	if !m.pod || w.oneIsLost() {
		return
	}
	left := m.vol.relay[:w.random.IntN(len(m.vol.relay)+1)]
	if m.vol.role == RolePrimary { // its volume was flushed when it became the primary
		left = m.vol.relay
	}
	for _, n := range m.vol.relay[len(left):] {
		m.ghost.add(n)
		m.isLost = w.record.Allows(m.name)
	}
	m.vol.retrieved = m.vol.retrieved.without(m.unlogged(m.vol.relay[len(left):]))
	m.vol.relay = left
	w.say("%s: its machine loses power, and %d received transactions are left", m.name, len(left))
	m.killPod()
	m.address = ""
	w.forgets(m)
}

// forgetsLast makes a member's disk lose the last transaction that mysqld had flushed. The promise still counts it.
func (m *simulated) forgetsLast() {
	last := len(m.vol.binlog) - 1
	var lost transactions
	lost.add(m.vol.binlog[last])
	m.vol.binlog, m.ghost = m.vol.binlog[:last], m.ghost.union(lost)
	m.vol.executed, m.vol.data = m.vol.executed.without(lost), m.vol.data.without(lost)
}

// unlogged are those of these transactions that the member has not committed.
func (m *simulated) unlogged(numbers []int) transactions {
	var all transactions
	for _, n := range numbers {
		all.add(n)
	}
	return all.without(m.vol.executed)
}

// forgets simulates the agent of a new Pod, or on another boot of its machine, that finds no proof that the volume was flushed.
func (w *world) forgets(m *simulated) {
	if m.vol.role != RoleReplica || m.vol.hasLed {
		return
	}
	m.vol.isForgetful, m.vol.forgotUnder = true, m.vol.held.Version()
	w.primaryLost = w.primaryLost || w.record.Primary == m.name || w.record.FormerPrimary != "" // it is chosen, or may be, and does not lead yet
}

// mustLookAtSource reports whether a forgetful member has not looked at its primary yet.
func (m *simulated) mustLookAtSource() bool {
	order := m.agent.assignment
	return m.vol.isForgetful && order != nil && (order.SourceHost == "" || order.SourceHost != m.agent.recallHost)
}

// remember simulates a forgetful member that gets everything again that its primary had.
func (w *world) remember(m *simulated, local Observed) {
	a := &m.agent
	switch {
	case !m.vol.isForgetful:
		return
	case m.vol.role == RolePrimary && !local.Server.SuperReadOnly:
	case m.mustLookAtSource():
		if local.sourceObserved() {
			a.recall, a.recallHost = local.Source.Executed.Union(local.Source.Pending), a.assignment.SourceHost
		}
		return
	case a.assignment == nil || !local.Server.Executed.Union(local.Server.Channel.Retrieved).Contains(a.recall):
		return
	}
	w.say("%s: has everything again", m.name)
	m.vol.isForgetful, m.isLost, m.ghost = false, false, transactions{}
}

// TestAFormerPrimaryLosesWhatItReceived: the record counts what a former primary has received of the next one, before an assignment lets it
// acknowledge. If its machine fails then, it is no witness.
func TestAFormerPrimaryLosesWhatItReceived(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.p.crash()
	x.until("another member leads", func() bool {
		return x.record.Primary != "" && x.record.Primary != x.p.name && x.leads(x.named(x.record.Primary))
	})
	next := x.named(x.record.Primary)
	x.until("the former primary is in sync", func() bool { return x.record.Acknowledges(x.p.name) && !x.p.vol.last.InSync })
	isLate := func() bool { // assignments of this epoch do not reach it, and it applies nothing
		x.p.sql.sql, x.underway = false, nil
		x.p.deaf = x.operator.stage == stageAssign && x.record.Primary == next.name
		return true
	}
	isLate()
	n := len(x.ledger)
	x.until("the third one acknowledges what it receives", func() bool {
		return isLate() && n < maxTransactions && x.acked.has(n) && !x.p.vol.executed.has(n) && x.p.vol.has().has(n)
	})
	x.isBrokenWith(next)
	x.until("the third one is chosen", func() bool { return isLate() && x.record.Primary != "" && x.record.Primary != next.name })
	for x.p.vol.has().has(n) {
		x.losePower(x.p)
	}
	x.isBrokenWith(x.named(x.record.Primary))
	x.rounds(60)
	if x.leads(x.p) || !x.p.vol.isForgetful {
		t.Errorf("%s leads without transaction %d, which it has lost: %t; it may have forgotten some: %t", x.p.name, n, x.leads(x.p), x.p.vol.isForgetful)
	}
}
