// Package agent is the sidecar of every member: it brings its mysqld to the role that the operator assigns, one step at a time,
// answers the probes of kubelet, and reports what it sees. It decides with replication.NextStep and acts with the verbs of
// reconcile/mysql/mysqld; it never chooses a primary itself.
package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// lookEvery is how often a member that is as it should be is looked at, stepEvery one that is on its way.
	lookEvery = time.Second
	stepEvery = 250 * time.Millisecond
	// lookTimeout bounds one look at mysqld, verbTimeout one verb; stopping replication waits for the transaction being applied.
	lookTimeout = 3 * time.Second
	verbTimeout = 60 * time.Second
)

// Agent looks after one mysqld.
type Agent struct {
	layout Layout
	log    logr.Logger
	// local is logged in with the password in inForce; both belong to the loop.
	local   *mysqld.Server
	inForce passwords
	// admitted are the passwords that this mysqld takes from other members since its start admittedAt, where that is known: a new start has
	// those of its init_file. strayed says that they are not those in force.
	admitted   passwords
	admittedAt string
	strayed    bool
	// copies are tries to copy the primary's data. They belong to the loop.
	copies copies
	// survey is what was seen of transactions, and when. It belongs to the loop.
	survey survey
	// commits is what was seen of commits. It belongs to the loop.
	commits commits
	// measuredAt is when mysqld was measured last. It belongs to the loop.
	measuredAt time.Time
	// room is what was seen of the room in the relay log. It belongs to the loop.
	room replication.Room
	// isSettled says that the file for mysqld's next start is as it has to be on data that is used.
	isSettled bool
	// failure is why the last step failed, empty where it did not: the same is logged once.
	failure string
	// said is what the last step says, as long as it does not fail.
	said string
	// purged is when binary logs were last purged, purging how that ends which is under way; nil where none is.
	purged  time.Time
	purging <-chan error
	root    rootPassword
	tls     *tlsFiles
	wake    chan struct{}

	mu         sync.Mutex
	kept       state
	tables     tableWatch
	assignment *replication.Assignment
	// refused is why the latest assignment was refused; empty when it was accepted.
	refused string
	status  replication.Status
	// measured is what only /metrics tells.
	measured measured
	// diskSeen is when the room on the volume was looked at.
	diskSeen time.Time
	// answered is when mysqld last answered everybody, looked when the loop last turned; zero before the first time. hung is since when mysqld
	// has listened without answering an agent that has had no answer yet.
	answered, looked, hung time.Time
	// shortSince is since when acknowledging replicas are too few, heard when the receiver was last connected to the primary.
	// idleSince is when the loop first saw mysqld.
	shortSince, heard, idleSince time.Time
	// pointed says that this agent set the replication channel up itself.
	pointed bool
	// known is the last look at the primary called knownHost, errant what this member had beyond it. They belong to the loop.
	known     *replication.Source
	knownHost string
	errant    replication.GTIDSet
	// logbook is what the loop has read in the binary log, unread why it cannot, and marked when it noted last where that ends.
	logbook  mysqld.Logbook
	unread   string
	marked   time.Time
	patience patience
	// matching is what the loop was asked to match and has not yet; mu guards it.
	matching *replication.Matching
}

// New reads the member's state and accounts. Run does the work. rootAbsent has it leave root@'%' alone.
func New(layout Layout, rootAbsent bool, log logr.Logger) (*Agent, error) {
	kept, found, err := loadState(layout.stateFile())
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("no %s: the init container has not run", layout.stateFile())
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
		layout: layout, log: log, local: local, inForce: inForce, kept: kept,
		root: rootPassword{layout: layout, absent: rootAbsent}, tls: &tlsFiles{layout: layout}, wake: make(chan struct{}, 1),
	}
	agent.status = replication.Status{State: replication.StateStarting, Message: "waits for mysqld to answer", Protocol: replication.Protocol, Boot: rand.Text()}
	agent.reportKept()
	return agent, nil
}

// Run looks, decides and acts until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	defer func() { _ = a.local.Close() }()
	go a.watchDisk(ctx)
	go a.watchFiles(ctx)
	for {
		pause := a.turn(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		case <-time.After(pause):
		}
	}
}

// turn is one look and at most one step; it returns how long to wait before the next.
func (a *Agent) turn(ctx context.Context) time.Duration {
	silent := a.silent()
	observed, err := a.look(ctx)
	if err != nil {
		a.unanswered(err)
		return stepEvery
	}
	if err := a.settleData(ctx); err != nil {
		a.unsettled(observed, err)
		return lookEvery
	}
	local := a.localView(observed)
	if replication.NeedsSource(local) {
		local.Source = a.lookAtSource(ctx, *local.Assignment)
	}
	local.Hollow = a.judge(ctx, local)
	step := replication.NextStep(local)
	a.learn(local, step)
	if observed.LockedOut {
		step.Message += "; nobody can log in while a statement about accounts waits to be acknowledged"
	}
	changed := a.publish(observed, local, step, silent)
	if changed {
		a.log.Info("member changes", "state", step.State, "message", step.Message)
	}
	a.maintainCommits(ctx, observed)
	if !observed.LockedOut {
		a.maintain(ctx, step.State, observed)
		a.match(ctx, observed)
	}
	if step.Verb == replication.VerbNone {
		return lookEvery
	}
	err = a.act(ctx, step, local)
	a.ended(step, err)
	if err != nil {
		return lookEvery
	}
	return stepEvery
}

