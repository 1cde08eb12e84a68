package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestStatusListsTakeovers: each of them from its beginning, and no more than the schema allows.
func TestStatusListsTakeovers(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	s := healthy(t, 2)
	pass := func(after time.Duration, record replication.Record, state replication.State) v1.MySQLClusterStatus {
		s.record, s.seen.now = record, began.Add(after)
		s.member(1, false, func(m *replication.Status) { m.State, m.Held = state, record })
		var note *replication.Note
		if record.FormerPrimary != "" {
			note = &replication.Note{Reason: replication.ReasonReplacingPrimary, Message: "db-0 is down"}
		}
		status := s.report(note, nil).status()
		s.before(status)
		return status
	}
	fence := replication.Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0"}
	chosen := replication.Record{Epoch: 2, Revision: 3, Primary: "db-1"}
	s.before(v1.MySQLClusterStatus{Primary: "db-0", Epoch: 1, Revision: 1})
	s.seen.members[0].Status.State, s.seen.members[0].Status.UnansweredFor = replication.StateStarting, 2500*time.Millisecond
	pass(0, fence, replication.StateCatchingUp)
	pass(time.Second, fence, replication.StateCatchingUp)
	promoting := pass(2*time.Second, chosen, replication.StatePromoting)
	if all := promoting.Takeovers; len(all) != 1 || all[0].To != "db-1" || all[0].CompletionTime != nil {
		t.Fatalf("while it is promoted: %+v", all)
	}
	done := pass(3*time.Second, chosen, replication.StateWriting)
	if one := done.Takeovers[0]; one.From != "db-0" || one.Message != "db-0 is down" || !one.StartTime.Time.Equal(began) || one.CompletionTime.Sub(began) != 3*time.Second {
		t.Errorf("when it leads: %+v", one)
	}
	events := eventsOf(promoting, done)
	if last := events[len(events)-1]; last.Reason != "TakeoverCompleted" || !strings.Contains(last.Note, "db-1 took over from db-0 in 3s, after 5.5s without writes: db-0 is down") {
		t.Errorf("the event is %+v", last)
	}
	later := pass(time.Hour, chosen, replication.StateWriting)
	if one := later.Takeovers[0]; one.CompletionTime.Sub(began) != 3*time.Second || len(takeoverEvents(done, later)) > 0 {
		t.Errorf("later: %+v", one)
	}
	for range 2 * mostTakeovers {
		fence.Epoch++
		later = pass(time.Hour, fence, replication.StateCatchingUp)
	}
	if all := later.Takeovers; len(all) != mostTakeovers || all[0].Epoch != fence.Epoch-mostTakeovers+1 {
		t.Errorf("after many: %+v", all)
	}
}

// TestATakeoverSaysWhatTheFormerPrimaryHadAlone when that one is back. An event says so once.
func TestATakeoverSaysWhatTheFormerPrimaryHadAlone(t *testing.T) {
	t.Parallel()
	const alone = "3e11fa47-71ca-11e1-9e33-c80aa9429562:8-9"
	gtids, err := replication.ParseGTIDSet(alone)
	if err != nil {
		t.Fatal(err)
	}
	began := v1.NewMicroTime(time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC))
	takeover := func(epoch int64, from, to string) v1.Takeover {
		return v1.Takeover{Epoch: epoch, From: from, To: to, StartTime: began, CompletionTime: &began}
	}
	for name, test := range map[string]struct {
		all   []v1.Takeover
		epoch int64
		want  []string
	}{
		"after the only takeover":                            {[]v1.Takeover{takeover(2, "db-0", "db-1")}, 2, []string{alone}},
		"after the second one from it":                       {[]v1.Takeover{takeover(2, "db-0", "db-1"), takeover(3, "db-1", "db-0"), takeover(4, "db-0", "db-1")}, 4, []string{"", "", alone}},
		"after the first one from it":                        {[]v1.Takeover{takeover(2, "db-0", "db-1"), takeover(3, "db-1", "db-0"), takeover(4, "db-0", "db-1")}, 2, []string{alone, "", ""}},
		"its successor was replaced, too, before it is back": {[]v1.Takeover{takeover(2, "db-0", "db-1"), takeover(3, "db-1", "db-2")}, 3, []string{alone, ""}},
		"the takeover is not listed any more":                {[]v1.Takeover{takeover(3, "db-1", "db-2")}, 2, []string{""}},
	} {
		s := healthy(t, 3)
		before := v1.MySQLClusterStatus{Primary: "db-1", Epoch: test.all[len(test.all)-1].Epoch, Revision: 9, Takeovers: test.all}
		s.before(before)
		s.seen.members[0].Status.SetAside = &replication.SetAside{Epoch: test.epoch, GTIDs: gtids}
		after := s.report(nil, nil).status()
		var events, wanted int
		for i, want := range test.want {
			if got := after.Takeovers[i].Unacknowledged; got != want {
				t.Errorf("%s: takeover %d has %q, want %q", name, i, got, want)
			}
			if want != "" {
				wanted++
			}
		}
		for _, event := range takeoverEvents(before, after) {
			if event.Reason == "TransactionsSetAside" && strings.Contains(event.Note, alone) {
				events++
			}
		}
		if again := takeoverEvents(after, after); events != wanted || len(again) > 0 {
			t.Errorf("%s: %d events, want %d; again %+v", name, events, wanted, again)
		}
	}
}

