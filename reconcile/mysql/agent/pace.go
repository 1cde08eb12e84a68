package agent

import (
	"context"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// pace is how soon the loop looks again.
type pace struct {
	// under is the version of the record that the member follows, boot the token of its mysqld's start, and taken are the steps that it has
	// taken since both are as they are. changed is when one of these last changed.
	under   replication.Version
	boot    string
	taken   []replication.Verb
	changed time.Time
	// verb is the last step, isFirst reports whether it was the first of its kind. isRestless reports whether the member has just lost its
	// primary.
	verb                replication.Verb
	isFirst, isRestless bool
}

// A replica that gets nothing from its primary looks more often, from restlessAfter to calmAfter. The primary sends something five times a
// second.
const (
	restlessAfter = 400 * time.Millisecond
	calmAfter     = 30 * time.Second
	// listenEvery is how often the loop looks at the receiver's connection while it waits.
	listenEvery = 200 * time.Millisecond
)

func isRestless(silent time.Duration) bool { return silent >= restlessAfter && silent < calmAfter }

// with returns the pace after another look.
func (p pace) with(now time.Time, local replication.Observed, ear replication.Ear, verb replication.Verb) pace {
	under := replication.Version{}
	if local.Assignment != nil {
		under = local.Assignment.Record.Version()
	}
	if under != p.under || local.Boot != p.boot {
		p = pace{under: under, boot: local.Boot, changed: now}
	}
	p.verb, p.isRestless = verb, local.Reconnects() || isRestless(ear.SilentFor(now))
	p.isFirst = verb != replication.VerbNone && !slices.Contains(p.taken, verb)
	if p.isFirst {
		p.taken, p.changed = append(slices.Clone(p.taken), verb), now
	}
	return p
}

// pause returns how long to wait after a step that succeeded, or a look without a step. The loop takes each step at once when it is due for
// the first time.
func (p pace) pause(now time.Time) time.Duration {
	switch {
	case p.isFirst:
		return 0
	case p.verb != replication.VerbNone:
		return againEvery
	case p.isRestless, now.Sub(p.changed) < changesFor:
		return stepEvery
	}
	return lookEvery
}

// rest waits for the next turn. A replica that gets nothing from its primary takes it at once: the operator must know for how long.
func (a *Agent) rest(ctx context.Context, pause time.Duration) {
	until := time.Now().Add(pause)
	for left := pause; left > 0; left = time.Until(until) {
		if a.wait(ctx, min(left, listenEvery)) || a.hears.isQuiet() {
			return
		}
	}
}

// wait waits for some time. It reports whether it ended before.
func (a *Agent) wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-time.After(pause):
		return false
	}
	return true
}

// Wake makes the loop run at once.
func (a *Agent) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}
