package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has no files but the program

	"github.com/robfig/cron/v3"
)

// shortest is the least time between two times of "@every".
const shortest = time.Minute

// calendar is when a schedule's times come. What cron syntax means is left to the parser that Kubernetes' CronJob uses, so that an
// expression that works there works here, and means the same. Its search for the next time is not used: that never returns for a zone
// that leaves out a whole day (Pacific/Apia, 30 December 2011), it loses the day on which clocks are set forward at midnight (Egypt,
// Lebanon) and whatever follows a shift of half an hour (Lord Howe), and it cannot look back (walk.go).
type calendar struct {
	// fields are the minutes, hours, days and months of a cron expression as sets of bits, read in zone; nil for "@every".
	fields *cron.SpecSchedule
	zone   *time.Location
	// every is the distance of "@every", which begins at the time before.
	every time.Duration
}

// problem is something that keeps a schedule from its work and that does not pass without somebody's help.
type problem struct {
	reason, message string
}

// readCalendar reads spec.time and spec.timeZone; the problem is nil if both make sense.
func readCalendar(expression, zone string) (calendar, *problem) {
	location, found := readZone(zone)
	if found != nil {
		return calendar{}, found
	}
	invalid := func(why string) *problem {
		return &problem{reasonInvalidTime, fmt.Sprintf("spec.time: %q is no time: %s; nothing is backed up until it is: write five cron fields such as \"30 2 * * *\", or a macro such as @daily", expression, why)}
	}
	if strings.Contains(expression, "=") {
		return calendar{}, invalid("a time zone belongs in spec.timeZone")
	}
	parsed, err := cron.ParseStandard(strings.TrimSpace(expression))
	if err != nil {
		return calendar{}, invalid(err.Error())
	}
	switch times := parsed.(type) {
	case cron.ConstantDelaySchedule:
		if times.Delay < shortest {
			return calendar{}, invalid(fmt.Sprintf("@every takes at least %s", shortest))
		}
		return calendar{every: times.Delay, zone: location}, nil
	case *cron.SpecSchedule:
		read := calendar{fields: times, zone: location}
		if !read.ever() {
			return calendar{}, &problem{reasonTimeNeverComes, fmt.Sprintf("spec.time: %q never comes, as no such day exists: choose a day that its month has", expression)}
		}
		return read, nil
	}
	return calendar{}, invalid("it cannot be read")
}

// readZone finds an IANA time zone by its name, in the database of the machine or else the one within the program. Local is what no two
// machines agree on.
func readZone(name string) (*time.Location, *problem) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "Local") {
		return nil, &problem{reasonInvalidTimeZone, fmt.Sprintf("spec.timeZone: there is no time zone %q; nothing is backed up until there is: write a name of the IANA database such as Europe/Berlin, or Etc/UTC", name)}
	}
	return zone, nil
}

// next returns the first time after both the time before and now.
func (c calendar) next(before, now time.Time) time.Time {
	from := later(before, now)
	if c.fields == nil {
		return before.Add(c.every * (from.Sub(before)/c.every + 1))
	}
	return c.forward(from)
}

// latest returns the last time that is after the time before and not after now, and whether there is one.
func (c calendar) latest(before, now time.Time) (time.Time, bool) {
	if !now.After(before) {
		return time.Time{}, false
	}
	if c.fields == nil {
		found := before.Add(c.every * (now.Sub(before) / c.every))
		return found, found.After(before)
	}
	return c.backward(now, before)
}

// count returns how many times there are after the time before and not after now, but at most limit.
func (c calendar) count(before, now time.Time, limit int) int {
	if c.fields == nil {
		return int(min(max(now.Sub(before)/c.every, 0), time.Duration(limit)))
	}
	counted := 0
	for at := c.forward(before); counted < limit && !at.IsZero() && !at.After(now); at = c.forward(at) {
		counted++
	}
	return counted
}

// justBefore returns a time before to which the next time is at.
func (c calendar) justBefore(at time.Time) time.Time {
	if c.fields == nil {
		return at.Add(-c.every)
	}
	return at.Add(-time.Second)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
