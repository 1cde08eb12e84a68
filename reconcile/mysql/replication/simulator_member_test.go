package replication

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// maxTransactions limits the writes of a simulated cluster.
const maxTransactions = 512

// transactions is a set of the simulation's transactions, by their number in the world's ledger.
type transactions [maxTransactions / 64]uint64

func (s transactions) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }
func (s *transactions) add(n int)     { s[n/64] |= 1 << (n % 64) }
func (s transactions) empty() bool    { return s == transactions{} }

func (s transactions) union(other transactions) transactions {
	for i := range s {
		s[i] |= other[i]
	}
	return s
}

func (s transactions) both(other transactions) transactions {
	for i := range s {
		s[i] &= other[i]
	}
	return s
}

func (s transactions) without(other transactions) transactions {
	for i := range s {
		s[i] &^= other[i]
	}
	return s
}

func (s transactions) each(visit func(n int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			visit(i*64 + bits.TrailingZeros64(word))
		}
	}
}

// commit is a transaction in a primary's binary log that waits for acknowledgements, AFTER_SYNC. Replicas may have it already, and the
// client has no answer yet.
type commit struct {
	number int
	acks   map[*simulated]bool
}

// volume is what survives a member's Pod.
type volume struct {
	made bool // mysqld has initialised it
	// isUnnamed means that it has no server_uuid. mysqld makes one when it starts.
	isUnnamed bool
	life      int // of the MySQLCluster under which it was made
	origin    Origin
	held      Record
	last      *Assignment
	role      Role
	// executed is gtid_executed, data is what is really there: an interrupted copy leaves the former without the latter.
	executed, data transactions
	binlog         []int // in commit order
	purged         transactions
	// The default channel: the address of its source, and the relay log.
	source    string
	retrieved transactions
	relay     []int // received, not applied
	copied    bool  // performance_schema.clone_status reports that the last copy succeeded
	// replaced is what it had when it was replaced as the primary; nil if it was not, or follows another one.
	replaced *formerPrimary
	// leasedUnder is the last record under which it had a lease.
	leasedUnder Version
	// isForgetful means that it may have lost what it had acknowledged, and forgotUnder is the record that it held then.
	isForgetful bool
	forgotUnder Version
	// hasLed means that it was the primary, and has followed no other since.
	hasLed bool
	// copiedFrom is the server_uuid of the replica that it is a copy of, until it follows its primary.
	copiedFrom string
}

// formerPrimary is what a member that was replaced as the primary in an epoch had, if isKnown, and what of that was set aside. isForced
// means that a user has chosen the next one.
type formerPrimary struct {
	epoch         int64
	isForced      bool
	isKnown       bool
	had, setAside transactions
}

// has is everything that the volume holds, applied or only received.
func (v *volume) has() transactions {
	all := v.data
	for _, n := range v.relay {
		all.add(n)
	}
	return all
}

// server is a running mysqld.
type server struct {
	up, readOnly bool
	// barrier is the transaction that must be acknowledged before clients can write, if opens; -1 if it has none.
	opens                bool
	barrier              int
	hung                 bool // it does nothing, and closes no connection
	held                 bool // it does not run, and waits until the agent knows who leads
	start                int  // counts starts
	sourceAcks           int
	replicaAcks          bool
	io, sql              bool // threads are started
	connected, ackActive bool
	ioErrno              int
	waiting              []commit
	// leaseNeeds is for how many replicas mysqld has a lease, leaseLasts how long it lasts (Assignment.LeaseLasts), leaseSince
	// the time of the last evidence.
	leaseNeeds, leaseSince int
	leaseLasts             time.Duration
	// heardAt is when enough replicas were heard last, gotAt when the receiver last got something.
	heardAt, gotAt int
	// receivers are the members that may follow this one. All others are locked out.
	receivers []string
	// copies is the copy that replaces its data.
	copies copying
	// reopens means that it was started to open by its replicas. isSeen means that its agent has looked since.
	reopens, isSeen bool
}

// sidecar is a running agent.
type sidecar struct {
	up         bool
	assignment *Assignment
	status     Status
	pointed    bool
	known      *Source
	knownHost  string
	knownEpoch int64
	errant     GTIDSet
	recall     GTIDSet
	recallHost string
	judged     transactions
	opened     Opened
	since      int
	shortSince int
	heard      int
	startingAt int
	hearsAt    int
	confirmed  int // the time after which the operator confirmed
	lease      heldLease
	deaf       deafness
	tried      []string
	pending    *Step
	view       Observed
	viewStart  int
}

