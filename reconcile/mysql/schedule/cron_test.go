package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want +got):\n%s", diff)
	}
}

// reads is a calendar from a valid expression.
func reads(t *testing.T, expression, zone string) calendar {
	t.Helper()
	times, wrong := readCalendar(expression, zone)
	if wrong != nil {
		t.Fatalf("%s: %s", wrong.Reason, wrong.Message)
	}
	return times
}

// moment reads "2006-01-02 15:04:05 -0700" or, in UTC, "2006-01-02 15:04".
func moment(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range []string{"2006-01-02 15:04:05 -0700", "2006-01-02 15:04 -0700", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	t.Fatalf("%q is not a valid time", text)
	return time.Time{}
}

func TestCalendarsReadWell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		expression, zone string
		reason, says     string
	}{
		"five fields":                          {expression: "30 2 * * *"},
		"names":                                {expression: "0 3 1 jan-mar SUN"},
		"a macro":                              {expression: "@daily", zone: "Europe/Berlin"},
		"a distance":                           {expression: "@every 90m"},
		"spaces around":                        {expression: "  0 3 * * * "},
		"29 February":                          {expression: "0 0 29 2 *"},
		"30 February or any Monday of it":      {expression: "0 0 30 2 1"},
		"four fields":                          {expression: "30 2 * *", reason: reasonInvalidTime, says: "expected exactly 5 fields"},
		"six fields":                           {expression: "0 30 2 * * *", reason: reasonInvalidTime, says: "expected exactly 5 fields"},
		"nothing":                              {expression: "", reason: reasonInvalidTime, says: "empty"},
		"an hour that does not exist":          {expression: "0 24 * * *", reason: reasonInvalidTime, says: "above maximum"},
		"a step of zero":                       {expression: "*/0 * * * *", reason: reasonInvalidTime, says: "step"},
		"a macro that does not exist":          {expression: "@sometimes", reason: reasonInvalidTime, says: "unrecognized descriptor"},
		"a zone in the time":                   {expression: "TZ=UTC 0 0 * * *", reason: reasonInvalidTime, says: "spec.timeZone"},
		"a zone in the time and nothing else":  {expression: "CRON_TZ=UTC", reason: reasonInvalidTime, says: "spec.timeZone"},
		"too short an interval":                {expression: "@every 59s", reason: reasonInvalidTime, says: "1m0s"},
		"a negative interval":                  {expression: "@every -1h", reason: reasonInvalidTime, says: "1m0s"},
		"a day that no month has":              {expression: "0 0 31 2,4,6 *", reason: reasonTimeNeverComes, says: "no such day"},
		"a zone that does not exist":           {expression: "@daily", zone: "Europe/Atlantis", reason: reasonInvalidTimeZone, says: `"Europe/Atlantis"`},
		"the zone of the machine":              {expression: "@daily", zone: "local", reason: reasonInvalidTimeZone, says: "IANA"},
		"a zone that is a path":                {expression: "@daily", zone: "../../etc/passwd", reason: reasonInvalidTimeZone, says: "IANA"},
		"a zone of the program's own database": {expression: "@daily", zone: "Pacific/Kiritimati"},
		"a zone with a shift of half an hour":  {expression: "@hourly", zone: "Australia/Lord_Howe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, wrong := readCalendar(test.expression, test.zone)
			if wrong == nil {
				wrong = &report.Problem{}
			}
			same(t, wrong.Reason, test.reason)
			if !strings.Contains(wrong.Message, test.says) || wrong.Reason != "" && !strings.HasPrefix(wrong.Message, "spec.time") {
				t.Errorf("the message is %q, want it to name the field and to say %q", wrong.Message, test.says)
			}
		})
	}
}

