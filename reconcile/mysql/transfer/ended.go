package transfer

import "time"

// ClockTolerance is how far in the future a recorded time may be and still be plausible: clocks of machines differ. A wrong clock wrote a
// time that is further ahead.
const ClockTolerance = 10 * time.Minute

// EndedAt returns when a backup ended by the operator's clock, but not before the API server, by its own clock, created the instance. A
// clock that was behind wrote an end that is earlier.
func EndedAt(said, made time.Time) time.Time {
	if said.Before(made) {
		return made
	}
	return said
}

// PlausibleEnd returns when a backup ended, as far as the time is plausible. A clock that was ahead wrote an end in the future, which would
// hide until then that no backup has succeeded since. The result is then the earlier time at which the API server, by its own clock,
// created the instance; zero if that is in the future, too. An end before the creation is not plausible either (EndedAt).
func PlausibleEnd(ended, made, now time.Time) time.Time {
	limit := now.Add(ClockTolerance)
	for _, one := range []time.Time{EndedAt(ended, made), made} {
		if !one.After(limit) {
			return one
		}
	}
	return time.Time{}
}
