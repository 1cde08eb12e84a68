package schedule

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// looks makes passes over a schedule at these distances from a time, and returns how many events reported missed times.
func looks(t *testing.T, seen observed, at ...time.Duration) int {
	t.Helper()
	began, told := seen.now, 0
	for _, distance := range at {
		seen.now = began.Add(distance)
		found, did := decide(seen), passResult{}
		after := statusOf(seen, found, did, nil)
		for _, event := range eventsOf(seen, found, did, after) {
			if event.Reason == reasonMissed {
				told++
			}
		}
		seen.schedule.Status = after
	}
	return told
}

// TestMissedTimesAreToldOnce: every change of the backup in progress, such as its progress, causes a pass over its schedule.
func TestMissedTimesAreToldOnce(t *testing.T) {
	t.Parallel()
	minutely := func(seen *observed) { seen.times = reads(t, "* * * * *", "") }
	busy := func(now string) observed {
		return story(t, now, minutely, lastAt(t, "2026-06-02 03:00"), has(t, "2026-06-02 03:00", v1.BackupStarted))
	}
	for name, test := range map[string]struct {
		seen observed
		at   []time.Duration
		want int
	}{
		"one":                     {busy("2026-06-02 03:01"), []time.Duration{0, time.Second, 2 * time.Second}, 1},
		"two":                     {busy("2026-06-02 03:01"), []time.Duration{0, time.Second, time.Minute, time.Minute + time.Second}, 2},
		"more than are counted":   {busy("2026-06-02 12:00"), []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, 1},
		"and another one of them": {busy("2026-06-02 12:00"), []time.Duration{0, time.Second, time.Minute, time.Minute + time.Second}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same(t, looks(t, test.seen, test.at...), test.want)
		})
	}
}

// TestBackupsThatStayForWantOfAClockAreTold: the message is the same in every pass, and there is none if no age limit is set.
func TestBackupsThatStayForWantOfAClockAreTold(t *testing.T) {
	t.Parallel()
	const now = "2026-06-10 12:00"
	for name, test := range map[string]struct {
		seen         observed
		reason, says string
	}{
		"the clocks agree":                {story(t, now, keepFor("72h")), reasonScheduled, ""},
		"they differ by a year":           {story(t, now, keepFor("72h"), serverAt(t, "2025-06-10 12:00")), reasonClocksDiffer, "differ by more than 10m0s"},
		"the operator's is behind":        {story(t, now, keepFor("72h"), serverAt(t, "2026-06-10 12:11")), reasonClocksDiffer, "differ by more than 10m0s"},
		"the API server's is unknown":     {story(t, now, keepFor("72h"), serverAt(t, "")), reasonClocksDiffer, "do not contain the time"},
		"they differ, and number decides": {story(t, now, keepLast(3), serverAt(t, "")), reasonScheduled, ""},
		"keepFor is invalid":              {story(t, now, keepFor("soon"), serverAt(t, "")), reasonInvalidRetention, "is not a valid duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := statusOf(test.seen, decide(test.seen), passResult{}, nil)
			stalled := meta.FindStatusCondition(told.Conditions, v1.ConditionStalled)
			same(t, told.Conditions[0].Reason, test.reason)
			same(t, stalled != nil, test.says != "")
			if stalled != nil && (stalled.Reason != test.reason || !strings.Contains(stalled.Message, test.says)) {
				t.Errorf("it says %s: %s", stalled.Reason, stalled.Message)
			}
			test.seen.now, test.seen.schedule.Status = test.seen.now.Add(time.Second), told
			same(t, statusOf(test.seen, decide(test.seen), passResult{}, nil).Conditions, told.Conditions)
		})
	}
}

// TestWhatAClockAheadHasWritten: only plausible end times decide which backup is the latest, and whether it failed.
func TestWhatAClockAheadHasWritten(t *testing.T) {
	t.Parallel()
	const now = "2026-06-10 12:00"
	for name, test := range map[string]struct {
		seen        observed
		last, ended string
		reason      string
	}{
		"another one is the latest": {
			story(t, now, nights(t, 7, 8), but(7, endedIn2040)), "nightly-2026-06-08-03-00-00", "2026-06-08 04:00", reasonScheduled,
		},
		"there is no other: its creation time is known": {
			story(t, now, nights(t, 7), but(7, endedIn2040), but(7, func(one *instance) { one.made = one.scheduled })), "nightly-2026-06-07-03-00-00", "2026-06-07 03:00", reasonScheduled,
		},
		"its creation time is implausible, too": {
			story(t, now, nights(t, 7), but(7, endedIn2040), but(7, func(one *instance) { one.made = one.ended })), "nightly-2026-06-07-03-00-00", "", reasonScheduled,
		},
		"a later failure is reported": {
			story(t, now, nights(t, 7), but(7, endedIn2040), failures(t, 8)), "nightly-2026-06-07-03-00-00", "", reasonLastBackupFailed,
		},
		"an earlier failure is not the latest": {
			story(t, now, failures(t, 7), but(7, endedIn2040), nights(t, 8)), "nightly-2026-06-08-03-00-00", "2026-06-08 04:00", reasonScheduled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := statusOf(test.seen, decide(test.seen), passResult{}, nil)
			same(t, told.LastBackup, test.last)
			ended := time.Time{}
			if test.ended != "" {
				ended = moment(t, test.ended)
			}
			same(t, timeOf(told.LastSuccessfulTime), ended)
			same(t, told.Conditions[0].Reason, test.reason)
		})
	}
}
