package replication

import (
	"testing"
	"time"
)

// The traces are lives in which an earlier design of takeovers broke a promise, found by a model checker. Each is lived again here, with
// the decisions of today. The simulator checks the promises after every step.

// trace is a small cluster that lives one of them.
type trace struct {
	*world
	t       *testing.T
	p, a, b *simulated
}

// newTrace returns a healthy cluster of so many members, whose primary is p. Commits wait for replicas without a limit.
func newTrace(t *testing.T, replicas int) trace {
	t.Helper()
	w := explored{replicas, Durability{Least: mostMembers}, 1}.healthy(t)
	p := w.named(w.record.Primary)
	var others []*simulated
	for _, m := range w.members {
		if m != p {
			others = append(others, m)
		}
	}
	return trace{world: w, t: t, p: p, a: others[0], b: others[1]}
}

// rounds lets the cluster live on for so many rounds, with writes.
func (x trace) rounds(count int) {
	x.t.Helper()
	for range count {
		x.one(func() bool { return false })
	}
}

// until lets it live on until something is so, after any step.
func (x trace) until(what string, isSo func() bool) {
	x.t.Helper()
	for range 300 {
		if x.one(isSo) {
			return
		}
	}
	x.t.Fatalf("never: %s\n%s", what, x.history())
}

// one is one round, or a part of it.
func (x trace) one(isSo func() bool) (isDone bool) {
	x.t.Helper()
	x.write()
	for _, step := range x.steps() {
		x.counted++
		x.roll(x.counted)
		step()
		x.check()
		if x.violation != "" {
			x.t.Fatalf("%s\n%s", x.violation, x.history())
		}
		if isSo() {
			return true
		}
	}
	return false
}

// leads reports whether a member takes writes and is the primary of the record.
func (x trace) leads(m *simulated) bool {
	return m.writable() && !m.sql.opens && x.record.Primary == m.name
}

// acknowledgesOne waits for the answer to a write, and returns its number.
func (x trace) acknowledgesOne() int {
	x.t.Helper()
	n := len(x.ledger)
	x.until("a write is acknowledged", func() bool { return n < maxTransactions && x.acked.has(n) })
	return n
}

// ends lets all faults end: the cluster gets to full strength.
func (x trace) ends() {
	x.t.Helper()
	x.settle()
	if x.violation != "" {
		x.t.Errorf("%s\n%s", x.violation, x.history())
	}
}

// TestTraceA: a member that was not fenced acknowledges to a former primary that leads again. It still counts as in sync, or the primary
// refuses it.
func TestTraceA(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isBrokenWith(x.p)
	x.until("the primary is being replaced", func() bool { return x.record.FormerPrimary == x.p.name })
	x.b.deaf, x.p.isBroken = true, false
	x.until("it leads again", func() bool { return x.leads(x.p) })
	x.a.cut = true
	written := x.acknowledgesOne()
	if !x.b.vol.has().has(written) || !x.record.Acknowledges(x.b.name) {
		t.Errorf("%s, which was not fenced, is not the one that acknowledged", x.b.name)
	}
	x.p.deaf, x.p.cut, x.a.cut = true, true, false
	x.rounds(30)
	if x.record.Primary == x.a.name {
		t.Errorf("%s leads without what only %s has", x.a.name, x.b.name)
	}
	x.ends()
}

// TestTraceAOfFive: a member that was left out follows the former primary when that one leads again two epochs later.
func TestTraceAOfFive(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 5)
	x.b.deaf = true
	x.p.crash()
	x.until("another member leads", func() bool { return x.record.Primary != "" && x.record.Primary != x.p.name })
	if x.record.Acknowledges(x.b.name) {
		t.Errorf("%s was not read and is in sync", x.b.name)
	}
	x.until("the former primary is in sync", func() bool { return x.record.Acknowledges(x.p.name) })
	next := x.named(x.record.Primary)
	x.until("it leads again", func() bool {
		if x.leads(next) && x.record.RequiredAcks > 1 && x.record.Acknowledges(x.p.name) {
			next.isBroken = true
			next.crash()
		}
		if now := x.record.Primary; now != "" && now != x.p.name && now != next.name { // another one
			next.isBroken = false
			next = x.named(now)
		}
		return x.leads(x.p)
	})
	x.rounds(10)
	if x.b.sql.connected && x.b.sql.ackActive && x.b.vol.source == x.p.address {
		t.Errorf("%s acknowledges to %s, which does not know it", x.b.name, x.p.name)
	}
	x.ends()
}

