package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// commitsEvery is how often the sessions that wait to commit are counted.
const commitsEvery = 5 * time.Second

// commits finds out for how long none has come through. One session that waits is normal, and so is a long one: what matters is that
// nothing is committed meanwhile. The zero value has seen nothing.
type commits struct {
	last, since time.Time
	executed    replication.GTIDSet
}

// stand returns for how long sessions have waited while nothing was committed.
func (c *commits) stand(now time.Time, executed replication.GTIDSet, waiting int) time.Duration {
	if waiting == 0 || c.since.IsZero() || !executed.Equal(c.executed) {
		c.since = now
	}
	c.executed = executed
	return now.Sub(c.since)
}

// maintainCommits looks at commits once in a while. While nobody can log in, a statement about accounts waits to commit, and mysqld is not
// asked for more.
func (a *Agent) maintainCommits(ctx context.Context, observed mysqld.Observed) {
	now := time.Now()
	if now.Sub(a.commits.last) < commitsEvery {
		return
	}
	a.commits.last = now
	waiting := 1
	if !observed.LockedOut {
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		var err error
		if waiting, err = a.local.WaitingCommits(bounded); err != nil {
			a.log.Info("cannot see whether commits hang, will try again", "error", err.Error())
			return
		}
	}
	stand := a.commits.stand(now, observed.Server.Executed, waiting)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Transactions.CommitWaitSeconds = int64(stand.Seconds())
}
