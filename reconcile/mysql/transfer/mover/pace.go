package mover

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

const (
	// busyAbove is the rate of statements and commits per second above which a member has active clients. It is several times the
	// operator's own rate.
	busyAbove = 100
	// restOnOneCPU, divided by the node's CPUs, is the ratio of pause to work for a donor with active clients. A copy keeps about two CPUs
	// busy. So the donor works an eighth of the time on a node with two CPUs, and half of it on one with fourteen. It uses about the same
	// share of either. The program counts the CPUs of its own node, and assumes that the donor's is similar.
	restOnOneCPU = 14.0
	// shortestRest keeps pauses few. longestRest prevents the donor from taking a pause for a broken connection.
	shortestRest = 20 * time.Millisecond
	longestRest  = time.Second
	// lookEvery is how often the donor is asked for its clients' activity.
	lookEvery = time.Second
)

// pacer pauses the copy from a donor that has active clients. The donor's work is the time for which the recipient waits for data. If the
// destination is slow, the donor has pauses anyway. Except for busy, only one goroutine may use a pacer.
type pacer struct {
	busy atomic.Bool
	// resting is false if the user has set a rate, and in the last stages, during which redo log accumulates at the donor.
	resting bool
	// restShare is the ratio of pause to work.
	restShare float64
	clock     func() time.Time
	pause     func(time.Duration)
	// since is when the last Write returned. began is when the current one was called.
	since, began time.Time
	owed         time.Duration
	// stored is the total time of all Writes. rested is the total time of all pauses.
	stored, rested time.Duration
}

// newPacer returns a pacer whose pauses end with the context, for a donor on a node with so many CPUs.
func newPacer(ctx context.Context, resting bool, cpus int) *pacer {
	return &pacer{resting: resting, restShare: restOnOneCPU / float64(max(1, cpus)), clock: time.Now, pause: func(duration time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(duration):
		}
	}}
}

// begin records that the donor has delivered data, and how long a pause it is owed for that.
func (p *pacer) begin() {
	p.began = p.clock()
	if !p.resting || !p.busy.Load() {
		p.owed = 0
		return
	}
	if !p.since.IsZero() {
		p.owed += time.Duration(p.restShare * float64(p.began.Sub(p.since)))
	}
}

// end records that the data is stored. The donor paused meanwhile; end pauses for the rest of what is owed.
func (p *pacer) end() {
	ended := p.clock()
	p.stored += ended.Sub(p.began)
	p.owed = max(0, p.owed-ended.Sub(p.began))
	if p.owed >= shortestRest {
		p.pause(min(p.owed, longestRest))
		p.owed = 0
	}
	p.since = p.clock()
	p.rested += p.since.Sub(ended)
}

// isBusy reports whether two counts of a member's activity show active clients.
func isBusy(before, after int64, passed time.Duration) bool {
	return passed > 0 && float64(after-before)/passed.Seconds() > busyAbove
}

// watch asks the donor until the context ends. If the donor does not answer, busy stays as it was: the copy itself detects a failed donor.
func (p *pacer) watch(ctx context.Context, from server, log logr.Logger) {
	before, asked := int64(-1), time.Time{}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		now := p.clock()
		count, err := activity(ctx, from)
		if err == nil && before >= 0 {
			if busy := isBusy(before, count, now.Sub(asked)); busy != p.busy.Swap(busy) {
				log.V(1).Info("activity of the donor's clients changed", "busy", busy)
			}
		}
		if err == nil {
			before, asked = count, now
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

func activity(ctx context.Context, from server) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return from.ObserveActivity(ctx)
}
