package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestPace: a takeover waits for each of a member's steps, and a member at rest should cost little.
func TestPace(t *testing.T) {
	t.Parallel()
	at := func(revision int64) *replication.Assignment {
		return &replication.Assignment{Record: replication.Record{Epoch: 1, Revision: revision}}
	}
	const none, first, second = replication.VerbNone, replication.VerbEnforceAcks, replication.VerbAcceptWrites
	now := time.Now()
	p := pace{}
	for _, look := range []struct {
		what  string
		after time.Duration
		order *replication.Assignment
		verb  replication.Verb
		want  time.Duration
	}{
		{"the first look", 0, nil, none, lookEvery},
		{"it has an assignment", time.Hour, at(1), none, stepEvery},
		{"it has had it for a while", changesFor, at(1), none, lookEvery},
		{"a step", time.Hour, at(1), first, 0},
		{"the same step", 0, at(1), first, stepEvery},
		{"another step", 0, at(1), second, 0},
		{"nothing is left to do", time.Second, at(1), none, stepEvery},
		{"for a while", changesFor, at(1), none, lookEvery},
		{"a new record", time.Hour, at(2), none, stepEvery},
		{"the same step, for long", time.Hour, at(2), first, 0},
		{"again", time.Hour, at(2), first, stepEvery},
	} {
		now = now.Add(look.after)
		if p = p.with(now, replication.Observed{Assignment: look.order}, replication.Ear{}, look.verb); p.pause(now) != look.want {
			t.Errorf("%s: the loop waits for %s, want %s", look.what, p.pause(now), look.want)
		}
	}
}

// TestPaceOfAReplicaWithoutItsPrimary: the operator should soon know for how long, and the replica should soon connect again.
func TestPaceOfAReplicaWithoutItsPrimary(t *testing.T) {
	t.Parallel()
	began := time.Now()
	channel := replication.Channel{IO: "Yes", SQL: "Yes", KnowsReceived: true}
	ear := replication.Ear{}.Observe(began, channel)
	paused := func(after time.Duration, local replication.Observed) time.Duration {
		local.Server.Channel.SQL = "Yes"
		now := began.Add(after)
		return pace{}.with(now, local, ear, replication.VerbNone).pause(now)
	}
	for after, want := range map[time.Duration]time.Duration{0: lookEvery, time.Second: lookEvery, 2 * time.Second: stepEvery, 29 * time.Second: stepEvery, 30 * time.Second: lookEvery} {
		if got := paused(after, replication.Observed{}); got != want {
			t.Errorf("it has got nothing for %s: it looks every %s, want %s", after, got, want)
		}
	}
	for after, want := range map[time.Duration]time.Duration{0: stepEvery, 9 * time.Second: stepEvery, 10 * time.Second: lookEvery} {
		local := replication.Observed{DisconnectedFor: after}
		local.Server.Channel.IO = "Connecting"
		if got := paused(0, local); got != want {
			t.Errorf("it lost its connection %s ago: it looks every %s, want %s", after, got, want)
		}
	}
}
