package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// closeLook is the pause between looks at the sessions of a mysqld that closes.
	closeLook = 20 * time.Millisecond
	// statementWait is for how long a mysqld that closes waits for statements, and then ackWait for commits that need acknowledgements.
	statementWait, ackWait = 200 * time.Millisecond, 2 * time.Second
	// closeWait is for how long a mysqld that closes waits for killed sessions to roll back.
	closeWait = 10 * time.Second
	// errNoSuchThread is ER_NO_SUCH_THREAD: the session has ended by itself.
	errNoSuchThread = 1094
)

// CloseToClients ends the sessions of all clients and makes mysqld refuse writes, calls closed, and returns its error. closed stops mysqld.
// A client whose commit waits for acknowledgements loses its connection. mysqld itself would tell it that the commit has succeeded.
//
// The order makes that certain. First, no client can log in any more. Then a lock lets no other write begin, or waits to be granted, and
// statements that write wait behind it. Replicas are still connected, so commits that wait get their acknowledgements, usually within
// milliseconds. Then KILL closes the connections of clients and replicas at once. Only then commits need no acknowledgements any more: they
// end, and have no client to tell. Sessions that still roll back then have no client either. Until closed has returned, no client can log
// in, also if the agent ends before.
func (s *Server) CloseToClients(ctx context.Context, closed func() error) error {
	looking, locking, err := s.admitNobody(ctx)
	if err != nil {
		return err
	}
	defer looking.Close()
	defer locking.close()
	if err := looking.waitFor(ctx, locking); err != nil {
		return err
	}
	isLocked, err := looking.awaitLock(ctx, locking)
	if err != nil {
		return err
	}
	if err := looking.killOthers(ctx, locking.id, noProcess); err != nil {
		return err
	}
	if !isLocked { // commits wait, or sessions roll back
		if err := looking.endCommits(ctx, locking); err != nil {
			return err
		}
	}
	return closed()
}

// session is one connection, with its ID.
type session struct {
	*sql.Conn
	id int64
}

func newSession(ctx context.Context, db *sql.DB) (session, error) {
	one, err := db.Conn(ctx)
	if err != nil {
		return session{}, err
	}
	made := session{Conn: one}
	if err := one.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&made.id); err != nil {
		return session{}, errors.Join(err, one.Close())
	}
	return made, nil
}

