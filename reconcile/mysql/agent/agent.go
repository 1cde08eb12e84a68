// Package agent is the agent of a member, the second container of its Pod. It brings its mysqld to the role that the operator assigns, one
// step at a time, answers kubelet's probes, and reports the member's status. It decides with replication.NextStep and acts with the verbs
// of reconcile/mysql/mysqld. It never chooses a primary itself.
package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// lookEvery is the pause between looks at a member that needs no step, stepEvery between looks at one that changes. A member changes for
	// changesFor after its last step, and after each record that it follows.
	lookEvery  = time.Second
	stepEvery  = 100 * time.Millisecond
	changesFor = 3 * time.Second
	// againEvery is the pause before a step that is repeated, and between looks at a mysqld that has not answered for startsFor.
	againEvery = 250 * time.Millisecond
	startsFor  = 30 * time.Second
	// lookTimeout bounds one look at mysqld, verbTimeout one verb. Stopping replication waits for the transaction that is being applied.
	lookTimeout = 3 * time.Second
	verbTimeout = 60 * time.Second
)

// Agent manages one mysqld.
type Agent struct {
	layout  Layout
	ordinal int
	// life identifies the Pod on this boot of its machine; empty if that is not known.
	life string
	log  logr.Logger
	// local is logged in with the password in inForce. Only the loop uses both.
	local   *mysqld.Server
	inForce passwords
	// admitted are the passwords that other members can use on this mysqld since its start admittedAt, if the agent knows them: each start
	// sets those of its init_file. strayed reports whether they differ from inForce.
	admitted       passwords
	admittedAt     string
	admittedDiffer bool
	// copies are attempts to copy another member's data. Only the loop uses them.
	copies copyBackoff
	// survey is the last look at transactions, and its time. Only the loop uses it.
	survey survey
	// recall is what a forgetful member must have before it is a witness again, recallHost the primary that it was seen on. Only the loop uses
	// both.
	recall     replication.GTIDSet
	recallHost string
	// openedAt is when the loop last tried to let clients write. Only the loop uses it.
	openedAt time.Time
	// commits is the last look at commits, stand at those that wait for acknowledgements, sentAll at the replicas that they may wait for. Only
	// the loop uses all three.
	commits commits
	stand   commitStand
	sentAll sentAll
	// acks watches whether commits wait for acknowledgements. Only the loop uses it.
	acks replication.AcksWatch
	// receivers are the members that this mysqld allows to follow it. Only the loop uses them.
	receivers receivers
	// barrier is the last one of this agent, nil for none. replicaStart is the start of a mysqld that was a replica, eventsNext when the loop
	// looks at scheduled events again. Only the loop uses these.
	barrier      *barrier
	replicaStart string
	// opened is what mysqld had when the loop last saw it take writes, reopening the start that may open by its replicas. Only the loop uses
	// both.
	opened     replication.Opened
	reopening  reopening
	eventsNext time.Time
	// eventsFailure is why an event could not be enabled the last time; empty if none failed.
	eventsFailure string
	// cannotSetAside reports whether the last attempt to set transactions aside failed. Only the loop uses it.
	cannotSetAside bool
	// measuredAt is when the agent last measured mysqld, strays when clients could be led to it although it is replaced. The loop uses both.
	measuredAt time.Time
	strays     strays
	// looks is what the loop remembers of its looks, and hears is the receiver's connection. Only the loop uses both.
	looks memory
	hears receiverSocket
	// flow is how this primary delays commits. Only the loop uses it.
	flow flow
	// deaf is the receiver that the agent has stopped last. Only the loop uses it.
	deaf stoppedReceiver
	// isSettled reports whether the init_file for mysqld's next start is the one for data in use.
	isSettled bool
	// pace is how soon the loop looks again, and receiver what it has started to receive. Only the loop uses both.
	pace     pace
	receiver startedReceiver
	// failure is why the last step failed, empty if it did not. The agent logs the same failure once.
	failure string
	// lastMessage is the message of the last step, without the error if it failed.
	lastMessage string
	// purged is when binary logs were last purged, purging the result of the purge in progress; nil if there is none.
	purged  time.Time
	purging <-chan error
	root    rootPassword
	tls     *tlsFiles
	wake    chan struct{}
	// volume is how writes to the volume go.
	volume volumeProbe
	// alarms are requests to the operator to look at once. changed reports that the agent's report may differ.
	alarms  alarms
	changed chan struct{}

	// start is the start of mysqld that the loop observes; empty while none runs. answeredStart is the one that the supervisor knows to have
	// answered. Only the loop uses both.
	start, answeredStart string

	mu   sync.Mutex
	kept state
	// late is a write of the state that did not end in time; nil for none.
	late *lateWrite
	// mysqld is what the supervisor reported last; zero while it does not answer. wasOpen reports whether this mysqld has taken writes.
	mysqld  supervisor.State
	wasOpen bool
	// isGone reports whether no mysqld runs, and startingSince is since when the member starts. closedUntil is when mysqld was certainly closed
	// last, while the member has been starting.
	isGone                     bool
	startingSince, closedUntil time.Time
	hold                       hold
	// closedStart is the start of the mysqld that the agent has closed last, so that it may be stopped; empty for none.
	closedStart string
	// ends counts the ends of mysqld, and followed those of which the loop knows. confirmable is the start that the operator may confirm: it
	// has answered. interrupt ends the loop's turns. Only the loop uses followed and confirmable.
	ends, followed int
	confirmable    string
	interrupt      context.CancelFunc
	tables         tableWatch
	assignment     *replication.Assignment
	// confirmedAt is the time, by supervisor.Clock, after which the operator read that this member leads. lease is what mysqld has. sessions
	// are the replicas of which the supervisor was told for the lease, by their ordinals.
	confirmedAt time.Duration
	lease       lease
	sessions    map[int]netip.AddrPort
	// readyUntil is until when this member stays ready while a primary is replaced.
	readyUntil time.Time
	// eventsOf is the epoch in which this primary has tried to enable scheduled events.
	eventsOf int64
	// refused is why the agent refused the latest assignment; empty if it accepted it.
	refused string
	status  replication.Status
	// measured is what only /metrics reports.
	measured measured
	// diskSeen is when the agent last read the free space of the volume.
	diskSeen time.Time
	// answered is when mysqld last answered while clients could log in, looked when the loop last ran; zero before the first time. hung is
	// since when mysqld has listened without answering, if it has not answered this agent before.
	answered, looked, hung time.Time
	// asked is the look that waits for mysqld's answer.
	asked question
	// deafSince is since when, by supervisor.Clock, this member has certainly heard no primary; 0 if that is not known.
	deafSince time.Duration
	// shortSince is since when too few replicas acknowledge, heard when the receiver was last connected to the primary. idleSince is when
	// the loop first saw mysqld without an assignment.
	shortSince, heard, idleSince time.Time
	// pointed reports whether this agent set up the replication channel itself.
	pointed bool
	// known is the last look at the primary called knownHost of that epoch, errant what this member had in addition to it. Only the loop uses
	// them.
	known      *replication.Source
	knownHost  string
	knownEpoch int64
	errant     replication.GTIDSet
	// logbook is what the loop has read in the binary log, unread why it cannot read it, and marked when it last marked the end of the log.
	logbook  mysqld.HollowJudge
	unread   string
	marked   time.Time
	patience logReadBackoff
	// matching is a request to match hollow transactions that the loop has not carried out yet. mu guards it.
	matching *replication.Matching
}

