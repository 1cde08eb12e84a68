package replication

// recordReplaced simulates an agent that records what its member had when it was replaced as the primary, until the member follows another
// one.
func (w *world) recordReplaced(m *simulated, local *Observed, under Version) {
	former := m.vol.replaced
	switch {
	case former == nil:
		return
	case m.sql.connected && m.sql.sql:
		m.vol.replaced = nil
		return
	case !former.isKnown && m.sql.readOnly && under == m.vol.held.Version():
		m.vol.replaced = &formerPrimary{isKnown: true}
		m.logged().each(func(n int) {
			if w.ledger[n].uuid == m.uuid {
				m.vol.replaced.had.add(n)
			}
		})
	}
	local.HadAsPrimary, local.SetAside = w.set(m.vol.replaced.had), w.set(m.vol.replaced.setAside)
}

// setAside simulates an agent that keeps a copy of transactions, which at times fails.
func (w *world) setAside(m *simulated, gtids GTIDSet) {
	if m.vol.replaced == nil || w.random.IntN(4) == 0 {
		return
	}
	former := *m.vol.replaced
	m.logged().each(func(n int) {
		if gtids.Contains(w.one(n)) {
			former.setAside.add(n)
		}
	})
	m.vol.replaced = &former
}

// unanswered simulates an agent whose mysqld does not answer. Its supervisor knows whether clients may write to it. A mysqld that hangs,
// may take writes and is not the primary's any more is killed.
func (w *world) unanswered(m *simulated) {
	a := &m.agent
	a.status.State, a.status.Closed = StateStarting, nil
	if a.assignment != nil && a.assignment.Role == RoleReplica && m.writable() {
		m.crash()
	}
	if m.writable() {
		return
	}
	a.status.Closed = &Version{}
	if a.assignment != nil {
		*a.status.Closed = a.assignment.Record.Version()
	}
}