// simulated is one member: its Pod, volume, mysqld and agent.
type simulated struct {
	name    string
	ordinal int
	uuid    string
	pod     bool
	// address is the Pod's, which another Pod may get later.
	address string
	vol     volume
	sql     server
	agent   sidecar
	// deaf members cannot be reached by the operator. cut members can neither reach the primary nor be reached by replicas.
	deaf, cut bool
	// heard is when an operator heard the member last.
	heard int
	// ghost is what a lost volume held. It counts for the record's promise until the member leaves the record.
	ghost transactions
	// isLost means that its volume was lost since it is in the record, and no copy has replaced it. isBroken means that mysqld cannot start.
	isLost, isBroken bool
	// isEnding means that Kubernetes ends its Pod.
	isEnding bool
	// hasAnswered means that mysqld has answered this agent in its container.
	hasAnswered bool
	// runsOn means that it may take writes although another member has replaced it.
	runsOn bool
	// fault is how its volume fails.
	fault volumeFault
	// unread is what it may have of a former primary, if it was not read when another member took over from that one.
	unread transactions
}

func newSimulated(ordinal int) *simulated {
	return &simulated{
		name: fmt.Sprintf("db-%d", ordinal), ordinal: ordinal,
		uuid: fmt.Sprintf("%08d-0000-0000-0000-000000000000", ordinal),
	}
}

// writable reports whether members can follow here, and clients can write here, or soon.
func (m *simulated) writable() bool { return m.isOpen() && !m.fault.isKilled }

// isOpen reports the same, as the supervisor knows it: a mysqld that was killed may not have ended.
func (m *simulated) isOpen() bool { return m.sql.up && !m.sql.readOnly }

// crash ends mysqld. Transactions that waited for acknowledgements are in the binary log, and recovery will commit them. If clients could
// write, the agent holds the next start.
func (m *simulated) crash() {
	if m.fault.stands && m.sql.up { // it ends when the volume continues
		m.sql.hung, m.fault.isKilled = true, true
		return
	}
	m.sql = server{start: m.sql.start, held: m.isOpen() && m.agent.up, waiting: m.sql.waiting}
}

func (m *simulated) commit(n int) {
	m.vol.executed.add(n)
	m.vol.data.add(n)
}

// boot starts mysqld as its configuration demands: read-only, replication stopped, acknowledgements off.
func (m *simulated) boot() {
	m.recover()
	if !m.vol.made {
		m.vol.made, m.vol.origin = true, OriginFresh
	}
	m.sql = server{up: true, readOnly: true, start: m.sql.start + 1}
}

// killPod ends mysqld and agent; the Pod's containers start again later. The next agent sees that a primary has crashed.
func (m *simulated) killPod() {
	hasCrashed := m.sql.held || m.isOpen()
	m.heal()
	m.forgetUnstored()
	m.crash()
	m.agent, m.sql.held, m.isEnding, m.hasAnswered = sidecar{}, hasCrashed, false, false
}

// loseData ends the Pod, and gives the next one a new volume.
func (m *simulated) loseData(life int) {
	m.killPod()
	m.sql, m.vol = server{start: m.sql.start}, volume{life: life, isUnnamed: true}
}

// recover commits what is in the binary log.
func (m *simulated) recover() {
	for _, waiting := range m.sql.waiting {
		m.commit(waiting.number)
	}
	m.sql.waiting = nil
}

// killAgent ends the agent. Without it, no start is held.
func (m *simulated) killAgent() {
	m.agent, m.sql.held, m.hasAnswered = sidecar{}, false, false
	m.forgetUnstored()
}

// apply applies the oldest received transaction.
func (m *simulated) apply() {
	if !m.sql.up || m.sql.hung || !m.sql.sql || len(m.vol.relay) == 0 || m.fault.isBlocked() {
		return
	}
	n := m.vol.relay[0]
	m.vol.relay = m.vol.relay[1:]
	if !m.vol.data.has(n) {
		m.vol.binlog = append(m.vol.binlog, n)
		m.commit(n)
	}
}

// logged is everything in the binary log, finished or waiting: what replicas can receive.
func (m *simulated) logged() transactions {
	all := m.vol.executed
	for _, waiting := range m.sql.waiting {
		all.add(waiting.number)
	}
	return all
}