// TestTraceB: the next primary fails before it opens, while the one before may still have a lease.
func TestTraceB(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isolated(x.p)
	x.until("another member is chosen", func() bool { return x.record.Primary != "" && x.record.Primary != x.p.name })
	next := x.named(x.record.Primary)
	next.isBroken = true
	next.crash()
	x.until("a third one leads", func() bool {
		return x.record.Primary != next.name && x.record.Primary != x.p.name && x.record.Primary != ""
	})
	x.rounds(20)
	x.ends()
}

// isolated cuts a member off from the others and from the operator.
func (x trace) isolated(m *simulated) { m.cut, m.deaf = true, true }

// TestTraceC: an assignment arrives again in which a member that has left was in sync.
func TestTraceC(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	var told []Assignment
	x.isolated(x.b)
	x.until("the replica leaves", func() bool {
		if now := x.p.agent.assignment; now != nil && (len(told) == 0 || !told[len(told)-1].Record.Equal(now.Record)) {
			told = append(told, *now)
		}
		return !x.record.Acknowledges(x.b.name)
	})
	x.b.cut = false
	for _, late := range told {
		if late.Record.Acknowledges(x.b.name) && len(late.Silent) == 0 && x.p.assign(late) {
			t.Errorf("the primary accepts an assignment in which %s is in sync: %+v", x.b.name, late)
		}
		x.rounds(2)
	}
	x.ends()
}

// TestTraceD: a replica that has left keeps no primary in office that the others cannot reach.
func TestTraceD(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isolated(x.b)
	x.until("the replica leaves", func() bool { return !x.record.Acknowledges(x.b.name) })
	x.b.cut, x.a.cut, x.p.deaf = false, true, true
	x.until("the primary closes", func() bool { return !x.p.writable() })
	x.ends()
}

// TestTraceE: a primary is cut off when commits wait for replicas again and it has no lease yet. No other member may lead then.
func TestTraceE(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.policy = Durability{Continue: true, Grace: 10 * time.Second}
	x.isolated(x.a)
	x.isolated(x.b)
	x.until("nothing is promised", func() bool { return x.record.RequiredAcks == 0 })
	x.a.cut, x.a.deaf, x.b.cut, x.b.deaf = false, false, false, false
	x.until("a promise without a lease", func() bool { return x.record.RequiredAcks == 1 && x.record.LeaseLasts == 0 })
	x.isolated(x.p)
	x.rounds(60)
	if x.record.Primary != x.p.name {
		t.Errorf("%s replaces a primary that may run without end", x.record.lastPrimary())
	}
	x.ends()
}

// TestTraceF: mysqld of the next primary restarts before it has opened.
func TestTraceF(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isolated(x.p)
	x.until("another member is chosen", func() bool { return x.record.Primary != "" && x.record.Primary != x.p.name })
	next := x.named(x.record.Primary)
	next.crash()
	x.until("it leads", func() bool { return x.leads(next) })
	x.ends()
}

// TestTraceG: an operator that the primary's lease rested on dies, and the next one measures again.
func TestTraceG(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.a.cut, x.b.cut = true, true
	x.until("the operator confirms the primary", func() bool { return x.record.LeaseLasts == LongLease && x.p.agent.confirmed > 0 })
	x.isolated(x.p)
	x.a.cut, x.b.cut = false, false
	x.until("the primary is being replaced", func() bool { return x.record.FormerPrimary == x.p.name })
	x.operator, x.silences = pass{}, silences{}
	x.until("another member leads", func() bool { return x.record.Primary != "" })
	x.ends()
}

// unled is a round in which no operator takes a step.
func (x trace) unled(round int) {
	x.t.Helper()
	for _, m := range x.members {
		x.pass(round % 2)
		x.kubelet(m)
		x.turn(m)
		x.receive(m)
		m.apply()
	}
	x.check()
	x.counted++
	x.roll(x.counted)
	if x.violation != "" {
		x.t.Fatalf("%s\n%s", x.violation, x.history())
	}
}

