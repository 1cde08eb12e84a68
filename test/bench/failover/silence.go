package main

import (
	"slices"
	"time"
)

// attempt is one write of the client.
type attempt struct {
	id int
	// began is when the client sent the statement, ended when it got an answer or gave up.
	began, ended   time.Time
	isAcknowledged bool
}

// silence is a time without acknowledged writes: from the answer to one to the answer to the next.
type silence struct {
	// after is how long after the fault it began. It is negative if the last write before the fault was acknowledged then.
	after, length time.Duration
}

// silences returns the times without writes from a fault on, the longest first. The first of them begins with the last write that was
// acknowledged before the fault. If none was, it begins with the fault. The attempts are those of one client, in their order.
func silences(attempts []attempt, fault time.Time) []silence {
	from := fault
	var found []silence
	for _, one := range attempts {
		switch {
		case !one.isAcknowledged:
			continue
		case one.ended.After(fault):
			found = append(found, silence{after: from.Sub(fault), length: one.ended.Sub(from)})
		}
		from = one.ended
	}
	slices.SortStableFunc(found, func(a, b silence) int { return int(b.length - a.length) })
	return found
}

// acknowledgedSince counts the acknowledged writes that began after a moment, and returns the id of the first one.
func acknowledgedSince(attempts []attempt, moment time.Time) (count, first int) {
	for _, one := range slices.Backward(attempts) {
		if one.began.Before(moment) {
			break
		}
		if one.isAcknowledged {
			count++
			first = one.id
		}
	}
	return count, first
}

// lost returns the ids that were acknowledged and are not present.
func lost(attempts []attempt, present map[int]bool) []int {
	var missing []int
	for _, one := range attempts {
		if one.isAcknowledged && !present[one.id] {
			missing = append(missing, one.id)
		}
	}
	return missing
}
