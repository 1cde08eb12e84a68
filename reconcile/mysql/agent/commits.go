package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// commitsEvery is how often the sessions that wait to commit are counted.
const commitsEvery = 5 * time.Second

// commits measures how long no commit has completed. One waiting session is normal, and so is a long wait, as long as other transactions
// commit meanwhile. The zero value has seen nothing.
type commits struct {
	last, since time.Time
	executed    replication.GTIDSet
}

// stand returns how long sessions have waited without any commit.
func (c *commits) stand(now time.Time, executed replication.GTIDSet, waiting int) time.Duration {
	if waiting == 0 || c.since.IsZero() || !executed.Equal(c.executed) {
		c.since = now
	}
	c.executed = executed
	return now.Sub(c.since)
}

// maintainCommits counts waiting commits periodically. While no client can log in, a statement about accounts waits to commit, and the
// agent need not ask mysqld.
func (a *Agent) maintainCommits(ctx context.Context, observed mysqld.Observed) {
	now := time.Now()
	if now.Sub(a.commits.last) < commitsEvery {
		return
	}
	a.commits.last = now
	waiting := 1
	if !observed.LoginsHang {
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		var err error
		if waiting, err = a.local.WaitingCommits(bounded); err != nil {
			a.log.Info("cannot count the sessions that wait to commit, will try again", "error", err.Error())
			return
		}
	}
	stand := a.commits.stand(now, observed.Server.Executed, waiting)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Transactions.CommitWaitSeconds = int64(stand.Seconds())
}
