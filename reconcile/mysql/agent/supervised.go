package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// reconnectEvery is the pause between attempts to connect to mysqld's supervisor.
	reconnectEvery = 50 * time.Millisecond
	// closeTimeout bounds how long the agent tries to close mysqld. It is shorter than the supervisor's own limit.
	closeTimeout = 20 * time.Second
)

// errUnsupervised reports an observation of a mysqld that may not be the one that the supervisor started last.
var errUnsupervised = errors.New("mysqld's supervisor has not said which mysqld runs")

// watchSupervisor follows what the supervisor reports until the context ends.
func (a *Agent) watchSupervisor(ctx context.Context) {
	for ctx.Err() == nil {
		a.holdFirstStart(ctx)
		err := supervisor.Watch(ctx, supervisor.Socket(a.layout.Run), a.supervised)
		if ctx.Err() != nil {
			return // the agent ends, and mysqld may run
		}
		a.unsupervised(err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnectEvery):
		}
	}
}

// supervised takes a report of the supervisor. Another start of mysqld needs another confirmation by the operator.
func (a *Agent) supervised(now supervisor.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	hasEnded := a.mysqld.Running && !now.Running
	if hasEnded || now.Start != a.mysqld.Start {
		a.hasEnded(endMessage(now))
	}
	if now.Held && !a.mysqld.Held {
		a.hold.since = time.Now()
	}
	a.mysqld, a.isGone, a.hold.mayBegin = now, !now.Running, a.hold.mayBegin && !now.Running
	a.status.IsRestarting = a.status.IsRestarting || now.Stopping
	a.reportHeld()
	if a.stopsOpen() && a.interrupt != nil {
		a.interrupt()
	}
	a.Wake()
	a.mayHaveNews()
}

// mustClose reports whether the agent must close mysqld, because its container stops while it takes writes. If that becomes so later, the
// agent calls interrupt.
func (a *Agent) mustClose(interrupt context.CancelFunc) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.interrupt = interrupt
	return a.stopsOpen()
}

// stopsOpen reports the same. The caller must hold the lock. The supervisor's report may be late: a mysqld that the agent has closed, and
// that stops, must not be closed again, and killed because that fails.
func (a *Agent) stopsOpen() bool {
	return a.mysqld.Stopping && a.mysqld.Open && a.mysqld.Start != a.closedStart
}

func endMessage(now supervisor.State) string {
	switch {
	case now.Ended == "":
		return "mysqld starts"
	case now.Running:
		return "mysqld starts again; the last one ended: " + now.Ended
	}
	return "mysqld has ended: " + now.Ended
}

// unsupervised records that the supervisor does not answer: its container has ended, or has not started.
func (a *Agent) unsupervised(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Without its supervisor, which is process 1 of the container, no mysqld runs.
	a.isGone = errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
	if a.mysqld == (supervisor.State{}) {
		return
	}
	a.log.Info("mysqld's supervisor does not answer", "error", err.Error())
	a.mysqld, a.hold.mayBegin, a.status.IsRestarting = supervisor.State{}, true, true
	a.reportHeld()
	a.hasEnded("the container of mysqld has ended")
}

// hasEnded reports that mysqld has ended. Its successor may have other data or other plugins, and needs a new confirmation. The caller must
// hold the lock.
func (a *Agent) hasEnded(message string) {
	a.log.Info(message)
	// The next start is like the first: recovery takes as long as it takes, and the probes must not interrupt it.
	a.answered, a.hung = time.Time{}, time.Time{}
	a.status.Boot, a.wasOpen = rand.Text(), false
	a.status.LockedOut, a.status.TLS = nil, ""
	a.forgetEvents()
	a.forgetAnswers()
	a.status.Message = message
	a.ends++
	a.mayHaveNews()
}

// unanswered records that mysqld does not answer. It returns how long to wait before the next look.
func (a *Agent) unanswered(err error, under followed) time.Duration {
	defer a.mayHaveNews()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = time.Now()
	if mysqld.IsNotListening(err) {
		a.answered = time.Time{}
	}
	a.hung = a.hungSince(err)
	wasThere := a.status.State != replication.StateStarting
	if wasThere {
		a.log.Info("mysqld does not answer", "error", err.Error())
	}
	a.forgetAnswers()
	if wasThere && errors.Is(err, context.DeadlineExceeded) {
		a.startingSince = a.looked.Add(-lookTimeout) // this look has waited for it
	}
	if a.mysqld.Stopping {
		a.startingSince = a.looked // as long as its container stops, it is not late
	}
	if a.isGone || a.mysqld.Running && !a.mysqld.Open {
		a.status.Closed, a.closedUntil = &under.version, a.looked
	}
	a.status.Message = "mysqld does not answer: " + err.Error()
	if a.mysqld.Ended != "" {
		a.status.Message += "; the last one ended: " + a.mysqld.Ended
	}
	if a.looked.Sub(a.startingSince) < startsFor {
		return stepEvery
	}
	return againEvery
}

// forgetAnswers removes from the report what only a mysqld that answers can say. The caller must hold the lock.
func (a *Agent) forgetAnswers() {
	if a.status.State != replication.StateStarting {
		a.startingSince = time.Now()
	}
	a.status.State, a.status.Closed = replication.StateStarting, nil
	a.status.Writable, a.status.Acknowledging = false, false
	a.status.ObservedUnder, a.status.Silent = replication.Version{}, nil
	a.status.AcksEnforced, a.status.AckClients, a.status.ConnectedReplicas, a.status.SourceSilentFor = 0, 0, 0, 0
	a.status.Transactions.CommitWaitSeconds = 0
}

