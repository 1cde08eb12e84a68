package mysqld

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	// allowTimeout bounds the changes of accounts while mysqld opens.
	allowTimeout = 3 * time.Second
	// receiversWait is for how long mysqld waits for replicas before it opens to all clients. Replicas try to connect every second.
	receiversWait = 2 * time.Second
	openLook      = 50 * time.Millisecond
)

// Opening is how a mysqld opens for writes.
type Opening struct {
	// Acks is for how many acknowledgements commits wait at least.
	Acks int
	// Receivers are the ordinals of the members that may follow.
	Receivers []int
	// Permit returns an error if mysqld must not open, or not any more. AcceptWrites calls it before each step.
	Permit func(context.Context) error
	// NotAllowed is called if accounts cannot be changed, because a client holds a lock. mysqld opens nevertheless if no member can follow.
	NotAllowed func(error)
}

// AcceptWrites lets clients write, and members follow. It checks on the connection that it opens with: a mysqld that restarted since the
// agent observed it enforces nothing, and must not be opened.
//
// It opens in two steps. First super_read_only is off, and read_only is on: accounts can be changed, and only clients with CONNECTION_ADMIN
// can write. When the replicas have connected, or after two seconds, all clients can write. A statement about accounts that comes before
// the replicas would lock them out: it waits for their acknowledgement, and holds the lock of the privilege tables.
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
	if err := s.attachReceivers(ctx, open); err != nil {
		return err
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

// attachReceivers allows members to follow, and waits for a moment until enough of them have connected.
func (s *Server) attachReceivers(ctx context.Context, open Opening) error {
	bounded, cancel := context.WithTimeout(ctx, allowTimeout)
	defer cancel()
	if err := s.AllowReceivers(bounded, open.Receivers); err != nil {
		if isLockedOut, unknown := s.areLockedOut(ctx); !isLockedOut {
			return errors.Join(err, unknown)
		}
		open.NotAllowed(err)
		return nil
	}
	late := time.After(receiversWait)
	for {
		status, err := s.semiSyncStatus(ctx)
		if err != nil {
			return err
		}
		if clients, _ := strconv.Atoi(status["Rpl_semi_sync_source_clients"]); clients >= open.Acks {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return nil
		case <-time.After(openLook):
		}
	}
}
