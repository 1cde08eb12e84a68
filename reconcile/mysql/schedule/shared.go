package schedule

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// sharedFor bounds how long one request may take, however many callers still wait.
const sharedFor = time.Minute

// sharedRequest lets concurrent callers share one answer. A caller never gets an answer whose request started before the call: it gets the
// next one. Only one request runs at a time.
type sharedRequest[T any] struct {
	list func(context.Context) (T, error)

	mu sync.Mutex
	// next is the answer whose request has not started yet. last is the latest one that was asked for; nil for none.
	next, last *answer[T]
}

// answer is what all its callers get when done is closed.
type answer[T any] struct {
	done  chan struct{}
	found T
	err   error
}

// get returns an answer whose request starts after the call, or an error when ctx ends. Other callers continue to wait then.
func (s *sharedRequest[T]) get(ctx context.Context) (T, error) {
	joined := s.join(ctx)
	select {
	case <-joined.done:
		return joined.found, joined.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for a list that several passes share: %w", ctx.Err())
	}
}

func (s *sharedRequest[T]) join(ctx context.Context) *answer[T] {
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

// find gets an answer after the previous one. It recovers from a panic, as a pass does.
func (s *sharedRequest[T]) find(ctx context.Context, before, wanted *answer[T]) {
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