// acknowledged records one replica's acknowledgement, which covers everything before it, and finishes commits with enough acknowledgements.
func (m *simulated) acknowledged(by *simulated, n int, heard func(int)) {
	for _, waiting := range m.sql.waiting {
		if waiting.number <= n {
			waiting.acks[by] = true
		}
	}
	m.finish(heard)
}

// finish completes the commits at the front that have all their acknowledgements.
func (m *simulated) finish(heard func(int)) {
	for len(m.sql.waiting) > 0 && len(m.sql.waiting[0].acks) >= m.sql.sourceAcks {
		n := m.sql.waiting[0].number
		m.sql.waiting = m.sql.waiting[1:]
		m.commit(n)
		heard(n)
	}
}

// ackClients counts the acknowledging replicas connected to this member.
func (w *world) ackClients(m *simulated) int {
	count := 0
	for _, other := range w.members {
		if other != m && other.sql.connected && other.sql.ackActive && other.vol.source == m.address {
			count++
		}
	}
	return count
}

// unheard are the replicas in sync that are not connected to this member.
func (w *world) unheard(m *simulated, order *Assignment) []string {
	var names []string
	for _, other := range w.members {
		isConnected := other.sql.connected && other.sql.ackActive && other.vol.source == m.address && !other.cut
		if order != nil && slices.Contains(order.Record.ReplicasInSync(), other.name) && !isConnected {
			names = append(names, other.name)
		}
	}
	return names
}

// The agent's turn, as in reconcile/mysql/agent: observe, settle, decide, report. Acting is a separate event.
func (w *world) look(m *simulated) {
	a := &m.agent
	if !m.sql.up || m.sql.hung {
		if a.status.State != StateStarting {
			a.status.Boot, a.startingAt = w.token(), w.clock
		}
		w.unanswered(m)
		a.status.Writable, a.status.Acknowledging, a.status.AcksEnforced, a.status.AckClients, a.status.ObservedUnder = false, false, 0, 0, Version{}
		return
	}
	if m.sql.copies.from != "" {
		a.status.CloneProgress = new(int)
		return
	}
	m.hasAnswered = true
	if m.vol.origin == OriginFresh && m.vol.copied && !m.fault.stands {
		m.vol.origin = OriginMember
	}
	if a.status.Writable && m.sql.readOnly {
		a.status.Boot = w.token()
	}
	if m.sql.connected {
		a.heard = w.clock
	}
	if source := w.at(m.vol.source); !m.sql.io || source != nil && source.sql.up && !source.sql.hung && !m.cut && !source.cut {
		a.hearsAt = w.clock
	}
	m.seesStart(w.set(m.vol.executed))
	var under Version
	var silent []string
	if order := a.assignment; order != nil && (order.Role == RoleReplica || slices.Equal(m.sql.receivers, order.Receivers())) {
		under, silent = order.Record.Version(), order.Silent
	}
	local := Observed{
		Assignment: a.assignment, Boot: a.status.Boot, Origin: m.vol.origin, Server: w.serverOf(m), CredentialsCurrent: a.pointed,
		DisconnectedFor: time.Duration(w.clock-a.heard) * time.Second, HeldRole: m.vol.role, Unassigned: time.Duration(w.clock-a.since) * time.Second,
		IsForgetful: m.mustLookAtSource(), IsReopening: m.sql.reopens, Opened: a.opened, WasShared: a.status.Shared,
	}
	if a.assignment != nil && a.assignment.SourceHost == a.knownHost && a.assignment.Record.Epoch == a.knownEpoch {
		local.Known, local.Errant = a.known, a.errant
	}
	if NeedsSource(local) {
		local.Source = w.sourceOf(m, *local.Assignment)
	}
	w.judge(m, &local)
	if !m.fault.stands {
		w.remember(m, local)
		w.recordReplaced(m, &local, under)
	}
	step := NextStep(local)
	m.sees(step, local, under)
	w.imagine(m, local)
	if local.Source != nil && local.Source.Err == "" {
		a.known, a.knownHost, a.knownEpoch, a.errant = local.Source, local.Assignment.SourceHost, local.Assignment.Record.Epoch, step.Errant
	}
	if !w.primaryLost && !w.ranOn && local.Server.Channel.running() && !step.Errant.Subtract(w.set(w.hollow.union(m.unread))).Empty() {
		w.violated("%s counts as errant while it replicates: %s", m.name, step.Message)
	}
	if order := a.assignment; order != nil && order.Role == RolePrimary && m.writable() {
		confirmed := m.agent.confirmed
		if order.Record.LeaseLasts == 0 && m.lease().needs < order.Lease {
			confirmed = -w.longLease - 1
		}
		if w.leads(m, order.Lease, order.LeaseLasts, confirmed) && order.Lease > 0 && w.restsOnReplicas(m) && !m.fault.stands {
			m.vol.leasedUnder = order.Record.Version()
		}
	}
	w.report(m, local, step, under, silent)
	w.allowReceivers(m)
	if step.Verb != VerbNone {
		a.pending, a.view, a.viewStart = &step, local, m.sql.start
	}
}

