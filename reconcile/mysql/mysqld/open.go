package mysqld

import (
	"context"
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

// AcceptWrites lets clients write, and the members of these ordinals follow, if commits wait for at least acks acknowledgements, and permit
// returns no error. It checks on the connection that it opens with: a mysqld that restarted since the agent observed it enforces nothing,
// and must not be opened.
//
// It opens in two steps. First super_read_only is off, and read_only is on: accounts can be changed, and only clients with CONNECTION_ADMIN
// can write. When the replicas have connected, or after two seconds, all clients can write. A statement about accounts that comes before
// the replicas would lock them out: it waits for their acknowledgement, and holds the lock of the privilege tables.
func (s *Server) AcceptWrites(ctx context.Context, acks int, ordinals []int, permit func(context.Context) error) error {
	const what = "accept writes"
	one, err := newSession(ctx, s.db)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer one.Close()
	var enforced int
	row := one.QueryRowContext(ctx, "SELECT IF(@@GLOBAL.rpl_semi_sync_source_enabled, @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, 0)")
	if err := row.Scan(&enforced); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if enforced < acks {
		return fmt.Errorf("%s: commits wait for %d acknowledgements, but the assignment requires %d; the agent tries again", what, enforced, acks)
	}
	if err := permit(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := one.clear(ctx, "super_read_only"); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := s.attachReceivers(ctx, acks, ordinals); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := one.clear(ctx, "read_only"); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
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

// attachReceivers allows the members of these ordinals to follow, and waits for a moment until enough of them have connected.
func (s *Server) attachReceivers(ctx context.Context, acks int, ordinals []int) error {
	bounded, cancel := context.WithTimeout(ctx, allowTimeout)
	defer cancel()
	if err := s.AllowReceivers(bounded, ordinals); err != nil {
		return err
	}
	late := time.After(receiversWait)
	for {
		status, err := s.semiSyncStatus(ctx)
		if err != nil {
			return err
		}
		if clients, _ := strconv.Atoi(status["Rpl_semi_sync_source_clients"]); clients >= acks {
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
