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

// asks notes that the loop waits for mysqld's answer, until the function that it returns is called. The operator learns of it if that takes
// long.
func (a *Agent) asks() (answered func()) {
	note := func(asked time.Time) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = asked
	}
	note(time.Now())
	late := time.AfterFunc(replication.AlarmAfter, a.answersLate)
	return func() {
		late.Stop()
		note(time.Time{})
	}
}
