package tdset

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has no files but the program

	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

const (
	hoursOfDay  = 24
	hoursOfWeek = 7 * hoursOfDay

	// horizon is how far ahead a change is looked for, and how far back. A schedule repeats every week; where clocks leave out the only
	// hour or day that matters, it is a week later.
	horizon = 5 * 7 * hoursOfDay * time.Hour
)

// none is in place of an interval's index while no interval holds.
const none = -1

// calendar is a schedule: which interval holds at a time, and how many replicas that means.
type calendar struct {
	zone      *time.Location
	intervals []v1.Interval
	// fallback is how many replicas run while no interval holds.
	fallback int32
	// week has, for each hour that clocks show in a week, from Sunday's first on, the index of the interval that holds, or none.
	week [hoursOfWeek]int
}

// turn is what a calendar says of a time.
type turn struct {
	// interval is the index of the interval that holds, or none.
	interval int
	replicas int32
	// since is when the number became what it is; zero if it was never another.
	since time.Time
	// until is when another interval holds, or none; zero for never.
	until time.Time
	// change is when the number is another, and next which; zero for never.
	change time.Time
	next   int32
}

// readCalendar reads the schedule of a TDSet; the problem is nil if there is such a time zone.
func readCalendar(spec v1.TDSetSpec) (calendar, *problem) {
	zone, found := readZone(spec.TimeZone)
	if found != nil {
		return calendar{}, found
	}
	read := calendar{zone: zone, intervals: spec.SchedulingConfig, fallback: spec.DefaultReplica}
	for hour := range read.week {
		read.week[hour] = none
	}
	// From the last to the first: where they overlap, the first counts.
	for index, interval := range slices.Backward(spec.SchedulingConfig) {
		for _, hour := range hoursOf(interval) {
			read.week[hour] = index
		}
	}
	return read, nil
}

// hoursOf returns the hours of the week at which an interval holds, beginning with those of Sunday.
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

// readZone finds an IANA time zone by its name, in the database of the machine or else the one within the program. Local is what no two
// machines agree on.
func readZone(name string) (*time.Location, *problem) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "Local") {
		return nil, &problem{reasonInvalidTimeZone, fmt.Sprintf("spec.timeZone: there is no time zone %q; the number of replicas stays as it is until there is: write a name of the IANA database such as Europe/Berlin, or UTC", name), true}
	}
	return zone, nil
}

// at returns the index of the interval that holds at a time, or none.
func (c calendar) at(moment time.Time) int {
	shown := moment.In(c.zone)
	return c.week[int(shown.Weekday())*hoursOfDay+shown.Hour()]
}

// replicasOf returns how many replicas an interval means; none means the default.
func (c calendar) replicasOf(interval int) int32 {
	if interval == none {
		return c.fallback
	}
	return c.intervals[interval].Replica
}

// turnAt returns what the calendar says of a time.
func (c calendar) turnAt(now time.Time) turn {
	found := turn{interval: c.at(now)}
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

// since returns when the number of replicas became what it is now; zero if it was never another.
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

// The hour that clocks show changes when they come to the next one, and when somebody sets them. From one time that they are set to the
// next they are a fixed distance from UTC, and the rest is arithmetic.

// after returns the first time after another at which clocks show another hour, or are set.
func (c calendar) after(moment time.Time) time.Time {
	distance := c.distance(moment)
	next := moment.Add(distance).UTC().Truncate(time.Hour).Add(time.Hour - distance)
	_, end := moment.In(c.zone).ZoneBounds()
	// Of the last day of leap years from 2040 on, Go 1.26 says an end that is past; no clocks are set on it.
	if end.After(moment) && end.Before(next) {
		return end.UTC()
	}
	return next
}

// notAfter returns the last time, not after another, at which clocks came to another hour, or were set.
func (c calendar) notAfter(moment time.Time) time.Time {
	distance := c.distance(moment)
	last := moment.Add(distance).UTC().Truncate(time.Hour).Add(-distance)
	start, _ := moment.In(c.zone).ZoneBounds()
	if start.After(last) && !start.After(moment) {
		return start.UTC()
	}
	return last
}

// distance is what the clocks in the zone show more than those in UTC.
func (c calendar) distance(moment time.Time) time.Duration {
	_, seconds := moment.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// nameOf names an interval for people: "09:00-17:00", with its days if there are any, or "default".
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
