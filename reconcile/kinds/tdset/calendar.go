package tdset

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has no other files than the program

	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

const (
	hoursOfDay  = 24
	hoursOfWeek = 7 * hoursOfDay

	// horizon is how far ahead and how far back to look for a change. A schedule repeats every week. If clocks skip the only hour or day
	// that matters, the change is a week later.
	horizon = 5 * 7 * hoursOfDay * time.Hour
)

// none replaces an interval's index while no interval holds.
const none = -1

// calendar is a schedule: which interval holds at a time, and how many replicas it gives.
type calendar struct {
	zone      *time.Location
	intervals []v1.Interval
	// fallback is the number of replicas while no interval holds.
	fallback int32
	// week has one entry for each hour that clocks show in a week, from Sunday's first hour: the index of the interval that holds, or none.
	week [hoursOfWeek]int
}

// scheduledReplicas is what a calendar gives for a time.
type scheduledReplicas struct {
	// interval is the index of the interval that holds, or none.
	interval int
	replicas int32
	// since is when the current number began; zero if there was never another.
	since time.Time
	// until is when another interval begins to hold, or none; zero for never.
	until time.Time
	// change is when the number changes, and next is the new number; zero for never.
	change time.Time
	next   int32
}

// readCalendar reads the schedule of a TDSet. The problem is nil if its time zone exists.
func readCalendar(spec v1.TDSetSpec) (calendar, *report.Problem) {
	zone, found := readZone(spec.TimeZone)
	if found != nil {
		return calendar{}, found
	}
	read := calendar{zone: zone, intervals: spec.SchedulingConfig, fallback: spec.DefaultReplica}
	for hour := range read.week {
		read.week[hour] = none
	}
	// From the last to the first: where intervals overlap, the first in the list counts.
	for index, interval := range slices.Backward(spec.SchedulingConfig) {
		for _, hour := range hoursOf(interval) {
			read.week[hour] = index
		}
	}
	return read, nil
}

// hoursOf returns the hours of the week at which an interval holds. Hour 0 is Sunday's first.
func hoursOf(interval v1.Interval) []int {
	length := interval.EndTime - interval.StartTime
	if length <= 0 {
		length += hoursOfDay // it ends on the next day
	}
	days := daysOf(interval)
	hours := make([]int, 0, len(days)*int(length))
	for _, day := range days {
		for hour := range length {
			hours = append(hours, (int(day)*hoursOfDay+int(interval.StartTime+hour))%hoursOfWeek)
		}
	}
	return hours
}

// daysOf returns the days on which an interval begins.
func daysOf(interval v1.Interval) []time.Weekday {
	days := []time.Weekday{}
	for day := time.Sunday; day <= time.Saturday; day++ {
		chosen := len(interval.Days) == 0
		for _, name := range interval.Days {
			chosen = chosen || string(name) == day.String()[:3]
		}
		if chosen {
			days = append(days, day)
		}
	}
	return days
}

// readZone finds an IANA time zone by its name, in the database of the machine or the one in the program. It refuses Local, which differs
// from machine to machine.
func readZone(name string) (*time.Location, *report.Problem) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "Local") {
		return nil, &report.Problem{Reason: reasonInvalidTimeZone, Message: fmt.Sprintf("spec.timeZone: there is no time zone %q; the number of replicas stays as it is until you correct it: use a name of the IANA database such as Europe/Berlin, or UTC", name), Stalled: true}
	}
	return zone, nil
}

// at returns the index of the interval that holds at a time, or none.
func (c calendar) at(moment time.Time) int {
	shown := moment.In(c.zone)
	return c.week[int(shown.Weekday())*hoursOfDay+shown.Hour()]
}

// replicasOf returns the number of replicas of an interval, or the default for none.
func (c calendar) replicasOf(interval int) int32 {
	if interval == none {
		return c.fallback
	}
	return c.intervals[interval].Replica
}

// turnAt returns what the calendar gives for a time.
func (c calendar) turnAt(now time.Time) scheduledReplicas {
	found := scheduledReplicas{interval: c.at(now)}
	found.replicas = c.replicasOf(found.interval)
	limit := now.Add(horizon)
	for at := c.after(now); at.Before(limit); at = c.after(at) {
		interval := c.at(at)
		if interval != found.interval && found.until.IsZero() {
			found.until = at
		}
		if replicas := c.replicasOf(interval); replicas != found.replicas {
			found.change, found.next = at, replicas
			break
		}
	}
	found.since = c.since(now, found.replicas)
	return found
}

// since returns when the current number of replicas began; zero if there was never another.
func (c calendar) since(now time.Time, replicas int32) time.Time {
	limit := now.Add(-horizon)
	for at := c.notAfter(now); at.After(limit); {
		before := at.Add(-time.Nanosecond)
		if c.replicasOf(c.at(before)) != replicas {
			return at
		}
		at = c.notAfter(before)
	}
	return time.Time{}
}

// The hour that clocks show changes when the next hour begins, and when the zone's clocks are changed. Between two changes of the clocks,
// their distance from UTC is fixed, and the rest is arithmetic.

// after returns the first time after moment at which clocks show another hour, or are changed.
func (c calendar) after(moment time.Time) time.Time {
	distance := c.distance(moment)
	next := moment.Add(distance).UTC().Truncate(time.Hour).Add(time.Hour - distance)
	_, end := moment.In(c.zone).ZoneBounds()
	// For the last day of leap years from 2040 on, Go 1.26 returns an end in the past. No clocks are changed on that day.
	if end.After(moment) && end.Before(next) {
		return end.UTC()
	}
	return next
}

// notAfter returns the last time, at or before moment, at which clocks reached another hour, or were changed.
func (c calendar) notAfter(moment time.Time) time.Time {
	distance := c.distance(moment)
	last := moment.Add(distance).UTC().Truncate(time.Hour).Add(-distance)
	start, _ := moment.In(c.zone).ZoneBounds()
	if start.After(last) && !start.After(moment) {
		return start.UTC()
	}
	return last
}

// distance returns how far the zone's clocks are ahead of UTC.
func (c calendar) distance(moment time.Time) time.Duration {
	_, seconds := moment.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// nameOf names an interval for users: "09:00-17:00", with its days if it has any, or "default".
func (c calendar) nameOf(interval int) string {
	if interval == none {
		return "default"
	}
	spoken := c.intervals[interval]
	name := fmt.Sprintf("%02d:00-%02d:00", spoken.StartTime, spoken.EndTime)
	if len(spoken.Days) == 0 {
		return name
	}
	days := make([]string, 0, len(spoken.Days))
	for _, day := range daysOf(spoken) {
		days = append(days, day.String()[:3])
	}
	return name + " " + strings.Join(days, ",")
}
