package agent

import (
	"context"
	"errors"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// reopening is a start of mysqld that may open by its replicas (replication.Opened): its init_file has let them in.
type reopening struct {
	// isPrepared means that the init_file lets members in, and after is the start of mysqld before that.
	isPrepared bool
	after      string
	// receivers are those members. Their start is empty until that mysqld answers.
	receivers receivers
}

// sees notes what mysqld has while it takes writes, and no members but those of the assignment may follow it.
func (a *Agent) sees(step replication.Step, local replication.Observed, under followed) {
	order := local.Assignment
	if step.State == replication.StateWriting && order != nil && order.Role == replication.RolePrimary && under.version == order.Record.Version() {
		a.opened = replication.Opened{Under: under.version, Executed: local.Server.Executed}
	}
}

// prepareReopening lets the replicas of a primary follow its next mysqld from the start on, if the operator says nothing and it may open by
// them. mysqld starts closed, and takes no statement about accounts then.
func (a *Agent) prepareReopening() {
	a.mu.Lock()
	order, boot, last := a.assignment, a.status.Boot, a.mysqld.Start
	a.mu.Unlock()
	if order == nil || order.Boot == boot || !a.opened.MayReopen(order) {
		return
	}
	allowed := order.Receivers()
	now, err := supervisor.Clock()
	if err == nil {
		err = a.letIn(ordinalsOf(allowed))
	}
	if err != nil {
		a.log.Info("mysqld starts, and cannot open without the operator", "error", err.Error())
		return
	}
	a.reopening = reopening{isPrepared: true, after: last, receivers: receivers{known: true, allowed: allowed, since: now}}
}

// letIn makes the next start of mysqld let in these members and no others. Passwords stay as they are in force: members that connect again
// by themselves do so with the former ones.
func (a *Agent) letIn(members []int) error {
	next := a.bootstrap()
	next.Receivers = members
	return saveBootstrap(a.layout, next)
}

// bootstrap describes the init_file of a mysqld with data in use, and with the passwords that are in force.
func (a *Agent) bootstrap() mysqld.Bootstrap {
	account := func(user string) mysqld.Account { return mysqld.Account{User: user, Password: a.inForce[user]} }
	return mysqld.Bootstrap{Agent: account(mysqld.AgentUser), Replication: account(mysqld.ReplicationUsers), Clone: account(mysqld.CloneUser)}
}

// beginReopening reports whether the mysqld that answers opens by its replicas from now on. The caller must look again before it reports
// anything, so that the first report says so (Status.Reopens). A mysqld that lacks something does not open: the operator judges it, as
// after any other start. The next mysqld starts with all members locked out.
func (a *Agent) beginReopening(local replication.Observed) bool {
	if !a.reopening.isPrepared || a.start == a.reopening.after || !a.dropPrepared() {
		return false
	}
	local.IsReopening, local.Opened = true, a.opened
	if !local.Reopens() {
		return false
	}
	a.reopening.receivers.start = a.start
	a.receivers = a.reopening.receivers
	return true
}

// dropPrepared makes the next mysqld start with all members locked out, and reports whether that is certain.
func (a *Agent) dropPrepared() bool {
	if !a.reopening.isPrepared {
		return true
	}
	if err := a.letIn(nil); err != nil {
		a.log.Info("cannot lock members out of the next mysqld yet, will try again", "error", err.Error())
		return false
	}
	a.reopening.isPrepared = false
	return true
}

// viewReopening adds to a view whether mysqld may open by its replicas. It must have let in those of the assignment before the loop
// observed it: then the report says so before it commits anything.
func (a *Agent) viewReopening(local *replication.Observed, under followed) {
	order := local.Assignment
	local.IsReopening, local.Opened = a.isReopening(order) && order.Record.Version() == under.version, a.opened
}

// isReopening reports whether this mysqld was started to open by the replicas of this assignment.
func (a *Agent) isReopening(order *replication.Assignment) bool {
	return a.start != "" && order != nil && order.Role == replication.RolePrimary && a.reopening.receivers.are(a.start, order.Receivers())
}

// reopen lets clients write when replicas have acknowledged everything that this member has, and the lease rests on them. Until then,
// mysqld stays closed.
func (a *Agent) reopen(ctx context.Context, order replication.Assignment, replicated func(context.Context) error) error {
	if err := a.limitTransactions(ctx); err != nil {
		return err
	}
	if err := replicated(ctx); err != nil {
		return err
	}
	allowed := order.Receivers()
	err := a.local.AcceptWrites(ctx, mysqld.Opening{
		Acks: order.Acks, Receivers: ordinalsOf(allowed), AreAllowed: a.receivers.are(a.start, allowed), Permit: a.permit(order, a.leaseOfReplicas),
		NotAllowed: a.notAllowed, Allowed: func() { a.hasAllowed(allowed) }, Replicated: replicated,
	})
	if err == nil {
		a.log.Info("this primary takes writes again: its replicas have shown that no other member leads")
	}
	return err
}

// leaseOfReplicas gets a lease that rests on replicas which this mysqld has heard, after they have acknowledged everything. No confirmation
// of the operator counts: it is older than this start of mysqld.
func (a *Agent) leaseOfReplicas(ctx context.Context, order replication.Assignment) error {
	next := supervisor.Lease{Needs: order.Lease, Lasts: order.LeaseLasts, After: max(a.confirmed(), a.receivers.since)}
	a.lookForReplicas(ctx, &next)
	if err := a.takeLease(ctx, next, order); err != nil {
		return err
	}
	shown := replication.Shown{Acknowledged: a.barrier.isComplete(a.start, order.Acks), IsHeard: a.currentLease().isHeard}
	if lacks := shown.Lacks(); lacks != "" {
		return errors.New(lacks)
	}
	return nil
}
