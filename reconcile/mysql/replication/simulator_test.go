package replication

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The simulator runs the pure decisions against simulated mysqlds, agents, StatefulSets and networks, with faults at every point between
// two actions. The operator dies between two writes, or works from an old observation. Records are written and not acted on. Assignments
// arrive late, in any order and more than once. After every event, the simulator checks the promises of doc.go against the real content of
// the volumes.
//
// The simulator assumes the following, which other code must ensure: mysqld does not restart between an agent's observation and its action.

//nolint:gochecknoglobals // flags of the test binary
var (
	simulatorSeed  = flag.Uint64("simulator-seed", 0, "run the simulator for this seed only")
	simulatorSeeds = flag.Uint64("simulator-seeds", defaultSeeds, "how many seeds to simulate")
	simulatorFirst = flag.Uint64("simulator-first", 1, "the first of these seeds")
	shrinks        = flag.Bool("simulator-shrink", true, "look for fewer events that break the same promise")
)

// events is the number of events in a simulated cluster before all faults end.
const events = 3000

func TestSimulatedClustersKeepTheirPromises(t *testing.T) {
	t.Parallel()
	simulateAll(t, *simulatorSeeds, newWorld)
}

// simulateAll simulates a cluster for each seed, or for the seed of the flag only.
func simulateAll(t *testing.T, seeds uint64, born func(seed uint64) *world) {
	t.Helper()
	if *simulatorSeed != 0 {
		simulate(t, *simulatorSeed, born)
		return
	}
	const lanes = 4
	for lane := range uint64(lanes) {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			for seed := *simulatorFirst + lane; seed < *simulatorFirst+seeds && !t.Failed(); seed += lanes {
				simulate(t, seed, born)
			}
		})
	}
}

// simulate simulates one cluster with this seed. If it breaks a promise, a shorter life may show the same.
func simulate(t *testing.T, seed uint64, born func(seed uint64) *world) {
	t.Helper()
	w := born(seed)
	w.live(func(int) bool { return false })
	if w.violation == "" {
		return
	}
	t.Errorf("seed %d, after %d events: %s\nrepeat with -run %s -simulator-seed=%d\n%s", seed, w.counted, w.violation, strings.Split(t.Name(), "/")[0], seed, w.history())
	if !*shrinks {
		return
	}
	short, left := shrink(w, func() *world { return born(seed) })
	t.Errorf("%d of these events suffice for: %s\n%s", left, short.violation, short.history())
}

// world is one cluster with everything around it.
type world struct {
	seed    uint64
	dice    *rand.PCG
	random  *rand.Rand // rolls the dice
	clock   int
	counted int
	tokens  int
	members []*simulated

	// The MySQLCluster and the StatefulSet.
	record   Record
	version  int
	life     int
	replicas int
	scale    int
	policy   Durability

	// ledger has, for every transaction, the server that wrote it and its number on that server. made are those of a server_uuid.
	ledger []gtidOf
	made   map[string][]int
	sets   map[transactions]GTIDSet // translated before
	acked  transactions
	// shown are the transactions that clients may have read.
	shown transactions
	// hollow are the transactions that change no row.
	hollow transactions
	// isUpdating means that an update of the members is in progress, or held back.
	isUpdating bool
	// losesOften means that replicas lose their volumes often.
	losesOften bool
	// replicasCopied counts the copies of replicas, and donorsRefused the replicas that agents did not copy.
	replicasCopied, donorsRefused int
	// mayWrite reserves some transactions for the time after all faults.
	mayWrite int
	// isPair means a cluster of two members with the policy Block: it cannot write without the replica.
	isPair bool
	// calm is the number of events for each fault. prompt is the number of assignments for each delayed one. patience is how many seconds
	// count as LostAfter. shortLease and longLease are how many seconds leases last.
	calm, prompt, patience, shortLease, longLease int
	underway                                      []message

	// zombie is the mysqld of a primary whose Pod was deleted by force, and which runs on with its volume, out of the operator's reach. It is
	// the former life of the member of its name. nil for none.
	zombie *simulated

	// primaryLost means that a primary's volume was lost. If the resource is deleted as well, perhaps no volume is certain enough to be
	// adopted.
	primaryLost bool
	// isReplaced means that a primary was replaced, or its volume was lost, or that of a member with transactions that change no row: a copy
	// of it cannot prove that they change none. Users rebuild members then.
	isReplaced bool
	// tookOverAt is when the last takeover began; -1 if there was none.
	tookOverAt int
	// request is a user's request to replace a primary that does not answer; empty for none. ranOn means that one may have run on after that:
	// members that were not read may have what it sent them.
	request   string
	ranOn     bool
	surrender surrender

	operator pass
	// wantsLease and isPaused are what the user wants. silences is what the operator remembers.
	wantsLease, isPaused, isPatient bool
	// isUnaided means that no user does what the operator asks for.
	isUnaided bool
	silences  silences
	isolated  isolation
	absence   absence
	note      *Note  // the operator's last note
	stale     Record // an earlier record, which a restarted operator may still see
	log       []string
	// violation is the first promise that was broken, kind the same without names and numbers; empty for none.
	violation, kind string
}