func TestTheTimesThatClocksMakeDifficult(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"an ordinary day": {
			expression: "30 2 * * *", zone: "Europe/Berlin", after: "2026-01-10 12:00",
			want: []string{"2026-01-11 01:30", "2026-01-12 01:30"},
		},
		"02:30 does not exist when clocks are set forward: no backup that day": {
			expression: "30 2 * * *", zone: "Europe/Berlin", after: "2026-03-28 12:00",
			want: []string{"2026-03-30 00:30"},
		},
		"an hourly schedule skips no hour": {
			expression: "30 * * * *", zone: "Europe/Berlin", after: "2026-03-29 00:00",
			want: []string{"2026-03-29 00:30", "2026-03-29 01:30", "2026-03-29 02:30"},
		},
		"02:30 comes twice when clocks are set back: two backups": {
			expression: "30 2 * * *", zone: "Europe/Berlin", after: "2026-10-24 12:00",
			want: []string{"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-26 01:30"},
		},
		"clocks are set forward at midnight: the rest of the day exists": {
			expression: "0 4 * * 5", zone: "Africa/Cairo", after: "2026-04-20 00:00",
			want: []string{"2026-04-24 01:00", "2026-05-01 01:00"},
		},
		"midnight itself does not exist": {
			expression: "@daily", zone: "Africa/Cairo", after: "2026-04-22 22:00",
			want: []string{"2026-04-24 21:00"},
		},
		"clocks are set back by half an hour": {
			expression: "0 2 * * *", zone: "Australia/Lord_Howe", after: "2026-04-03 15:30",
			want: []string{"2026-04-04 15:30", "2026-04-05 15:30"},
		},
		"the last day of a leap year in the far future": {
			expression: "30 0 31 * *", zone: "Europe/Berlin", after: "2040-12-30 12:00",
			want: []string{"2040-12-30 23:30", "2041-01-30 23:30"},
		},
		"a day that a country skipped": {
			expression: "0 12 * * *", zone: "Pacific/Apia", after: "2011-12-29 00:00",
			want: []string{"2011-12-29 22:00", "2011-12-30 22:00"},
		},
		"the 31st of months that have one": {
			expression: "0 0 31 * *", after: "2026-01-31 00:00",
			want: []string{"2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00"},
		},
		"29 February across a year that has none": {
			expression: "0 0 29 2 *", after: "2096-03-01 00:00", want: []string{"2104-02-29 00:00"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times, at := reads(t, test.expression, test.zone), moment(t, test.after)
			for _, want := range test.want {
				next := times.next(at, at)
				same(t, next.UTC().Format("2006-01-02 15:04"), want)
				if latest, ok := times.latest(at, next.Add(time.Second)); !ok || !latest.Equal(next) {
					t.Errorf("the search backward from there found %s, %t", latest, ok)
				}
				if latest, ok := times.latest(at, next.Add(-time.Second)); ok {
					t.Errorf("the search backward from just before it found %s", latest)
				}
				at = next
			}
		})
	}
}

func TestEveryGoesOnFromTheTimeBefore(t *testing.T) {
	t.Parallel()
	times := reads(t, "@every 90m", "Europe/Berlin")
	made := moment(t, "2026-03-29 00:10:07")
	same(t, times.next(made, made), made.Add(90*time.Minute))
	same(t, times.next(made, made.Add(91*time.Minute)), made.Add(3*time.Hour))
	same(t, times.next(made, made.Add(-time.Hour)), made.Add(90*time.Minute))
	latest, ok := times.latest(made, made.Add(1000*90*time.Minute+time.Second))
	same(t, ok, true)
	same(t, latest, made.Add(1000*90*time.Minute))
	_, ok = times.latest(made, made.Add(89*time.Minute))
	same(t, ok, false)
	same(t, times.count(made, made.Add(1000*90*time.Minute), maxMissed), maxMissed)
	same(t, times.count(made, made.Add(181*time.Minute), maxMissed), 2)
	same(t, times.count(made, made.Add(-181*time.Minute), maxMissed), 0)
	same(t, times.next(times.justBefore(made), made.Add(-time.Second)), made)
}

// face is what the clocks show in one minute.
type face struct {
	at                                time.Time
	month, day, weekday, hour, minute uint8
}

// faces are all minutes of a year in a zone, in order. It computes nothing, but reads the clock of each minute.
func faces(zone *time.Location, year int) []face {
	shown := []face{}
	for at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == year; at = at.Add(time.Minute) {
		local := at.In(zone)
		shown = append(shown, face{
			at: at, month: uint8(local.Month()), day: uint8(local.Day()), weekday: uint8(local.Weekday()), hour: uint8(local.Hour()), minute: uint8(local.Minute()),
		})
	}
	return shown
}

func matching(shown []face, fields *cron.SpecSchedule) []int64 {
	found := []int64{}
	either := fields.Dom&daysStarred == 0 && fields.Dow&daysStarred == 0
	for _, one := range shown {
		ofMonth, ofWeek := fields.Dom&(1<<one.day) != 0, fields.Dow&(1<<one.weekday) != 0
		day := ofMonth && ofWeek || either && (ofMonth || ofWeek)
		if day && fields.Month&(1<<one.month) != 0 && fields.Hour&(1<<one.hour) != 0 && fields.Minute&(1<<one.minute) != 0 {
			found = append(found, one.at.Unix())
		}
	}
	return found
}

// randomly returns a cron expression that is sparse enough to have gaps and dense enough to have times.
func randomly(random *rand.Rand) string {
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	number := func(low, high int) string { return fmt.Sprint(low + random.IntN(high-low+1)) }
	return strings.Join([]string{
		pick("0", "30", number(0, 59), number(0, 29)+"-"+number(30, 59)+"/"+number(1, 20), "*/15"),
		pick("*", "0", "1", "2", "3", number(0, 23), "0-6/2", "*/5", number(0, 11)+","+number(12, 23)),
		pick("*", "*", "1", number(1, 31), "*/10", "24-31"),
		pick("*", "*", number(1, 12), "3-4,9-11"),
		pick("*", "*", "0", "5", "1-5", "*/2", "SAT,SUN"),
	}, " ")
}

