package reconcile

import (
	"context"
	"fmt"
	"sync"
)

// requestSlots limits how many requests run at once. An admission webhook that hangs holds every write of one resource for up to 30
// seconds. So the reads of one resource may take at most half of the slots, and so may its writes. Both together, and all writes, may take
// at most three quarters. If one resource hangs, a quarter of the slots remains for others. If two hang, others wait: reads for hanging
// reads, writes for hanging writes.
type requestSlots struct {
	all, writes chan struct{}
	// urgent has further slots, a quarter as many, for requests of urgent passes that would have to wait. nil for those slots themselves.
	urgent *requestSlots

	mu     sync.Mutex
	shares map[shareOf]chan struct{}
}

// shareOf names a group of requests that has a share of the slots.
type shareOf struct {
	resource string
	requests requestClass
}

// requestClass is a class of a resource's requests.
type requestClass int

const (
	reads requestClass = iota
	writes
	readsAndWrites
)

func newRequestSlots(atOnce int) *requestSlots {
	s := newSlots(atOnce)
	s.urgent = newSlots(max(1, atOnce/4))
	return s
}

func newSlots(atOnce int) *requestSlots {
	return &requestSlots{
		all:    make(chan struct{}, atOnce),
		writes: make(chan struct{}, threeQuarters(atOnce)),
		shares: map[shareOf]chan struct{}{},
	}
}

// urgentKey is the key of the contexts of urgent passes.
type urgentKey struct{}

// urgently returns the context of an urgent pass.
func urgently(work context.Context) context.Context {
	return context.WithValue(work, urgentKey{}, true)
}

func threeQuarters(slots int) int { return max(1, slots*3/4) }

// take waits until a request may run, and returns the function that releases its slots.
func (s *requestSlots) take(ctx context.Context, wanted requestInfo) (give func(), err error) {
	if ctx.Value(urgentKey{}) != nil && s.urgent != nil {
		if give, ok := s.tryTake(wanted); ok {
			return give, nil
		}
		return s.urgent.take(ctx, wanted)
	}
	taken := make([]chan struct{}, 0, mostNeeded)
	for _, slots := range s.needed(wanted) {
		select {
		case slots <- struct{}{}:
			taken = append(taken, slots)
		case <-ctx.Done():
			giveAll(taken)
			return nil, fmt.Errorf("wait for other requests of %s: %w", wanted.resource, ctx.Err())
		}
	}
	return func() { giveAll(taken) }, nil
}

// tryTake takes the slots of a request if all are free.
func (s *requestSlots) tryTake(wanted requestInfo) (give func(), ok bool) {
	taken := make([]chan struct{}, 0, mostNeeded)
	for _, slots := range s.needed(wanted) {
		select {
		case slots <- struct{}{}:
			taken = append(taken, slots)
		default:
			giveAll(taken)
			return nil, false
		}
	}
	return func() { giveAll(taken) }, true
}

func giveAll(taken []chan struct{}) {
	for _, slots := range taken {
		<-slots
	}
}

// mostNeeded is how many slots a request needs at most.
const mostNeeded = 4

// needed are the slots that a request needs, one of each.
func (s *requestSlots) needed(wanted requestInfo) []chan struct{} {
	both := s.of(shareOf{wanted.resource, readsAndWrites})
	if wanted.verb != "get" && wanted.verb != "list" {
		return []chan struct{}{s.of(shareOf{wanted.resource, writes}), both, s.writes, s.all}
	}
	return []chan struct{}{s.of(shareOf{wanted.resource, reads}), both, s.all}
}

func (s *requestSlots) of(share shareOf) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots, ok := s.shares[share]
	if !ok {
		limit := max(1, cap(s.all)/2)
		if share.requests == readsAndWrites {
			limit = threeQuarters(cap(s.all))
		}
		slots = make(chan struct{}, limit)
		s.shares[share] = slots
	}
	return slots
}