// allowReceivers makes a primary allow the receivers of its assignment. That may fail, and is tried again.
func (w *world) allowReceivers(m *simulated) {
	order := m.agent.assignment
	if order == nil || order.Role != RolePrimary || !m.writable() || slices.Equal(m.sql.receivers, order.Receivers()) || w.random.IntN(4) == 0 {
		return
	}
	w.allowOnly(m, order.Receivers())
}

// allowOnly makes a primary allow these receivers.
func (w *world) allowOnly(m *simulated, receivers []string) {
	m.sql.receivers = receivers
	for _, other := range w.members {
		if other.vol.source == m.address && !slices.Contains(m.sql.receivers, other.name) {
			other.sql.connected, other.sql.ackActive = false, false
		}
	}
}

func (w *world) serverOf(m *simulated) Server {
	channel := Channel{Configured: m.vol.source != "", SourceHost: m.vol.source, SourcePort: 3306, IO: "No", SQL: "No", IOErrno: m.sql.ioErrno, Retrieved: w.set(m.vol.retrieved), AckActive: m.sql.connected && m.sql.ackActive}
	if m.sql.io {
		channel.IO = "Connecting"
		if m.sql.connected {
			channel.IO = "Yes"
		}
	}
	if m.sql.sql {
		channel.SQL = "Yes"
	}
	if m.sql.connected && m.sql.sql {
		lag := int64(len(m.vol.relay) * 5)
		channel.LagSeconds = &lag
	}
	return Server{SuperReadOnly: m.sql.readOnly, ReadOnly: m.sql.readOnly || m.sql.opens, ServerUUID: m.uuid, Executed: w.set(m.vol.executed), Pending: w.set(m.logged().without(m.vol.executed)), Purged: w.set(m.vol.purged), SourceAcks: m.sql.sourceAcks, ReplicaAcks: m.sql.replicaAcks, Channel: channel}
}

func (w *world) sourceOf(m *simulated, a Assignment) *Source {
	source := w.at(a.SourceAddress)
	if source == nil || source.name != a.SourceHost || m.cut || source.cut || !source.sql.up || source.sql.hung || source.sql.readOnly {
		return &Source{Err: "no route, or it does not lead yet"}
	}
	return &Source{ServerUUID: source.uuid, Executed: w.set(source.vol.executed), Pending: w.set(source.logged().without(source.vol.executed)), Purged: w.set(source.vol.purged)}
}