// TestAPrimaryThatContinuesIsNotReplacedAgainAtOnce: for ten minutes after a takeover that no other member could complete.
func TestAPrimaryThatContinuesIsNotReplacedAgainAtOnce(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	attempt := func(epoch int64, to string) v1.Takeover {
		return v1.Takeover{Epoch: epoch, From: "db-0", To: to, StartTime: v1.NewMicroTime(began)}
	}
	for name, test := range map[string]struct {
		takeovers []v1.Takeover
		epoch     int64
		after     time.Duration
		want      bool
	}{
		"no takeover":              {nil, 2, 0, false},
		"the primary continues":    {[]v1.Takeover{attempt(2, "db-0")}, 2, continuesFor - 1, true},
		"ten minutes ago":          {[]v1.Takeover{attempt(2, "db-0")}, 2, continuesFor, false},
		"another member took over": {[]v1.Takeover{attempt(2, "db-1")}, 2, time.Second, false},
		"none is chosen yet":       {[]v1.Takeover{attempt(2, "")}, 2, time.Second, false},
		"the primary before did":   {[]v1.Takeover{attempt(2, "db-0"), attempt(3, "db-1")}, 3, time.Second, false},
		"of an older epoch":        {[]v1.Takeover{attempt(2, "db-0")}, 3, time.Second, false},
	} {
		status := v1.MySQLClusterStatus{Takeovers: test.takeovers, Epoch: test.epoch}
		if got := hasContinued(status, began.Add(test.after)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestHowLongAgoTheLastTakeoverBegan counts every takeover, whatever caused it and however it ended.
func TestHowLongAgoTheLastTakeoverBegan(t *testing.T) {
	t.Parallel()
	now := time.Unix(5000, 0)
	ago := func(long time.Duration) v1.Takeover { return v1.Takeover{StartTime: v1.NewMicroTime(now.Add(-long))} }
	for name, test := range map[string]struct {
		takeovers []v1.Takeover
		want      time.Duration
	}{
		"none is listed":                    {nil, 0},
		"two":                               {[]v1.Takeover{ago(time.Hour), ago(time.Minute)}, time.Minute},
		"one by a clock that was ahead":     {[]v1.Takeover{ago(-time.Second)}, 1},
		"one by a clock that was far ahead": {[]v1.Takeover{ago(-time.Hour)}, 0},
	} {
		if got := sinceTakeover(v1.MySQLClusterStatus{Takeovers: test.takeovers}, now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestOnlyARecentTakeoverHurries(t *testing.T) {
	t.Parallel()
	now := time.Unix(5000, 0)
	takeover := func(ago time.Duration, isComplete bool) v1.MySQLClusterStatus {
		one := v1.Takeover{StartTime: v1.NewMicroTime(now.Add(-ago))}
		if isComplete {
			complete := v1.NewMicroTime(now)
			one.CompletionTime = &complete
		}
		return v1.MySQLClusterStatus{Takeovers: []v1.Takeover{{}, one}}
	}
	tests := map[string]struct {
		status v1.MySQLClusterStatus
		want   bool
	}{
		"there was none":           {v1.MySQLClusterStatus{}, false},
		"it has just begun":        {takeover(time.Second, false), true},
		"it is complete":           {takeover(time.Second, true), false},
		"it waits for a long time": {takeover(2*time.Minute, false), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := hurries(test.status, now); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
