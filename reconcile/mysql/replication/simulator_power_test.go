package replication

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
