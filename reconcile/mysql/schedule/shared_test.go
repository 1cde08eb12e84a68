package schedule

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// lists are a test's requests. Each knows when it started, by a clock that counts events, and waits until it may end.
type lists struct {
	sharedRequest[int64]
	clock  atomic.Int64
	begun  atomic.Int64
	finish chan error
}

func newLists() *lists {
	l := &lists{finish: make(chan error)}
	l.list = func(ctx context.Context) (int64, error) {
		l.begun.Add(1)
		began := l.clock.Add(1)
		select {
		case err := <-l.finish:
			return began, err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return l
}

// asks starts a caller, and keeps its result.
func (l *lists) asks(ctx context.Context, group *sync.WaitGroup) *outcome {
	got := &outcome{}
	group.Go(func() {
		got.asked = l.clock.Add(1)
		got.began, got.err = l.get(ctx)
		got.isThere.Store(true)
	})
	synctest.Wait()
	return got
}

// ends ends the request in progress, if there is one.
func (l *lists) ends(err error) {
	synctest.Wait()
	select {
	case l.finish <- err:
	default:
	}
	synctest.Wait()
}

type outcome struct {
	asked, began int64
	err          error
	isThere      atomic.Bool
}

// TestWhoAsksAtTheSameTimeSharesALaterList: 300 passes cause four requests, and no pass gets one that started before it asked.
func TestWhoAsksAtTheSameTimeSharesALaterList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, all, group := newLists(), []*outcome{}, &sync.WaitGroup{}
		for range 3 {
			for range 100 {
				all = append(all, l.asks(t.Context(), group))
			}
			if begun := l.begun.Load(); begun > 3 {
				t.Fatalf("%d requests are in progress", begun)
			}
			l.ends(nil)
		}
		l.ends(nil)
		group.Wait()
		same(t, l.begun.Load(), int64(4))
		for _, one := range all {
			if one.err != nil || one.began < one.asked {
				t.Errorf("the caller at %d got the list of %d (%v)", one.asked, one.began, one.err)
			}
		}
	})
}

// TestAListIsNobodysAlone: a caller that gives up does not end the request for others. An error reaches all who wait, and the next callers
// get another list.
func TestAListIsNobodysAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, group := newLists(), &sync.WaitGroup{}
		impatient, giveUp := context.WithCancel(t.Context())
		first := l.asks(impatient, group)
		second, third := l.asks(impatient, group), l.asks(t.Context(), group)
		giveUp()
		synctest.Wait()
		same(t, []bool{first.isThere.Load(), second.isThere.Load(), third.isThere.Load()}, []bool{true, true, false})
		same(t, errors.Is(first.err, context.Canceled) && errors.Is(second.err, context.Canceled), true)

		l.ends(errors.New("no caller waits for this"))
		fourth, broken := l.asks(t.Context(), group), errors.New("no such page")
		l.ends(broken)
		same(t, []bool{third.isThere.Load(), fourth.isThere.Load()}, []bool{true, false})
		same(t, errors.Is(third.err, broken), true)
		l.ends(nil)
		group.Wait()
		same(t, fourth.err == nil && fourth.began > fourth.asked, true)
		same(t, l.begun.Load(), int64(3))
	})
}

// TestAListDoesNotLastForEver: the API server accepts the request and never answers. Later callers get another list.
func TestAListDoesNotLastForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, group := newLists(), &sync.WaitGroup{}
		first := l.asks(t.Context(), group)
		group.Wait()
		same(t, errors.Is(first.err, context.DeadlineExceeded), true)
		second := l.asks(t.Context(), group)
		l.ends(nil)
		group.Wait()
		same(t, second.err, nil)
	})
}

// TestAPanicInAListIsAnError: a panic must not end the operator.
func TestAPanicInAListIsAnError(t *testing.T) {
	t.Parallel()
	broken := sharedRequest[int]{list: func(context.Context) (int, error) { panic("a mistake") }}
	for range 2 {
		if _, err := broken.get(t.Context()); err == nil || !strings.Contains(err.Error(), "a mistake") {
			t.Errorf("the error is %v", err)
		}
	}
}
