package transfer

import "time"

// ClockTolerance is how far in the future a time that is on record may be to be believed: clocks of machines differ. What is further ahead
// was written while a clock was wrong.
const ClockTolerance = 10 * time.Minute

// EndedAt is when a backup ended: as the operator's clock says, but not before the API server, by its own clock, made the instance. An end
// that is earlier than that was written by a clock that was behind.
func EndedAt(said, made time.Time) time.Time {
	if said.Before(made) {
		return made
	}
	return said
}

// Believed is when a backup ended, as far as it is known. An end that is still to come was written by a clock that was ahead: to show it
// would be to hide, for as long, that no backup has succeeded since. What is known then is when the API server, by its own clock, made the
// instance, which was earlier; zero if that is still to come, too. An end before that is not believed either (EndedAt).
func Believed(ended, made, now time.Time) time.Time {
	limit := now.Add(ClockTolerance)
	for _, one := range []time.Time{EndedAt(ended, made), made} {
		if !one.After(limit) {
			return one
		}
	}
	return time.Time{}
}