const mostMembers = 5

func newWorld(seed uint64) *world {
	w := &world{seed: seed, dice: rand.NewPCG(seed, 1), made: map[string][]int{}, sets: map[transactions]GTIDSet{}, life: 1, mayWrite: maxTransactions / 2, wantsLease: true, tookOverAt: -1}
	w.random = rand.New(w.dice)
	for ordinal := range mostMembers {
		w.members = append(w.members, newSimulated(ordinal))
	}
	w.isPair = w.random.IntN(5) == 0
	w.replicas = w.size()
	w.calm = []int{20, 60, 150, 400}[w.random.IntN(4)]
	w.patience, w.longLease = []int{1, 3, 30}[w.random.IntN(3)], 6+w.random.IntN(20)
	w.shortLease = 2 + w.random.IntN(w.longLease-3)
	w.prompt = []int{2, 5, 20}[w.random.IntN(3)]
	if w.isolated.isLikely = w.random.IntN(5) == 0; w.isolated.isLikely {
		w.calm = 5000 // little else happens
	}
	w.policy = Durability{Continue: !w.isPair && w.random.IntN(4) > 0, Grace: 10 * time.Second}
	if !w.policy.Continue {
		w.policy.Least = 9
	}
	return w
}

// live makes all events happen but those that are left out, and then lets the cluster recover.
func (w *world) live(isLeftOut func(event int) bool) {
	for w.counted < events && w.violation == "" {
		w.counted++
		if isLeftOut(w.counted) {
			continue
		}
		w.roll(w.counted)
		w.happen()
		w.check()
	}
	if w.violation == "" {
		w.settle()
	}
}

// roll makes the dice of an event depend on nothing else. So it happens in the same way if another one is left out.
func (w *world) roll(event int) {
	const golden = 0x9e3779b97f4a7c15 // spreads small numbers
	w.dice.Seed(w.seed, uint64(event)*golden)
}

func (w *world) token() string {
	w.tokens++
	return fmt.Sprint(w.tokens)
}

func (w *world) named(name string) *simulated {
	for _, m := range w.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// at returns the member with this address now; nil if there is none.
func (w *world) at(address string) *simulated {
	for _, m := range w.running() {
		if address != "" && m.address == address {
			return m
		}
	}
	return nil
}

// running are all mysqlds.
func (w *world) running() []*simulated {
	if w.zombie == nil {
		return w.members
	}
	return append(slices.Clone(w.members), w.zombie)
}

// move gives a member's Pod an address that no other has now, and that another may have had before.
func (w *world) move(m *simulated) {
	m.address = ""
	for m.address == "" {
		if address := fmt.Sprintf("10.0.0.%d", w.random.IntN(4*mostMembers)); w.at(address) == nil {
			m.address = address
		}
	}
}

// set translates the transactions into the sets that the decisions read.
func (w *world) set(of transactions) GTIDSet {
	known, found := w.sets[of]
	if !found {
		known = w.translate(of)
		w.sets[of] = known
	}
	return known
}

func (w *world) translate(of transactions) GTIDSet {
	intervals := map[gtidSource][]interval{}
	of.each(func(n int) {
		id := w.ledger[n]
		source := gtidSource{uuid: id.uuid}
		list := intervals[source]
		if last := len(list) - 1; last >= 0 && list[last].end == id.number {
			list[last].end++
			return
		}
		intervals[source] = append(list, interval{id.number, id.number + 1})
	})
	for source, list := range intervals {
		intervals[source] = normalise(list)
	}
	return GTIDSet{intervals: intervals}
}

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) history() string {
	text := fmt.Sprintf("record %+v, %d wanted, scale %d; the last of what happened:\n", w.record, w.replicas, w.scale)
	for _, line := range w.log[max(0, len(w.log)-60):] {
		text += "  " + line + "\n"
	}
	return text
}

func (w *world) violated(format string, args ...any) {
	if w.violation == "" {
		w.violation, w.kind = fmt.Sprintf(format, args...), format
	}
}

