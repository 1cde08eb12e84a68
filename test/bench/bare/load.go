package bare

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Write lets so many clients insert rows at the source for some time, and returns how many were acknowledged, and in what time.
func (g *Group) Write(ctx context.Context, clients int, long time.Duration) (count int64, took time.Duration, err error) {
	var done atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range clients {
		all.Go(func() error {
			conn, err := g.Source.DB.Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			for time.Since(began) < long && ctx.Err() == nil {
				if _, err := conn.ExecContext(ctx, "INSERT INTO bench.numbers (text) VALUES ('written by a benchmark')"); err != nil {
					return fmt.Errorf("insert a row: %w", err)
				}
				done.Add(1)
			}
			return ctx.Err()
		})
	}
	err = all.Wait()
	return done.Load(), time.Since(began), err
}

// ApplyRate lets clients write while the applier of one replica is stopped. Then it measures how many of these transactions the replica
// applies a second, with or without flushing each commit to the disk.
func (g *Group) ApplyRate(ctx context.Context, clients int, long time.Duration, flush bool) (rate float64, err error) {
	replica := g.Replicas[0]
	if err := replica.Run(ctx, "STOP REPLICA SQL_THREAD"); err != nil {
		return 0, err
	}
	count, _, err := g.Write(ctx, clients, long)
	if err != nil {
		return 0, err
	}
	has, err := g.Source.Value(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return 0, err
	}
	if err := replica.receives(ctx, has); err != nil {
		return 0, err
	}
	relaxed := []string{"SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 2"}
	strict := []string{"SET GLOBAL sync_binlog = 1", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"}
	if !flush {
		if err := replica.Run(ctx, relaxed...); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := replica.Run(ctx, "START REPLICA SQL_THREAD"); err != nil {
		return 0, err
	}
	err = replica.applied(ctx, has, 10*time.Minute)
	took := time.Since(began)
	return float64(count) / took.Seconds(), errors.Join(err, replica.Run(ctx, strict...))
}

// receives waits until the relay log of a replica has these transactions.
func (s *Server) receives(ctx context.Context, gtids string) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		hasAll := 0
		err := s.DB.QueryRowContext(ctx, "SELECT GTID_SUBSET(?, CONCAT(@@GLOBAL.gtid_executed, ',', received_transaction_set)) FROM performance_schema.replication_connection_status WHERE channel_name = ''", gtids).Scan(&hasAll)
		if err != nil || hasAll == 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until server %d has received everything: %w", s.id, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
