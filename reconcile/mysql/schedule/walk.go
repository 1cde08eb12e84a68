package schedule

import "time"

// horizon is how far ahead to look for a time. The longest wait is for a 29 February: eight years across a year like 2100.
const horizon = 9 * 366 * 24 * time.Hour

// daysStarred marks a field of days that was written with a star, in the parser's sets.
const daysStarred = 1 << 63

// The search goes from one clock change of the zone to the next. Between two changes, the offset from UTC is fixed and days have 24 hours,
// so that arithmetic is enough. A time that the clocks skip is in no such period, and does not come. A time that they show twice is in two
// periods, and comes twice. CronJob does the same.

// forward returns the first time after the given one; zero if none comes within the horizon.
func (c calendar) forward(after time.Time) time.Time {
	limit := after.Add(horizon)
	at := after.Truncate(time.Second).Add(time.Second)
	for at.Before(limit) {
		_, end := c.constantOffsetPeriod(at)
		until := limit
		if end.Before(limit) {
			until = end
		}
		distance := c.utcOffset(at)
		if found, ok := c.firstIn(at.Add(distance), until.Add(distance)); ok {
			return found.Add(-distance)
		}
		at = until
	}
	return time.Time{}
}

// backward returns the last time in (after, from], and whether there is one.
func (c calendar) backward(from, after time.Time) (time.Time, bool) {
	at := from
	for at.After(after) {
		start, _ := c.constantOffsetPeriod(at)
		since := after.Add(1)
		if start.After(since) {
			since = start
		}
		distance := c.utcOffset(at)
		if found, ok := c.lastIn(since.Add(distance), at.Add(distance)); ok {
			return found.Add(-distance), true
		}
		at = since.Add(-1)
	}
	return time.Time{}, false
}

// ever reports whether the times come at all: a year of 366 days has every day that exists.
func (c calendar) ever() bool {
	leap := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	for day := range 366 {
		if c.hasDayOfMonth(leap.AddDate(0, 0, day)) {
			return true
		}
	}
	return false
}

// constantOffsetPeriod returns a period around the given time, without its end, in which the zone's clocks do not change.
func (c calendar) constantOffsetPeriod(at time.Time) (start, end time.Time) {
	start, end = at.In(c.zone).ZoneBounds()
	if start.After(at) {
		start = at
	}
	switch {
	case end.IsZero():
		end = at.Add(horizon)
	case !end.After(at):
		// Go 1.26 returns such an end for the last day of leap years from 2040 on, on which no clocks change.
		end = at.Truncate(time.Hour).Add(time.Hour)
	}
	return start, end
}

// utcOffset is the offset of the zone from UTC. A time plus this offset is what the clocks show, written as UTC.
func (c calendar) utcOffset(at time.Time) time.Duration {
	_, seconds := at.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// firstIn finds the first time that clocks show in [from, until). lastIn finds the last one in [since, until].
func (c calendar) firstIn(from, until time.Time) (time.Time, bool) {
	from, until = from.UTC(), until.UTC()
	first := (from.Sub(dayOf(from)) + time.Minute - 1).Truncate(time.Minute) // the first whole minute
	for day := dayOf(from); day.Before(until); first = 0 {
		if !c.hasMonth(day) {
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		if c.hasDay(day) {
			if minute, ok := c.minuteFrom(int(first / time.Minute)); ok {
				found := day.Add(minute)
				return found, found.Before(until)
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

func (c calendar) lastIn(since, until time.Time) (time.Time, bool) {
	since, until = since.UTC(), until.UTC()
	last := int(until.Sub(dayOf(until)) / time.Minute)
	for day := dayOf(until); !day.Add(24 * time.Hour).Before(since); last = 24*60 - 1 {
		if !c.hasMonth(day) {
			day = time.Date(day.Year(), day.Month(), 0, 0, 0, 0, 0, time.UTC) // the last day of the month before
			continue
		}
		if c.hasDay(day) {
			if minute, ok := c.minuteTo(last); ok {
				found := day.Add(minute)
				return found, !found.Before(since)
			}
		}
		day = day.AddDate(0, 0, -1)
	}
	return time.Time{}, false
}

func dayOf(at time.Time) time.Time {
	return at.Truncate(24 * time.Hour) // it is UTC
}

func (c calendar) hasMonth(day time.Time) bool {
	return c.fields.Month&(1<<day.Month()) != 0
}

// hasDay checks the day of the month and the day of the week. If both were restricted, either must match; if one has a star, both must
// (crontab(5)).
func (c calendar) hasDay(day time.Time) bool {
	ofMonth, ofWeek := c.fields.Dom&(1<<day.Day()) != 0, c.fields.Dow&(1<<day.Weekday()) != 0
	if (c.fields.Dom|c.fields.Dow)&daysStarred != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// hasDayOfMonth reports whether a day may match, in this year or in a year in which it has another day of the week.
func (c calendar) hasDayOfMonth(day time.Time) bool {
	byWeek := (c.fields.Dom|c.fields.Dow)&daysStarred == 0
	return c.hasMonth(day) && (byWeek || c.fields.Dom&(1<<day.Day()) != 0)
}

// minuteFrom returns the first minute of a day that is not before the given one, as the time since midnight. minuteTo returns the last one
// not after it.
func (c calendar) minuteFrom(first int) (time.Duration, bool) {
	for minute := first; minute < 24*60; minute++ {
		if c.hasMinute(minute) {
			return time.Duration(minute) * time.Minute, true
		}
	}
	return 0, false
}

func (c calendar) minuteTo(last int) (time.Duration, bool) {
	for minute := last; minute >= 0; minute-- {
		if c.hasMinute(minute) {
			return time.Duration(minute) * time.Minute, true
		}
	}
	return 0, false
}

func (c calendar) hasMinute(ofDay int) bool {
	return c.fields.Hour&(1<<(ofDay/60)) != 0 && c.fields.Minute&(1<<(ofDay%60)) != 0
}
