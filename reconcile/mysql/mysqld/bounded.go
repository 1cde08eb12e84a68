package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// errTooMuch reports an answer of more than pageBytes.
var errTooMuch = errors.New("mysqld's answer is too large")

// bounded runs a statement over a separate connection, which ends before the answer exceeds pageBytes. It calls read for every row. If
// mysqld accepts no further connection, bounded uses the observing connection with the same limit. Only the goroutine that observes mysqld
// may call it.
func (s *Server) bounded(ctx context.Context, statement string, read func(*sql.Rows) error, arguments ...any) error {
	config, own := s.config.Clone(), newAllowance()
	config.DialFunc = own.dial
	connector, err := driver.NewConnector(config)
	if err != nil {
		return err
	}
	apart := sql.OpenDB(connector)
	defer apart.Close()
	left := own
	one, err := apart.Conn(ctx)
	if isConnectionRefused(err) {
		left = s.allowance
		one, err = s.db.Conn(ctx)
	}
	if err != nil {
		return fmt.Errorf("read the binary log: %w", err)
	}
	defer one.Close()
	left.Store(pageBytes)
	err = each(ctx, one, statement, read, arguments)
	isTooMuch := err != nil && left.Load() <= 0
	left.Store(math.MaxInt64)
	if isTooMuch && left == s.allowance {
		_ = one.Close()
		s.reconnect(ctx)
	}
	switch {
	case isTooMuch:
		return errTooMuch
	case err != nil:
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// reconnect reconnects the observing connection. mysqld takes a moment to see that the former connection is closed. Then its place is free,
// or the place that mysqld reserves for accounts with CONNECTION_ADMIN.
func (s *Server) reconnect(ctx context.Context) {
	for hasNumber(s.db.PingContext(ctx), errTooManyConnections) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func each(ctx context.Context, one *sql.Conn, statement string, read func(*sql.Rows) error, arguments []any) error {
	rows, err := one.QueryContext(ctx, statement, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// allowance is how many bytes may still be read from the connections that share it.
type allowance struct{ atomic.Int64 }

func newAllowance() *allowance {
	made := &allowance{}
	made.Store(math.MaxInt64)
	return made
}

func (a *allowance) dial(ctx context.Context, network, address string) (net.Conn, error) {
	open, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &boundedConn{Conn: open, left: a}, nil
}

// boundedConn reads no more bytes than its allowance.
type boundedConn struct {
	net.Conn
	left *allowance
}

func (c *boundedConn) Read(into []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, errTooMuch
	}
	if int64(len(into)) > left {
		into = into[:left] // a single read may return megabytes while mysqld sends more
	}
	count, err := c.Conn.Read(into)
	c.left.Add(-int64(count))
	return count, err
}

// SyscallConn lets the driver see that mysqld has closed a connection before the driver uses it again.
func (c *boundedConn) SyscallConn() (syscall.RawConn, error) {
	open, isOpen := c.Conn.(syscall.Conn)
	if !isOpen {
		return nil, errors.ErrUnsupported
	}
	return open.SyscallConn()
}
