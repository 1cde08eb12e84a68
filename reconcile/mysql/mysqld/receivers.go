package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AllowReceivers lets the members of these ordinals read the binary log, and no other member. When it returns without an error, no other
// member can acknowledge a commit: its account is locked, and its session has ended. super_read_only must be off, because it refuses
// changes of accounts.
//
// It writes nothing to the binary log: which members a primary allows is its own.
func (s *Server) AllowReceivers(ctx context.Context, ordinals []int) error {
	const what = "allow receivers"
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := newSession(ctx, apart)
	if isConnectionRefused(err) {
		one, err = newSession(ctx, s.db)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer one.Close()
	if err := one.endSessions(ctx, s.isAbandoned); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.allowing = one.id
	err = one.exec(ctx, what, append([]string{"SET SESSION sql_log_bin = 0"}, lockStatements(ordinals)...)...)
	if err := errors.Join(err, resetVariable(ctx, one.Conn, "sql_log_bin")); err != nil {
		return err
	}
	s.allowing = 0
	return one.endOtherReceivers(ctx, ordinals)
}

// isAbandoned reports whether a session is left from a call that was given up, by this agent or an earlier one. Its statement may still
// wait, for the lock of the privilege tables or for a mysqld that is stopped, and must not unlock an account later.
func (s *Server) isAbandoned(p process) bool {
	return p.user == AgentUser && (p.id == s.allowing || strings.HasPrefix(p.info, alterUsers))
}

// alterUsers begins the statements that change accounts. An account that a user has dropped needs no change.
const alterUsers = "ALTER USER IF EXISTS "

// lockStatements lock the accounts of all members but these, and unlock theirs.
func lockStatements(ordinals []int) []string {
	var locked, unlocked []string
	for ordinal := range mostMembers {
		account := receiverAccount(ordinal)
		if slices.Contains(ordinals, ordinal) {
			unlocked = append(unlocked, account.name())
		} else {
			locked = append(locked, account.name())
		}
	}
	var statements []string
	if len(locked) > 0 {
		statements = append(statements, alterUsers+strings.Join(locked, ", ")+" "+accountLock)
	}
	if len(unlocked) > 0 {
		statements = append(statements, alterUsers+strings.Join(unlocked, ", ")+" "+accountUnlock)
	}
	return statements
}

// areLockedOut reports whether no member can follow, and no statement that was given up can change that.
func (s *Server) areLockedOut(ctx context.Context) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, allowTimeout)
	defer cancel()
	one, err := newSession(bounded, s.db)
	if err != nil {
		return false, err
	}
	defer one.Close()
	if err := one.endSessions(bounded, s.isAbandoned); err != nil {
		return false, err
	}
	all, err := one.processes(bounded)
	if err != nil || slices.ContainsFunc(all, process.isReceiver) {
		return false, err
	}
	var unlocked int
	row := one.QueryRowContext(bounded, "SELECT COUNT(*) FROM mysql.user WHERE account_locked <> 'Y' AND User LIKE ?", replicationUsersLike)
	err = row.Scan(&unlocked)
	return err == nil && unlocked == 0, err
}

// endOtherReceivers ends the sessions of members whose accounts are locked. It waits for sessions that are logging in, and ends those that
// take too long: mysqld may have looked at their accounts before it locked them.
func (s session) endOtherReceivers(ctx context.Context, ordinals []int) error {
	allowed := make([]string, 0, len(ordinals))
	for _, ordinal := range ordinals {
		allowed = append(allowed, ReplicationUser(ordinal))
	}
	late, err := s.awaitLogins(ctx)
	if err != nil {
		return err
	}
	return s.endSessions(ctx, func(p process) bool {
		return late[p.id] || isReplicationUser(p.user) && !slices.Contains(allowed, p.user)
	})
}

// loginGrace is for how long a session that is logging in may continue. A login takes some milliseconds. A session that is killed while its
// handshake makes progress may hang until its client gives up (seen with MySQL 9.7.4), and the client may be a member that must follow.
const loginGrace = 250 * time.Millisecond

// awaitLogins waits for the sessions that are logging in now, and returns those that still are after loginGrace.
func (s session) awaitLogins(ctx context.Context) (late map[int64]bool, err error) {
	end := time.Now().Add(loginGrace)
	for {
		all, err := s.processes(ctx)
		if err != nil {
			return nil, err
		}
		still := map[int64]bool{}
		for _, one := range all {
			if one.user == unauthenticated && (late == nil || late[one.id]) {
				still[one.id] = true
			}
		}
		if late = still; len(late) == 0 || time.Now().After(end) {
			return late, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %d sessions to log in: %w", len(late), ctx.Err())
		case <-time.After(closeLook):
		}
	}
}

// unauthenticated is what SHOW PROCESSLIST calls the user of a session that is logging in.
const unauthenticated = "unauthenticated user"

// endSessions ends the sessions that match, and waits until they have ended.
func (s session) endSessions(ctx context.Context, match func(process) bool) error {
	all, err := s.processes(ctx)
	if err != nil {
		return err
	}
	ending := map[int64]bool{}
	for _, one := range all {
		if match(one) && one.id != s.id {
			ending[one.id] = true
			if _, err := s.ExecContext(ctx, "KILL ?", one.id); err != nil && !hasNumber(err, errNoSuchThread) {
				return fmt.Errorf("end session %d: %w", one.id, err)
			}
		}
	}
	for slices.ContainsFunc(all, func(one process) bool { return ending[one.id] }) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for sessions to end: %w", ctx.Err())
		case <-time.After(closeLook):
		}
		if all, err = s.processes(ctx); err != nil {
			return err
		}
	}
	return nil
}
