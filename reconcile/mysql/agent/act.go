package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// act carries out one step.
func (a *Agent) act(ctx context.Context, step replication.Step, local replication.Observed) error {
	if step.Verb == replication.VerbClone {
		return a.clone(ctx, local)
	}
	bounded, cancel := context.WithTimeout(ctx, verbTimeout)
	defer cancel()
	if startsReceiver(step.Verb) {
		a.forgetReceiver()
		a.receiver = startedReceiver{at: time.Now(), start: a.start, acks: local.Server.ReplicaAcks || step.Acknowledge}
	}
	speak, known := a.verbs(ctx, step, local)[step.Verb]
	if !known {
		return fmt.Errorf("unknown verb %q", step.Verb)
	}
	if stopsReceiver(step.Verb) {
		return a.stopReceiver(bounded, local.Server.Channel, speak)
	}
	return speak(bounded)
}

// verbs are those that take at most a minute.
func (a *Agent) verbs(ctx context.Context, step replication.Step, local replication.Observed) map[replication.Verb]func(context.Context) error {
	return map[replication.Verb]func(context.Context) error{
		replication.VerbStopReplica:        a.local.StopReplica,
		replication.VerbStopReceiver:       a.local.StopReceiver,
		replication.VerbApplyReceived:      a.applyReceived,
		replication.VerbForgetSource:       a.forgetSource,
		replication.VerbStopEnforcingAcks:  a.local.StopEnforcingAcks,
		replication.VerbStartAcknowledging: a.local.StartAcknowledging,
		replication.VerbStopAcknowledging:  a.local.StopAcknowledging,
		replication.VerbStartReplica:       a.startReplica,
		replication.VerbRestartReceiver:    a.restartReceiver,
		replication.VerbSetReadOnly:        func(bounded context.Context) error { return a.setReadOnly(bounded, local) },
		replication.VerbAcceptWrites: func(bounded context.Context) error {
			return a.acceptWrites(bounded, *local.Assignment, a.replicated(ctx, local))
		},
		replication.VerbReopen: func(bounded context.Context) error {
			return a.reopen(bounded, *local.Assignment, a.replicated(ctx, local))
		},
		replication.VerbEnforceAcks: func(bounded context.Context) error { return a.local.EnforceAcks(bounded, local.Assignment.Acks) },
		replication.VerbPointToSource: func(bounded context.Context) error {
			return a.pointToSource(bounded, *local.Assignment, step.Acknowledge)
		},
		replication.VerbTurnToSource: func(bounded context.Context) error {
			return a.turnToSource(bounded, *local.Assignment, a.local.TurnToSource)
		},
		replication.VerbSetAside: func(bounded context.Context) error {
			err := a.setAside(bounded, step.SetAside)
			a.cannotSetAside = err != nil && ctx.Err() == nil
			return err
		},
	}
}

// forgetSource must not take long: clients write meanwhile, and the loop must be able to stop that.
func (a *Agent) forgetSource(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return a.local.ForgetSource(bounded)
}

// stopsReceiver reports whether a verb stops the receiver, and does not start it again.
func stopsReceiver(verb replication.Verb) bool {
	return verb == replication.VerbStopReplica || verb == replication.VerbStopReceiver || verb == replication.VerbStopAcknowledging
}

// startedReceiver is the receiver that the agent has started last: when, for which start of mysqld, and whether to acknowledge.
type startedReceiver struct {
	at    time.Time
	start string
	acks  bool
}

// startsReceiver reports whether a verb starts the receiver.
func startsReceiver(verb replication.Verb) bool {
	starts := []replication.Verb{replication.VerbStartReplica, replication.VerbRestartReceiver, replication.VerbTurnToSource, replication.VerbPointToSource}
	return slices.Contains(starts, verb)
}

// view adds it to a view of this start of mysqld.
func (r startedReceiver) view(local *replication.Observed, start string, now time.Time) {
	if start != "" && r.start == start {
		local.ReceiverFor, local.ReceiverAcks = max(1, now.Sub(r.at)), r.acks
	}
}

