package reconcile

import (
	"context"
	"sync"
	"time"
)

// slowAfter is when a pass counts as slow.
const slowAfter = 2 * time.Second

// slowPerWorker is how many slow passes there may be for each worker.
const slowPerWorker = 16

// slots bounds how many passes run at once. A pass that turns out slow gives its slot back and goes on in a place of its own, as long
// as there is one: objects whose passes hang in time-outs do not keep the others waiting.
type slots struct {
	quick, slow chan struct{}
	after       time.Duration
}

func newSlots(workers int) *slots {
	return &slots{quick: make(chan struct{}, workers), slow: make(chan struct{}, workers*slowPerWorker), after: slowAfter}
}

// take waits for a slot; false if ctx ended first.
func (s *slots) take(ctx context.Context) bool {
	select {
	case s.quick <- struct{}{}:
		return ctx.Err() == nil || s.give()
	case <-ctx.Done():
		return false
	}
}

func (s *slots) give() bool {
	<-s.quick
	return false
}

// use does the work in the slot taken, and gives back the slot, or the slow place it was exchanged for.
func (s *slots) use(work func()) {
	var (
		mu       sync.Mutex
		slow     bool
		finished bool
	)
	timer := time.AfterFunc(s.after, func() {
		mu.Lock()
		defer mu.Unlock()
		if finished {
			return
		}
		select {
		case s.slow <- struct{}{}:
			slow = true
			<-s.quick
		default:
		}
	})
	defer func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		finished = true
		if slow {
			<-s.slow
			return
		}
		<-s.quick
	}()
	work()
}
