package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

func (a *Agent) look(ctx context.Context) (mysqld.Observed, error) {
	defer a.asks()()
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	observed, err := a.local.Observe(bounded)
	if !mysqld.IsAccessDenied(err) {
		return observed, err
	}
	if err := a.refreshPasswords(bounded, mayTry); err != nil {
		return observed, err
	}
	return a.local.Observe(bounded)
}

// answersLate tells the operator that mysqld takes long to answer, and does not wait for it if another member takes over.
func (a *Agent) answersLate() {
	a.mu.Lock()
	if a.cannotClose() && a.interrupt != nil {
		a.interrupt()
	}
	a.mu.Unlock()
	a.mayHaveNews()
}

// question is a look that waits for mysqld's answer.
type question struct {
	// at is when the agent asked; zero while it does not wait. before is when the look before that ended.
	at, before time.Time
}

// slowAfter is for how long an answer may take before mysqld counts as not answering.
const slowAfter = replication.AlarmAfter / 2

// unansweredFor is for how long mysqld has not answered, as far as is known: 0 if that is a moment.
func (q question) unansweredFor(now time.Time) time.Duration {
	if q.at.IsZero() || now.Sub(q.at) < slowAfter {
		return 0
	}
	return now.Sub(q.before)
}

// asks notes that the loop waits for mysqld's answer, until the function that it returns is called. The operator learns of it if that takes
// long.
func (a *Agent) asks() (answered func()) {
	asked := question{at: time.Now()}
	a.mu.Lock()
	asked.before = asked.at.Add(-min(lookEvery, asked.at.Sub(a.asked.before))) // the loop may have done something else for long
	a.asked = asked
	a.mu.Unlock()
	late := time.AfterFunc(max(slowAfter, replication.AlarmAfter-asked.at.Sub(asked.before)), a.answersLate)
	return func() {
		late.Stop()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = question{before: time.Now()}
	}
}

// unassigned returns how long the agent has seen its mysqld without an assignment. The caller must hold the lock.
func (a *Agent) unassigned(now time.Time) time.Duration {
	switch {
	case a.assignment != nil:
		return 0
	case a.idleSince.IsZero():
		a.idleSince = now
	}
	return now.Sub(a.idleSince)
}
