package replication

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// pass is one pass of the operator, which can end at any point.
type pass struct {
	stage string
	// stale makes a restarted operator begin with an earlier record than the last one written.
	stale    bool
	version  int
	seen     Cluster
	unasked  []int
	decision Decision
	unsent   []string
}

const (
	stageBegin  = ""
	stageAsk    = "ask"
	stageDecide = "decide"
	stageAssign = "assign"
)

// operate takes the next step of the operator's pass.
func (w *world) operate() {
	switch p := &w.operator; p.stage {
	case stageBegin:
		w.beginPass(p)
	case stageAsk:
		w.ask(p)
	case stageDecide:
		w.decide(p)
	case stageAssign:
		w.send(p)
	}
}

func (w *world) beginPass(p *pass) {
	seen := Cluster{UID: fmt.Sprint("life ", w.life), Record: w.record, Replicas: w.replicas, Scale: w.scale, Port: 3306, Limits: w.limits(), Durability: w.policy, Request: w.request, Force: w.surrender.request, WantsLease: w.wantsLease, SinceTakeover: w.sinceTakeover(), IsUpdating: w.isUpdating}
	version := w.version
	if p.stale {
		seen.Record, version = w.stale, -1
	}
	*p = pass{stage: stageAsk, version: version}
	for _, m := range w.members {
		if !m.pod && !m.vol.made && m.ordinal >= max(w.replicas, w.scale) {
			continue
		}
		if m.name == seen.Record.Primary {
			p.unasked = slices.Insert(p.unasked, 0, len(seen.Members))
		} else {
			p.unasked = append(p.unasked, len(seen.Members))
		}
		seen.Members = append(seen.Members, Member{Name: m.name, Ordinal: m.ordinal, Host: m.name, Address: m.address, Pod: m.pod, IsRunning: m.pod && m.agent.up && !m.isEnding, OlderData: m.vol.made && m.vol.life < w.life})
	}
	p.seen = seen
}

func (w *world) ask(p *pass) {
	if len(p.unasked) == 0 {
		p.stage = stageDecide
		return
	}
	member := &p.seen.Members[p.unasked[0]]
	p.unasked = p.unasked[1:]
	m := w.named(member.Name)
	if m.agent.up && m.pod && !m.deaf {
		status := m.agent.status
		if status.State == StateStarting {
			status.UnansweredFor = usual().NotReady * time.Duration(w.clock-m.agent.startingAt) / time.Duration(w.patience)
		} else {
			status.SourceSilentFor = w.limits().Unreachable * time.Duration(w.clock-m.agent.hearsAt) / time.Duration(w.patience)
		}
		if status.DeafFor > 0 {
			status.DeafFor = w.leaseTime(p.seen.Record, w.clock-int(status.DeafFor-1))
		}
		w.onVolume(m, &status)
		status.Clock, status.IsRestarting = time.Duration(w.clock), m.isEnding || !m.hasAnswered
		member.Status, m.heard = &status, w.clock
	}
	member.SilentFor = w.silences.observe(w, *member, p.seen.Record)
	member.UnheardFor = LostAfter * time.Duration(w.clock-m.heard) / time.Duration(w.patience)
	member.MissingFor = member.UnheardFor
	if next, isDue := p.seen.Urgent(); isDue && !w.isPaused && w.random.IntN(8) > 0 {
		w.records(p, next)
	}
}

// decide writes the record if it must change. Only if the record is unchanged, the pass continues with the assignments.
func (w *world) decide(p *pass) {
	p.decision = Decide(p.seen)
	if w.isPaused {
		p.decision = p.seen.Release()
	}
	if p.version == w.version {
		w.note = p.decision.Note
		if w.note != nil && w.note.Reason == ReasonPrimaryDataLost && !w.primaryLost && !w.named(w.record.Primary).vol.isForgetful {
			w.violated("no primary has lost data: %s", w.note.Message)
		}
	}
	if p.decision.Scale > 0 && p.decision.Scale != w.scale && p.version == w.version {
		w.say("operator scales to %d", p.decision.Scale)
		w.scale = p.decision.Scale
	}
	if p.decision.Record.Equal(p.seen.Record) {
		p.stage = stageAssign
		for name := range p.decision.Assignments {
			p.unsent = append(p.unsent, name)
		}
		slices.Sort(p.unsent)
		return
	}
	w.records(p, p.decision.Record)
}

