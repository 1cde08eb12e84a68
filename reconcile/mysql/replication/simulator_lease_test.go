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
func (w *world) lasts(lease time.Duration) int {
	if lease == ShortLease {
		return w.shortLease
	}
	if lease == LongLease {
		return w.longLease
	}
	return w.longLease + 5
}

// heldLease is what an agent knows of the lease of its mysqld's start.
type heldLease struct {
	start, needs int
	lasts        time.Duration
}

// lease is what the agent knows of the lease of the mysqld that runs.
func (m *simulated) lease() heldLease {
	if m.agent.lease.start != m.sql.start {
		return heldLease{start: m.sql.start}
	}
	return m.agent.lease
}

// leads asks the supervisor to replace the lease, and reports whether the agent knows that it did. The supervisor may do it and not answer.
func (w *world) leads(m *simulated, needs int, lasts time.Duration, since int) bool {
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
	if w.sends(m, m.sql.leaseNeeds) {
		m.sql.leaseSince, m.sql.heardAt = w.clock, w.clock
	}
}

// sends reports whether what mysqld sends now reaches so many replicas that acknowledge. It reaches the others, too.
func (w *world) sends(m *simulated, needs int) bool {
	if !m.sql.up || m.sql.hung || m.cut {
		return false
	}
	for _, other := range w.members {
		if other != m && other.sql.up && other.sql.connected && other.vol.source == m.address && !other.cut {
			other.sql.gotAt = w.clock
		}
	}
	return needs > 0 && w.connected(m) >= needs
}

// deafness is since when a receiver that the agent has stopped has got nothing; the zero value is for not known.
type deafness struct {
	start, since int
}

// stopReceiver stops the receiver of a member. Not always does the kernel say when it has got something last.
func (w *world) stopReceiver(m *simulated) {
	if m.sql.connected {
		m.agent.deaf = deafness{}
		if w.random.IntN(4) > 0 {
			m.agent.deaf = deafness{m.sql.start, m.sql.gotAt}
		}
	}
	m.sql.io, m.sql.connected, m.sql.ackActive = false, false, false
}

// restsOnReplicas reports whether a primary has been heard lately, and since the operator has confirmed it.
func (w *world) restsOnReplicas(m *simulated) bool {
	return w.clock-m.sql.heardAt <= 1 && m.sql.heardAt > m.agent.confirmed
}

// leaseTime is a time of the world as a part of the lease that a record has.
func (w *world) leaseTime(record Record, passed int) time.Duration {
	return record.leaseLimit() * time.Duration(passed) / time.Duration(w.lasts(record.LeaseLasts)+1)
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
func (w *world) replaceLease(m *simulated, needs int, lasts time.Duration, since int) bool {
	heard := 0
	if w.sends(m, needs) {
		since, heard = w.clock, w.clock
	}
	if needs <= m.sql.leaseNeeds {
		since, heard = max(since, m.sql.leaseSince), max(heard, m.sql.heardAt)
	}
	if needs > 0 && w.clock-since > w.lasts(lasts) {
		return false
	}
	m.sql.leaseNeeds, m.sql.leaseLasts, m.sql.leaseSince, m.sql.heardAt = needs, lasts, since, heard
	return true
}

// mayOpen reports whether a primary has what it needs to take writes.
func (w *world) mayOpen(m *simulated, order Assignment) bool {
	if order.Record.LeaseLasts == 0 && m.vol.leasedUnder != order.Record.Version() {
		return w.leads(m, 0, 0, 0)
	}
	return w.leads(m, order.Lease, order.LeaseLasts, m.agent.confirmed)
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
	return w.leaseTime(record, w.clock-since)
}

// isolation is a primary that the network cuts off from the replicas. After some more events, the operator does not reach it either.
type isolation struct {
	isLikely bool
	of       *simulated
	events   int
}

// isolate begins one, or continues it.
func (w *world) isolate() {
	primary := w.named(w.record.Primary)
	switch isolated := &w.isolated; {
	case isolated.of != nil:
		isolated.events--
		if isolated.events <= 0 {
			w.say("%s: cut off from the operator, too", isolated.of.name)
			isolated.of.deaf, isolated.of = true, nil
		}
	case isolated.isLikely && primary != nil && restsOnReplicas(w.record.LeaseLasts) && w.random.IntN(200) == 0:
		w.say("%s: cut off from the replicas", primary.name)
		primary.cut, isolated.of, isolated.events = true, primary, w.random.IntN(400)
	}
}