func (w *world) report(m *simulated, local Observed, step Step, under Version, silent []string) {
	a, seen := &m.agent, local.Server
	clients := w.ackClients(m)
	if clients >= seen.SourceAcks || seen.SuperReadOnly {
		a.shortSince = w.clock
	}
	a.status = Status{
		State: step.State, Message: step.Message, NeedsCopy: step.NeedsCopy, Assignment: a.assignment, Boot: a.status.Boot, Protocol: Protocol,
		Origin: m.vol.origin, Held: m.vol.held, HeldRole: m.vol.role, Last: m.vol.last, ServerUUID: m.uuid, ObservedUnder: under, Silent: silent,
		Executed: seen.Executed, Received: seen.Executed.Union(seen.Channel.Retrieved), Writable: !seen.SuperReadOnly,
		IsForgetful: m.vol.isForgetful, ForgotUnder: m.vol.forgotUnder, Pending: seen.Pending, Hollow: step.Hollow, Shared: local.Shared(), HasNoOthers: local.HasNoOthers(), AcksEnforced: step.CertainAcks(local), AckClients: clients, ConnectedReplicas: clients, AcksShortSeconds: w.clock - a.shortSince,
		TakesDonor: true, TriedDonors: a.tried, CopiedFrom: m.vol.copiedFrom, TablesWithoutRows: &Tables{},
		Acknowledging: seen.Channel.AckActive || seen.ReplicaAcks && (seen.Channel.IO != "No" || a.assignment != nil && !a.assignment.Acknowledge), LagSeconds: seen.Channel.LagSeconds,
	}
	if seen.SuperReadOnly {
		a.status.Closed = &under
	}
	if order := a.assignment; m.lease().needs > 0 || order != nil && order.Lease > 0 {
		since := max(m.sql.leaseSince, a.confirmed)
		known := m.lease()
		if known.needs == 0 {
			known.lasts = order.LeaseLasts
		}
		lasts, all := known.lasts, w.lasts(known.lasts)
		a.status.Lease = leaseOf(known.needs, lasts, lasts*time.Duration(all-w.clock+since)/time.Duration(all))
		a.status.Lease.IsHeard = w.restsOnReplicas(m)
		a.status.Lease.Unheard = w.unheard(m, order)
	}
	if a.deaf.start == m.sql.start && !m.sql.io {
		a.status.DeafFor = time.Duration(a.deaf.since) + 1
	}
}

// assign simulates an agent that gets an assignment: it refuses a stale one, and stores the record before it follows it.
func (m *simulated) assign(next Assignment) bool {
	if Accept(m.vol.held, m.vol.last, m.agent.status.Boot, next) != nil || !m.mayStore(next) {
		return false
	}
	switch {
	case IsReplaced(m.vol.last, next):
		m.vol.replaced = &formerPrimary{epoch: next.Record.Epoch, isForced: next.Record.Forgets(m.vol.last.Record.Epoch)}
	case next.Role == RolePrimary:
		m.vol.replaced = nil
	case m.vol.replaced != nil && next.Record.Forgets(m.vol.replaced.epoch-1):
		m.vol.replaced = &formerPrimary{epoch: m.vol.replaced.epoch, isForced: true}
	}
	m.agent.confirmed = max(m.agent.confirmed, int(next.Confirmed()))
	next.ConfirmedAt = 0
	m.vol.hasLed = (m.vol.hasLed || m.vol.role == RolePrimary) && next.Record.Primary == ""
	m.vol.held, m.vol.role, m.vol.last = next.Record, next.Role, &next
	m.agent.assignment, m.agent.status.Assignment = &next, &next
	m.agent.status.Held, m.agent.status.HeldRole, m.agent.status.Last = next.Record, next.Role, &next
	return true
}

// act carries out the pending step, unless mysqld has restarted since the observation: a restart takes longer than that.
func (w *world) act(m *simulated) {
	step := m.agent.pending
	m.agent.pending = nil
	if step == nil || !m.sql.up || m.sql.hung || m.sql.start != m.agent.viewStart {
		return
	}
	s := &m.sql
	if m.fault.stands && step.Verb != VerbSetReadOnly {
		return
	}
	switch step.Verb {
	case VerbNone:
	case VerbSetReadOnly:
		if len(s.waiting) == 0 && (!m.fault.isBlocked() || w.random.IntN(2) == 0) {
			s.readOnly = true
		} else if w.random.IntN(3) == 0 { // it waits for commits in progress, and then the supervisor kills mysqld
			m.crash()
		}
	case VerbStopReplica:
		w.stopReceiver(m)
		s.sql, s.ioErrno = false, 0
	case VerbStopReceiver:
		w.stopReceiver(m)
	case VerbApplyReceived:
		s.sql = true
	case VerbForgetSource:
		w.drops(m, m.unapplied(), "it removes its source")
		m.forget("")
	case VerbEnforceAcks:
		s.sourceAcks = m.agent.view.Assignment.Acks
		m.finish(w.acknowledge)
	case VerbStopEnforcingAcks:
		s.sourceAcks = 0
		m.finish(w.acknowledge)
	case VerbStartAcknowledging:
		s.replicaAcks = true
	case VerbStopAcknowledging:
		w.stopReceiver(m)
		s.replicaAcks = false
	case VerbAcceptWrites:
		order := m.agent.assignment // an agent that has another role by now does not open (Permit)
		stillLeads := order != nil && order.Role == RolePrimary && order.Record.Epoch == m.agent.view.Assignment.Record.Epoch
		if stillLeads && w.mayOpen(m, *m.agent.view.Assignment) {
			w.open(m, *m.agent.view.Assignment)
		}
	case VerbReopen:
		w.reopen(m)
	case VerbSetAside:
		w.setAside(m, step.SetAside)
	case VerbClone:
		w.clone(m)
	case VerbPointToSource:
		w.drops(m, m.unapplied(), "it gets another source")
		m.forget(m.agent.view.Assignment.SourceAddress)
		m.followsSource()
		m.agent.pointed = true
		s.replicaAcks = s.replicaAcks || step.Acknowledge
		s.io, s.sql, s.ioErrno, m.agent.deaf = true, true, 0, deafness{}
	case VerbTurnToSource:
		w.turnToSource(m)
	case VerbStartReplica:
		s.io, s.sql, s.ioErrno, m.agent.deaf = true, true, 0, deafness{}
	case VerbRestartReceiver:
		m.agent.deaf = deafness{}
		s.io, s.connected, s.ackActive, s.ioErrno = true, false, false, 0
	}
}