func (s session) exec(ctx context.Context, what string, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// awaitLock reports whether the other session gets its lock while replicas are connected. If it does not soon, a statement that runs for
// long may prevent it, so awaitLock ends the sessions of clients.
func (s session) awaitLock(ctx context.Context, locking closingSession) (bool, error) {
	if isLocked, err := locking.isGranted(statementWait); isLocked || err != nil {
		return isLocked, err
	}
	if err := s.killOthers(ctx, locking.id, process.isReplica); err != nil {
		return false, err
	}
	return locking.isGranted(ackWait)
}

// endCommits ends commits that wait for acknowledgements. Their clients have no connection any more. No other ones can log in if the agent
// ends. endCommits returns when the other session has its lock, or after closeWait.
func (s session) endCommits(ctx context.Context, locking closingSession) error {
	if err := s.exec(ctx, "stop enforcing acknowledgements", offlineOn, "SET GLOBAL rpl_semi_sync_source_enabled = OFF"); err != nil {
		return err
	}
	rolledBack := time.After(closeWait)
	for {
		select {
		case err := <-locking.done:
			return err
		case <-rolledBack:
			return nil
		case <-time.After(closeLook):
		}
		if err := s.killOthers(ctx, locking.id, noProcess); err != nil {
			return err
		}
	}
}

// closingSession locks mysqld for writes in the background.
type closingSession struct {
	session
	done  chan error
	close func()
}

// isGranted reports whether the lock is granted within a time, and mysqld refuses writes.
func (s closingSession) isGranted(within time.Duration) (bool, error) {
	select {
	case err := <-s.done:
		return err == nil, err
	case <-time.After(within):
		return false, nil
	}
}

// admitNobody lets no client log in any more, and begins to lock mysqld. Accounts with CONNECTION_ADMIN are refused because two connections
// are one more than max_connections, and than the one that is reserved for them (manual, "Too many connections"). It does not use
// offline_mode, which would end the sessions of replicas.
func (s *Server) admitNobody(ctx context.Context) (looking session, locking closingSession, err error) {
	const what = "admit no more clients"
	if looking, err = newSession(ctx, s.db); err != nil {
		return looking, locking, fmt.Errorf("%s: %w", what, err)
	}
	apart := sql.OpenDB(s.connector)
	one, err := looking.squeezeIn(ctx, apart)
	if err != nil {
		return looking, locking, errors.Join(fmt.Errorf("%s: %w", what, err), apart.Close(), looking.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	locking = closingSession{session: one, done: make(chan error, 1), close: func() {
		cancel()
		_ = one.Close()
		_ = apart.Close()
	}}
	if err := looking.exec(ctx, what, "SET GLOBAL max_connections = 1"); err != nil {
		locking.close()
		return looking, locking, errors.Join(err, looking.Close())
	}
	go func() {
		// With the lock, SET needs no lock of its own, which it would give up between read_only and super_read_only.
		locking.done <- one.exec(ctx, "refuse writes", "SET SESSION lock_wait_timeout = 3600", "FLUSH TABLES WITH READ LOCK", "SET GLOBAL super_read_only = ON")
	}()
	return looking, locking, nil
}

// squeezeIn connects once more, although clients may use all connections. While they take those that it adds, it adds more.
func (s session) squeezeIn(ctx context.Context, apart *sql.DB) (session, error) {
	for {
		if err := s.exec(ctx, "allow another connection", "SET GLOBAL max_connections = @@GLOBAL.max_connections + 100"); err != nil {
			return session{}, err
		}
		if one, err := newSession(ctx, apart); !hasNumber(err, errTooManyConnections) {
			return one, err
		}
	}
}

// process is a row of SHOW PROCESSLIST. info is the start of its statement.
type process struct {
	id             int64
	user, host     string
	command, state string
	info           string
}

// isReplica reports whether a replica receives transactions through it.
func (p process) isReplica() bool { return strings.HasPrefix(p.command, "Binlog Dump") }

// isOwn reports whether it is one of mysqld's own threads.
func (p process) isOwn() bool {
	return p.user == "system user" && p.host == "" || p.command == "Daemon"
}

func noProcess(process) bool { return false }

// processes lists all sessions. performance_schema lacks some where it is OFF or has too little memory, so the agent does not use it, also
// if a user makes SHOW PROCESSLIST use it (manual, "performance_schema_show_processlist").
func (s session) processes(ctx context.Context) ([]process, error) {
	query, isElsewhere := "SHOW PROCESSLIST", false
	if err := s.QueryRowContext(ctx, "SELECT @@GLOBAL.performance_schema_show_processlist").Scan(&isElsewhere); err != nil {
		return nil, fmt.Errorf("look at the sessions: %w", err)
	}
	if isElsewhere {
		query = "SELECT ID AS Id, USER AS User, HOST AS Host, COMMAND AS Command, STATE AS State, INFO AS Info FROM information_schema.PROCESSLIST"
	}
	rows, err := s.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("look at the sessions: %w", err)
	}
	defer rows.Close()
	var all []process
	for rows.Next() {
		row, err := scanRow(rows)
		if err != nil {
			return nil, fmt.Errorf("look at the sessions: %w", err)
		}
		id, err := strconv.ParseInt(row["Id"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("look at the sessions: %w", err)
		}
		all = append(all, process{id, row["User"], row["Host"], row["Command"], row["State"], row["Info"]})
	}
	return all, rows.Err()
}

// waitFor waits until the other session has its lock, or waits for it.
func (s session) waitFor(ctx context.Context, locking closingSession) error {
	for {
		select {
		case err := <-locking.done:
			locking.done <- err
			return err
		case <-time.After(closeLook):
		}
		all, err := s.processes(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(one process) bool { return one.id == locking.id && strings.HasPrefix(one.state, "Waiting for") }) {
			return nil
		}
	}
}

// killOthers ends all sessions but these two, mysqld's own, and those that it spares.
func (s session) killOthers(ctx context.Context, locking int64, spares func(process) bool) error {
	all, err := s.processes(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.id == s.id || one.id == locking || one.isOwn() || one.command == "Killed" || spares(one) {
			continue
		}
		if _, err := s.ExecContext(ctx, "KILL ?", one.id); err != nil && !hasNumber(err, errNoSuchThread) {
			return fmt.Errorf("end session %d: %w", one.id, err)
		}
	}
	return nil
}
