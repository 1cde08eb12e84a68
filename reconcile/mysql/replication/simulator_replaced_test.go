package replication

import "slices"

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
	case former.isForced:
		return
	case !former.isKnown && m.sql.readOnly && under == m.vol.held.Version():
		m.vol.replaced = &formerPrimary{epoch: former.epoch, isKnown: true}
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
	a.status.State, a.status.Closed, a.status.StartHeld = StateStarting, nil, m.sql.held
	if a.assignment != nil && a.assignment.Role == RoleReplica && m.isOpen() {
		m.crash()
	}
	if m.isOpen() {
		return
	}
	a.status.Closed = &Version{}
	if a.assignment != nil {
		*a.status.Closed = a.assignment.Record.Version()
	}
}

// mayStart simulates an agent that holds the start of mysqld until it knows who leads. It may have to wait for too long.
func (w *world) mayStart(m *simulated) bool {
	order, isOver := m.agent.assignment, w.random.IntN(8) == 0
	switch {
	case !m.sql.held || isOver && m.agent.status.State == StateStarting:
		return true
	case m.agent.status.State != StateStarting: // it has not seen yet that mysqld has ended
		return false
	case order != nil && order.Role == RolePrimary && order.Boot == m.agent.status.Boot:
		return true
	case m.vol.replaced != nil && m.vol.replaced.isForced:
		return true
	case m.vol.replaced == nil:
		return m.vol.last == nil || m.vol.last.Acks == 0
	case order == nil || m.vol.held.Primary == "":
		return false
	}
	source := w.sourceOf(m, *order)
	if source.Err == "" {
		w.cutTail(m, source.Executed.Union(source.Pending))
	}
	return source.Err == ""
}

// cutTail simulates an agent that cuts off what the new primary does not have. It may refuse, or end in between.
func (w *world) cutTail(m *simulated, has GTIDSet) {
	rest := slices.IndexFunc(m.sql.waiting, func(one commit) bool { return !has.Contains(w.one(one.number)) })
	if rest < 0 || w.random.IntN(4) == 0 {
		return
	}
	former := formerPrimary{epoch: m.vol.replaced.epoch, isKnown: true}
	m.logged().each(func(n int) {
		if w.ledger[n].uuid == m.uuid {
			former.had.add(n)
		}
	})
	for _, one := range m.sql.waiting[rest:] {
		if has.Contains(w.one(one.number)) || w.ledger[one.number].uuid != m.uuid {
			return
		}
		former.setAside.add(one.number)
	}
	w.drops(m, former.setAside, "it cuts them off")
	m.vol.replaced = &former
	w.newUUID(m)
	if w.random.IntN(8) == 0 {
		return
	}
	w.say("%s: cuts off %s", m.name, w.set(former.setAside))
	m.sql.waiting = m.sql.waiting[:rest]
	m.vol.binlog = slices.DeleteFunc(m.vol.binlog, former.setAside.has)
}
