package reconcile

import (
	"context"
	"fmt"
	"sync"
)

// requestSlots bound how many requests run at once. An admission webhook that hangs holds every write of one resource for up to 30
// seconds: the requests of one resource may take no more than half of the slots, and all writes no more than three quarters. So other
// resources go on, and what is read to decide is never behind what hangs.
type requestSlots struct {
	all, writes chan struct{}
	// share is how many requests of one resource may run at once.
	share int

	mu        sync.Mutex
	resources map[string]chan struct{}
}

func newRequestSlots(atOnce int) *requestSlots {
	return &requestSlots{
		all:       make(chan struct{}, atOnce),
		writes:    make(chan struct{}, max(1, atOnce*3/4)),
		share:     max(1, atOnce/2),
		resources: map[string]chan struct{}{},
	}
}

// take waits until a request may run, and returns what ends that.
func (s *requestSlots) take(ctx context.Context, wanted asked) (give func(), err error) {
	needed := []chan struct{}{s.of(wanted.resource)}
	if wanted.verb != "get" && wanted.verb != "list" {
		needed = append(needed, s.writes)
	}
	taken := make([]chan struct{}, 0, 3)
	give = func() {
		for _, slots := range taken {
			<-slots
		}
	}
	for _, slots := range append(needed, s.all) {
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

func (s *requestSlots) of(resource string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots, ok := s.resources[resource]
	if !ok {
		slots = make(chan struct{}, s.share)
		s.resources[resource] = slots
	}
	return slots
}
