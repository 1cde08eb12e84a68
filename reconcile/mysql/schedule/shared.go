package schedule

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// sharedFor bounds how long an answer is looked for, whoever still waits for it.
const sharedFor = time.Minute

// shared has those who ask at the same time wait for one answer. Nobody gets one that was being looked for already when he asked: the next
// is his. One answer is looked for at a time.
type shared[T any] struct {
	list func(context.Context) (T, error)

	mu sync.Mutex
	// next is the answer that was not begun with yet, last the latest that was asked for; nil for none.
	next, last *answer[T]
}

// answer is what all who wait for it get when done is closed.
type answer[T any] struct {
	done  chan struct{}
	found T
	err   error
}

// get returns an answer that was looked for from now on, or an error when ctx ends. The others go on waiting then.
func (s *shared[T]) get(ctx context.Context) (T, error) {
	joined := s.join(ctx)
	select {
	case <-joined.done:
		return joined.found, joined.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for a list that others wait for, too: %w", ctx.Err())
	}
}

func (s *shared[T]) join(ctx context.Context) *answer[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		before := s.last
		s.next = &answer[T]{done: make(chan struct{})}
		s.last = s.next
		go s.find(context.WithoutCancel(ctx), before, s.next)
	}
	return s.next
}

// find looks for an answer when the one before is there. A panic is contained, as it would be in a pass.
func (s *shared[T]) find(ctx context.Context, before, wanted *answer[T]) {
	defer close(wanted.done)
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	defer func() {
		if value := recover(); value != nil {
			wanted.err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, sharedFor)
	defer cancel()
	wanted.found, wanted.err = s.list(bounded)
}
