package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

func (a *Agent) source(host string, port int, account mysqld.Account) mysqld.Source {
	return mysqld.Source{
		Host: host, Port: port, Account: account,
		Certificates: mysqld.Certificates{CA: a.layout.caFile(), Certificate: a.layout.certFile(), Key: a.layout.keyFile()},
	}
}

// changeSource makes the assigned primary the source of the replication channel, by its address.
func (a *Agent) changeSource(ctx context.Context, assignment replication.Assignment, change func(context.Context, mysqld.Source) error) error {
	account, err := a.layout.readAccountOf(mysqld.ReplicationUser(a.ordinal), mysqld.ReplicationUsers)
	if err != nil {
		return err
	}
	if err := change(ctx, a.source(assignment.SourceAddress, assignment.SourcePort, account)); err != nil {
		return err
	}
	a.triedDonor(nil)
	a.mu.Lock()
	a.pointed = true
	a.mu.Unlock()
	return a.keepCopiedFrom("")
}

// turnToSource does so while the channel runs. Until it is certain that the member still has what it had received, the member is forgetful,
// also if the agent ends meanwhile.
func (a *Agent) turnToSource(ctx context.Context, assignment replication.Assignment, turn func(context.Context, mysqld.Source, func() error) error) error {
	was := a.isForgetful()
	err := a.changeSource(ctx, assignment, func(ctx context.Context, source mysqld.Source) error {
		return turn(ctx, source, func() error { return a.keepForgetful(true) })
	})
	if lost := (*mysqld.ReceivedLostError)(nil); errors.As(err, &lost) {
		a.recall, a.recallHost = replication.GTIDSet{}, ""
		return err
	}
	return errors.Join(err, a.keepForgetful(was))
}

func (a *Agent) isForgetful() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept.IsForgetful
}

// keepForgetful records whether the member may have lost transactions that it has acknowledged.
func (a *Agent) keepForgetful(isForgetful bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.IsForgetful == isForgetful && a.late == nil {
		return nil
	}
	kept := a.kept
	kept.IsForgetful = isForgetful
	if isForgetful {
		kept.ForgotUnder = kept.Held.Version()
	}
	return a.storeState(kept)
}

// reconnectTimeout bounds a look at a primary that may be gone: the operator may have another assignment for this member meanwhile.
const reconnectTimeout = 300 * time.Millisecond

func (a *Agent) lookAtSource(ctx context.Context, local replication.Observed) *replication.Source {
	limit := lookTimeout
	if local.Reconnects() {
		limit = reconnectTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	source, err := a.observeSource(ctx, *local.Assignment)
	if err != nil {
		return &replication.Source{Err: err.Error()}
	}
	return &source
}

func (a *Agent) observeSource(ctx context.Context, assignment replication.Assignment) (replication.Source, error) {
	if assignment.SourceAddress == "" {
		return replication.Source{}, errors.New("its Pod has no address yet")
	}
	remote, err := a.observer(assignment.SourceHost, assignment.SourceAddress, assignment.SourcePort)
	if err != nil {
		return replication.Source{}, err
	}
	defer remote.Close()
	source, err := remote.ObserveSource(ctx)
	switch {
	case err != nil:
		return source, err
	case source.Host != assignment.SourceHost:
		return source, fmt.Errorf("the server at %s is %q, and not %s: the primary's Pod has another address by now", assignment.SourceAddress, source.Host, assignment.SourceHost)
	case source.IsClosed:
		// It may have lost its data, or may not have applied what it received. What it lacks proves nothing before it leads.
		return source, errors.New("it does not lead yet")
	}
	return source, nil
}

// observer logs in to another member, whose certificate must have its name.
func (a *Agent) observer(host, address string, port int) (*mysqld.Server, error) {
	account, err := a.layout.readAccountOf(mysqld.ObserverUser, mysqld.ReplicationUsers)
	if err != nil {
		return nil, err
	}
	security, err := a.tls.client()
	if err != nil {
		return nil, err
	}
	return mysqld.Remote(host, address, port, account, security)
}
