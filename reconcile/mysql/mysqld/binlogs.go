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
	row := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM performance_schema.processlist WHERE user = ? AND command LIKE 'Binlog Dump%'", ReplicationUser)
	if err := row.Scan(&count); err != nil {
		return 0, fmt.Errorf("count connected replicas: %w", err)
	}
	return count, nil
}

// ReceiverSession is the session of a connected replica. Peer is where its receiver connects from.
type ReceiverSession struct {
	ID   int64
	Peer netip.AddrPort
}

// ReceiverSessions lists the sessions of connected replicas.
func (s *Server) ReceiverSessions(ctx context.Context) ([]ReceiverSession, error) {
	var found []ReceiverSession
	read := func(rows *sql.Rows) error {
		var one ReceiverSession
		var host string
		if err := rows.Scan(&one.ID, &host); err != nil {
			return err
		}
		colon := max(0, strings.LastIndex(host, ":"))
		address, _ := netip.ParseAddr(strings.Trim(host[:colon], "[]")) // one that cannot be read is no peer's
		port, _ := strconv.ParseUint(host[min(colon+1, len(host)):], 10, 16)
		one.Peer = netip.AddrPortFrom(address.Unmap(), uint16(port))
		found = append(found, one)
		return nil
	}
	err := s.bounded(ctx, "SELECT ID, HOST FROM performance_schema.processlist WHERE USER = ? AND COMMAND LIKE 'Binlog Dump%'", read, ReplicationUser)
	return found, err
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