// records writes a record, unless it has changed since the pass began. That ends the pass.
func (w *world) records(p *pass, next Record) {
	if p.version == w.version {
		w.say("operator records %+v", next)
		w.stale, w.record = w.record, next
		w.version++
		w.isReplaced = w.isReplaced || w.record.FormerPrimary != ""
		if w.record.FormerPrimary != "" {
			w.tookOverAt = w.clock
		}
		if m := w.named(w.record.FormerPrimary); m != nil && m.deaf {
			w.ranOn = true
		}
		w.leaveUnread(w.stale.FormerPrimary)
		if p.seen.Request != "" || p.seen.Force != "" {
			w.forsake(w.stale.FormerPrimary)
		}
		if w.record.ForcedEpoch > w.stale.ForcedEpoch {
			w.surrenders(p.seen.Members)
		}
		w.letGhostsGo()
	}
	*p = pass{}
}

// forsake notes that a former primary, which another member has replaced at a user's request, may take writes until it learns of that.
func (w *world) forsake(former string) {
	if m := w.named(former); m != nil && w.record.Primary != former {
		m.runsOn = true
	}
}

// leaveUnread notes what members may have of a former primary that were not read for the choice of the next one.
func (w *world) leaveUnread(former string) {
	replaced := w.named(former)
	if replaced == nil || w.record.Primary == "" || w.record.Primary == former {
		return
	}
	for _, m := range w.members {
		if !w.record.Acknowledges(m.name) {
			m.unread = m.unread.union(m.vol.has()).union(replaced.logged())
		}
	}
}

func (w *world) letGhostsGo() {
	for _, m := range w.members {
		if !w.record.Acknowledges(m.name) {
			m.ghost = transactions{}
		}
		m.isLost = m.isLost && w.record.Allows(m.name)
	}
}

func (w *world) send(p *pass) {
	if len(p.unsent) == 0 {
		w.sendMatching(p.decision.Matching)
		*p = pass{}
		return
	}
	name := p.unsent[0]
	p.unsent = p.unsent[1:]
	wanted := p.decision.Assignments[name]
	index := slices.IndexFunc(p.seen.Members, func(member Member) bool { return member.Name == name })
	status := *p.seen.Members[index].Status
	if wanted.Relaxes(status) && !w.record.Equal(wanted.Record) {
		return
	}
	wanted = wanted.ConfirmedFor(status)
	m := w.named(name)
	if w.random.IntN(w.prompt) == 0 {
		w.underway = append(w.underway, message{to: m, says: wanted})
		return
	}
	if m.agent.up && m.pod && !m.deaf {
		m.assign(wanted)
	}
}

// message is a delayed assignment or request to match, for which no sender waits any more.
type message struct {
	to    *simulated
	says  Assignment
	match *Matching
}

// arrive delivers any one of the delayed messages, in any order, and possibly not for the last time.
func (w *world) arrive() {
	if len(w.underway) == 0 {
		return
	}
	i := w.random.IntN(len(w.underway))
	late := w.underway[i]
	if w.random.IntN(3) > 0 {
		w.underway = slices.Delete(w.underway, i, i+1)
	}
	if late.match != nil {
		w.match(late.to, *late.match)
		return
	}
	if m := late.to; m.agent.up && m.pod && !m.deaf && !late.says.Followed(m.agent.status) && m.assign(late.says) {
		w.say("%s: accepts a late assignment: %+v", m.name, late.says)
	}
}

// check compares the promises with the real state.
func (w *world) check() {
	w.checkWriters()
	w.checkPromise()
	w.checkReaders()
	w.shows()
}

func (w *world) checkWriters() {
	writers := 0
	for _, m := range w.members {
		m.runsOn = m.runsOn && (m.writable() || m.vol.held.Epoch < w.record.Epoch)
		if !m.writable() || m.runsOn {
			continue
		}
		writers++
		if m.name != w.record.lastPrimary() { // one that is replaced may open until it accepts that
			w.violated("%s takes writes, the record names %q", m.name, w.record.lastPrimary())
		}
		if m.sql.sourceAcks < w.record.RequiredAcks {
			w.violated("%s lets commits return with %d acknowledgements, the record promises %d", m.name, m.sql.sourceAcks, w.record.RequiredAcks)
		}
	}
	if writers > 1 {
		w.violated("%d members take writes", writers)
	}
}

