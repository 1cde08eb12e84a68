package agent

import (
	"cmp"
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
		Acks: order.Acks, Receivers: ordinalsOf(allowed), AreAllowed: areAllowed, Permit: a.permit(order, a.leaseToOpen),
		NotAllowed: a.notAllowed,
		Allowed:    func() { a.hasAllowed(allowed) },
		Replicated: replicated,
	})
}

// permit returns what checks that mysqld may open for this assignment, with a lease.
func (a *Agent) permit(order replication.Assignment, getLease func(context.Context, replication.Assignment) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if !a.stillLeads(order) {
			return errors.New("the operator has assigned another role meanwhile")
		}
		if err := getLease(ctx, order); err != nil {
			return err
		}
		return a.announceOpen(ctx)
	}
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
// that the primary has.
type barrier struct {
	start string
	epoch int64
	acks  int
	// ended is closed when the commit has returned. err is nil if it was acknowledged.
	ended chan struct{}
	err   error
}

// isOf reports whether it is for this start of mysqld, and for what the assignment requires.
func (b *barrier) isOf(start string, order replication.Assignment) bool {
	return b != nil && b.start == start && b.epoch == order.Record.Epoch && b.acks == order.Acks
}

// isComplete reports whether as many replicas have acknowledged everything since this start of mysqld.
func (b *barrier) isComplete(start string, acks int) bool {
	return b != nil && b.start == start && b.acks >= acks && b.hasEnded() && b.err == nil
}

func (b *barrier) hasFailed() bool { return b.hasEnded() && b.err != nil }

// hasEnded reports whether the commit has returned, so that err is known.
func (b *barrier) hasEnded() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// servesTail reports whether a client could read what is lost if this primary fails: it waits for replicas before it opens, and its last
// start may have committed what they do not have. A member that was a replica since then has only what others have (record.RequiredAcks).
func (a *Agent) servesTail(server replication.Server) bool {
	last := a.lastAssignment()
	mustWait := last != nil && last.Role == replication.RolePrimary && last.Record.RequiredAcks > 0
	isHalfOpen := !server.SuperReadOnly && server.ReadOnly
	return mustWait && isHalfOpen && a.replicaStart != a.start && !a.barrier.isComplete(a.start, last.Record.RequiredAcks)
}

// replicates reports whether mysqld is a replica. A primary may take writes before it forgets its source.
func (s state) replicates(channel replication.Channel) bool {
	return channel.Configured && s.HeldRole == replication.RoleReplica && (channel.IO != "No" || channel.SQL != "No")
}

// replicated returns what waits until replicas have acknowledged everything that this primary has; nil if the record promises no copies.
// The barrier continues after a wait that was too short, and ends with mysqld.
func (a *Agent) replicated(ctx context.Context, local replication.Observed) func(context.Context) error {
	order := *local.Assignment
	if order.Record.RequiredAcks == 0 {
		return nil
	}
	waits := fmt.Errorf("waits for %d acknowledgements of everything that this member has", order.Acks)
	return func(bounded context.Context) error {
		if !a.barrier.isOf(a.start, order) || a.barrier.hasFailed() {
			// mysqld continues with a commit whose client has gone. There is one at a time: each has a connection.
			if another, err := a.local.OwnCommitWaits(bounded); err != nil || another {
				return cmp.Or(err, waits)
			}
			a.barrier = a.beginBarrier(ctx, local)
		}
		select {
		case <-a.barrier.ended:
			return a.barrier.err
		case <-bounded.Done():
			return bounded.Err()
		case <-time.After(replicatedWait):
			return waits
		}
	}
}

// beginBarrier commits an empty transaction in the background.
func (a *Agent) beginBarrier(ctx context.Context, local replication.Observed) *barrier {
	order, server := *local.Assignment, local.Server
	next := &barrier{start: a.start, epoch: order.Record.Epoch, acks: order.Acks, ended: make(chan struct{})}
	gtid, own := server.Executed.Union(server.Pending).NextOf(server.ServerUUID), a.local
	go func() {
		defer close(next.ended)
		if next.err = own.CommitAcknowledged(context.WithoutCancel(ctx), gtid); next.err == nil {
			defer a.Wake()
		}
	}()
	return next
}
