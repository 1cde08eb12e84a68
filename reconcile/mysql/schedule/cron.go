package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has no files but the program

	"github.com/robfig/cron/v3"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// shortest is the shortest interval of "@every".
const shortest = time.Minute

// calendar is the set of a schedule's times. The parser of Kubernetes' CronJob interprets the cron syntax, so that an expression has the
// same meaning in both. The parser's search for the next time is not used. It never returns for a zone that skips a whole day
// (Pacific/Apia, 30 December 2011). It loses the day on which clocks are set forward at midnight (Egypt, Lebanon), and the times after a
// shift of half an hour (Lord Howe). It cannot search backward (walk.go).
type calendar struct {
	// fields are the minutes, hours, days and months of a cron expression as sets of bits, in zone; nil for "@every".
	fields *cron.SpecSchedule
	zone   *time.Location
	// every is the interval of "@every", which begins at the previous time.
	every time.Duration
}

// readCalendar reads spec.time and spec.timeZone; the problem is nil if both are valid.
func readCalendar(expression, zone string) (calendar, *report.Problem) {
	location, found := readZone(zone)
	if found != nil {
		return calendar{}, found
	}
	invalid := func(why string) *report.Problem {
		return &report.Problem{Reason: reasonInvalidTime, Message: fmt.Sprintf("spec.time: %q is not a valid time: %s; write five cron fields such as \"30 2 * * *\", or a macro such as @daily; until then there are no backups", expression, why), Stalled: true}
	}
	if strings.Contains(expression, "=") {
		return calendar{}, invalid("set the time zone in spec.timeZone")
	}
	parsed, err := cron.ParseStandard(strings.TrimSpace(expression))
	if err != nil {
		return calendar{}, invalid(err.Error())
	}
	switch times := parsed.(type) {
	case cron.ConstantDelaySchedule:
		if times.Delay < shortest {
			return calendar{}, invalid(fmt.Sprintf("@every must be at least %s", shortest))
		}
		return calendar{every: times.Delay, zone: location}, nil
	case *cron.SpecSchedule:
		read := calendar{fields: times, zone: location}
		if !read.ever() {
			return calendar{}, &report.Problem{Reason: reasonTimeNeverComes, Message: fmt.Sprintf("spec.time: %q never comes, because no such day exists; choose a day that its month has", expression), Stalled: true}
		}
		return read, nil
	}
	return calendar{}, invalid("its syntax is unknown")
}

// readZone finds an IANA time zone by its name, in the machine's database or else in the program's. It refuses Local, whose meaning depends
// on the machine.
func readZone(name string) (*time.Location, *report.Problem) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "Local") {
		return nil, &report.Problem{Reason: reasonInvalidTimeZone, Message: fmt.Sprintf("spec.timeZone: time zone %q does not exist; write a name of the IANA database such as Europe/Berlin, or Etc/UTC; until then there are no backups", name), Stalled: true}
	}
	return zone, nil
}

// next returns the first time that is after both before and now.
func (c calendar) next(before, now time.Time) time.Time {
	from := later(before, now)
	if c.fields == nil {
		return before.Add(c.every * (from.Sub(before)/c.every + 1))
	}
	return c.forward(from)
}

// latest returns the last time that is after before and not after now, and whether there is one.
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

// count returns how many times there are after before and not after now, at most limit.
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

// justBefore returns a moment after which the next time is at.
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