// pointToSource sets up replication and starts it at once: clients may wait for the first acknowledgement.
func (a *Agent) pointToSource(ctx context.Context, assignment replication.Assignment, acknowledge bool) error {
	if err := a.changeSource(ctx, assignment, a.local.PointToSource); err != nil {
		return err
	}
	if acknowledge {
		if err := a.local.StartAcknowledging(ctx); err != nil {
			return err
		}
	}
	return a.startReplica(ctx)
}

// startReplica starts the receiver and the applier with the current password of the cluster's Secret. mysqld does not store it.
func (a *Agent) startReplica(ctx context.Context) error {
	account, err := a.replicationAccount()
	if err != nil {
		return err
	}
	if err := a.liftTransactionLimit(ctx); err != nil {
		return err
	}
	return a.local.StartReplica(ctx, account)
}

// restartReceiver makes the receiver connect again, with that password.
func (a *Agent) restartReceiver(ctx context.Context) error {
	account, err := a.replicationAccount()
	if err != nil {
		return err
	}
	return a.local.RestartReceiver(ctx, account)
}

func (a *Agent) replicationAccount() (mysqld.Account, error) {
	return a.layout.readAccountOf(mysqld.ReplicationUser(a.ordinal), mysqld.ReplicationUsers)
}

// acceptWrites first records that this data directory belongs to a cluster: from the first write on, the operator must never consider it
// empty.
func (a *Agent) acceptWrites(ctx context.Context, order replication.Assignment, replicated func(context.Context) error) error {
	if err := a.keepOrigin(replication.OriginMember); err != nil {
		return err
	}
	if err := a.limitTransactions(ctx); err != nil {
		return err
	}
	return a.openFor(ctx, order, replicated)
}

func (a *Agent) keepOrigin(origin replication.Origin) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.Data == origin && !a.kept.IsCopied && a.late == nil {
		return nil
	}
	kept := a.kept
	kept.Data, kept.IsCopied = origin, false
	if origin == replication.OriginFresh {
		kept.TablesWithoutRows, kept.IsForgetful = nil, false
	}
	return a.storeState(kept)
}

// storeState writes the state to the volume. The caller must hold the lock.
func (a *Agent) storeState(kept state) error {
	if err := a.saveInTime(kept); err != nil {
		return err
	}
	a.kept = kept
	a.reportKept()
	return nil
}

// recordCompletedSteps records completed steps. If mysqld answers, --initialize is complete. If a copy is complete, the data is a member's.
func (a *Agent) recordCompletedSteps(ctx context.Context) error {
	a.mu.Lock()
	data, isCopied := a.kept.Data, a.kept.IsCopied
	a.mu.Unlock()
	switch data {
	case replication.OriginInitializing:
		if err := writeBootstrap(a.layout, mysqld.Bootstrap{}); err != nil {
			return err
		}
		return a.keepOrigin(replication.OriginFresh)
	case replication.OriginFresh:
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		if !isCopied {
			complete, err := a.local.CopyCompleted(bounded)
			if err != nil || !complete {
				return err
			}
		}
		return a.keepCopied(ctx)
	case replication.OriginMember:
		if err := a.finishBootstrap(); err != nil {
			return err
		}
		return a.findMissingRows(ctx)
	}
	return nil
}

// reportUnrecorded reports that mysqld answers, and why the member still cannot continue. The agent tries again. Neither mysqld nor the
// agent must restart for that.
func (a *Agent) reportUnrecorded(observed mysqld.Observed, cause error, under followed) {
	message := replication.AnswersBut + " the agent cannot record the state of this member's data: " + cause.Error()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = time.Now()
	if !observed.LoginsHang {
		a.answered, a.hung = a.looked, time.Time{}
	}
	if a.failure != cause.Error() && !errors.Is(cause, context.Canceled) {
		a.log.Error(cause, "cannot record the state of this member's data, will try again")
	}
	a.failure = cause.Error()
	if a.status.State == replication.StateStarting {
		a.status.Message = message
	}
	a.status.Closed, a.status.IsRestarting = a.closedUnder(observed, under), a.mysqld.Stopping
}

