package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// limitTransactions limits the size of one transaction on a member that is about to take writes: a larger one would delay every other
// commit while replicas receive it. A limit that the user set stays.
func (a *Agent) limitTransactions(ctx context.Context) error {
	a.mu.Lock()
	limit := sizing.TransactionLimit(a.status.Disk.Size)
	a.mu.Unlock()
	if limit == 0 {
		return nil
	}
	return a.setTransactionLimit(ctx, limit)
}

// liftTransactionLimit removes the limit on a member that applies transactions: its primary may have had a higher limit, or none, and an
// applier with a lower limit would stop with an error.
func (a *Agent) liftTransactionLimit(ctx context.Context) error {
	return a.setTransactionLimit(ctx, 0)
}

func (a *Agent) setTransactionLimit(ctx context.Context, limit int64) error {
	config, err := os.ReadFile(a.layout.serverConfig())
	if err != nil {
		return fmt.Errorf("look for the user's max_binlog_cache_size: %w", err)
	}
	if sizing.HasSetting(string(config), "max_binlog_cache_size") {
		return nil
	}
	return a.local.LimitTransactions(ctx, limit)
}

// setReadOnly makes a replica refuse writes, and removes the limit. On a former primary, commits that wait for acknowledgements hold that
// up without end. Then the supervisor kills mysqld: no client gets an answer, and the next start refuses writes. While another primary is
// chosen, no member acknowledges, so that comes sooner.
func (a *Agent) setReadOnly(ctx context.Context, local replication.Observed) error {
	commitsMayWait, patience := local.Server.SourceEnabled, mysqld.ReadOnlyWait
	if local.Assignment.Record.Primary == "" {
		patience = time.Second
	}
	err := a.local.SetReadOnly(ctx, patience)
	if commitsMayWait && mysqld.IsHeldUp(err) {
		a.log.Info("clients hold up mysqld, which is no primary any more and must take no writes, so the supervisor kills it", "error", err.Error())
		return a.announce(ctx, supervisor.Kill)
	}
	if err != nil {
		return err
	}
	return a.liftTransactionLimit(ctx)
}

func (a *Agent) applyReceived(ctx context.Context) error {
	if err := a.liftTransactionLimit(ctx); err != nil {
		return err
	}
	return a.local.ApplyReceived(ctx)
}
