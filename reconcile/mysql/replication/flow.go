package replication

import (
	"maps"
	"time"
)

// Flow control. A replica that takes over first applies what it has received. If clients commit faster than every replica applies, that
// takes longer and longer. So the primary then delays its commits (binlog_group_commit_sync_delay): commits that wait at the same time end
// together, so a number of clients makes fewer commits a second. Only the time that a takeover needs depends on it. So it fails open: what
// is not known delays nothing.

const (
	// MostBacklog is how long the best replica may need to apply what it lacks. Commits are delayed from half of it on, and less again from
	// a quarter on.
	MostBacklog = 2 * time.Second
	// leastDelay is the shortest delay.
	leastDelay = 5 * time.Millisecond
	// MostDelay is the longest delay. N clients that commit all the time make N commits in each delay: 64 of them make 320 a second with this
	// one.
	MostDelay = 200 * time.Millisecond
)

// Progress is how far a primary and its replicas were at one time.
type Progress struct {
	At time.Time
	// Made counts the transactions of the primary. Answers are those of replicas that acknowledge, by their names.
	Made    int64
	Answers map[string]Answer
}

// Answer is how far a replica was when it answered. It may answer late, and a rate must not count that as slow or fast.
type Answer struct {
	At time.Time
	// Applied counts its transactions, Missing those that it lacks.
	Applied, Missing int64
}

// Backlog is what the best replica has not applied. The zero value is not known.
type Backlog struct {
	// CatchUp is how long it needs to apply that as fast as it has applied lately. Made and Applied are how many transactions a second the
	// primary makes, and this replica applies.
	CatchUp       time.Duration
	Made, Applied float64
	IsKnown       bool
}

// Remembering returns the progress with the last answers of replicas that have not answered now. So the rate of one that answers again is
// known at once.
func (p Progress) Remembering(before Progress) Progress {
	all := map[string]Answer{}
	maps.Copy(all, before.Answers)
	maps.Copy(all, p.Answers)
	p.Answers = all
	return p
}

// Since returns the backlog of the best replica, by two looks at the same replicas. A replica that lacks transactions and has applied none
// in between does not count: it works on a large transaction, waits for a lock, or has stopped. No delay of commits helps it.
func (p Progress) Since(before Progress) Backlog {
	seconds, best := p.At.Sub(before.At).Seconds(), Backlog{}
	if seconds <= 0 {
		return best
	}
	for name, now := range p.Answers {
		was, isSeen := before.Answers[name]
		between := now.At.Sub(was.At).Seconds()
		if !isSeen || between <= 0 || now.Applied <= was.Applied && now.Missing > 0 {
			continue
		}
		rate, needs := float64(now.Applied-was.Applied)/between, time.Duration(0)
		if now.Missing > 0 {
			needs = time.Duration(float64(now.Missing) / rate * float64(time.Second))
		}
		if !best.IsKnown || needs < best.CatchUp {
			best = Backlog{CatchUp: needs, Made: float64(p.Made-before.Made) / seconds, Applied: rate, IsKnown: true}
		}
	}
	return best
}

// NextDelay returns how long the primary delays commits from now on. While the backlog is too long, clients should make one fifth less than
// the replica applies, and before that as much. Twice the delay makes about half as many commits. But a delay that is shorter than what
// clients wait for anyway changes little, so it is at least doubled while the backlog is too long.
func NextDelay(delay time.Duration, seen Backlog) time.Duration {
	const steepest = 4
	share, flattest := 1.0, 1.0
	switch {
	case !seen.IsKnown:
		return shorten(delay, 2)
	case seen.CatchUp < MostBacklog/4:
		return shorten(delay, 1.5)
	case seen.CatchUp < MostBacklog/2:
		return delay
	case seen.CatchUp > MostBacklog:
		share, flattest = 0.8, 2
	}
	tooFast := seen.Made / (share * seen.Applied)
	if tooFast <= 1 {
		return delay
	}
	longer := time.Duration(float64(delay) * min(max(tooFast, flattest), steepest))
	return min(max(longer, leastDelay), MostDelay)
}

// shorten divides a delay. One that is too short to matter ends.
func shorten(delay time.Duration, by float64) time.Duration {
	if shorter := time.Duration(float64(delay) / by); shorter >= leastDelay {
		return shorter
	}
	return 0
}