// open lets members follow, and clients write once everything that the member has is acknowledged. If it let others follow before, it locks
// them out first.
func (w *world) open(m *simulated, order Assignment) {
	s, promised := &m.sql, order.Record.RequiredAcks
	if s.readOnly {
		m.vol.origin, s.readOnly, s.opens, s.barrier = OriginMember, false, true, -1
	}
	if len(s.receivers) > 0 && !slices.Equal(s.receivers, order.Receivers()) {
		w.allowOnly(m, order.Receivers())
	}
	if promised > 0 && s.barrier < 0 && len(w.ledger) < w.mayWrite && !m.fault.isBlocked() {
		s.barrier = w.logs(m)
		w.hollow.add(s.barrier)
	}
	w.askAgain(m)
	isAcknowledged := s.barrier >= 0 && m.vol.executed.has(s.barrier) || s.barrier < 0 && w.holders(m, m.logged()) >= promised
	if promised > 0 && !isAcknowledged {
		return
	}
	s.opens = false
	if copies := w.holders(m, m.logged()); copies < w.record.RequiredAcks {
		w.violated("clients can read what %s has and %d other members in sync, the record promises %d", m.name, copies, w.record.RequiredAcks)
	}
}

// askAgain makes replicas acknowledge what they got before they connected to this primary.
func (w *world) askAgain(m *simulated) {
	for _, other := range w.members {
		if other.sql.connected && other.sql.ackActive && other.vol.source == m.address && m.logged().without(other.vol.has()).empty() {
			m.acknowledged(other, len(w.ledger), w.acknowledge)
		}
	}
}

// holders counts the other members that have these transactions.
func (w *world) holders(m *simulated, wanted transactions) int {
	count := 0
	for _, other := range w.members {
		if other.name != m.name && wanted.without(other.vol.has().union(other.ghost)).empty() {
			count++
		}
	}
	return count
}

// turnToSource changes the source of a channel whose applier runs. A user may have stopped the applier since the agent looked.
func (w *world) turnToSource(m *simulated) {
	m.sql.io, m.sql.connected, m.sql.ackActive = false, false, false
	if !m.sql.sql {
		return
	}
	m.vol.source, m.agent.pointed, m.agent.deaf = m.agent.view.Assignment.SourceAddress, true, deafness{}
	m.sql.io, m.sql.connected, m.sql.ackActive, m.sql.ioErrno = true, false, false, 0
}

// unapplied is what a member has received and not executed.
func (m *simulated) unapplied() transactions { return m.vol.retrieved.without(m.vol.executed) }

// forget sets up the channel again, which deletes relay logs.
func (m *simulated) forget(source string) {
	m.sql.io, m.sql.sql, m.sql.connected, m.sql.ackActive, m.sql.ioErrno = false, false, false, false, 0
	m.vol.source, m.vol.relay, m.vol.retrieved = source, nil, transactions{}
}

// newUUID gives the member a new server_uuid.
func (w *world) newUUID(m *simulated) {
	w.tokens++
	m.vol.isUnnamed = false
	m.uuid = fmt.Sprintf("%08d-%04d-0000-0000-%012d", m.ordinal, w.tokens%10000, w.tokens)
}
