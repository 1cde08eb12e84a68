package mysqld

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// allowTimeout bounds the changes of accounts while mysqld opens.
const allowTimeout = 3 * time.Second

// Opening is how a mysqld opens for writes.
type Opening struct {
	// Acks is for how many acknowledgements commits wait at least.
	Acks int
	// Receivers are the ordinals of the members that may follow. AreAllowed means that they may already, and no others.
	Receivers  []int
	AreAllowed bool
	// Permit returns an error if mysqld must not open, or not any more. AcceptWrites calls it before each step.
	Permit func(context.Context) error
	// Allowed is called when exactly these may follow.
	Allowed func()
	// NotAllowed is called if accounts cannot be changed, because a client holds a lock. If no member can follow, mysqld opens nevertheless,
	// unless Replicated waits for members.
	NotAllowed func(error)
	// Replicated returns nil once replicas have acknowledged everything that mysqld has. It is called after members may follow; nil if clients
	// need not wait for that.
	Replicated func(context.Context) error
}

// AcceptWrites lets clients write, and members follow. It checks on the connection that it opens with: a mysqld that restarted since the
// agent observed it enforces nothing, and must not be opened.
//
// It opens in two steps. First super_read_only is off, and read_only is on: accounts can be changed, and only clients with CONNECTION_ADMIN
// can write. All clients can write when replicas have acknowledged everything that mysqld has. Before, a client could read what is lost if
// this mysqld fails: a transaction that no client was told had succeeded, but that is in this member's binary log. And a statement about
// accounts that comes before the replicas would lock them out: it waits for their acknowledgement, and holds the lock of the privilege
// tables.
func (s *Server) AcceptWrites(ctx context.Context, open Opening) error {
	one, err := newSession(ctx, s.db)
	if err != nil {
		return fmt.Errorf("accept writes: %w", err)
	}
	defer one.Close()
	if err := s.acceptWrites(ctx, one, open); err != nil {
		return fmt.Errorf("accept writes: %w", err)
	}
	return nil
}

func (s *Server) acceptWrites(ctx context.Context, one session, open Opening) error {
	var enforced int
	row := one.QueryRowContext(ctx, "SELECT IF(@@GLOBAL.rpl_semi_sync_source_enabled, @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, 0)")
	if err := row.Scan(&enforced); err != nil {
		return err
	}
	if enforced < open.Acks {
		return fmt.Errorf("commits wait for %d acknowledgements, but the assignment requires %d; the agent tries again", enforced, open.Acks)
	}
	if err := open.Permit(ctx); err != nil {
		return err
	}
	if err := one.clear(ctx, "super_read_only"); err != nil {
		return err
	}
	if err := s.openToReceivers(ctx, open); err != nil {
		return err
	}
	if open.Replicated != nil {
		if err := open.Replicated(ctx); err != nil {
			return err
		}
	}
	if err := open.Permit(ctx); err != nil {
		return err
	}
	return one.clear(ctx, "read_only")
}

// clear turns a global variable off, unless mysqld runs the statement too late.
func (s session) clear(ctx context.Context, variable string) error {
	if _, err := s.ExecContext(ctx, "SET GLOBAL "+variable+" = IF("+inTime(time.Now())+", 0, 1)"); err != nil {
		return err
	}
	var isOn bool
	if err := s.QueryRowContext(ctx, "SELECT @@GLOBAL."+variable).Scan(&isOn); err != nil {
		return err
	}
	if isOn {
		return fmt.Errorf("mysqld ran the statement more than %s after it was sent, so it had no effect; the agent tries again", LateAfter)
	}
	return nil
}

// openToReceivers allows members to follow.
func (s *Server) openToReceivers(ctx context.Context, open Opening) error {
	if open.AreAllowed {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, allowTimeout)
	defer cancel()
	err := s.AllowReceivers(bounded, open.Receivers)
	if err == nil {
		open.Allowed()
		return nil
	}
	if isLockedOut, unknown := s.areLockedOut(ctx); !isLockedOut {
		return errors.Join(err, unknown)
	}
	open.NotAllowed(err)
	return nil
}
