package mysqld

import (
	"context"
	"database/sql"
	"fmt"
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

// PurgeBinaryLogs removes the files before the given file. mysqld keeps the first file that it or a connected replica still reads, and all
// later files (manual, "PURGE BINARY LOGS Statement").
func (s *Server) PurgeBinaryLogs(ctx context.Context, before string) error {
	if err := s.execApart(ctx, "PURGE BINARY LOGS TO ?", before); err != nil {
		return fmt.Errorf("purge binary logs before %s: %w", before, err)
	}
	return nil
}