// New reads the member's state and accounts. Run does the work.
//
// life identifies the Pod on this boot of its machine; empty if that is not known.
func New(layout Layout, who Identity, life string, log logr.Logger) (*Agent, error) {
	kept, found, err := loadState(layout.stateFile())
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%s does not exist: the init container has not run", layout.stateFile())
	}
	if kept, err = recordLife(layout, kept, life, log); err != nil {
		return nil, err
	}
	inForce, err := layout.keptPasswords()
	if err != nil {
		return nil, err
	}
	local, err := mysqld.Local(layout.socket(), mysqld.Account{User: mysqld.AgentUser, Password: inForce[mysqld.AgentUser]})
	if err != nil {
		return nil, err
	}
	agent := &Agent{
		layout: layout, ordinal: who.Ordinal, life: life, log: log, local: local, inForce: inForce, kept: kept,
		root: rootPassword{layout: layout, absent: who.RootAbsent}, tls: &tlsFiles{layout: layout}, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), startingSince: time.Now(), hold: hold{mayBegin: true},
	}
	agent.status = replication.Status{State: replication.StateStarting, Message: "waits for mysqld to answer", Protocol: replication.Protocol, KeepsEvents: true, TakesDonor: true, IsRestarting: true, Boot: rand.Text()}
	agent.reportKept()
	return agent, nil
}

