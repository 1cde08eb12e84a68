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
	pause := eventsEvery
	defer func() { a.eventsNext = time.Now().Add(pause) }()
	if mayCommit {
		a.triesEvents()
	}
	found, err := a.scheduledEvents(ctx)
	if err == nil && mayCommit && a.enableEvents(ctx, found) {
		pause = eventsAgain
		found, err = a.scheduledEvents(ctx)
	}
	if err != nil {
		a.log.Info("cannot look at scheduled events, will try again", "error", err.Error())
		return // the last result since mysqld's start remains
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	disabled := found.ReplicaSideCount
	a.status.ReplicaSideDisabled, a.status.Events = &disabled, &found
}

func (a *Agent) scheduledEvents(ctx context.Context) (replication.ScheduledEvents, error) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return a.local.ScheduledEvents(bounded, replication.MostEvents)
}

// triesEvents notes that this member tries to enable events as the primary of this epoch.
func (a *Agent) triesEvents() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.eventsOf = a.kept.Held.Epoch
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
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a.mu.Lock()
	due := replication.EventsToEnable(a.kept.Events, found)
	a.mu.Unlock()
	enabled, failure := 0, ""
	for _, event := range due {
		if bounded.Err() != nil {
			break // the next look continues
		}
		isEnabled, err := a.local.EnableEvent(bounded, event)
		if isEnabled {
			enabled++
		}
		if err != nil {
			failure = err.Error()
		}
	}
	if failure != "" && failure != a.eventsFailure {
		a.log.Info("cannot enable scheduled events that ran on the former primary, will try again", "error", failure)
	}
	a.eventsFailure = failure
	if enabled > 0 {
		a.log.Info("enabled scheduled events that ran on the former primary", "count", enabled)
	}
	return enabled > 0
}