// TestTimesAreThoseThatClocksShow checks every minute of years with all sorts of clock changes. The search must find exactly the times that
// clocks in the zone show, forward and backward.
func TestTimesAreThoseThatClocksShow(t *testing.T) {
	t.Parallel()
	years := map[string]int{
		"UTC": 2026, "Europe/Berlin": 2026, "America/New_York": 2026, "Africa/Cairo": 2026, "Asia/Beirut": 2026, "America/Santiago": 2026, "America/Havana": 2026,
		"Australia/Lord_Howe": 2026, "Africa/Casablanca": 2026, "Antarctica/Troll": 2026, "Asia/Kathmandu": 2026, "Pacific/Apia": 2011, "America/Sao_Paulo": 2018, "Asia/Pyongyang": 2015,
	}
	for zone, year := range years {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(year), uint64(len(zone))))
			location, wrong := readZone(zone)
			if wrong != nil {
				t.Fatal(wrong.Message)
			}
			shown := faces(location, year)
			expressions := []string{"0 3 * * *", "30 2 * * *", "@daily", "@weekly", "0 4 * * 5", "0 12 * * 0", "*/15 * * * *", "0 12 24 4 *"}
			for range 8 {
				expressions = append(expressions, randomly(random))
			}
			for _, expression := range expressions {
				times, wrong := readCalendar(expression, zone)
				if wrong != nil && wrong.Reason == reasonTimeNeverComes {
					continue
				}
				if wrong != nil {
					t.Fatal(wrong.Message)
				}
				agrees(t, times, expression, matching(shown, times.fields), year)
			}
		})
	}
}

func agrees(t *testing.T, times calendar, expression string, want []int64, year int) {
	t.Helper()
	begin, end := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second), time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
	forward := []int64{}
	for at := times.next(begin, begin); !at.IsZero() && !at.After(end); at = times.next(at, at) {
		forward = append(forward, at.Unix())
	}
	backward := []int64{}
	for at, ok := times.latest(begin, end); ok; at, ok = times.latest(begin, at.Add(-time.Second)) {
		backward = append(backward, at.Unix())
	}
	slices.Reverse(backward)
	if !slices.Equal(forward, want) {
		t.Errorf("%q: forward %s", expression, firstDifference(forward, want))
	}
	if !slices.Equal(backward, want) {
		t.Errorf("%q: backward %s", expression, firstDifference(backward, want))
	}
	if got := times.count(begin, end, 1000); got != min(len(want), 1000) {
		t.Errorf("%q: counted %d of %d times", expression, got, len(want))
	}
}

func firstDifference(got, want []int64) string {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			return fmt.Sprintf("differs at time %d: got %v, want %v", i, at(got, i), at(want, i))
		}
	}
	return "is the same"
}

func at(times []int64, i int) string {
	if i >= len(times) {
		return "none"
	}
	return time.Unix(times[i], 0).UTC().Format(time.RFC3339)
}

// TestTimesAreThoseOfCronJob compares with CronJob's search, where that has no faults.
func TestTimesAreThoseOfCronJob(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, zone := range []string{"Etc/UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"} {
		for range 60 {
			expression := randomly(random)
			times, wrong := readCalendar(expression, zone)
			if wrong != nil {
				continue
			}
			theirs, err := cron.ParseStandard("TZ=" + zone + " " + expression)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for range 200 {
				want := theirs.Next(at)
				if want.IsZero() {
					break // beyond the five years that CronJob's search covers
				}
				if got := times.next(at, at); !got.Equal(want) {
					t.Fatalf("%q in %s after %s: got %s, CronJob's is %s", expression, zone, at, got, want)
				}
				at = want
			}
		}
	}
}

// TestLookingForATimeTakesFewSteps compares 36 years with two days, which have 6,500 times fewer minutes. Only the best of many tries
// counts, so that the machine and its load make no difference.
func TestLookingForATimeTakesFewSteps(t *testing.T) {
	t.Parallel()
	const tries, times = 50, 20
	every := reads(t, "* * * * *", "Europe/Berlin")
	now := moment(t, "2026-06-01 00:00:30")
	best := func(began string) time.Duration {
		since, least := moment(t, began), time.Hour
		for range tries {
			start := time.Now()
			every.latest(since, now)
			every.count(since, now, maxMissed)
			least = min(least, time.Since(start))
		}
		return least
	}
	if days, years := best("2026-05-30 00:00"), best("1990-01-01 00:00"); years > times*days {
		t.Errorf("36 years of minutes took %s, two days %s", years, days)
	}
}

func FuzzCalendarsEnd(f *testing.F) {
	for _, seed := range []string{"30 2 * * *", "@every 1h", "0 0 29 2 */7", "1-59/7 */3 1,15 jan-dec ?", "@weekly", "TZ=", "0 0 30 2 1"} {
		f.Add(seed, "Europe/Berlin", int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, expression, zone string, unix int64) {
		times, wrong := readCalendar(expression, zone)
		if wrong != nil {
			return
		}
		now := time.Unix(unix%4_000_000_000, 0)
		next := times.next(now, now)
		if !next.After(now) {
			t.Fatalf("the time after %s is %s", now, next)
		}
		if latest, ok := times.latest(now, next); !ok || !latest.Equal(next) {
			t.Errorf("the search backward from %s found %s", next, latest)
		}
	})
}