// Run observes, decides and acts until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	defer func() { _ = a.local.Close() }()
	go a.watchDisk(ctx)
	defer a.startProbes(ctx)()
	go a.watchFiles(ctx)
	go a.watchSupervisor(ctx)
	go a.sendAlarms(ctx)
	go a.testAlarms(ctx)
	for ctx.Err() == nil {
		turns, interrupt := context.WithCancel(ctx)
		if a.mustClose(interrupt) {
			a.close(ctx)
			a.wait(ctx, stepEvery)
		} else {
			a.takeTurns(turns)
		}
		interrupt()
	}
	return a.recordFlush(context.WithoutCancel(ctx))
}

// takeTurns takes turns until the context ends.
func (a *Agent) takeTurns(ctx context.Context) {
	for ctx.Err() == nil {
		a.endHung(ctx)
		a.mindHeldStart(ctx)
		a.rest(ctx, a.turn(ctx))
	}
}

// turn observes once and carries out at most one step. It returns how long to wait before the next turn.
func (a *Agent) turn(ctx context.Context) time.Duration {
	under, order := a.follows(), a.lastAssignment()
	observed, err := a.lookAtStart(ctx)
	if err != nil {
		return a.unanswered(err, under)
	}
	observed.Server.Channel.QuietFor = a.hears.quietFor(time.Now(), observed.Server.Channel)
	if err := cmp.Or(a.recordCompletedSteps(ctx), a.recordSyncing(observed)); err != nil {
		a.reportUnrecorded(observed, err, under)
		return lookEvery
	}
	a.watchAcks(observed, order)
	a.recordReplaced(observed, under)
	local := a.localView(observed)
	if a.beginReopening(local) {
		return 0
	}
	a.viewReopening(&local, under)
	if replication.NeedsSource(local) {
		local.Source = a.lookAtSource(ctx, local)
	}
	local.Hollow = a.judge(ctx, local)
	step := replication.NextStep(local)
	a.sees(step, local, under)
	a.looks.takes(time.Now(), step)
	a.pace = a.pace.with(time.Now(), local, a.looks.ear, step.Verb)
	a.learn(local, step)
	a.remember(local)
	step.Message += a.hindrances(observed)
	observed.AckClients = a.ackClients(ctx, observed)
	a.keepLease(ctx, observed, local)
	mayArrive := a.noteStrays(observed, local)
	a.refuseStrays(ctx, observed, mayArrive) // before the agent reports that mysqld takes no writes
	if a.publish(observed, local, step, under) {
		a.log.Info("member changes", "state", step.State, "message", step.Message)
	}
	a.maintainCommits(ctx, observed)
	a.endHalfOpen(ctx, observed)
	a.endStrays(ctx, observed, local, mayArrive)
	a.controlFlow(ctx, observed, step.State)
	if a.isStopping() {
		return lookEvery
	}
	if !observed.LoginsHang {
		if a.allowReceivers(ctx, local) {
			return stepEvery // the operator may wait for a report that is made after this
		}
		a.maintain(ctx, step.State, observed)
		a.match(ctx, observed)
	}
	if step.Verb == replication.VerbNone {
		return a.pace.pause(time.Now())
	}
	err = a.act(ctx, step, local)
	a.ended(step, err)
	if err != nil {
		return lookEvery
	}
	return a.pace.pause(time.Now())
}