func (w *world) anyMember() *simulated { return w.members[w.random.IntN(len(w.members))] }

// happen makes one event happen: mostly a normal action, at times a fault.
func (w *world) happen() {
	w.isolate()
	w.goAway()
	w.giveUpOthers()
	if w.random.IntN(w.calm) == 0 {
		w.fault()
		return
	}
	w.goOn()
}

// goOn makes one part take its next step.
func (w *world) goOn() {
	m := w.anyMember()
	switch w.random.IntN(20) {
	case 0:
		w.pass(w.random.IntN(3))
	case 1:
		if w.random.IntN(5) == 0 {
			w.write()
		}
	case 2, 3, 4:
		w.receive(m)
	case 5, 6:
		m.apply()
	case 7, 8:
		w.kubelet(m)
	case 9, 10, 11, 12, 13:
		w.turn(m)
	case 14:
		if w.random.IntN(4) == 0 {
			w.arrive()
		}
	default:
		if w.absence.events == 0 {
			w.operate()
		}
	}
}

// turn is half of an agent's turn: it acts on the last observation, or observes.
func (w *world) turn(m *simulated) {
	if !m.agent.up {
		return
	}
	if step := m.agent.pending; step != nil {
		w.say("%s: %s", m.name, step.Verb)
		w.act(m)
		return
	}
	w.look(m)
}

// kubelet simulates kubelet and the StatefulSet controller: Pods, and the processes in them.
func (w *world) kubelet(m *simulated) {
	switch {
	case m.isEnding:
		w.end(m)
	case m.pod && m.ordinal >= w.scale:
		w.say("%s: Pod removed", m.name)
		m.killPod()
		m.pod, m.address = false, ""
	case !m.pod && m.ordinal < w.scale:
		w.say("%s: Pod made", m.name)
		m.pod = true
		if !m.vol.made {
			m.vol.life = w.life
		}
	case m.pod && m.address == "":
		w.move(m)
		w.say("%s: the Pod is at %s", m.name, m.address)
	case m.pod && !m.agent.up && !m.fault.stands:
		m.agent = sidecar{up: true, heard: w.clock - 1000, shortSince: w.clock, since: w.clock, startingAt: w.clock, hearsAt: w.clock}
		m.agent.status = Status{State: StateStarting, Boot: w.token(), Origin: m.vol.origin, Held: m.vol.held, HeldRole: m.vol.role, Last: m.vol.last, IsForgetful: m.vol.isForgetful, ForgotUnder: m.vol.forgotUnder, Protocol: Protocol}
	case m.pod && !m.sql.up && !m.isBroken && !m.fault.stands && w.mayStart(m):
		w.say("%s: mysqld starts", m.name)
		if m.vol.isUnnamed {
			w.newUUID(m)
		}
		m.bootHeld()
	}
}

// write simulates a client that tries to commit wherever it can.
func (w *world) write() {
	for _, m := range w.running() {
		if !m.writable() || m.sql.opens || m.sql.hung || m.fault.isBlocked() || len(w.ledger) >= w.mayWrite || len(m.sql.waiting) > 3 && w.mayWrite < maxTransactions {
			continue
		}
		w.logs(m)
		if m.sql.sourceAcks == 0 {
			m.finish(w.acknowledge)
		}
	}
}

// logs writes a transaction to a primary's binary log, and returns its number.
func (w *world) logs(m *simulated) int {
	n := w.makes(m)
	if m == w.zombie {
		w.named(m.name).ghost.add(n)
	}
	m.vol.binlog = append(m.vol.binlog, n)
	m.sql.waiting = append(m.sql.waiting, commit{number: n, acks: map[*simulated]bool{}})
	return n
}

// receive is one step of a replica's receiver: it connects, or receives the next transaction and acknowledges it.
func (w *world) receive(m *simulated) {
	w.finishCopy(m)
	if !m.sql.up || m.sql.hung || !m.sql.io || m.fault.isBlocked() {
		return
	}
	source := w.at(m.vol.source)
	if source != nil && source.sql.hung {
		return
	}
	isCut := source != nil && source.sql.up && (m.cut || source.cut)
	if isCut && w.random.IntN(100) > 0 {
		return // TCP notices that late
	}
	if source == nil || isCut || !source.sql.up {
		m.sql.connected = false
		return
	}
	if !slices.Contains(source.sql.receivers, m.name) {
		m.sql.connected, m.sql.ackActive = false, false // its account is locked
		return
	}
	if !m.sql.connected {
		if !source.vol.purged.without(m.vol.executed.union(m.vol.retrieved)).empty() {
			m.sql.io, m.sql.ioErrno = false, 13114
			return
		}
		m.sql.connected, m.sql.ackActive = true, m.sql.replicaAcks
		return
	}
	for _, n := range source.vol.binlog {
		if m.vol.executed.has(n) || m.vol.retrieved.has(n) {
			continue
		}
		m.vol.retrieved.add(n)
		m.vol.relay = append(m.vol.relay, n)
		if m.sql.ackActive && source.sql.sourceAcks > 0 {
			isWaiting := len(source.sql.waiting) > 0 && !source.sql.readOnly // a closed one has only its barrier (reopen)
			if isWaiting && !w.record.Acknowledges(m.name) && source != w.zombie && !source.runsOn {
				w.violated("%s acknowledges although the record does not name it", m.name)
			}
			source.acknowledged(m, n, w.acknowledge)
		}
		return
	}
}

