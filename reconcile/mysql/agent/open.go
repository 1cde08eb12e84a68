package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// openFor lets clients write, and members follow, as the assignment says.
func (a *Agent) openFor(ctx context.Context, order replication.Assignment, replicated func(context.Context) error) error {
	allowed := order.Receivers()
	areAllowed := a.receivers.are(a.start, allowed)
	a.receivers.known = areAllowed
	return a.local.AcceptWrites(ctx, mysqld.Opening{
		Acks: order.Acks, Receivers: ordinalsOf(allowed), AreAllowed: areAllowed,
		Permit: func(ctx context.Context) error {
			if !a.stillLeads(order) {
				return errors.New("the operator has assigned another role meanwhile")
			}
			if err := a.leaseToOpen(ctx, order); err != nil {
				return err
			}
			return a.announceOpen(ctx)
		},
		NotAllowed: a.notAllowed,
		Allowed:    func() { a.hasAllowed(allowed) },
		Replicated: replicated,
	})
}

// stillLeads reports whether the member's assignment is still to be the primary of this epoch.
func (a *Agent) stillLeads(order replication.Assignment) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.assignment != nil && a.assignment.Role == replication.RolePrimary && a.assignment.Record.Epoch == order.Record.Epoch
}

// replicatedWait is for how long one attempt to open waits for replicas. Meanwhile the agent does not look at mysqld.
const replicatedWait = 500 * time.Millisecond

// barrier is an empty transaction that a primary commits before clients can write: when replicas have acknowledged it, they have everything
// that the primary has. The zero value has not begun.
type barrier struct {
	start string
	epoch int64
	acks  int
	// ended is closed when the commit has returned. err is nil if it was acknowledged.
	ended chan struct{}
	err   error
}

// hasFailed reports whether the commit has returned without an acknowledgement.
func (b *barrier) hasFailed() bool {
	select {
	case <-b.ended:
		return b.err != nil
	default:
		return false
	}
}

// replicated returns what waits until replicas have acknowledged everything that this primary has; nil if the record promises no copies.
// The barrier continues after a wait that was too short, and ends with the context.
func (a *Agent) replicated(ctx context.Context, local replication.Observed) func(context.Context) error {
	order := *local.Assignment
	if order.Record.RequiredAcks == 0 {
		return nil
	}
	return func(bounded context.Context) error {
		if now := a.barrier; now == nil || now.start != a.start || now.epoch != order.Record.Epoch || now.acks != order.Acks || now.hasFailed() {
			a.barrier = a.beginBarrier(ctx, local)
		}
		select {
		case <-a.barrier.ended:
			return a.barrier.err
		case <-bounded.Done():
			return bounded.Err()
		case <-time.After(replicatedWait):
			return fmt.Errorf("waits until %d replicas have acknowledged everything that this member has", order.Acks)
		}
	}
}

// beginBarrier commits an empty transaction in the background.
func (a *Agent) beginBarrier(ctx context.Context, local replication.Observed) *barrier {
	order, server := *local.Assignment, local.Server
	next := &barrier{start: a.start, epoch: order.Record.Epoch, acks: order.Acks, ended: make(chan struct{})}
	gtid := server.Executed.Union(server.Pending).NextOf(server.ServerUUID)
	go func() {
		next.err = a.local.CommitAcknowledged(ctx, gtid)
		close(next.ended)
		a.Wake()
	}()
	return next
}