// hindrances is what a member's message says besides its step: who cannot log in.
func (a *Agent) hindrances(observed mysqld.Observed) (text string) {
	if observed.LoginsHang {
		text += "; no client can log in while a statement about accounts waits for an acknowledgement"
	}
	if observed.RefusesClients {
		text += "; refuses clients for some seconds, because nodes may still lead those here that look for the primary"
	}
	if a.receivers.failure != "" {
		text += "; cannot change which members may follow: " + a.receivers.failure
	}
	return text
}

// localView collects what the next step depends on.
func (a *Agent) localView(observed mysqld.Observed) replication.Observed {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wasOpen && observed.Server.SuperReadOnly || a.confirmable != a.start {
		// An assignment that came before mysqld was observed knows nothing of its data.
		a.status.Boot, a.confirmable = rand.Text(), a.start
	}
	a.wasOpen = !observed.Server.SuperReadOnly
	now := time.Now()
	if observed.Server.Channel.IO == "Yes" {
		a.heard = now
	}
	if a.kept.replicates(observed.Server.Channel) {
		a.replicaStart = a.start
	}
	if observed.Server.Channel.Refused() {
		a.pointed = false
	}
	a.looks = a.looks.with(now, observed.Server)
	local := replication.Observed{
		Assignment: a.assignment, Boot: a.status.Boot, Origin: a.kept.Data, Server: observed.Server, CredentialsCurrent: a.pointed, DisconnectedFor: now.Sub(a.heard),
		HeldRole: a.kept.HeldRole, Unassigned: a.unassigned(now), RelayLogFull: a.looks.room.Full(), AppliesAgain: a.looks.applier.IsDue(now), IsForgetful: a.mustLookAtSource(), WasShared: a.status.Shared,
	}
	a.viewReplaced(&local)
	a.receiver.view(&local, a.start, now)
	if a.kept.TablesWithoutRows != nil {
		local.TablesWithoutRows = a.kept.TablesWithoutRows.Tables
	}
	if a.assignment != nil && a.assignment.SourceHost == a.knownHost && a.assignment.Record.Epoch == a.knownEpoch {
		local.Known, local.Errant = a.known, a.errant
	}
	return local
}

// learn stores a look at the primary. Another look is not needed while this member has no more transactions than the primary had then.
func (a *Agent) learn(local replication.Observed, step replication.Step) {
	if local.Source != nil && local.Source.Err == "" {
		a.known, a.knownHost, a.knownEpoch, a.errant = local.Source, local.Assignment.SourceHost, local.Assignment.Record.Epoch, step.Errant
	}
}

// Assign accepts an assignment unless it is out of date (replication.Accept). It stores the assignment on the volume before the assignment
// takes effect, so that the agent refuses older assignments after a restart as well.
func (a *Agent) Assign(next replication.Assignment) error {
	if err := a.flushToLead(next); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := replication.Accept(a.kept.Held, a.kept.Last, a.status.Boot, next); err != nil {
		a.refused = err.Error()
		return err
	}
	confirmed, wasRole := next.Confirmed(), a.kept.HeldRole
	next.ConfirmedAt = 0
	next.SourceAddress = cmp.Or(next.SourceAddress, a.kept.addressOf(next.Record.Primary))
	if kept := a.kept.accepting(next); !reflect.DeepEqual(kept, a.kept) {
		if err := a.storeState(kept); err != nil && !a.acceptUnstored(kept, err) {
			return err
		}
	}
	if next.Role != wasRole {
		a.forgetEvents()
	}
	a.noteReplaced(wasRole)
	a.readyUntil = a.staysReady(time.Now(), next)
	a.refused, a.confirmedAt = "", max(a.confirmedAt, confirmed)
	a.assignment = &next
	a.status.Assignment = &next
	a.noteChoice(next.Record.Primary)
	if a.cannotClose() && a.interrupt != nil {
		a.interrupt() // the loop waits for mysqld's answer
	}
	a.Wake()
	return nil
}