// TestTraceH: the disk of a primary loses the last transaction that was acknowledged, and one replica has it. Without that, the primary
// opens neither by its replicas nor at the order of the operator.
func TestTraceH(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(trace){
		"its machine loses power":   func(x trace) { x.p.killPod() }, // the next agent knows nothing
		"mysqld alone is restarted": func(x trace) { x.p.crash() },
		"no copies are promised any more, by a record that was decided before": func(x trace) {
			x.p.killPod()
			x.records(&pass{version: x.version}, x.record.promising(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrace(t, 3)
			lost := x.loses(fails)
			x.a.cut = false
			for n := range 300 {
				x.unled(n)
			}
			if !x.p.sql.up || x.p.writable() || x.p.agent.status.State != StateWaiting {
				t.Errorf("%s is %s: %s", x.p.name, x.p.agent.status.State, x.p.agent.status.Message)
			}
			x.until("the operator says so", func() bool { return x.note != nil && x.note.Reason == ReasonPrimaryDataLost })
			x.rounds(20)
			if x.p.writable() || x.record.Primary != x.p.name {
				t.Errorf("%s takes writes: %t; the record is %+v", x.p.name, x.p.writable(), x.record)
			}
			x.recreate()
			x.ends()
			if !x.named(x.record.Primary).vol.data.has(lost) {
				t.Errorf("%s leads without transaction %d", x.record.Primary, lost)
			}
		})
	}
}

// loses makes the primary fail, and its disk lose a transaction that only b has acknowledged, and that the primary's agent has seen.
func (x trace) loses(fails func(trace)) (lost int) {
	x.t.Helper()
	x.mayWrite = maxTransactions
	x.acknowledgesOne()
	lost = len(x.ledger)
	x.a.cut, x.mayWrite = true, lost+1
	x.until("the agent sees that a write is acknowledged", func() bool {
		return lost < len(x.ledger) && x.acked.has(lost) && x.p.agent.opened.Executed.Contains(x.world.one(lost))
	})
	x.say("%s: its disk loses transaction %d", x.p.name, lost)
	fails(x)
	x.p.forgetsLast()
	x.mayWrite, x.primaryLost = maxTransactions, true
	if x.a.vol.has().has(lost) || !x.b.vol.has().has(lost) || x.p.vol.has().has(lost) || !x.record.Acknowledges(x.a.name) {
		x.t.Fatalf("transaction %d is not on %s alone, or %s has left\n%s", lost, x.b.name, x.a.name, x.history())
	}
	return lost
}

// TestTraceI: a replica fails between the choice of the primary and its first commit. The promise of the record stays.
func TestTraceI(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 5)
	x.isBrokenWith(x.p)
	x.until("another member is chosen", func() bool { return x.record.Primary != "" && x.record.Primary != x.p.name })
	promised := x.record.RequiredAcks
	for _, m := range x.members {
		if m != x.p && m.name != x.record.Primary {
			x.isBrokenWith(m)
			break
		}
	}
	next := x.named(x.record.Primary)
	x.until("it leads", func() bool { return x.leads(next) })
	if next.sql.sourceAcks < promised {
		t.Errorf("%s lets commits return after %d acknowledgements, the record promises %d", next.name, next.sql.sourceAcks, promised)
	}
	x.ends()
}

// isBrokenWith ends a member's mysqld, and it cannot start again.
func (x trace) isBrokenWith(m *simulated) {
	m.isBroken = true
	m.crash()
}

// TestTraceJ: the resource is restored to the moment in which the primary was being replaced. No member leads by it.
func TestTraceJ(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isBrokenWith(x.p)
	x.until("the primary is being replaced", func() bool { return x.record.FormerPrimary == x.p.name })
	backup := x.record
	x.until("another member leads", func() bool { return x.record.Primary != "" && x.leads(x.named(x.record.Primary)) })
	written := x.acknowledgesOne()
	x.record, x.operator, x.version, x.p.isBroken = backup, pass{}, x.version+1, false
	x.isUnaided = true
	for range 50 { // the record is wrong, so the promises are not checked
		x.round()
		if x.p.writable() {
			t.Fatalf("%s leads without transaction %d", x.p.name, written)
		}
	}
	if x.note == nil || x.note.Reason != ReasonRecordOutdated || !x.record.Equal(backup) {
		t.Errorf("the note is %+v, the record %+v", x.note, x.record)
	}
}

// TestTraceK: a former primary has acknowledged a commit of the next one when it crashes. It keeps that commit.
func TestTraceK(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.isBrokenWith(x.p)
	x.until("another member leads", func() bool { return x.record.Primary != "" && x.leads(x.named(x.record.Primary)) })
	x.p.isBroken = false
	x.until("the former primary is in sync", func() bool { return x.record.Acknowledges(x.p.name) && x.p.sql.ackActive })
	for _, m := range []*simulated{x.a, x.b} {
		m.cut = m.name != x.record.Primary
	}
	written := x.acknowledgesOne()
	x.p.crash()
	x.rounds(5)
	if !x.p.vol.has().has(written) {
		t.Errorf("%s has lost transaction %d, which it acknowledged", x.p.name, written)
	}
	x.ends()
}
