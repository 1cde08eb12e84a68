package replication

// mostFlushes is how many transactions of a simulated life hold nothing.
const mostFlushes = 60

// flush is a statement such as FLUSH STATUS on a member that takes no writes: it gets a GTID of the member's own, and changes nothing. On
// the primary on record it is as any other transaction of the primary's. One that waits to be confirmed is taken for one that lost data
// while a replica already has what it flushed since it was looked at; that passes with the next look, and is left out here, as is who will
// be the first primary.
func (w *world) flush(m *simulated) {
	isFirst := m.vol.origin.unused() && w.record.Primary == ""
	if !m.sql.up || !m.sql.readOnly || m.name == w.record.Primary || isFirst || len(w.ledger) >= w.mayWrite || len(w.all(w.hollow)) >= mostFlushes {
		return
	}
	n := len(w.ledger)
	w.say("%s: flush, transaction %d", m.name, n)
	w.counts[m.uuid]++
	w.ledger = append(w.ledger, gtidOf{m.uuid, w.counts[m.uuid]})
	w.hollow.add(n)
	m.vol.binlog = append(m.vol.binlog, n)
	m.commit(n)
}

// acknowledge notes that a client has heard of its commit; nobody waits for those without content.
func (w *world) acknowledge(n int) {
	if !w.hollow.has(n) {
		w.acked.add(n)
	}
}

func (w *world) all(of transactions) []int {
	var numbers []int
	of.each(func(n int) { numbers = append(numbers, n) })
	return numbers
}

// judge is an agent's look into the binary log, which at times does not get far enough.
func (w *world) judge(m *simulated, local *Local) {
	a := &m.agent
	if wanted := ToJudge(*local); !wanted.Empty() && w.random.IntN(4) > 0 {
		w.hollow.both(m.vol.executed).each(func(n int) {
			if wanted.Contains(w.one(n)) {
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

// imagine asks what a member would do if somebody had written a row there: never serve clients, never have its data replaced.
func (w *world) imagine(m *simulated, local Local) {
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

// sendMatching sends what the operator asks of the primary, or holds it up, or loses it.
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

// match is an agent that commits empty transactions, by what it saw when it last looked.
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
