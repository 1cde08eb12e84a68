package replication

import (
	"testing"
	"time"
)

// TestWhatTheBestReplicaNeeds: by two looks, one second apart.
func TestWhatTheBestReplicaNeeds(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	answers := func(at time.Time, applied, missing map[string]int64) map[string]Answer {
		all := map[string]Answer{}
		for name := range applied {
			all[name] = Answer{At: at, Applied: applied[name], Missing: missing[name]}
		}
		return all
	}
	before := Progress{At: began, Made: 1000, Answers: answers(began, map[string]int64{"db-1": 900, "db-2": 500}, nil)}
	look := func(applied, missing map[string]int64) Progress {
		at := began.Add(time.Second)
		return Progress{At: at, Made: 2000, Answers: answers(at, applied, missing)}
	}
	for name, test := range map[string]struct {
		now  Progress
		want Backlog
	}{
		"both lag, and the better one counts": {
			look(map[string]int64{"db-1": 1400, "db-2": 600}, map[string]int64{"db-1": 600, "db-2": 1400}),
			Backlog{CatchUp: 1200 * time.Millisecond, Made: 1000, Applied: 500, IsKnown: true},
		},
		"one has everything": {
			look(map[string]int64{"db-1": 1400, "db-2": 2000}, map[string]int64{"db-1": 600, "db-2": 0}),
			Backlog{Made: 1000, Applied: 1500, IsKnown: true},
		},
		"one works on a large transaction, and the other one counts": {
			look(map[string]int64{"db-1": 900, "db-2": 1000}, map[string]int64{"db-1": 1100, "db-2": 1000}),
			Backlog{CatchUp: 2 * time.Second, Made: 1000, Applied: 500, IsKnown: true},
		},
		"both have stopped":                                {look(map[string]int64{"db-1": 900, "db-2": 500}, map[string]int64{"db-1": 1100, "db-2": 1500}), Backlog{}},
		"no replica answers":                               {look(nil, nil), Backlog{}},
		"a replica that has just begun to acknowledge":     {look(map[string]int64{"db-3": 10}, map[string]int64{"db-3": 1990}), Backlog{}},
		"a replica whose data a copy has replaced by less": {look(map[string]int64{"db-1": 10}, map[string]int64{"db-1": 1990}), Backlog{}},
		"the first look":                                   {before, Backlog{}},
		"it answers half a second late, and has applied as fast": {
			Progress{At: began.Add(time.Second), Made: 2000, Answers: map[string]Answer{"db-1": {At: began.Add(1500 * time.Millisecond), Applied: 1650, Missing: 500}}},
			Backlog{CatchUp: time.Second, Made: 1000, Applied: 500, IsKnown: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.now.Since(before); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	if got := before.Since(Progress{}); got.IsKnown {
		t.Errorf("one look says %+v", got)
	}
}

// TestALostAnswerCostsOneLook: a slow replica often answers too late, and that is when the delay matters.
func TestALostAnswerCostsOneLook(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	look := func(second int, answers ...Answer) Progress {
		p := Progress{At: began.Add(time.Duration(second) * time.Second), Made: int64(second) * 1000, Answers: map[string]Answer{}}
		for _, answer := range answers {
			answer.At = p.At
			p.Answers["db-1"] = answer
		}
		return p
	}
	answered, lost := look(0, Answer{Applied: 100}), look(1)
	if got := lost.Since(answered); got.IsKnown {
		t.Errorf("without an answer, the backlog is %+v", got)
	}
	remembered := lost.Remembering(answered)
	again := look(2, Answer{Applied: 1100, Missing: 1000})
	want := Backlog{CatchUp: 2 * time.Second, Made: 1000, Applied: 500, IsKnown: true}
	if got := again.Since(remembered); got != want {
		t.Errorf("after the next answer, the backlog is %+v, want %+v", got, want)
	}
}

// TestCommitsAreDelayedWhileReplicasLag tells how the delay follows the backlog.
func TestCommitsAreDelayedWhileReplicasLag(t *testing.T) {
	t.Parallel()
	lags := func(needs time.Duration, made, applied float64) Backlog {
		return Backlog{CatchUp: needs, Made: made, Applied: applied, IsKnown: true}
	}
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		delay time.Duration
		seen  Backlog
		want  time.Duration
	}{
		"replicas keep up":                               {0, lags(10*ms, 5000, 5000), 0},
		"a short backlog is normal":                      {0, lags(900*ms, 5000, 100), 0},
		"a backlog grows":                                {0, lags(1100*ms, 1000, 900), leastDelay},
		"it does not grow":                               {0, lags(1100*ms, 900, 1000), 0},
		"it is too long, and hardly shrinks":             {0, lags(3*time.Second, 950, 1000), leastDelay},
		"clients commit twice as fast as is applied":     {10 * ms, lags(1500*ms, 1000, 500), 20 * ms},
		"they commit much faster":                        {10 * ms, lags(9*time.Second, 9000, 500), 40 * ms},
		"the backlog is too long, and grows slowly":      {10 * ms, lags(3*time.Second, 1000, 990), 20 * ms},
		"the delay works":                                {40 * ms, lags(9*time.Second, 400, 600), 40 * ms},
		"it stays while the backlog ends":                {40 * ms, lags(600*ms, 600, 600), 40 * ms},
		"the backlog has ended":                          {40 * ms, lags(100*ms, 600, 600), 40 * ms * 2 / 3},
		"the last delay ends":                            {leastDelay, lags(0, 600, 600), 0},
		"no delay helps, and it is bounded":              {150 * ms, lags(time.Minute, 9000, 10), MostDelay},
		"no replica answers any more":                    {40 * ms, Backlog{}, 20 * ms},
		"no replica has answered":                        {0, Backlog{}, 0},
		"the replica that lags is gone, and no other is": {leastDelay, Backlog{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := NextDelay(test.delay, test.seen); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestTheDelayEndsSoonWhenNothingIsKnown: whatever the delay was, it ends soon when no replica answers any more.
func TestTheDelayEndsSoonWhenNothingIsKnown(t *testing.T) {
	t.Parallel()
	delay, looks := MostDelay, 0
	for ; delay > 0; looks++ {
		delay = NextDelay(delay, Backlog{})
	}
	if looks > 7 {
		t.Errorf("it ends after %d looks", looks)
	}
}

// TestTheBacklogIsBounded plays clients that make commits one after the other, and a replica that applies fewer of them.
func TestTheBacklogIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		clients        int
		each           time.Duration // how long a commit takes without a delay
		applied, bound float64       // a second; seconds
	}{
		"few clients, and a replica that is nearly as fast": {8, 5 * time.Millisecond, 1400, 2.5},
		"many clients, and a replica of half the speed":     {64, 32 * time.Millisecond, 1000, 6},
		"very many clients": {150, 50 * time.Millisecond, 1500, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			delay, missing, most, total := time.Duration(0), 0.0, 0.0, 0.0
			const seconds = 120
			for range seconds {
				made := float64(test.clients) / (test.each + delay).Seconds()
				missing = max(0, missing+made-test.applied)
				most = max(most, missing/test.applied)
				total += made
				applied := min(test.applied, made+missing)
				delay = NextDelay(delay, Backlog{CatchUp: time.Duration(missing / applied * float64(time.Second)), Made: made, Applied: applied, IsKnown: true})
			}
			if most > test.bound || missing/test.applied > MostBacklog.Seconds()+0.5 {
				t.Errorf("the backlog was %.1f s at most, and is %.1f s after two minutes", most, missing/test.applied)
			}
			if total < 0.8*seconds*test.applied {
				t.Errorf("clients made %.0f commits a second, and %.0f could be applied", total/seconds, test.applied)
			}
		})
	}
}
