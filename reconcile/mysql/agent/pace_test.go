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
		{"the first look", time.Hour, nil, none, lookEvery},
		{"it has an assignment", time.Hour, at(1), none, stepEvery},
		{"it has had it for a while", changesFor, at(1), none, lookEvery},
		{"a step", time.Hour, at(1), first, 0},
		{"the same step", 0, at(1), first, againEvery},
		{"another step", 0, at(1), second, 0},
		{"nothing is left to do", time.Second, at(1), none, stepEvery},
		{"for a while", changesFor, at(1), none, lookEvery},
		{"a step that it has taken before", time.Hour, at(1), first, againEvery},
		{"a new record", time.Hour, at(2), none, stepEvery},
		{"the same step for this record", time.Hour, at(2), first, 0},
	} {
		now = now.Add(look.after)
		if p = p.with(now, replication.Observed{Assignment: look.order}, replication.Ear{}, look.verb); p.pause(now) != look.want {
			t.Errorf("%s: the loop waits for %s, want %s", look.what, p.pause(now), look.want)
		}
	}
}

// TestPaceOfStepsThatUndoEachOther: a bug, or a user who undoes what the agent does, must not keep the machine busy.
func TestPaceOfStepsThatUndoEachOther(t *testing.T) {
	t.Parallel()
	now, p, atOnce := time.Now(), pace{}, 0
	for look := range 100 {
		verb := replication.VerbStartReplica
		if look%2 == 0 {
			verb = replication.VerbStopReplica
		}
		if p = p.with(now, replication.Observed{}, replication.Ear{}, verb); p.pause(now) == 0 {
			atOnce++
		}
	}
	if atOnce != 2 {
		t.Errorf("%d of 100 steps came at once", atOnce)
	}
}

// TestAViewKnowsForHowLongAReceiverHasRun: for the same start of mysqld only.
func TestAViewKnowsForHowLongAReceiverHasRun(t *testing.T) {
	t.Parallel()
	now := time.Now()
	begun := startedReceiver{at: now, start: "one", acks: true}
	for start, want := range map[string]replication.Observed{"one": {ReceiverFor: time.Second, ReceiverAcks: true}, "two": {}, "": {}} {
		var local replication.Observed
		begun.view(&local, start, now.Add(time.Second))
		if local.ReceiverFor != want.ReceiverFor || local.ReceiverAcks != want.ReceiverAcks {
			t.Errorf("start %q: for %s, acknowledges: %t", start, local.ReceiverFor, local.ReceiverAcks)
		}
	}
	var local replication.Observed
	begun.view(&local, "one", now)
	if local.ReceiverFor == 0 {
		t.Error("a receiver that has just begun is not known")
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
	for after, want := range map[time.Duration]time.Duration{0: lookEvery, time.Second / 4: lookEvery, time.Second / 2: stepEvery, 29 * time.Second: stepEvery, 30 * time.Second: lookEvery} {
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
