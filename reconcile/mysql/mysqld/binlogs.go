package mysqld

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// BinaryLog is a file of the binary log; Size is in bytes.
type BinaryLog struct {
	Name string
	Size int64
}

// BinaryLogs lists the files of the binary log, oldest first. It uses a separate connection, because the statement may wait for a write to
// a full disk.
func (s *Server) BinaryLogs(ctx context.Context) ([]BinaryLog, error) {
	var files []BinaryLog
	err := s.bounded(ctx, "SHOW BINARY LOGS", func(rows *sql.Rows) error {
		var file BinaryLog
		// The third column, Encrypted, exists since 8.0.14.
		if err := rows.Scan(&file.Name, &file.Size, new(string)); err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

// Receivers counts the receivers of members that are connected and read the binary log. They need not acknowledge.
func (s *Server) Receivers(ctx context.Context) (int, error) {
	var count int
	row := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM performance_schema.processlist WHERE user LIKE ? AND command LIKE 'Binlog Dump%'", replicationUsersLike)
	if err := row.Scan(&count); err != nil {
		return 0, fmt.Errorf("count connected replicas: %w", err)
	}
	return count, nil
}

// ReceiverSession is the session of a connected replica. Peer is where its receiver connects from. SentAll reports whether mysqld has
// sent the whole binary log to it.
type ReceiverSession struct {
	ID      int64
	Peer    netip.AddrPort
	SentAll bool
}

// ReceiverSessions lists the sessions of connected replicas. It uses the observing connection: while a statement about accounts waits for
// acknowledgements, no other can log in.
func (s *Server) ReceiverSessions(ctx context.Context) ([]ReceiverSession, error) {
	one, err := newSession(ctx, s.db)
	if err != nil {
		return nil, fmt.Errorf("look at the sessions: %w", err)
	}
	defer one.Close()
	all, err := one.processes(ctx)
	var found []ReceiverSession
	for _, process := range all {
		if process.isReceiver() {
			found = append(found, ReceiverSession{process.id, parsePeer(process.host), sentAll(process.state)})
		}
	}
	return found, err
}

// sentAll reports whether a session waits for the binary log to grow. All releases' texts match: "Source has sent all binlog to replica;
// waiting for more updates", or "Master" and "slave" in older ones.
func sentAll(state string) bool { return strings.Contains(state, "has sent all binlog to") }

// parsePeer reads the address and port of a client, such as 10.0.0.1:42210. The zero value is no client's.
func parsePeer(host string) netip.AddrPort {
	colon := max(0, strings.LastIndex(host, ":"))
	address, err := netip.ParseAddr(strings.Trim(host[:colon], "[]"))
	port, wrong := strconv.ParseUint(host[min(colon+1, len(host)):], 10, 16)
	if err != nil || wrong != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(port))
}

// EndSession closes a client's connection.
func (s *Server) EndSession(ctx context.Context, id int64) error {
	if _, err := s.db.ExecContext(ctx, "KILL ?", id); err != nil && !hasNumber(err, errNoSuchThread) {
		return fmt.Errorf("end session %d: %w", id, err)
	}
	return nil
}

// PurgeBinaryLogs removes the files before the given file. mysqld keeps the first file that it or a connected replica still reads, and all
// later files (manual, "PURGE BINARY LOGS Statement").
func (s *Server) PurgeBinaryLogs(ctx context.Context, before string) error {
	if err := s.execApart(ctx, "PURGE BINARY LOGS TO ?", before); err != nil {
		return fmt.Errorf("purge binary logs before %s: %w", before, err)
	}
	return nil
}
