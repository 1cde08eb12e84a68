package mysqld

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// DelayCommits makes commits that come together wait before they go to the disk (manual, "binlog_group_commit_sync_delay").
func (s *Server) DelayCommits(ctx context.Context, delay time.Duration) error {
	return s.exec(ctx, "delay commits", fmt.Sprintf("SET GLOBAL binlog_group_commit_sync_delay = %d", delay.Microseconds()))
}

// Executed reads gtid_executed. Every account may read it.
func (s *Server) Executed(ctx context.Context) (replication.GTIDSet, error) {
	var text string
	if err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
		return replication.GTIDSet{}, fmt.Errorf("read gtid_executed: %w", err)
	}
	executed, err := replication.ParseGTIDSet(text)
	if err != nil {
		return replication.GTIDSet{}, fmt.Errorf("gtid_executed: %w", err)
	}
	return executed, nil
}