// finishBootstrap removes from the init_file what is meant for one start: the statements for restored data, and the members that an agent
// which has ended since let in (prepareReopening). mysqld answers, so they have run, and a user may have dropped the account since.
func (a *Agent) finishBootstrap() error {
	if a.isSettled {
		return nil
	}
	settle := func() error { return a.letIn(nil) }
	if a.wasRestored() {
		settle = func() error { return writeBootstrap(a.layout, mysqld.Bootstrap{}) }
	}
	if err := settle(); err != nil {
		return err
	}
	a.isSettled = true
	return nil
}

func (a *Agent) wasRestored() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept.RestoredFrom != nil
}

// maintain does what is independent of the role: passwords on the primary, certificates, free space on the volume, and periodic checks.
func (a *Agent) maintain(ctx context.Context, where replication.State, observed mysqld.Observed) {
	a.maintainPasswords(ctx, where, observed)
	a.maintainCertificates(ctx)
	a.maintainDisk(ctx, observed.AckClients)
	a.maintainSurvey(ctx)
	if where == replication.StateWriting {
		a.maintainEvents(ctx, observed.EnoughAcknowledge())
	}
	a.maintainMeasures(ctx)
	a.maintainTables(ctx, where)
}

func (a *Agent) maintainPasswords(ctx context.Context, where replication.State, observed mysqld.Observed) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := a.refreshPasswords(bounded, permissionOf(where, observed)); err != nil {
		a.log.Info("cannot change the passwords of the operator's accounts yet, will try again", "error", err.Error())
	}
	if where == replication.StateWriting && !a.root.absent {
		problem := ""
		if err := a.root.enforce(bounded, a.local, observed.EnoughAcknowledge()); err != nil {
			problem = err.Error()
		}
		a.mu.Lock()
		if problem != a.status.RootError && problem != "" {
			a.log.Info("the root password is not in force", "error", problem)
		}
		a.status.RootError = problem
		a.mu.Unlock()
	} else {
		a.root.forget()
	}
}

func (a *Agent) maintainCertificates(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if !a.tls.changed() {
		return
	}
	if err := a.local.ReloadTLS(bounded); err != nil {
		a.log.Info("mysqld did not load the new certificates, will try again", "error", err.Error())
		return
	}
	a.mu.Lock()
	a.status.TLS = a.tls.taken()
	a.mu.Unlock()
	a.log.Info("mysqld loaded the new certificates")
}

// rootPassword keeps root's password equal to the user's Secret. The primary sets it, and it replicates.
type rootPassword struct {
	layout Layout
	// absent reports whether the agent leaves root alone.
	absent bool
	// inForce is the last password that mysqld accepted, refused the last one that it refused. The agent does not try a refused password
	// again, because that would lock an account that has a limit.
	inForce, refused string
}

func (r *rootPassword) forget() { r.inForce, r.refused = "", "" }

// enforce tries the password of the Secret, and sets it if mysqld refuses it.
func (r *rootPassword) enforce(ctx context.Context, local *mysqld.Server, mayCommit bool) error {
	password, err := r.layout.readRootPassword()
	if err != nil {
		return err
	}
	if password == r.inForce {
		return nil
	}
	if password != r.refused {
		err := r.try(ctx, password)
		if err == nil || !mysqld.IsAccessDenied(err) {
			return err
		}
		r.refused = password
	}
	if !mayCommit {
		return errors.New("the agent sets it when enough replicas acknowledge commits")
	}
	if err := local.SetPassword(ctx, "root", "%", password); err != nil {
		if ctx.Err() != nil {
			r.refused = "" // mysqld may have set it by the next look
		}
		return err
	}
	r.inForce, r.refused = password, ""
	return nil
}

func (r *rootPassword) try(ctx context.Context, password string) error {
	trial, err := mysqld.Local(r.layout.socket(), mysqld.Account{User: "root", Password: password})
	if err != nil {
		return err
	}
	defer trial.Close()
	if err := trial.Ping(ctx); err != nil {
		return err
	}
	r.inForce, r.refused = password, ""
	return nil
}