// silent names the members that this one, as the primary, was told are silent.
func (a *Agent) silent() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.assignment == nil {
		return nil
	}
	return a.assignment.Silent
}

func (a *Agent) look(ctx context.Context) (mysqld.Observed, error) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	observed, err := a.local.Observe(bounded)
	if !mysqld.IsAccessDenied(err) {
		return observed, err
	}
	if err := a.refreshPasswords(bounded, mayTry); err != nil {
		return observed, err
	}
	return a.local.Observe(bounded)
}

// unanswered notes that mysqld does not answer; whatever it does next, it does as a new start that needs a new confirmation.
func (a *Agent) unanswered(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = time.Now()
	if mysqld.IsNotListening(err) {
		// The next start is one like the first: recovery takes as long as it takes, and the probes must not cut it short.
		a.answered = time.Time{}
		a.keepEnd()
	}
	a.hung = a.hungSince(err)
	if a.status.State != replication.StateStarting {
		a.log.Info("mysqld does not answer", "error", err.Error())
		a.status.Boot = rand.Text()
		// It may come back with other data, or other plugins.
		a.status.Barred, a.survey.last = nil, time.Time{}
	}
	a.status.State, a.status.Message = replication.StateStarting, "mysqld does not answer: "+err.Error()
	a.status.Writable, a.status.Acknowledging = false, false
	a.status.AcksEnforced, a.status.AckClients = 0, 0
	// A mysqld that starts anew reads the files as they are, and an agent cannot see when: it has them read again.
	a.status.TLS = ""
	a.tls.unknown()
	a.logbook, a.marked, a.patience = mysqld.Logbook{}, time.Time{}, patience{}
	a.room = replication.Room{}
	a.forgetMeasures()
	// Whoever waited to commit waits no longer, or is counted anew.
	a.commits, a.status.Transactions.CommitWaitSeconds = commits{}, 0
}

// hungSince is since when mysqld has listened without answering; zero where it has answered before, does not listen, or says no.
func (a *Agent) hungSince(err error) time.Time {
	switch {
	case !a.answered.IsZero() || !errors.Is(err, context.DeadlineExceeded):
		return time.Time{}
	case a.hung.IsZero():
		return a.looked
	}
	return a.hung
}

// localView puts together what the next step depends on.
func (a *Agent) localView(observed mysqld.Observed) replication.Local {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.Writable && observed.Server.SuperReadOnly {
		a.status.Boot = rand.Text()
	}
	now := time.Now()
	if observed.Server.Channel.IO == "Yes" {
		a.heard = now
	}
	if observed.Server.Channel.Refused() {
		a.pointed = false
	}
	a.room = a.room.Look(now, observed.Server)
	local := replication.Local{
		Assignment: a.assignment, Boot: a.status.Boot, Origin: a.kept.Data, Server: observed.Server, Pointed: a.pointed, Unheard: now.Sub(a.heard),
		HeldRole: a.kept.HeldRole, Unassigned: a.unassigned(now), RelayLogFull: a.room.Full(),
	}
	if a.kept.Lacking != nil {
		local.Lacking = a.kept.Lacking.Tables
	}
	if a.assignment != nil && a.assignment.SourceHost == a.knownHost {
		local.Known, local.Errant = a.known, a.errant
	}
	return local
}

// unassigned is for how long the agent has known its mysqld without an assignment; the caller holds the lock.
func (a *Agent) unassigned(now time.Time) time.Duration {
	switch {
	case a.assignment != nil:
		return 0
	case a.idleSince.IsZero():
		a.idleSince = now
	}
	return now.Sub(a.idleSince)
}

// learn keeps a look at the primary, so that it need not be looked at again while this member has nothing more than what was seen there.
func (a *Agent) learn(local replication.Local, step replication.Step) {
	if local.Source != nil && local.Source.Err == "" {
		a.known, a.knownHost, a.errant = local.Source, local.Assignment.SourceHost, step.Errant
	}
}

func (a *Agent) lookAtSource(ctx context.Context, assignment replication.Assignment) *replication.Source {
	source, err := a.observeSource(ctx, assignment)
	if err != nil {
		return &replication.Source{Err: err.Error()}
	}
	return &source
}

func (a *Agent) observeSource(ctx context.Context, assignment replication.Assignment) (replication.Source, error) {
	account, err := a.layout.readAccount(mysqld.ReplicationUser)
	if err != nil {
		return replication.Source{}, err
	}
	security, err := a.tls.client()
	if err != nil {
		return replication.Source{}, err
	}
	remote, err := mysqld.Remote(assignment.SourceHost, assignment.SourcePort, account, security)
	if err != nil {
		return replication.Source{}, err
	}
	defer remote.Close()
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return remote.ObserveSource(bounded)
}

// Assign takes an assignment, unless it comes too late (replication.Accept). It is on the volume before it takes effect, so that whoever
// comes too late is refused after a restart as well.
func (a *Agent) Assign(next replication.Assignment) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := replication.Accept(a.kept.Held, a.kept.Last, a.status.Boot, next); err != nil {
		a.refused = err.Error()
		return err
	}
	if kept := a.kept.accepting(next); !reflect.DeepEqual(kept, a.kept) {
		if err := a.keep(kept); err != nil {
			return err
		}
	}
	a.refused = ""
	a.assignment = &next
	a.status.Assignment = &next
	a.Wake()
	return nil
}

// Wake makes the loop look at once.
func (a *Agent) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Status is the latest report.
func (a *Agent) Status() replication.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	status := a.status
	status.Disk = a.disk(time.Now())
	return status
}
