package mysqld

import (
	"context"
	"fmt"
)

// WaitingCommits counts the sessions that wait to commit: for the disk, for earlier commits of other sessions, or for acknowledgements.
func (s *Server) WaitingCommits(ctx context.Context) (int, error) {
	var count int
	row := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE IN ('waiting for handler commit', 'Waiting for semi-sync ACK from replica')")
	if err := row.Scan(&count); err != nil {
		return 0, fmt.Errorf("count the sessions that wait to commit: %w", err)
	}
	return count, nil
}