// hungSince returns since when mysqld has listened without answering. It is zero if mysqld has answered before, does not listen, or
// returned an error.
func (a *Agent) hungSince(err error) time.Time {
	switch {
	case !a.answered.IsZero() || !errors.Is(err, context.DeadlineExceeded):
		return time.Time{}
	case a.hung.IsZero():
		return a.looked
	}
	return a.hung
}

// lookAtStart observes the mysqld that the supervisor started last. It fails if that one ends meanwhile.
func (a *Agent) lookAtStart(ctx context.Context) (mysqld.Observed, error) {
	a.followStart()
	observed, err := a.look(ctx)
	switch {
	case err != nil:
		return observed, err
	case a.start == "" || a.start != a.currentStart():
		return observed, errUnsupervised
	}
	return observed, a.tell(ctx, observed)
}

// followStart forgets what the loop knows about a mysqld that has ended.
func (a *Agent) followStart() {
	a.mu.Lock()
	ends := a.ends
	a.start = ""
	if a.mysqld.Running {
		a.start = a.mysqld.Start
	}
	a.mu.Unlock()
	if ends == a.followed {
		return
	}
	a.followed = ends
	a.logbook, a.marked, a.patience = mysqld.HollowJudge{}, time.Time{}, logReadBackoff{}
	a.looks, a.commits, a.stand, a.sentAll = memory{}, commits{}, commitStand{}, nil
	a.survey.last, a.eventsNext = time.Time{}, time.Time{}
	// It has read the current certificate files, and the agent cannot see when. So the agent makes it load them again.
	a.tls.unknown()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.storeCopyEnd()
	a.forgetMeasures()
}

// currentStart returns the start of the mysqld that runs; empty if none runs or the supervisor has not told.
func (a *Agent) currentStart() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.mysqld.Running {
		return ""
	}
	return a.mysqld.Start
}

// tell keeps the supervisor informed: whether mysqld has answered, and whether clients may write.
func (a *Agent) tell(ctx context.Context, observed mysqld.Observed) error {
	a.mu.Lock()
	now := a.mysqld
	a.mu.Unlock()
	if a.answeredStart != a.start {
		if err := a.announce(ctx, supervisor.Answered); err != nil {
			return err
		}
		a.answeredStart = a.start
	}
	switch isOpen := !observed.Server.SuperReadOnly; {
	case now.Stopping || now.Open == isOpen || !isOpen && a.mayOpen():
		return nil
	case isOpen: // a user has opened it
		return a.announce(ctx, supervisor.Open)
	}
	return a.announce(ctx, supervisor.Closed)
}

// mayOpen reports whether mysqld may still open although the agent has given up.
func (a *Agent) mayOpen() bool { return time.Since(a.openedAt) <= 2*mysqld.LateAfter }

// announce announces something about the mysqld that the loop observes.
func (a *Agent) announce(ctx context.Context, verb supervisor.Verb) error {
	return supervisor.Tell(ctx, supervisor.Socket(a.layout.Run), verb, a.start)
}

// announceOpen makes certain that this mysqld gets no SIGTERM from now on.
func (a *Agent) announceOpen(ctx context.Context) error {
	a.openedAt = time.Now()
	return a.announce(ctx, supervisor.Open)
}

// endHung orders the supervisor to kill a mysqld that hangs, and to start another one. kubelet would take longer, and send a SIGTERM first.
func (a *Agent) endHung(ctx context.Context) {
	a.mu.Lock()
	isReplaced := a.cannotClose()
	a.mu.Unlock()
	if a.start == "" || a.alive(time.Now()) == nil && !isReplaced {
		return
	}
	if isReplaced {
		a.log.Info("mysqld does not answer, and may take writes although another member takes over, so the supervisor kills it")
	} else {
		a.log.Info("mysqld has not answered, or no client could log in, for too long, so the supervisor kills it", "limit", hungAfter.String())
	}
	if err := a.announce(ctx, supervisor.Kill); err != nil {
		a.log.Info("cannot end mysqld, will try again", "error", err.Error())
	}
}

// cannotClose reports whether mysqld may take writes although the member is not the primary any more, and does not answer. The caller must
// hold the lock.
func (a *Agent) cannotClose() bool {
	isLate := a.status.State == replication.StateStarting || a.asked.unansweredFor(time.Now()) >= replication.AlarmAfter
	return a.assignment != nil && a.assignment.Role == replication.RoleReplica && a.mysqld.Open && isLate
}

// isStopping reports whether the container of mysqld stops.
func (a *Agent) isStopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mysqld.Stopping
}

// close makes mysqld refuse clients before it is stopped.
func (a *Agent) close(ctx context.Context) {
	a.followStart()
	a.acks = replication.AcksWatch{} // commits end whose clients have gone
	bounded, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	err := a.local.CloseToClients(bounded, func() error { return a.announce(ctx, supervisor.Closed) })
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.closedStart = a.start
		return
	}
	a.log.Info("cannot close mysqld, so the supervisor kills it: no client gets an answer, and the next start recovers", "error", err.Error())
	if err := a.announce(ctx, supervisor.Kill); err != nil {
		a.log.Info("cannot stop mysqld, will try again", "error", err.Error())
	}
}
