package replication

import "time"

// A lease lasts for some seconds, in which the operator may make a pass. The supervisor ends mysqld within the next second.

// limits are what the user wants: a patient one makes all leases last longer.
func (w *world) limits() Limits {
	limits := usual()
	if w.isPatient {
		limits.Unreachable = 30 * time.Second
	}
	return limits
}

// lasts is how many seconds of the world a lease lasts.
func (w *world) lasts(leaseSeconds int) int {
	switch leaseSeconds {
	case ShortLeaseSeconds:
		return w.shortLease
	case LongLeaseSeconds:
		return w.longLease
	}
	return w.longLease + 5
}

// heldLease is what an agent knows of the lease of its mysqld's start.
type heldLease struct {
	start, needs, lasts int
}

// lease is what the agent knows of the lease of the mysqld that runs.
func (m *simulated) lease() heldLease {
	if m.agent.lease.start != m.sql.start {
		return heldLease{start: m.sql.start}
	}
	return m.agent.lease
}

// leads asks the supervisor to replace the lease, and reports whether the agent knows that it did. The supervisor may do it and not answer.
func (w *world) leads(m *simulated, needs, lasts, since int) bool {
	isDone := w.random.IntN(6) > 0 && w.replaceLease(m, needs, lasts, since)
	known := m.lease()
	if isDone && w.random.IntN(6) > 0 {
		m.agent.lease = heldLease{m.sql.start, needs, lasts}
		return true
	}
	known.needs, known.lasts = min(known.needs, needs), max(known.lasts, lasts)
	m.agent.lease = known
	return false
}

// pass lets time pass.
func (w *world) pass(seconds int) {
	for range seconds {
		for _, m := range w.members {
			w.renew(m)
		}
		w.clock++
		for _, m := range w.members {
			if m.writable() && m.sql.leaseNeeds > 0 && w.clock-m.sql.leaseSince > w.lasts(m.sql.leaseLasts) {
				w.say("%s: mysqld ends with its lease", m.name)
				m.crash()
			}
		}
	}
}

// renew finds the evidence of this moment.
func (w *world) renew(m *simulated) {
	if m.sql.leaseNeeds > 0 && w.connected(m) >= m.sql.leaseNeeds {
		m.sql.leaseSince = w.clock
	}
}

// connected counts the replicas that acknowledge commits of the member, and whose machines acknowledge packets.
func (w *world) connected(m *simulated) int {
	count := 0
	for _, other := range w.members {
		isConnected := other != m && other.sql.up && other.sql.connected && other.sql.ackActive && other.vol.source == m.address
		if isConnected && !m.cut && !other.cut {
			count++
		}
	}
	return count
}

// replaceLease simulates a supervisor that replaces the lease of a mysqld, unless it would end at once.
func (w *world) replaceLease(m *simulated, needs, lasts, since int) bool {
	if w.connected(m) >= needs {
		since = w.clock
	}
	if needs <= m.sql.leaseNeeds {
		since = max(since, m.sql.leaseSince)
	}
	if needs > 0 && w.clock-since > w.lasts(lasts) {
		return false
	}
	m.sql.leaseNeeds, m.sql.leaseLasts, m.sql.leaseSince = needs, lasts, since
	return true
}

// mayOpen reports whether a primary has what it needs to take writes.
func (w *world) mayOpen(m *simulated, order Assignment) bool {
	if order.Record.LeaseSeconds == 0 && m.vol.leasedUnder != order.Record.Version() {
		return w.leads(m, 0, 0, 0)
	}
	return w.leads(m, order.Lease, order.LeaseSeconds, m.agent.confirmed)
}

// silences is since when an operator has seen members silent under one record.
type silences struct {
	under Version
	since map[string]int
}

func (s *silences) observe(w *world, member Member, record Record) time.Duration {
	if s.under != record.Version() || s.since == nil {
		*s = silences{record.Version(), map[string]int{}}
	}
	since, found := s.since[member.Name]
	switch {
	case !member.Status.IsSilent(record):
		if member.Status != nil {
			delete(s.since, member.Name)
		}
		return 0
	case !found:
		s.since[member.Name], since = w.clock, w.clock
	}
	return (seconds(record.LeaseSeconds) + 2*time.Second) * time.Duration(w.clock-since) / time.Duration(w.lasts(record.LeaseSeconds)+1)
}
