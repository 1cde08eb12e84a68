package mover

import (
	"testing"
	"time"
)

// step is a Write: how long the donor took to deliver, and the store to store.
type step struct{ donor, store time.Duration }

func TestPacer(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	many := func(count int, one step) []step {
		steps := make([]step, count)
		for i := range steps {
			steps[i] = one
		}
		return steps
	}
	tests := map[string]struct {
		busy, resting bool
		steps         []step
		want          time.Duration // total of pauses
	}{
		"there are no active clients":                  {false, true, many(100, step{donor: 2 * ms}), 0},
		"clients are active":                           {true, true, many(100, step{donor: 2 * ms}), 600 * ms},
		"the user set a rate":                          {true, false, many(100, step{donor: 2 * ms}), 0},
		"the store takes as long as the pause":         {true, true, many(100, step{donor: 2 * ms, store: 6 * ms}), 0},
		"the store takes a part of it":                 {true, true, many(100, step{donor: 2 * ms, store: 2 * ms}), 400 * ms},
		"one slow Write does not shorten later pauses": {true, true, append([]step{{donor: 2 * ms, store: time.Hour}}, many(100, step{donor: 2 * ms})...), 600 * ms},
		"a donor that hung for a minute":               {true, true, []step{{donor: time.Minute}}, longestRest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, rested := time.Unix(0, 0), time.Duration(0)
			p := &pacer{resting: test.resting, restShare: 3, clock: func() time.Time { return now }, since: now}
			p.pause = func(duration time.Duration) { rested, now = rested+duration, now.Add(duration) }
			p.busy.Store(test.busy)
			stored := time.Duration(0)
			for _, one := range test.steps {
				stored += one.store
				now = now.Add(one.donor)
				p.begin()
				now = now.Add(one.store)
				p.end()
			}
			if off := (rested - test.want).Abs(); off > shortestRest {
				t.Errorf("paused %s, want %s", rested, test.want)
			}
			if p.rested != rested || p.stored != stored {
				t.Errorf("it counts %s of pauses and %s of storing, want %s and %s", p.rested, p.stored, rested, stored)
			}
		})
	}
}

func TestIsBusy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after int64
		passed        time.Duration
		want          bool
	}{
		"only the operator asks":          {1000, 1020, time.Second, false},
		"clients":                         {1000, 1500, time.Second, true},
		"few, over a long time":           {1000, 1500, time.Minute, false},
		"mysqld was restarted":            {100000, 10, time.Second, false},
		"asked twice at one moment":       {1000, 1500, 0, false},
		"exactly the operator's own rate": {0, 100, time.Second, false},
		"a little more than that":         {0, 101, time.Second, true},
	} {
		if got := isBusy(test.before, test.after, test.passed); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRestByTheSizeOfTheNode: the same load is a large share of a small machine and a small share of a large one.
func TestRestByTheSizeOfTheNode(t *testing.T) {
	t.Parallel()
	for cpus, want := range map[int]float64{0: 14, 1: 14, 2: 7, 14: 1, 56: 0.25} {
		if got := newPacer(t.Context(), true, cpus).restShare; got != want {
			t.Errorf("%d CPUs: pauses %v times as long as it works, want %v", cpus, got, want)
		}
	}
}
