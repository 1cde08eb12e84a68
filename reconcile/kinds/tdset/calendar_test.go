package tdset

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// seedSpec returns the founding document's schedule.
func seedSpec(zone string) v1.TDSetSpec {
	return v1.TDSetSpec{TimeZone: zone, DefaultReplica: 3, SchedulingConfig: []v1.Interval{
		{StartTime: 9, EndTime: 17, Replica: 5}, {StartTime: 17, EndTime: 19, Replica: 3}, {StartTime: 19, EndTime: 0, Replica: 2},
		{StartTime: 1, EndTime: 7, Replica: 2}, {StartTime: 7, EndTime: 9, Replica: 3},
	}}
}

func read(t *testing.T, spec v1.TDSetSpec) calendar {
	t.Helper()
	times, found := readCalendar(spec)
	if found != nil {
		t.Fatalf("the schedule is refused: %+v", found)
	}
	return times
}

func clock(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestTurnAt(t *testing.T) {
	t.Parallel()
	night := v1.TDSetSpec{DefaultReplica: 4, SchedulingConfig: []v1.Interval{{StartTime: 22, EndTime: 6, Replica: 1}}}
	weekend := v1.TDSetSpec{DefaultReplica: 4, SchedulingConfig: []v1.Interval{
		{StartTime: 22, EndTime: 6, Replica: 0, Days: []v1.Day{v1.Saturday}}, {StartTime: 0, EndTime: 24, Replica: 2, Days: []v1.Day{v1.Saturday, v1.Sunday}},
	}}
	berlin := v1.TDSetSpec{TimeZone: "Europe/Berlin", DefaultReplica: 1, SchedulingConfig: []v1.Interval{{StartTime: 2, EndTime: 3, Replica: 7}}}
	const never = ""
	for story, test := range map[string]struct {
		spec                 v1.TDSetSpec
		now                  string
		name                 string
		replicas             int32
		since, until, change string
		next                 int32
	}{
		"the seed's morning":         {seedSpec(""), "2026-11-21T09:00:00Z", "09:00-17:00", 5, "2026-11-21T09:00:00Z", "2026-11-21T17:00:00Z", "2026-11-21T17:00:00Z", 3},
		"a moment before":            {seedSpec(""), "2026-11-21T08:59:59Z", "07:00-09:00", 3, "2026-11-21T07:00:00Z", "2026-11-21T09:00:00Z", "2026-11-21T09:00:00Z", 5},
		"until midnight":             {seedSpec(""), "2026-11-21T23:59:59Z", "19:00-00:00", 2, "2026-11-21T19:00:00Z", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z", 3},
		"the gap after it":           {seedSpec(""), "2026-11-22T00:00:00Z", "default", 3, "2026-11-22T00:00:00Z", "2026-11-22T01:00:00Z", "2026-11-22T01:00:00Z", 2},
		"a night goes past midnight": {night, "2026-11-22T03:00:00Z", "22:00-06:00", 1, "2026-11-21T22:00:00Z", "2026-11-22T06:00:00Z", "2026-11-22T06:00:00Z", 4},
		"a night of Saturday alone begins on Saturday and ends on Sunday": {weekend, "2026-11-22T05:59:59Z", "22:00-06:00 Sat", 0, "2026-11-21T22:00:00Z", "2026-11-22T06:00:00Z", "2026-11-22T06:00:00Z", 2},
		"and what comes later in the list holds for the rest of Sunday":   {weekend, "2026-11-22T06:00:00Z", "00:00-24:00 Sun,Sat", 2, "2026-11-22T06:00:00Z", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", 4},
		"a week without a change": {weekend, "2026-11-23T00:00:00Z", "default", 4, "2026-11-23T00:00:00Z", "2026-11-28T00:00:00Z", "2026-11-28T00:00:00Z", 2},
		"another interval, the same number": {
			v1.TDSetSpec{DefaultReplica: 2, SchedulingConfig: []v1.Interval{{StartTime: 9, EndTime: 17, Replica: 2}, {StartTime: 20, EndTime: 21, Replica: 9}}},
			"2026-11-21T10:00:00Z", "09:00-17:00", 2, "2026-11-20T21:00:00Z", "2026-11-21T17:00:00Z", "2026-11-21T20:00:00Z", 9,
		},
		"no interval at all":                             {v1.TDSetSpec{DefaultReplica: 2}, "2026-11-21T10:00:00Z", "default", 2, never, never, never, 0},
		"one for the whole day":                          {v1.TDSetSpec{DefaultReplica: 2, SchedulingConfig: []v1.Interval{{StartTime: 0, EndTime: 0, Replica: 6}}}, "2026-11-21T10:00:00Z", "00:00-00:00", 6, never, never, never, 0},
		"24 hours that begin at 9":                       {v1.TDSetSpec{DefaultReplica: 2, SchedulingConfig: []v1.Interval{{StartTime: 9, EndTime: 9, Replica: 6, Days: []v1.Day{v1.Monday}}}}, "2026-11-24T08:59:59Z", "09:00-09:00 Mon", 6, "2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z", "2026-11-24T09:00:00Z", 2},
		"an hour that is missing on the day is left out": {berlin, "2026-03-28T12:00:00Z", "default", 1, "2026-03-28T02:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T00:00:00Z", 7},
		"the only hour of a week is left out: the next is a fortnight after the last": {
			v1.TDSetSpec{TimeZone: "Europe/Berlin", DefaultReplica: 1, SchedulingConfig: []v1.Interval{{StartTime: 2, EndTime: 3, Replica: 7, Days: []v1.Day{v1.Sunday}}}},
			"2026-03-22T02:00:00Z", "default", 1, "2026-03-22T02:00:00Z", "2026-04-05T00:00:00Z", "2026-04-05T00:00:00Z", 7,
		},
		"an hour that the day has twice takes twice": {berlin, "2026-10-25T00:30:00Z", "02:00-03:00", 7, "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:00:00Z", 1},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			times := read(t, test.spec)
			found := times.turnAt(clock(t, test.now))
			said := func(moment time.Time) string {
				if moment.IsZero() {
					return never
				}
				return moment.UTC().Format(time.RFC3339Nano)
			}
			got := []any{times.nameOf(found.interval), found.replicas, said(found.since), said(found.until), said(found.change), found.next}
			want := []any{test.name, test.replicas, test.since, test.until, test.change, test.next}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("interval, replicas, since, until, change and next (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimeZonesThatDoNotExist(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Mars/Olympus", "Local", "local"} {
		if _, found := readCalendar(v1.TDSetSpec{TimeZone: zone}); found == nil || found.Reason != reasonInvalidTimeZone || !found.Stalled {
			t.Errorf("zone %q: %+v", zone, found)
		}
	}
}

// oracle returns the interval that holds, by the rules of docs/tdset.md: it checks each interval, and uses only what clocks show.
func oracle(spec v1.TDSetSpec, zone *time.Location, moment time.Time) (interval int, replicas int32) {
	shown := moment.In(zone)
	hour, today := int32(shown.Hour()), v1.Day(shown.Weekday().String()[:3])
	yesterday := v1.Day(((shown.Weekday() + 6) % 7).String()[:3])
	for index, interval := range spec.SchedulingConfig {
		on := func(day v1.Day) bool { return len(interval.Days) == 0 || slices.Contains(interval.Days, day) }
		overnight := interval.EndTime <= interval.StartTime
		switch {
		case !overnight && on(today) && hour >= interval.StartTime && hour < interval.EndTime,
			overnight && on(today) && hour >= interval.StartTime,
			overnight && on(yesterday) && hour < interval.EndTime:
			return index, interval.Replica
		}
	}
	return none, spec.DefaultReplica
}

// watch asks the oracle, and asks again only when clocks show another hour or day: the oracle depends on nothing else.
func watch(spec v1.TDSetSpec, zone *time.Location) func(time.Time) (interval int, replicas int32) {
	hour, interval, replicas := -1, none, int32(0)
	return func(moment time.Time) (int, int32) {
		shown := moment.In(zone)
		if now := int(shown.Weekday())*100 + shown.Hour(); now != hour {
			hour = now
			interval, replicas = oracle(spec, zone, moment)
		}
		return interval, replicas
	}
}

// TestEverySecondOfAYear checks a year second by second.
func TestEverySecondOfAYear(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	spec := seedSpec("Europe/Berlin")
	times := read(t, spec)
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	announced, looks := times.turnAt(now), watch(spec, times.zone)
	for end := now.AddDate(1, 0, 0); now.Before(end); now = now.Add(time.Second) {
		interval, replicas := looks(now)
		if now.Equal(announced.until) {
			if interval == announced.interval || replicas != announced.next && now.Equal(announced.change) {
				t.Fatalf("at %s another interval was announced, %+v: it is %d", now, announced, interval)
			}
			announced = times.turnAt(now)
		}
		if interval != announced.interval || replicas != announced.replicas {
			t.Fatalf("at %s interval %d holds with %d replicas; announced was %+v", now, interval, replicas, announced)
		}
	}
}

// change is the start of another interval, according to the oracle.
type change struct {
	at       time.Time
	interval int
	replicas int32
}

// changes returns all changes between two times. In these years clocks are changed at whole minutes, so the loop misses no change.
func changes(spec v1.TDSetSpec, zone *time.Location, from, until time.Time) []change {
	found, looks := []change{}, watch(spec, zone)
	for at := from; at.Before(until); at = at.Add(time.Minute) {
		interval, replicas := looks(at)
		if len(found) == 0 || found[len(found)-1].interval != interval {
			found = append(found, change{at, interval, replicas})
		}
	}
	return found
}

// TestEveryBoundaryOfAYear compares what is announced around each change of a year with what happens. It uses the founding document's
// schedule and random ones. Its zones change their clocks by an hour, by half an hour, at midnight, a minute later, four times a year, or
// leave out a day.
func TestEveryBoundaryOfAYear(t *testing.T) {
	t.Parallel()
	for zone, year := range map[string]int{
		"UTC": 2026, "Europe/Berlin": 2026, "America/New_York": 2026, "Australia/Lord_Howe": 2026, "Asia/Kathmandu": 2026, "Africa/Cairo": 2026,
		"Asia/Beirut": 2026, "Africa/Casablanca": 2026, "Pacific/Apia": 2011, "America/Sao_Paulo": 2018, "Pacific/Chatham": 2026, "Antarctica/Troll": 2026, "America/Havana": 2040, "America/St_Johns": 2010,
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(uint64(year), uint64(crc32.ChecksumIEEE([]byte(zone)))))
			specs := []v1.TDSetSpec{seedSpec(zone), randomSpec(dice, zone), randomSpec(dice, zone)}
			if testing.Short() {
				specs = specs[:2]
			}
			for number, spec := range specs {
				checkYear(t, spec, year, fmt.Sprintf("schedule %d", number))
			}
		})
	}
}

func randomSpec(dice *rand.Rand, zone string) v1.TDSetSpec {
	days := []v1.Day{v1.Monday, v1.Tuesday, v1.Wednesday, v1.Thursday, v1.Friday, v1.Saturday, v1.Sunday}
	spec := v1.TDSetSpec{TimeZone: zone, DefaultReplica: dice.Int32N(3)}
	for range 1 + dice.IntN(5) {
		interval := v1.Interval{StartTime: dice.Int32N(24), EndTime: dice.Int32N(25), Replica: dice.Int32N(4)}
		for _, at := range dice.Perm(len(days))[:dice.IntN(4)] {
			interval.Days = append(interval.Days, days[at])
		}
		spec.SchedulingConfig = append(spec.SchedulingConfig, interval)
	}
	return spec
}

func checkYear(t *testing.T, spec v1.TDSetSpec, year int, name string) {
	t.Helper()
	times := read(t, spec)
	first := time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)
	found := changes(spec, times.zone, first.AddDate(0, -2, 0), first.AddDate(1, 2, 0))
	checked := 0
	for index, one := range found {
		if one.at.Before(first) || !one.at.Before(first.AddDate(1, 0, 0)) {
			continue
		}
		end := found[index+1].at
		for _, now := range []time.Time{one.at, one.at.Add(time.Second), end.Add(-time.Second), end.Add(-1)} {
			want := expected(found, index)
			if diff := cmp.Diff(want, times.turnAt(now), cmp.AllowUnexported(scheduledReplicas{})); diff != "" {
				t.Fatalf("%s, %+v: at %s (-want +got):\n%s", name, spec, now, diff)
			}
		}
		checked++
	}
	if checked == 0 {
		for day := range 365 {
			now := first.AddDate(0, 0, day)
			interval, replicas := oracle(spec, times.zone, now)
			if diff := cmp.Diff(scheduledReplicas{interval: interval, replicas: replicas}, times.turnAt(now), cmp.AllowUnexported(scheduledReplicas{})); diff != "" {
				t.Fatalf("%s never changes; at %s (-want +got):\n%s", name, now, diff)
			}
		}
	}
	t.Logf("%s: %d changes", name, checked)
}

// expected returns the turn that must be announced after one of the oracle's changes.
func expected(found []change, index int) scheduledReplicas {
	want := scheduledReplicas{interval: found[index].interval, replicas: found[index].replicas, until: found[index+1].at}
	for before := index; before > 0; before-- {
		if found[before-1].replicas != want.replicas {
			want.since = found[before].at
			break
		}
	}
	for _, later := range found[index+1:] {
		if later.replicas != want.replicas {
			want.change, want.next = later.at, later.replicas
			break
		}
	}
	return want
}
