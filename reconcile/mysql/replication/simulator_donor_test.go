package replication

import (
	"slices"
	"testing"
)

// A copy takes a while. Meanwhile the donor's transactions change, members end, and another member may become the primary. What the donor
// has at the end is what the copy has.

// copying is a copy that has begun: of whom, of which start of the donor's mysqld, and of which replica; the primary has no donor.
type copying struct {
	from  string
	start int
	donor *Donor
}

// clone begins to replace the member's data.
func (w *world) clone(m *simulated) {
	order := m.agent.view.Assignment
	primary := w.at(order.SourceAddress)
	from := primary
	if order.Donor != nil {
		if from = w.donor(m); from == nil {
			w.donorsRefused++
			m.triedDonor(order.Donor)
			return
		}
	} else if primary == nil || primary.name != order.SourceHost || !w.reaches(m, primary) { // its Pod may have ended since the agent looked
		m.vol.origin, m.vol.copied, m.vol.isForgetful = OriginFresh, false, false // the agent gives up the data before mysqld fails to connect
		m.vol.isUnnamed = true
		return
	}
	dropped := m.vol.has().without(primary.logged()).without(w.hollow)
	w.drops(m, dropped, "a copy replaces them")
	if former := m.vol.replaced; former != nil {
		dropped = dropped.without(former.setAside)
	}
	if !dropped.empty() {
		w.violated("a copy replaces %s although %s does not have its transactions %v", m.name, primary.name, w.set(dropped))
	}
	kept := volume{
		made: true, isUnnamed: true, life: m.vol.life, origin: OriginFresh, held: m.vol.held, role: m.vol.role, last: m.vol.last, replaced: m.vol.replaced,
		hasLed: m.vol.hasLed, executed: m.vol.executed, binlog: m.vol.binlog,
	}
	if order.Donor != nil {
		kept.copiedFrom = order.Donor.UUID
	}
	m.vol, m.ghost, m.agent.pointed = kept, transactions{}, false
	m.sql.copies = copying{from.name, from.sql.start, order.Donor}
}

// donor returns the replica that the member may copy; nil if its agent does not accept it.
func (w *world) donor(m *simulated) *simulated {
	local := m.agent.view
	named := *local.Assignment.Donor
	from, after := w.at(named.Address), w.sourceOf(m, *local.Assignment)
	if from == nil || !w.reaches(m, from) || after.Err != "" {
		return nil
	}
	seen := SeenDonor{Host: from.name, ServerUUID: from.uuid, Primary: !from.sql.readOnly, Executed: w.set(from.vol.executed), Pending: w.set(from.logged().without(from.vol.executed))}
	if problem := named.Problem("", *local.Source, seen, *after); problem != "" {
		w.say("%s: does not copy %s: %s", m.name, from.name, problem)
		return nil
	}
	return from
}

// reaches reports whether a member's mysqld can read another one.
func (w *world) reaches(m, from *simulated) bool {
	return !m.cut && !from.cut && from.sql.up && !from.sql.hung
}

func (m *simulated) triedDonor(donor *Donor) {
	switch {
	case donor == nil:
		m.agent.tried = nil
	case !slices.Contains(m.agent.tried, donor.Name):
		m.agent.tried = append(slices.Clone(m.agent.tried), donor.Name)
	}
}

// finishCopy takes another step of a copy. It may end with the donor's data. Or it breaks off, which leaves no data.
func (w *world) finishCopy(m *simulated) {
	running := m.sql.copies
	if running.from == "" || !m.sql.up || m.sql.hung || w.random.IntN(3) > 0 {
		return
	}
	from := w.named(running.from)
	isWhole := w.reaches(m, from) && from.sql.start == running.start && w.random.IntN(4) > 0
	m.triedDonor(running.donor)
	m.sql = server{start: m.sql.start}
	if !isWhole {
		w.say("%s: the copy of %s breaks off", m.name, from.name)
		return
	}
	w.say("%s: is a copy of %s", m.name, from.name)
	m.vol.executed, m.vol.data, m.vol.purged, m.vol.copied, m.vol.replaced = from.vol.executed, from.vol.data, from.vol.executed, true, nil
	m.vol.source, m.vol.binlog, m.isLost = from.vol.source, nil, false
	if running.donor != nil {
		w.replicasCopied++
		m.unread = m.unread.union(from.unread)
	}
}

// followsSource is what an agent forgets when its member gets a source.
func (m *simulated) followsSource() { m.agent.tried, m.vol.copiedFrom = nil, "" }

// TestSimulatedClustersCopyReplicas: these clusters are healthy first. Then replicas lose their volumes often, users run statements on
// replicas that get GTIDs of their own, and binary logs are purged.
func TestSimulatedClustersCopyReplicas(t *testing.T) {
	t.Parallel()
	simulateAll(t, *simulatorSeeds/8, donatingWorld)
}

func donatingWorld(seed uint64) *world {
	w := newWorld(seed)
	w.losesOften, w.isPair, w.isolated.isLikely, w.replicas = true, false, false, 3+w.random.IntN(mostMembers-2)
	for n := 0; n < 100 && !w.strong(); n++ {
		w.roll(-n)
		w.write()
		w.round()
	}
	return w
}

// loseOften is a fault of such a cluster; false for another one.
func (w *world) loseOften() bool {
	if !w.losesOften || w.random.IntN(2) == 0 {
		return false
	}
	m := w.anyMember()
	switch n := w.random.IntN(4); {
	case n == 0:
		w.purge()
	case n == 1:
		w.flush(m)
	case m.name != w.record.lastPrimary():
		w.loseVolume(m)
	}
	return true
}

// TestANewMemberCopiesAReplica: while the primary serves clients, and after the replica has failed, another one.
func TestANewMemberCopiesAReplica(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 5)
	lost, count := x.a, x.replicasCopied
	x.loseVolume(lost)
	x.until("it copies a replica", func() bool { return lost.sql.copies.donor != nil })
	first := x.named(lost.sql.copies.from)
	if first == x.p || !x.record.Acknowledges(first.name) || x.record.Acknowledges(lost.name) {
		t.Errorf("%s copies %s under the record %+v", lost.name, first.name, x.record)
	}
	x.isBrokenWith(first)
	x.until("it copies another one", func() bool { return lost.sql.copies.from != "" && lost.sql.copies.from != first.name })
	x.until("it is copied", func() bool { return x.replicasCopied > count || lost.sql.copies.from == x.p.name })
	x.until("it is in sync", func() bool { return x.record.Acknowledges(lost.name) && lost.agent.status.State == StateReplicating })
}

// TestADonorTakesOverWhileItIsCopied: the member follows it afterwards.
func TestADonorTakesOverWhileItIsCopied(t *testing.T) {
	t.Parallel()
	x := newTrace(t, 3)
	x.loseVolume(x.a)
	x.until("it copies the other replica", func() bool { return x.a.sql.copies.from == x.b.name })
	x.isBrokenWith(x.p)
	x.until("the donor leads", func() bool { return x.leads(x.b) })
	x.until("the member follows it", func() bool { return x.a.agent.status.State == StateReplicating && x.record.Acknowledges(x.a.name) })
}
