package replication

import "slices"

// mostFlushes limits the transactions of a simulated cluster that change no row.
const mostFlushes = 60

// flush is a statement such as FLUSH STATUS on a member that takes no writes: it gets a GTID of the member's own, and changes no row. On
// the primary on record it is like any other transaction of the primary. On a primary that waits to be confirmed it is left out. If a
// replica already has what such a primary flushed since its last status, the primary seems to have lost data until its next status. The
// choice of the first primary is left out, too, and a primary that opens by its replicas: there, the statement would wait for them.
func (w *world) flush(m *simulated) {
	isFirst := m.vol.origin.unused() && w.record.Primary == ""
	if !m.sql.up || !m.sql.readOnly || m.sql.reopens || m.name == w.record.Primary || isFirst || len(w.ledger) >= w.mayWrite || len(w.all(w.hollow)) >= mostFlushes {
		return
	}
	n := w.makes(m)
	w.say("%s: flush, transaction %d", m.name, n)
	w.hollow.add(n)
	m.vol.binlog = append(m.vol.binlog, n)
	m.commit(n)
}

// acknowledge records that a client has got the answer to its commit. No client waits for transactions without content.
func (w *world) acknowledge(n int) {
	switch {
	case w.hollow.has(n):
	case w.isForgotten(n):
		w.surrender.forgotten.add(n)
	default:
		w.acked.add(n)
	}
}

func (w *world) all(of transactions) []int {
	var numbers []int
	of.each(func(n int) { numbers = append(numbers, n) })
	return numbers
}

// judge simulates the agent reading the binary log, which at times does not read far enough.
func (w *world) judge(m *simulated, local *Observed) {
	a := &m.agent
	if wanted := ToInspect(*local); !wanted.Empty() && w.random.IntN(4) > 0 {
		w.hollow.both(m.vol.executed).each(func(n int) {
			if wanted.Contains(w.one(n)) && slices.Contains(m.vol.binlog, n) {
				a.judged.add(n)
			}
		})
	}
	a.judged = a.judged.both(m.vol.executed)
	local.Hollow = w.set(a.judged)
}

func (w *world) one(n int) GTIDSet {
	var only transactions
	only.add(n)
	return w.set(only)
}

// imagine checks what a member would do if a client had written a row there: it must not serve clients, and its data must not be replaced.
func (w *world) imagine(m *simulated, local Observed) {
	if local.Source == nil || local.Source.Err != "" {
		return
	}
	written := GTIDSet{intervals: map[gtidSource][]interval{{uuid: m.uuid}: {{1 << 40, 1<<40 + 1}}}}
	local.Server.Executed = local.Server.Executed.Union(written)
	step := NextStep(local)
	if step.State == StateReplicating || step.Verb == VerbClone {
		w.violated("%s would be %s (%s) with a row of its own", m.name, step.State, step.Verb)
	}
}

// sendMatching sends the operator's request to the primary, or delays or loses it.
func (w *world) sendMatching(asked *Matching) {
	if asked == nil {
		return
	}
	to := w.named(asked.Primary)
	if w.random.IntN(w.prompt) == 0 {
		w.underway = append(w.underway, message{to: to, match: asked})
		return
	}
	w.match(to, *asked)
}

// match simulates an agent that commits empty transactions, decided by its last status.
func (w *world) match(m *simulated, asked Matching) {
	if !m.agent.up || !m.pod || m.deaf || !m.sql.up || AcceptMatching(m.agent.status, asked) != nil {
		return
	}
	w.hollow.without(m.logged()).each(func(n int) {
		if !asked.GTIDs.Contains(w.one(n)) {
			return
		}
		w.say("%s: matches transaction %d", m.name, n)
		m.vol.binlog = append(m.vol.binlog, n)
		m.sql.waiting = append(m.sql.waiting, commit{number: n, acks: map[*simulated]bool{}})
		if m.sql.sourceAcks == 0 || m.sql.readOnly {
			m.finish(w.acknowledge)
		}
	})
	for _, gtid := range w.all(w.hollow) {
		asked.GTIDs = asked.GTIDs.Subtract(w.one(gtid))
	}
	if !asked.GTIDs.Empty() {
		w.violated("%s is asked to match %s, which are not hollow", m.name, asked.GTIDs)
	}
}