// checkPromise: everything acknowledged is on the primary and on RequiredAcks other members in sync.
func (w *world) checkPromise() {
	primary := w.named(w.record.Primary)
	if primary == nil {
		return
	}
	has := primary.vol.has()
	if !primary.writable() {
		has = has.union(primary.ghost)
	}
	if lost := w.acked.without(has); !lost.empty() {
		w.violated("acknowledged transactions are missing on the primary %s: %s", primary.name, w.set(lost))
	}
	atLeast := make([]transactions, w.record.RequiredAcks+1)
	for i := range atLeast[0] {
		atLeast[0][i] = ^uint64(0)
	}
	for _, m := range w.inSyncReplicas() {
		has := m.vol.has().union(m.ghost)
		for copies := len(atLeast) - 1; copies > 0; copies-- {
			atLeast[copies] = atLeast[copies].union(atLeast[copies-1].both(has))
		}
	}
	if short := w.acked.without(atLeast[w.record.RequiredAcks]); !short.empty() {
		w.violated("acknowledged transactions %s are not on %d members in sync in addition to the primary", w.set(short), w.record.RequiredAcks)
	}
}

// checkReaders: reading any len(InSync)-RequiredAcks members in sync other than the primary finds everything acknowledged. Members that may
// have lost something are not read.
func (w *world) checkReaders() {
	if w.record.RequiredAcks == 0 {
		return
	}
	replicas := slices.DeleteFunc(w.inSyncReplicas(), func(m *simulated) bool { return m.vol.isForgetful || m.vol.origin != OriginMember })
	enough := w.record.witnessesNeeded()
	for choice := range 1 << len(replicas) {
		var read transactions
		count := 0
		for i, m := range replicas {
			if choice&(1<<i) != 0 {
				count++
				read = read.union(m.vol.has())
			}
		}
		if unseen := w.acked.without(read); count == enough && !unseen.empty() {
			w.violated("%d members in sync can be read without finding the acknowledged transactions %s", count, w.set(unseen))
		}
	}
}

func (w *world) inSyncReplicas() []*simulated {
	var replicas []*simulated
	for _, m := range w.members {
		if m.name != w.record.lastPrimary() && w.record.Acknowledges(m.name) {
			replicas = append(replicas, m)
		}
	}
	return replicas
}

// settle ends all faults: the cluster must get to full strength by itself, and take writes.
func (w *world) settle() {
	for _, m := range w.members {
		m.cut, m.deaf = false, false
	}
	w.zombie, w.isPaused, w.wantsLease, w.absence.events = nil, false, true, 0
	w.say("peace")
	w.prompt = math.MaxInt
	w.mayWrite = maxTransactions
	repair := w.random.IntN(2) * 100
	for n := range 600 {
		w.roll(events + n + 1)
		if n == repair {
			w.repair()
		}
		if n == 300 && w.primaryLost && (w.ranOn || w.haveDiverged()) { // perhaps only force helps
			w.surrender.isLikely = true
		}
		w.round()
		blocked := w.isReplaced && w.replicas == len(w.members) && w.note != nil &&
			(w.note.Reason == ReasonAdoptionBlocked || w.note.Reason == ReasonPrimaryDataLost && w.record.RequiredAcks == 0)
		if w.violation != "" || blocked || w.strong() && w.acknowledgesAWrite() {
			return
		}
	}
	w.violated("the cluster does not get to full strength: %s; the operator's note is %+v", w.weakness(), w.note)
}

// acknowledgesAWrite reports whether a client that writes now gets an answer soon.
func (w *world) acknowledgesAWrite() bool {
	n := len(w.ledger)
	w.write()
	for range 20 {
		w.round()
		if n < len(w.ledger) && w.acked.has(n) {
			return true
		}
	}
	return false
}

// round gives every part a few turns.
func (w *world) round() {
	for i, step := range w.steps() {
		step()
		if i%memberSteps == 0 {
			w.check()
		}
	}
	if w.random.IntN(20) == 0 {
		w.write()
	}
}

// memberSteps is how many steps a member takes in a round.
const memberSteps = 6

// steps are those of a round. A user raises the number of replicas if the operator waits for that.
func (w *world) steps() []func() {
	steps := []func(){func() { w.pass(1) }, w.arrive}
	for range 2 * (len(w.members) + 4) {
		steps = append(steps, func() { w.operate(); w.help() })
	}
	for _, m := range w.members {
		turn, receive := func() { w.turn(m) }, func() { w.receive(m) }
		steps = append(steps, func() { w.kubelet(m) }, turn, turn, receive, receive, m.apply)
	}
	return steps
}

// help simulates a user who does what the operator's note asks for.
func (w *world) help() {
	switch {
	case w.isUnaided:
		return
	case w.note != nil && w.note.Force != "" && w.surrender.isLikely:
		w.surrender.request = w.note.Force
	case w.note == nil || !w.note.Blocked:
	case w.note.Reason == ReasonRecordOutdated:
		w.recreate()
		w.replicas, w.note = len(w.members), nil
	case w.replicas < len(w.members):
		w.replicas++
		w.operator, w.note = pass{}, nil
	}
	w.rebuild()
}

