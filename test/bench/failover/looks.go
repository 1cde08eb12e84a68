package main

import (
	"fmt"
	"slices"
	"time"
)

// look is what a member answered once.
type look struct {
	member string
	// session is the connection. Looks on one connection follow each other.
	session      int
	began, ended time.Time
	// isOpen means that clients can write: both read_only and super_read_only are off.
	isOpen bool
}

// span is a time in which a member was open for certain.
type span struct {
	member   string
	from, to time.Time
}

// openSpans returns the times from the answer to a look until the next question on the same connection, if both looks found the member
// open. The looks of each member must be in their order. What lasted for less than the time between two looks may be missing.
func openSpans(looks []look) []span {
	var spans []span
	last := map[string]look{}
	for _, one := range looks {
		former, isKnown := last[one.member]
		last[one.member] = one
		if !isKnown || !former.isOpen || !one.isOpen || former.session != one.session {
			continue
		}
		spans = append(spans, span{one.member, former.ended, one.began})
	}
	return spans
}

// overlap is a time in which two members were open.
type overlap struct {
	members  [2]string
	from, to time.Time
}

func (o overlap) String() string {
	return fmt.Sprintf("%s and %s were open together for at least %s", o.members[0], o.members[1], o.to.Sub(o.from).Round(time.Millisecond))
}

// overlaps returns for each pair of members the times in which both were open. Times that are less than the pause apart are one.
func overlaps(spans []span, pause time.Duration) []overlap {
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var found []overlap
	for i, one := range spans {
		for _, other := range spans[i+1:] {
			if !other.from.Before(one.to) {
				break
			}
			if other.member != one.member {
				pair := [2]string{min(one.member, other.member), max(one.member, other.member)}
				to := one.to
				if other.to.Before(to) {
					to = other.to
				}
				found = append(found, overlap{pair, other.from, to})
			}
		}
	}
	return joined(found, pause)
}

// joined joins overlaps of the same pair that follow each other.
func joined(all []overlap, pause time.Duration) []overlap {
	var kept []overlap
	for _, one := range all {
		at := slices.IndexFunc(kept, func(k overlap) bool { return k.members == one.members && one.from.Sub(k.to) <= pause })
		if at < 0 {
			kept = append(kept, one)
			continue
		}
		if one.to.After(kept[at].to) {
			kept[at].to = one.to
		}
	}
	return kept
}

// tip is a read of the highest row, on a connection to one member.
type tip struct {
	began, ended time.Time
	id           int
}

// staleTips counts the reads that returned less than a row that was acknowledged before the read began. The attempts are those of one
// client, in their order, which writes rising ids.
func staleTips(tips []tip, attempts []attempt) int {
	count := 0
	for _, one := range tips {
		for _, written := range slices.Backward(attempts) {
			if written.isAcknowledged && written.ended.Before(one.began) {
				if written.id > one.id {
					count++
				}
				break
			}
		}
	}
	return count
}
