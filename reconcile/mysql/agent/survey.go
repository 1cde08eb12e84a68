package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// surveyEvery is how often the agent looks at transactions.
	surveyEvery = time.Minute
	// dumpEvery is how often mysqld dumps the list of pages in its buffer pool.
	dumpEvery = 15 * time.Minute
	// reportedAccounts is how many accounts a report names.
	reportedAccounts = 8
	// preparedFor is how long a transaction may be prepared before it counts as left by its coordinator.
	preparedFor = 5 * time.Minute
)

// survey remembers since when transactions have been prepared, because MySQL does not report it. The zero value has seen none.
type survey struct {
	first, last, dumped time.Time
	since               map[string]time.Time
}

// left returns how many of the prepared transactions have been prepared for at least preparedFor; nil if the agent has not watched for that
// long.
func (s *survey) left(now time.Time, prepared []string) *int {
	if s.first.IsZero() {
		s.first = now
	}
	since := make(map[string]time.Time, len(prepared))
	left := 0
	for _, id := range prepared {
		since[id] = now
		if began, known := s.since[id]; known {
			since[id] = began
		}
		if now.Sub(since[id]) >= preparedFor {
			left++
		}
	}
	s.since = since
	if now.Sub(s.first) < preparedFor {
		return nil
	}
	return &left
}

// maintainSurvey looks at transactions and accounts periodically.
func (a *Agent) maintainSurvey(ctx context.Context) {
	now := time.Now()
	if now.Sub(a.survey.last) < surveyEvery {
		return
	}
	a.survey.last = now
	a.surveyAccounts(ctx)
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if now.Sub(a.survey.dumped) >= dumpEvery {
		a.survey.dumped = now
		if err := a.local.DumpBufferPool(bounded); err != nil {
			a.log.Info("cannot dump the buffer pool, will try again", "error", err.Error())
		}
	}
	seen, err := a.local.Survey(bounded)
	if err != nil {
		a.log.Info("cannot look at transactions, will try again", "error", err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	stand := a.status.Transactions.CommitWaitSeconds // maintainCommits updates it more often
	a.status.Transactions = transactionsOf(seen, a.survey.left(now, seen.Prepared))
	a.status.Transactions.CommitWaitSeconds = stand
}

// surveyAccounts finds the accounts to which no client can log in. If that fails, the last result since mysqld's start remains.
func (a *Agent) surveyAccounts(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	barred, err := a.local.BarredAccounts(bounded, reportedAccounts)
	if err != nil {
		a.log.Info("cannot look at the plugins of accounts, will try again", "error", err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.LockedOut = &barred
}

func transactionsOf(seen mysqld.Survey, left *int) replication.Transactions {
	return replication.Transactions{Prepared: len(seen.Prepared), Left: left, OldestSeconds: int64(seen.Oldest.Seconds()), History: seen.History}
}
