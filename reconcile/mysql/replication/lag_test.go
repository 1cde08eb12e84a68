package replication

import (
	"strings"
	"testing"
	"time"
)

func TestALagIsRememberedInCoarseSteps(t *testing.T) {
	t.Parallel()
	const unknown = -1
	began := time.Unix(1_785_553_445, 0)
	var memory LagMemory
	for _, step := range []struct {
		what             string
		after, lag, want int
	}{
		{"the first look, and MySQL does not know it", 0, unknown, 0},
		{"a lag that does not matter", 1, 4, 0},
		{"one that does", 2, 5, 5},
		{"a longer one", 10, 19, 10},
		{"a replica that catches up", 20, 6, 10},
		{"it is not known any more", 30, unknown, 10},
		{"as long once more", 40, 11, 10},
		{"five minutes after the first time", 310, 6, 10},
		{"five minutes after the last time", 340, 0, 0},
		{"very long", 350, 4000, 30},
		{"five minutes later, still behind", 650, 6, 5},
		{"the clock went back", 600, 0, 5},
	} {
		var lag *int64
		if seconds := int64(step.lag); seconds != unknown {
			lag = &seconds
		}
		now := began.Add(seconds(step.after))
		memory = memory.Observe(now, lag)
		if got := memory.Lately(now); got != step.want {
			t.Errorf("%s: %d s, want %d", step.what, got, step.want)
		}
	}
}

// TestALagIsNewsAFewTimes an hour, however often a replica lags: each piece of news is an alarm, and a pass of the operator.
func TestALagIsNewsAFewTimes(t *testing.T) {
	t.Parallel()
	const hour, most = 3600, 60
	for _, period := range []int{10, 30, 61, 65, 75, 90, 299, 301, 305, 600} {
		for _, peak := range []int{6, 12, 31, 300} {
			var memory LagMemory
			changes, before := 0, 0
			for second := range hour {
				lag := int64(peak * (second % period) / period)
				now := time.Unix(1_785_553_445, 0).Add(seconds(second))
				memory = memory.Observe(now, &lag)
				if lately := memory.Lately(now); lately != before {
					changes, before = changes+1, lately
				}
			}
			if changes > most {
				t.Errorf("up to %d s behind every %d s: %d changes an hour, want at most %d", peak, period, changes, most)
			}
		}
	}
}

// TestFailoverSaysHowFarReplicasAreBehind: the closest one counts of those that could take over.
func TestFailoverSaysHowFarReplicasAreBehind(t *testing.T) {
	t.Parallel()
	const left, none = "A:1-9", ""
	// A cluster whose replicas have been so many seconds behind within the last five minutes.
	cluster := func(lags ...int) *story {
		s := healthy(t, 3, 1)
		for i, lag := range lags {
			s.c.Members[i+1].Status.BehindLately = lag
		}
		return s
	}
	primaryIsDown := func(s *story) *story { return s.hears(0, StateStarting, down) }
	for name, test := range map[string]struct {
		story *story
		says  string
	}{
		"both are close":                          {cluster(0, 0), none},
		"one is close":                            {cluster(30, 0), none},
		"both are behind":                         {cluster(20, 10), "at least 10 seconds behind within the last five minutes; no acknowledged commit is lost"},
		"the close one lacks rows":                {cluster(20, 0).beside(2, lacks("shop.t")), "at least 20 seconds"},
		"the close one is too far behind now":     {cluster(20, 0).beside(2, func(_ *testing.T, s *Status) { s.State = StateCatchingUp }), "at least 20 seconds"},
		"the primary is down":                     {primaryIsDown(cluster(20, 10).beside(1, executed(left)).beside(2, executed(left))), "at least 10 seconds"},
		"the primary is down, and one has all":    {primaryIsDown(cluster(20, 10).beside(2, executed(left))), none},
		"one has all, and the primary makes more": {cluster(20, 10).beside(2, executed(left)), "at least 10 seconds"},
	} {
		isReady, _, message := test.story.c.Failover()
		const longer = "a takeover takes longer"
		if !isReady || !strings.Contains(message, test.says) || strings.Contains(message, longer) != (test.says != none) {
			t.Errorf("%s: %t %q", name, isReady, message)
		}
	}
}

// executed is a member that has applied no more than this of what it received.
func executed(text string) saying {
	return func(t *testing.T, s *Status) { t.Helper(); s.Executed = gtids(t, text) }
}

// TestTakeoverSaysHowFarTheNextPrimaryIsBehind, if it must apply something and knows how old that is.
func TestTakeoverSaysHowFarTheNextPrimaryIsBehind(t *testing.T) {
	t.Parallel()
	lag := func(seconds int64) saying { return func(_ *testing.T, s *Status) { s.LagSeconds = &seconds } }
	unknown := func(*testing.T, *Status) {}
	for name, test := range map[string]struct {
		story *story
		lag   saying
		want  int
	}{
		"it has applied everything":             {downPrimary(t, 3, 1), lag(12), 0},
		"it is behind":                          {behind(t, downPrimary(t, 3, 1)), lag(12), 12},
		"by less than matters":                  {behind(t, downPrimary(t, 3, 1)), lag(4), 0},
		"MySQL does not know how far":           {behind(t, downPrimary(t, 3, 1)), unknown, 0},
		"it is chosen, and has not applied all": {fencedFromDown(t, 3, 1).beside(1, executed("A:1-9")).beside(2, executed("A:1-8")), lag(7), 7},
		"no member may take over, and one lags": {behind(t, downPrimary(t, 3, 0)), lag(12), 0},
		"the cluster has no primary yet":        {wanting(t, 3).hears(1, StateWaiting), lag(12), 0},
	} {
		if got := test.story.beside(1, test.lag).c.Takeover(); got.BehindSeconds != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
