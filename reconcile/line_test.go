package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func in(namespace string, number int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(number)}
}

func nobody(types.NamespacedName) bool { return false }

// popAll starts passes as long as there are places, and returns their objects.
func (l *passQueue) popAll() []types.NamespacedName {
	popped := []types.NamespacedName{}
	for l.mayBegin() {
		popped = append(popped, l.Pop())
	}
	return popped
}

func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	l := newLine(100, nobody)
	for number := range 500 {
		l.Push(in("crowded", number))
	}
	l.Push(in("calm", 1))
	l.Push(in("quiet", 1))
	popped := l.popAll()
	same(t, popped[:4], []types.NamespacedName{in("crowded", 0), in("calm", 1), in("quiet", 1), in("crowded", 1)})
	same(t, len(popped), 77) // three quarters of the places, and two of other namespaces
	same(t, l.Len(), 500-75)
	l.Push(in("late", 1))
	same(t, l.popAll(), []types.NamespacedName{in("late", 1)})
}

// While passes of others wait and hang, one that was asked for begins at once, and so do those that follow for a while.
func TestUrgentObjectsWaitForNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(4, func(key types.NamespacedName) bool { return key.Namespace == "new" })
		for number := range 1000 {
			l.Push(in("a", number))
			l.Push(in("b", number))
			l.Push(in("new", number))
		}
		l.popAll() // all places are taken
		l.known[in("a", 2000)] = true
		l.Push(in("a", 2000))
		l.hurry(in("a", 2000))
		l.hurry(in("b", 900))
		same(t, l.popAll(), []types.NamespacedName{in("a", 2000), in("b", 900)})
		same(t, l.beginsUrgent(in("a", 2000)), true)
		same(t, l.beginsUrgent(in("b", 0)), false)
		for _, key := range []types.NamespacedName{in("a", 2000), in("b", 900)} {
			l.use(key, func() { l.Push(key) }) // it has changed meanwhile
		}
		same(t, l.popAll(), []types.NamespacedName{in("a", 2000), in("b", 900)})

		t.Log("one namespace has a share of the urgent places and of the others")
		for number := range 10 {
			l.hurry(in("a", number+500))
		}
		same(t, len(l.popAll()), 4)
		same(t, len(l.waiting[urgent].lanes["a"]), 6)

		t.Log("later they are like others")
		l.use(in("a", 2000), func() {})
		<-time.After(urgentFor + 1)
		l.Push(in("a", 2000))
		same(t, l.isUrgent(in("a", 2000)), false)
		same(t, len(l.waiting[urgent].order), 1)
	})
}

// If there is no urgent place left, an urgent object begins in any other one, before objects that are not urgent. One whose last pass was
// slow takes no urgent place.
func TestUrgentObjectsTakeOrdinaryPlaces(t *testing.T) {
	t.Parallel()
	l := newLine(8, nobody)
	for number := range 20 {
		l.Push(in("a", number))
		l.hurry(in("a", number))
	}
	l.Push(in("a", 1000))
	same(t, len(l.popAll()), 12) // a namespace's shares of both
	same(t, l.waiting[newcomers].lanes["a"], []types.NamespacedName{in("a", 1000)})
	same(t, l.turn, 0)
	l.known[in("b", 1)] = true
	l.Push(in("b", 1))
	l.hurry(in("b", 1))
	same(t, l.popAll(), []types.NamespacedName{in("b", 1)})
	same(t, l.left[in("b", 1)] == &l.slow, true)
}

func TestNewObjectsGoFirst(t *testing.T) {
	t.Parallel()
	l := newLine(8, nobody)
	for number := range 100 {
		l.known[in("a", number)] = false
		l.Push(in("a", number))
	}
	l.Push(in("a", 1000))
	same(t, l.Pop(), in("a", 1000))
}

// However many objects have or wait for a pass, a new one gets its first status at once.
func TestUnseenObjectsWaitOnlyForEachOther(t *testing.T) {
	t.Parallel()
	isNew := map[types.NamespacedName]bool{}
	l := newLine(8, func(key types.NamespacedName) bool { return isNew[key] })
	for number := range 100 {
		l.Push(in("a", number))
	}
	same(t, len(l.popAll()), 6)
	for number := range 20 {
		isNew[in("a", 1000+number)] = true
		l.Push(in("a", 1000+number))
	}
	begun := l.popAll()
	same(t, len(begun), 18) // a namespace's share of the first places
	same(t, begun[0], in("a", 1000))

	isNew[in("a", 1000)] = false
	l.use(in("a", 1000), func() { l.Push(in("a", 1000)) })
	same(t, l.popAll(), []types.NamespacedName{in("a", 1018)})
	same(t, l.waiting[newcomers].lanes["a"][94], in("a", 1000)) // its first full pass queues with those of other objects that had none
}

// While new objects wait for their first status, full passes take a quarter of their places, so that neither starves.
func TestFullPassesYieldToUnseenObjects(t *testing.T) {
	t.Parallel()
	l := newLine(8, func(key types.NamespacedName) bool { return key.Namespace == "new" })
	for number := range 100 {
		l.Push(in("new", number))
		l.Push(in("a", number))
	}
	begun := map[string]int{}
	for _, key := range l.popAll() {
		begun[key.Namespace]++
	}
	same(t, begun, map[string]int{"new": 18, "a": 2})
	for number := range 82 {
		l.use(in("new", number), func() {})
		l.popAll()
	}
	same(t, l.quick.taken, 6) // no object waits for a first status any more
}

