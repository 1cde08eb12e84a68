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
	return &requestSlots{
		all:    make(chan struct{}, atOnce),
		writes: make(chan struct{}, threeQuarters(atOnce)),
		shares: map[shareOf]chan struct{}{},
	}
}

func threeQuarters(slots int) int { return max(1, slots*3/4) }

// take waits until a request may run, and returns the function that releases its slots.
func (s *requestSlots) take(ctx context.Context, wanted requestInfo) (give func(), err error) {
	both := s.of(shareOf{wanted.resource, readsAndWrites})
	needed := []chan struct{}{s.of(shareOf{wanted.resource, reads}), both, s.all}
	if wanted.verb != "get" && wanted.verb != "list" {
		needed = []chan struct{}{s.of(shareOf{wanted.resource, writes}), both, s.writes, s.all}
	}
	taken := make([]chan struct{}, 0, len(needed))
	give = func() {
		for _, slots := range taken {
			<-slots
		}
	}
	for _, slots := range needed {
		select {
		case slots <- struct{}{}:
			taken = append(taken, slots)
		case <-ctx.Done():
			give()
			return nil, fmt.Errorf("wait for other requests of %s: %w", wanted.resource, ctx.Err())
		}
	}
	return give, nil
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