// fault breaks something, repairs something, or acts as a user.
func (w *world) fault() {
	if w.loseOften() {
		return
	}
	m := w.anyMember()
	switch w.random.IntN(24) {
	case 0:
		w.say("%s: mysqld killed", m.name)
		m.crash()
	case 1:
		w.say("%s: agent killed", m.name)
		m.killAgent()
	case 2:
		w.replacePod(m)
	case 3, 4:
		m.cut = w.random.IntN(3) == 0
		w.say("%s: network cut: %t", m.name, m.cut)
	case 5, 16, 17:
		m.deaf = w.random.IntN(2) == 0
		w.say("%s: deaf to the operator: %t", m.name, m.deaf)
	case 6, 7, 8:
		w.say("operator restarts")
		w.operator, w.silences = pass{stale: w.random.IntN(3) == 0}, silences{}
	case 9, 10:
		w.replicas, w.wantsLease, w.isPaused = w.size(), w.random.IntN(4) > 0, w.random.IntN(6) == 0
		w.isPatient = w.random.IntN(4) == 0
		w.say("wanted: %d, with leases: %t, paused: %t, patient: %t", w.replicas, w.wantsLease, w.isPaused, w.isPatient)
	case 11:
		w.loseVolume(m)
	case 12:
		w.purge()
	case 13:
		if w.random.IntN(4) == 0 {
			w.misfortune()
		}
	case 18:
		w.deletePod(m)
	case 19:
		w.stopApplier(m)
	case 14:
		w.breakMysqld()
	case 15:
		w.giveUp()
	case 20:
		w.losePower(m)
	case 21, 22:
		w.failVolume()
	default:
		w.flush(m)
	}
}

// replacePod ends a member's Pod. The StatefulSet makes another, with another address.
func (w *world) replacePod(m *simulated) {
	if m == nil || !m.pod {
		return
	}
	m.killPod()
	if !w.oneIsLost() { // otherwise it ends in order, and flushes its volume
		w.forgets(m)
	}
	m.address = ""
	w.say("%s: Pod killed", m.name)
}

// deletePod deletes the Pod of the primary, or of another member, with a grace period or without. Updates of the members do so, too.
func (w *world) deletePod(m *simulated) {
	if w.random.IntN(4) == 0 {
		w.isUpdating = !w.isUpdating
		w.say("an update is in progress: %t", w.isUpdating)
	}
	if w.random.IntN(4) > 0 {
		m = w.named(w.record.Primary)
	}
	if m != nil && m.agent.up && !m.fault.stands && w.random.IntN(2) == 0 {
		w.endPod(m)
		return
	}
	w.replacePod(m)
}

// endPod begins to end a member's Pod. Its agent answers until the Pod has ended.
func (w *world) endPod(m *simulated) {
	w.say("%s: Pod ends", m.name)
	m.isEnding = true
}

// end continues the end of a Pod. mysqld closes in order, and commits what waits, or it cannot, and is killed.
func (w *world) end(m *simulated) {
	if w.random.IntN(4) == 0 {
		w.replacePod(m)
		return
	}
	if m.sql.up {
		w.say("%s: mysqld ends", m.name)
		m.crash()
	}
	if !m.sql.up && w.random.IntN(2) == 0 {
		m.recover()
		m.sql.held = false
	}
}

// breakMysqld makes the primary's mysqld end, perhaps with commits that wait, and it cannot start again for a while. Or it hangs.
func (w *world) breakMysqld() {
	w.repair()
	m := w.named(w.record.lastPrimary())
	switch n := w.random.IntN(3); {
	case m == nil || n == 0:
	case n == 1 && m.sql.up:
		w.say("%s: mysqld hangs", m.name)
		m.sql.hung = true
	default:
		w.say("%s: mysqld ends, and cannot start", m.name)
		m.isBroken = true
		m.crash()
	}
}

