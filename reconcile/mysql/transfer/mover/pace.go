package mover

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

const (
	// busyAbove is how many statements and commits a second make a member one that has clients at work: several times what the operator
	// itself asks.
	busyAbove = 100
	// restOnOneCPU, divided by the node's CPUs, is how many times as long as it has worked a donor with clients at work may rest. A copy keeps
	// about two CPUs at work while it is made: on a node of two it works an eighth of the time, on one of fourteen half of it, and so takes
	// about the same share of either. The CPUs counted are those of the backup's own node, which the donor's is taken to resemble.
	restOnOneCPU = 14.0
	// shortestRest makes pauses few, longestRest keeps them from being taken for a broken connection.
	shortestRest = 20 * time.Millisecond
	longestRest  = time.Second
	// lookEvery is how often it is asked whether clients are at work.
	lookEvery = time.Second
)

// pacer lets a donor that has clients at work rest. Its work is what the recipient waits for: where the destination is what is slow, the
// donor rests anyway. It is for one goroutine, but for busy.
type pacer struct {
	busy atomic.Bool
	// resting is false where the user has said how fast, and in the last stages: meanwhile redo log piles up at the donor.
	resting bool
	// restShare is how many times as long as it has worked the donor may rest.
	restShare float64
	clock     func() time.Time
	pause     func(time.Duration)
	// since is when the last Write returned, began when the present one was called.
	since, began time.Time
	owed         time.Duration
	// stored is how long all Writes took, rested how long all pauses.
	stored, rested time.Duration
}

// newPacer makes one whose pauses end with the context, for a donor on a node with so many CPUs.
func newPacer(ctx context.Context, resting bool, cpus int) *pacer {
	return &pacer{resting: resting, restShare: restOnOneCPU / float64(max(1, cpus)), clock: time.Now, pause: func(duration time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(duration):
		}
	}}
}

// begin notes that the donor has delivered, and pauses where it is owed a rest.
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

// end notes that what it delivered is stored: meanwhile it had its rest. What is left of it is had now.
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

// isBusy judges two counts of a member's activity.
func isBusy(before, after int64, passed time.Duration) bool {
	return passed > 0 && float64(after-before)/passed.Seconds() > busyAbove
}

// watch asks until the context ends. What cannot be told stays as it was: whether the copy can go on is not for this to say.
func (p *pacer) watch(ctx context.Context, from server, log logr.Logger) {
	before, asked := int64(-1), time.Time{}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		now := p.clock()
		count, err := activity(ctx, from)
		if err == nil && before >= 0 {
			if busy := isBusy(before, count, now.Sub(asked)); busy != p.busy.Swap(busy) {
				log.V(1).Info("clients at work", "busy", busy)
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
