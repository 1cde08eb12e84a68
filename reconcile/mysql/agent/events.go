package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// eventsEvery is how often a primary looks at scheduled events, and eventsAgain how soon it does so after it has enabled some: only then it
	// counts them as events that run (mysqld.ScheduledEvents).
	eventsEvery = 10 * time.Second
	eventsAgain = 3 * time.Second
)

// maintainEvents makes a primary look at scheduled events periodically, and enable those that ran on the former one, and that no user has
// changed since. If that fails, the next look tries again. mayCommit reports whether its commits are acknowledged.
func (a *Agent) maintainEvents(ctx context.Context, mayCommit bool) {
	now := time.Now()
	if now.Before(a.eventsNext) && (!mayCommit || !a.mustEnableEvents()) {
		return
	}
	a.eventsNext = now.Add(eventsEvery)
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := a.local.ScheduledEvents(bounded, replication.MostEvents)
	if err == nil && mayCommit && a.enableEvents(bounded, found) {
		a.eventsNext = now.Add(eventsAgain)
		found, err = a.local.ScheduledEvents(bounded, replication.MostEvents)
	}
	if err != nil {
		a.log.Info("cannot look at scheduled events, will try again", "error", err.Error())
		return // the last result since mysqld's start remains
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	disabled := len(found.ReplicaSide)
	a.status.ReplicaSideDisabled, a.status.Events = &disabled, &found
}

// mustEnableEvents reports whether this member has become the primary, and has not tried to enable the events of the former one.
func (a *Agent) mustEnableEvents() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.kept.Events) > 0 && a.eventsOf != a.kept.Held.Epoch
}

// forgetEvents removes what is known of scheduled events from the report. The caller must hold the lock.
func (a *Agent) forgetEvents() { a.status.ReplicaSideDisabled, a.status.Events = nil, nil }

// enableEvents reports whether it has changed events.
func (a *Agent) enableEvents(ctx context.Context, found replication.ScheduledEvents) bool {
	a.mu.Lock()
	due := replication.EventsToEnable(a.kept.Events, found)
	a.eventsOf = a.kept.Held.Epoch
	a.mu.Unlock()
	enabled := 0
	for _, event := range due {
		isEnabled, err := a.local.EnableEvent(ctx, event)
		if err != nil {
			a.log.Info("cannot enable a scheduled event that ran on the former primary, will try again", "error", err.Error())
			break
		}
		if isEnabled {
			enabled++
		}
	}
	if enabled > 0 {
		a.log.Info("enabled scheduled events that ran on the former primary", "count", enabled)
	}
	return enabled > 0
}