// giveUp makes the primary deaf to the operator, and perhaps a user asks to replace it. Replicas that are not cut off still follow it.
func (w *world) giveUp() {
	primary := w.named(w.record.lastPrimary())
	if primary == nil || w.random.IntN(2) == 0 {
		return
	}
	w.say("%s: deaf to the operator, and a user asks to replace it", primary.name)
	primary.deaf = true
	w.request, w.ranOn = w.record.names(primary.name), true
}

// stopApplier stops a replica's applier, as a user does. The replica receives a write behind it, and then the primary's Pod may be
// replaced.
func (w *world) stopApplier(m *simulated) {
	w.say("%s: a user stops its applier", m.name)
	m.sql.sql = false
	w.write()
	w.receive(m)
	if w.random.IntN(2) == 0 {
		w.replacePod(w.named(w.record.Primary))
	}
}

// loseVolume deletes a member's data. The primary's must be on others.
func (w *world) loseVolume(m *simulated) {
	if !m.vol.made || w.record.Primary == "" || w.oneIsLost() {
		return
	}
	if m.name == w.record.Primary {
		if w.record.RequiredAcks == 0 {
			return
		}
		w.primaryLost, w.isReplaced = true, true
		if w.random.IntN(2) == 0 {
			former := *m
			former.sql.waiting = slices.Clone(m.sql.waiting)
			w.zombie = &former
			w.say("%s: its former mysqld runs on at %s", m.name, former.address)
		}
	}
	w.say("%s: volume lost", m.name)
	w.isReplaced = w.isReplaced || !m.vol.executed.both(w.hollow).empty()
	m.ghost, m.isLost = m.ghost.union(m.vol.has()).union(m.logged()), w.record.Allows(m.name)
	m.loseData(w.life)
	m.address = ""
}

// oneIsLost reports whether the record relies on a member whose data is not all there, or a primary without its data is being replaced. If
// another member lost its data then, acknowledged commits could be lost.
func (w *world) oneIsLost() bool {
	if former := w.record.FormerPrimary; former != "" && !w.record.Acknowledges(former) {
		return true
	}
	return slices.ContainsFunc(w.members, func(m *simulated) bool { return m.isLost || m.vol.isForgetful && w.record.Allows(m.name) })
}

// purge removes the older half of the primary's binary log, unless a connected replica still reads it, or it alone has transactions that
// change no row: nothing else proves that, and a user who removed it would have to rebuild a member later.
func (w *world) purge() {
	primary := w.named(w.record.Primary)
	if primary == nil || !primary.sql.up || primary.fault.stands {
		return
	}
	half := len(primary.vol.binlog) / 2
	var old transactions
	for _, n := range primary.vol.binlog[:half] {
		old.add(n)
	}
	for _, m := range w.members {
		if m.sql.connected && m.vol.source == primary.address && !old.without(m.vol.executed.union(m.vol.retrieved)).empty() {
			return
		}
	}
	if !old.without(primary.vol.executed).empty() || !old.both(w.hollow).without(w.others(primary)).empty() {
		return
	}
	w.say("%s: binary log purged", primary.name)
	primary.vol.purged = primary.vol.purged.union(old)
	primary.vol.binlog = primary.vol.binlog[half:]
}

// others is everything that members have besides this one.
func (w *world) others(m *simulated) transactions {
	var all transactions
	for _, other := range w.members {
		if other != m {
			all = all.union(other.vol.has())
		}
	}
	return all
}

// recreate deletes the MySQLCluster, which keeps the volumes, and applies it again.
func (w *world) recreate() {
	w.say("the resource is deleted and applied again")
	for _, m := range w.members {
		m.killPod()
		m.pod, m.address, m.deaf, m.cut = false, "", false, false
	}
	w.life++
	w.record, w.stale, w.scale, w.operator, w.request = Record{}, Record{}, 0, pass{}, ""
	w.version++
}

// misfortune deletes the MySQLCluster and applies it again, perhaps with another size, and perhaps after the primary's volume is lost. The
// promise must survive that if there was one and the other copies exist.
func (w *world) misfortune() {
	primary := w.named(w.record.Primary)
	loses := primary != nil && w.record.RequiredAcks > 0 && !w.haunted() && !w.oneIsLost() && w.random.IntN(3) == 0
	w.recreate()
	if loses {
		w.say("%s: the primary's volume is lost", primary.name)
		primary.loseData(w.life)
		w.primaryLost, w.isReplaced = true, true
	}
	w.replicas = w.size()
}