// If the first statuses of one namespace hang, full passes of other namespaces are not limited.
func TestNobodyYieldsToFirstStatusesThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(8, func(key types.NamespacedName) bool { return key.Namespace == "new" })
		for number := range 200 {
			l.Push(in("new", number))
		}
		release := make(chan struct{})
		var all sync.WaitGroup
		hang := func() {
			for _, key := range l.popAll() {
				all.Go(func() { l.use(key, func() { <-release }) })
			}
		}
		for range 10 {
			hang()
			<-time.After(2 * slowAfter)
		}
		for number := range 8 {
			l.Push(in("a", number))
		}
		same(t, len(l.popAll()), 6) // a namespace's share of the quick places
		close(release)
		all.Wait()
		same(t, l.hanging, 0)
	})
}

// An object whose first status cannot be written keeps no first place.
func TestAHangingFirstStatusDelaysNoOther(t *testing.T) {
	t.Parallel()
	l := newLine(1, func(types.NamespacedName) bool { return true })
	l.after, l.first = time.Millisecond, newPlaces(1)
	l.Push(in("a", 1))
	l.use(l.Pop(), func() {
		l.Push(in("a", 2))
		for !l.mayBegin() {
			<-l.ready
		}
	})
	same(t, l.Pop(), in("a", 2))
	l.Push(in("a", 1))
	same(t, l.Pop(), in("a", 1))
	same(t, [2]int{l.first.taken, l.slow.taken}, [2]int{1, 1})
}

func TestNoGroupStarves(t *testing.T) {
	t.Parallel()
	l := newLine(8, nobody)
	for number := range 100 {
		l.Push(in("a", number))
	}
	l.known[in("b", 1)], l.known[in("b", 2)] = false, true
	l.Push(in("b", 1))
	l.Push(in("b", 2))
	popped := map[types.NamespacedName]bool{}
	for range 4 {
		popped[l.Pop()] = true
	}
	same(t, popped[in("b", 1)] && popped[in("b", 2)], true)
}

// A pass over an object that is gone may be slow. Nothing is remembered of the object afterwards.
func TestLineForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(8, nobody)
		l.Push(in("a", 1))
		l.use(l.Pop(), func() {
			l.forget(in("a", 1))
			<-time.After(2 * slowAfter)
		})
		same(t, len(l.known), 0)
	})
}

func TestLineGivesAllPlacesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2, nobody)
		for round, lasts := range []time.Duration{0, 2 * slowAfter, 2 * slowAfter, 0, 0} {
			l.Push(in("a", 1))
			key := l.Pop()
			l.use(key, func() { <-time.After(lasts) })
			same(t, l.known[key], round == 1 || round == 2)
		}
		same(t, l.quick.taken+l.slow.taken, 0)
		same(t, len(l.quick.of)+len(l.slow.of), 0)
		l.forget(in("a", 1))
		same(t, len(l.known), 0)
	})
}

// An object that changed during its pass is queued again before the pass gives its place back.
func TestLineGivesBackThePlaceThatWasTaken(t *testing.T) {
	t.Parallel()
	key := in("a", 1)
	for _, wasSlow := range []bool{true, false} {
		l := newLine(2, nobody)
		l.known[key] = true // its last pass was slow, and the next one is not
		l.Push(key)
		l.use(l.Pop(), func() { l.Push(key) })
		l.known[key] = wasSlow
		l.use(l.Pop(), func() {})
		same(t, [2]int{l.quick.taken, l.slow.taken}, [2]int{0, 0})
		same(t, len(l.quick.of)+len(l.slow.of)+len(l.left), 0)
	}
}

// If a place were lost each time, objects with slow passes would get no passes any more in the end.
func TestObjectsThatRecoverLoseNoPlaces(t *testing.T) {
	t.Parallel()
	l := newLine(2, nobody)
	for number := range 2 * l.slow.limit {
		key := in("a", number)
		l.known[key] = true
		l.Push(key)
		l.use(l.Pop(), func() { l.Push(key) })
		l.use(l.Pop(), func() {})
	}
	l.known[in("a", -1)] = true
	l.Push(in("a", -1))
	same(t, l.mayBegin(), true)
}

// hanging is a Reconciler whose passes hang in one namespace and end at once in all others.
type hanging struct {
	release, began, calm chan struct{}
}

// Reconcile implements Reconciler.
func (h *hanging) Reconcile(ctx context.Context, _ *Client, object *unstructured.Unstructured) (Outcome, error) {
	if object.GetNamespace() != "broken" {
		h.calm <- struct{}{}
		return Outcome{}, nil
	}
	h.began <- struct{}{}
	select {
	case <-h.release:
	case <-ctx.Done():
	}
	return Outcome{}, nil
}

// The passes of five hundred objects hang in one namespace: those of another namespace begin at once, again and again.
func TestBrokenObjectsDelayNoOtherNamespace(t *testing.T) {
	t.Parallel()
	h := &hanging{release: make(chan struct{}), began: make(chan struct{}, 500), calm: make(chan struct{})}
	s := newStage(t, h)
	s.line.after = time.Millisecond
	for number := range 500 {
		object := ownerAt("1", "10")
		object.SetNamespace("broken")
		object.SetName(fmt.Sprint(number))
		s.shows(t, object)
		s.visit(pass{key: keyOf(object), uid: "1"})
	}
	stop, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(stop, t.Context())
	}()
	for range s.line.slow.share + s.line.quick.share {
		<-h.began
	}
	calm := ownerAt("1", "10")
	s.shows(t, calm)
	s.visit(pass{key: keyOf(calm), uid: "1"})
	for range 20 {
		s.controller.enqueue(keyOf(calm))
		select {
		case <-h.calm:
		case <-time.After(5 * time.Second):
			t.Fatal("an object waits for those of another namespace")
		}
	}
	close(h.release)
	cancel()
	<-ended
	s.passes.Wait()
}
