package reconcile

import (
	"context"
	"fmt"
	"sync"
)

// requestSlots bound how many requests run at once. An admission webhook that hangs holds every write of one resource for up to 30 seconds:
// the reads of one resource may take no more than half of the slots, neither may its writes, and both together, like all writes, no more
// than three quarters. So one resource that hangs leaves a quarter of the slots to others. If two hang, others wait: in reads for reads
// that hang, in writes for writes.
type requestSlots struct {
	all, writes chan struct{}

	mu     sync.Mutex
	shares map[shareOf]chan struct{}
}

// shareOf names what has a share of the slots.
type shareOf struct {
	resource string
	requests requestClass
}

// requestClass is a part of a resource's requests.
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

// take waits until a request may run, and returns what ends that.
func (s *requestSlots) take(ctx context.Context, wanted asked) (give func(), err error) {
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
