package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// surveyEvery is how often transactions are looked at.
	surveyEvery = time.Minute
	// dumpEvery is how often the buffer pool's pages are written down.
	dumpEvery = 15 * time.Minute
	// reportedAccounts are named in a report.
	reportedAccounts = 8
	// preparedFor is for how long a transaction may be prepared before it counts as left by its coordinator.
	preparedFor = 5 * time.Minute
)

// survey remembers since when transactions have been prepared: MySQL does not tell. The zero value has seen none.
type survey struct {
	first, last, dumped time.Time
	since               map[string]time.Time
}

// left returns how many of the prepared transactions have been so for long; nil where it has not looked for so long.
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

// maintainSurvey looks at transactions and accounts once in a while.
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
			a.log.Info("the buffer pool's pages are not written down, will try again", "error", err.Error())
		}
	}
	seen, err := a.local.Survey(bounded)
	if err != nil {
		a.log.Info("cannot look at transactions, will try again", "error", err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	stand := a.status.Transactions.CommitWaitSeconds // which is looked at more often
	a.status.Transactions = transactionsOf(seen, a.survey.left(now, seen.Prepared))
	a.status.Transactions.CommitWaitSeconds = stand
}

// surveyAccounts looks which accounts nobody can log in to. Where that fails, what was seen last in this life of mysqld still holds.
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
	a.status.Barred = &barred
}

func transactionsOf(seen mysqld.Survey, left *int) replication.Transactions {
	return replication.Transactions{Prepared: len(seen.Prepared), Left: left, OldestSeconds: int64(seen.Oldest.Seconds()), History: seen.History}
}