// repair lets every mysqld start again.
func (w *world) repair() {
	for _, m := range w.members {
		m.heal()
		m.isBroken, m.sql.hung = false, false
	}
}

// haveDiverged reports whether no member in sync that still has its data has everything that the others have.
func (w *world) haveDiverged() bool {
	var all transactions
	var members []*simulated
	for _, m := range w.members {
		if w.record.Acknowledges(m.name) && !m.isLost && m.name != w.record.lastPrimary() {
			members, all = append(members, m), all.union(m.vol.has())
		}
	}
	return !slices.ContainsFunc(members, func(m *simulated) bool { return all.without(m.vol.has()).empty() })
}

// rebuild gives errant members new volumes after a primary was replaced: they have what it did not get acknowledged, and were not read. A
// member in sync is rebuilt only if the former primary ran on, and sent that after the member was read. A member that cannot prove that its
// transactions change no row is rebuilt, too: the simulated user knows what each transaction changes, even if no binary log has it.
func (w *world) rebuild() {
	primary := w.named(w.record.Primary)
	for _, m := range w.members {
		switch {
		case primary == nil || m.agent.status.State != StateErrant:
		case !w.isReplaced && !w.lacksProof(m, primary) || !w.surrender.isLikely && w.madeAll(m, primary):
		case !w.record.Acknowledges(m.name):
			w.say("%s: a user rebuilds it", m.name)
			m.loseData(w.life)
		case w.ranOn || w.lacksProof(m, primary):
			w.loseVolume(m)
		}
	}
}

// lacksProof reports whether all transactions that the member has in addition to the primary change no row, and are not in its binary log:
// it is a copy.
func (w *world) lacksProof(m, primary *simulated) bool {
	surplus := m.vol.has().without(primary.logged())
	return surplus.without(w.hollow).empty() && !slices.ContainsFunc(m.vol.binlog, surplus.has)
}

// madeAll reports whether the member made all transactions itself that it has in addition to the primary. Then it rejoins without a user.
func (w *world) madeAll(m, primary *simulated) bool {
	for _, n := range w.all(m.logged().union(m.vol.has())) {
		if !primary.logged().has(n) && w.ledger[n].uuid != m.uuid {
			return false
		}
	}
	return true
}

func (w *world) strong() bool { return w.weakness() == "" }

func (w *world) leftOut() string {
	text := "none"
	for _, m := range w.members[:w.replicas] {
		if !w.record.Acknowledges(m.name) {
			text = fmt.Sprintf("%s is %s: %s", m.name, m.agent.status.State, m.agent.status.Message)
		}
	}
	return text
}

// weakness describes what is not yet in the wanted state; empty if the cluster is at full strength.
func (w *world) weakness() string {
	if w.record.RequiredAcks != FullAcks(w.replicas) || len(w.record.InSync) != w.replicas || w.scale != w.replicas {
		return fmt.Sprintf("the record; the last member not in it: %s", w.leftOut())
	}
	if w.record.Primary == "" {
		return "it has no primary"
	}
	if wanted := (Cluster{Record: w.record, Limits: w.limits()}).wantedLease(); w.wantsLease && w.record.RequiredAcks > 0 && w.record.LeaseLasts != wanted {
		return fmt.Sprintf("the lease lasts for %s, and should for %s", w.record.LeaseLasts, wanted)
	}
	for _, m := range w.members[:w.replicas] {
		want := StateReplicating
		if m.name == w.record.Primary {
			want = StateWriting
		}
		if m.agent.status.State != want {
			return m.name + " is " + string(m.agent.status.State) + ": " + m.agent.status.Message
		}
		if apart := m.vol.executed.without(w.named(w.record.Primary).vol.executed).both(w.hollow); !apart.empty() {
			return fmt.Sprintf("%s has %s, which change no row and are missing on the primary", m.name, w.set(apart))
		}
	}
	return ""
}

// haunted reports whether a copy that the record relies on was lost and still counts.
func (w *world) haunted() bool {
	return slices.ContainsFunc(w.members, func(m *simulated) bool { return !m.ghost.empty() && w.record.Acknowledges(m.name) })
}

// size is how many members the user wants from now on.
func (w *world) size() int {
	if w.isPair {
		return 2
	}
	return 1 + w.random.IntN(mostMembers)
}
