package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// act carries out one step.
func (a *Agent) act(ctx context.Context, step replication.Step, local replication.Observed) error {
	if step.Verb == replication.VerbClone {
		return a.clone(ctx, *local.Assignment)
	}
	bounded, cancel := context.WithTimeout(ctx, verbTimeout)
	defer cancel()
	a.receiver = a.receiver.after(step.Verb, startedReceiver{at: time.Now(), start: a.start, acks: local.Server.ReplicaAcks})
	if step.Verb == replication.VerbAcceptWrites {
		return a.acceptWrites(bounded, *local.Assignment)
	}
	if step.Verb == replication.VerbSetReadOnly {
		return a.setReadOnly(bounded, local)
	}
	if step.Verb == replication.VerbPointToSource {
		return a.changeSource(bounded, *local.Assignment, a.local.PointToSource)
	}
	if step.Verb == replication.VerbTurnToSource {
		return a.turnToSource(bounded, *local.Assignment, a.local.TurnToSource)
	}
	if step.Verb == replication.VerbSetAside {
		err := a.setAside(bounded, step.SetAside)
		a.cannotSetAside = err != nil && ctx.Err() == nil
		return err
	}
	if step.Verb == replication.VerbEnforceAcks {
		return a.local.EnforceAcks(bounded, local.Assignment.Acks)
	}
	if step.Verb == replication.VerbStartReplica || step.Verb == replication.VerbRestartReceiver {
		return a.startReceiving(bounded, step.Verb)
	}
	speak, known := a.plainVerbs()[step.Verb]
	if !known {
		return fmt.Errorf("unknown verb %q", step.Verb)
	}
	return speak(bounded)
}

// startedReceiver is the receiver that the agent has started last: when, for which start of mysqld, and whether to acknowledge.
type startedReceiver struct {
	at    time.Time
	start string
	acks  bool
}

// after returns next if the verb starts a receiver.
func (r startedReceiver) after(verb replication.Verb, next startedReceiver) startedReceiver {
	if verb == replication.VerbStartReplica || verb == replication.VerbRestartReceiver || verb == replication.VerbTurnToSource {
		return next
	}
	return r
}

// view adds it to a view of this start of mysqld.
func (r startedReceiver) view(local *replication.Observed, start string, now time.Time) {
	if start != "" && r.start == start {
		local.ReceiverFor, local.ReceiverAcks = max(1, now.Sub(r.at)), r.acks
	}
}

// plainVerbs are the verbs that need no arguments.
func (a *Agent) plainVerbs() map[replication.Verb]func(context.Context) error {
	return map[replication.Verb]func(context.Context) error{
		replication.VerbStopReplica:        a.local.StopReplica,
		replication.VerbStopReceiver:       a.local.StopReceiver,
		replication.VerbApplyReceived:      a.applyReceived,
		replication.VerbForgetSource:       a.local.ForgetSource,
		replication.VerbStopEnforcingAcks:  a.local.StopEnforcingAcks,
		replication.VerbStartAcknowledging: a.local.StartAcknowledging,
		replication.VerbStopAcknowledging:  a.local.StopAcknowledging,
	}
}

// startReceiving starts the receiver with the current password of the cluster's Secret. mysqld does not store it.
func (a *Agent) startReceiving(ctx context.Context, verb replication.Verb) error {
	account, err := a.layout.readAccountOf(mysqld.ReplicationUser(a.ordinal), mysqld.ReplicationUsers)
	if err != nil {
		return err
	}
	if verb == replication.VerbRestartReceiver {
		return a.local.RestartReceiver(ctx, account)
	}
	if err := a.liftTransactionLimit(ctx); err != nil {
		return err
	}
	return a.local.StartReplica(ctx, account)
}

// acceptWrites first records that this data directory belongs to a cluster: from the first write on, the operator must never consider it
// empty.
func (a *Agent) acceptWrites(ctx context.Context, order replication.Assignment) error {
	if err := a.keepOrigin(replication.OriginMember); err != nil {
		return err
	}
	if err := a.limitTransactions(ctx); err != nil {
		return err
	}
	return a.openFor(ctx, order)
}

func (a *Agent) keepOrigin(origin replication.Origin) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.Data == origin && !a.kept.IsCopied {
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
	if err := saveState(a.layout.stateFile(), kept); err != nil {
		return err
	}
	a.kept = kept
	a.reportKept()
	return nil
}

// clone replaces the data with a copy of the primary's. NextStep has just verified with the primary that it has every transaction of this
// member, except for those that the agent has set aside. From now on this member's data does not count, so that an interrupted copy simply
// starts again.
func (a *Agent) clone(ctx context.Context, assignment replication.Assignment) error {
	if err := a.keepOrigin(replication.OriginFresh); err != nil {
		return err
	}
	if err := a.copies.wait(time.Now(), assignment.SourceHost); err != nil {
		return err
	}
	// A copy has other transactions than its member had, and must not give their GTIDs to new ones. With CLONE, a member keeps its server_uuid
	// in this file, and mysqld makes a new one if it is gone (manual, "auto.cnf").
	if err := os.Remove(filepath.Join(a.layout.DataDir(), "auto.cnf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give the member a new server_uuid: %w", err)
	}
	a.begins()
	account, err := a.layout.readAccountOf(mysqld.CloneUser, mysqld.CloneUser)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.watchCopy(watching)
	}()
	donor := a.source(donorHost(assignment), assignment.SourcePort, account)
	err = a.local.Clone(ctx, donor, cmp.Or(assignment.CopyLimit, replication.DefaultCopyLimit))
	stop()
	<-done
	if mysqld.IsDonorBusy(err) {
		return fmt.Errorf("the primary is sending a copy to another member; the agent tries again")
	}
	return a.copies.ended(time.Now(), err)
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
	message := replication.AnswersBut + " the agent cannot record the origin of this member's data: " + cause.Error()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = time.Now()
	if !observed.LoginsHang {
		a.answered, a.hung = a.looked, time.Time{}
	}
	if a.failure != cause.Error() && !errors.Is(cause, context.Canceled) {
		a.log.Error(cause, "cannot record the origin of this member's data, will try again")
	}
	a.failure = cause.Error()
	if a.status.State == replication.StateStarting {
		a.status.Message = message
	}
	a.status.Closed = a.closedUnder(observed, under)
}

// finishBootstrap removes the statements for the first start of restored data from the init_file. mysqld answers, so they have run, and a
// user may have dropped the account since.
func (a *Agent) finishBootstrap() error {
	if a.isSettled || !a.wasRestored() {
		return nil
	}
	if err := writeBootstrap(a.layout, mysqld.Bootstrap{}); err != nil {
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
	a.maintainPasswords(ctx, where, observed.EnoughAcknowledge())
	a.maintainCertificates(ctx)
	a.maintainDisk(ctx, observed.AckClients)
	a.maintainSurvey(ctx)
	a.maintainMeasures(ctx)
	a.maintainTables(ctx, where)
}

func (a *Agent) maintainPasswords(ctx context.Context, where replication.State, mayCommit bool) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := a.refreshPasswords(bounded, permissionOf(where, mayCommit)); err != nil {
		a.log.Info("cannot change the passwords of the operator's accounts yet, will try again", "error", err.Error())
	}
	if where == replication.StateWriting && !a.root.absent {
		problem := ""
		if err := a.root.enforce(bounded, a.local, mayCommit); err != nil {
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
