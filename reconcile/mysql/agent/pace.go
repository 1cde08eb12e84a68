package agent

import (
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// pace is how soon the loop looks again.
type pace struct {
	// verb is the last step, and under the version of the record that the member followed at that time. changed is when one of both last
	// changed.
	verb    replication.Verb
	under   replication.Version
	changed time.Time
	// isNew reports whether the last step was another one than the step before. isRestless reports whether the member has just lost its
	// primary.
	isNew, isRestless bool
}

// A replica that gets nothing from its primary looks more often, from restlessAfter to calmAfter.
const (
	restlessAfter = 2 * time.Second
	calmAfter     = 30 * time.Second
)

// with returns the pace after another look.
func (p pace) with(now time.Time, local replication.Observed, ear replication.Ear, verb replication.Verb) pace {
	silent := ear.SilentFor(now)
	next := pace{
		verb: verb, changed: p.changed, isNew: verb != p.verb && verb != replication.VerbNone,
		isRestless: local.Reconnects() || silent >= restlessAfter && silent < calmAfter,
	}
	if local.Assignment != nil {
		next.under = local.Assignment.Record.Version()
	}
	if next.isNew || next.under != p.under {
		next.changed = now
	}
	return next
}

// pause returns how long to wait after a step that succeeded, or a look without a step. The loop takes the next step at once, unless it
// repeats the last one.
func (p pace) pause(now time.Time) time.Duration {
	switch {
	case p.isNew:
		return 0
	case p.verb != replication.VerbNone, p.isRestless, now.Sub(p.changed) < changesFor:
		return stepEvery
	}
	return lookEvery
}
