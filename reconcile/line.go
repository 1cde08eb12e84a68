package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// slowAfter is when a pass counts as slow.
const slowAfter = 2 * time.Second

// slowPerWorker is how many slow passes there may be for each worker.
const slowPerWorker = 16

// The groups that a kind's waiting objects are in.
const (
	// newcomers had no pass in this term yet.
	newcomers = iota
	// regulars are all others but the sluggish.
	regulars
	// sluggish are those whose last pass was slow. Their next pass begins in a slow place.
	sluggish
	groups
)

// line is the order in which a kind's objects come to their passes, and the bound of how many there are at once. It is the storage behind
// the kind's work queue (workqueue.Queue).
//
// Within a group the namespaces take turns, and no namespace may have more than three quarters of the places. A pass that turns out slow
// leaves its place to others and goes on in one of the slow places. So objects whose passes hang, however many they are, delay neither
// those of other namespaces nor new ones.
type line struct {
	after time.Duration
	// ready has a message when there may be an object to begin with.
	ready chan struct{}

	mu      sync.Mutex
	waiting [groups]ring
	// turn is counted up with every object that leaves the line.
	turn int
	// known are the objects that had a pass; true if the last one was slow.
	known map[types.NamespacedName]bool
	// left are the objects that Pop returned and use has not begun with; true if one has a slow place.
	left        map[types.NamespacedName]bool
	quick, slow places
}

// ring holds objects by namespace.
type ring struct {
	lanes map[string][]types.NamespacedName
	// order has the namespaces that wait, the next one first.
	order []string
}

// places are how many passes may run at once, and those that do.
type places struct {
	limit, share int
	taken        int
	of           map[string]int
}

func newPlaces(limit int) places {
	return places{limit: limit, share: max(1, limit*3/4), of: map[string]int{}}
}

func (p *places) hasRoom(namespace string) bool {
	return p.taken < p.limit && p.of[namespace] < p.share
}

func (p *places) take(namespace string) {
	p.taken++
	p.of[namespace]++
}

func (p *places) give(namespace string) {
	p.taken--
	p.of[namespace]--
	if p.of[namespace] == 0 {
		delete(p.of, namespace)
	}
}

func newLine(workers int) *line {
	l := &line{
		after: slowAfter, ready: make(chan struct{}, 1), known: map[types.NamespacedName]bool{}, left: map[types.NamespacedName]bool{},
		quick: newPlaces(workers), slow: newPlaces(workers * slowPerWorker),
	}
	for group := range l.waiting {
		l.waiting[group].lanes = map[string][]types.NamespacedName{}
	}
	return l
}

// Push implements workqueue.Queue.
func (l *line) Push(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := newcomers
	if wasSlow, isKnown := l.known[key]; isKnown {
		group = regulars
		if wasSlow {
			group = sluggish
		}
	}
	waiting := &l.waiting[group]
	if len(waiting.lanes[key.Namespace]) == 0 {
		waiting.order = append(waiting.order, key.Namespace)
	}
	waiting.lanes[key.Namespace] = append(waiting.lanes[key.Namespace], key)
	l.wake()
}

// Touch implements workqueue.Queue: an object that waits keeps its place.
func (l *line) Touch(types.NamespacedName) {}

// Len implements workqueue.Queue.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, waiting := range l.waiting {
		for _, lane := range waiting.lanes {
			count += len(lane)
		}
	}
	return count
}

// Pop implements workqueue.Queue. The object has its place from here on; use gives it back.
func (l *line) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	group, position, ok := l.next()
	if !ok { // nobody asks for an object without room for it but a queue that is shut down
		for group = range l.waiting {
			if position = 0; len(l.waiting[group].order) > 0 {
				break
			}
		}
	}
	key := l.waiting[group].leave(position)
	l.turn++
	l.left[key] = group == sluggish
	if group == sluggish {
		l.slow.take(key.Namespace)
	} else {
		l.quick.take(key.Namespace)
	}
	if _, isKnown := l.known[key]; !isKnown {
		l.known[key] = false
	}
	return key
}

// mayBegin says whether there is an object that waits, and room for its pass.
func (l *line) mayBegin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, ok := l.next()
	return ok
}

// next finds the object to begin with: newcomers go first, but each of the other groups has every fourth turn.
func (l *line) next() (group, position int, ok bool) {
	order := [groups]int{newcomers, regulars, sluggish}
	switch l.turn % 4 {
	case 1:
		order = [groups]int{sluggish, newcomers, regulars}
	case 3:
		order = [groups]int{regulars, newcomers, sluggish}
	}
	for _, group := range order {
		room := &l.quick
		if group == sluggish {
			room = &l.slow
		}
		for position, namespace := range l.waiting[group].order {
			if room.hasRoom(namespace) {
				return group, position, true
			}
			if room.taken >= room.limit {
				break
			}
		}
	}
	return 0, 0, false
}

// leave takes the first object of a namespace out, and sends the namespace to the end.
func (r *ring) leave(position int) types.NamespacedName {
	namespace := r.order[position]
	lane := r.lanes[namespace]
	key := lane[0]
	r.order = append(r.order[:position], r.order[position+1:]...)
	if len(lane) == 1 {
		delete(r.lanes, namespace)
		return key
	}
	r.lanes[namespace] = lane[1:]
	r.order = append(r.order, namespace)
	return key
}

// use does the work of an object that Pop returned, moves it to a slow place if it lasts, and gives its place back.
func (l *line) use(key types.NamespacedName, work func()) {
	began := time.Now()
	l.mu.Lock()
	isSlow := l.left[key] // not what known says by now: the object may have been queued again before its last pass gave its place back
	delete(l.left, key)
	l.mu.Unlock()
	finished := false
	timer := time.AfterFunc(l.after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if finished {
			return
		}
		l.known[key] = true
		if !isSlow && l.slow.hasRoom(key.Namespace) {
			isSlow = true
			l.quick.give(key.Namespace)
			l.slow.take(key.Namespace)
			l.wake()
		}
	})
	defer func() {
		timer.Stop()
		l.mu.Lock()
		defer l.mu.Unlock()
		finished = true
		if _, isKnown := l.known[key]; isKnown {
			l.known[key] = time.Since(began) >= l.after
		}
		if isSlow {
			l.slow.give(key.Namespace)
		} else {
			l.quick.give(key.Namespace)
		}
		l.wake()
	}()
	work()
}

// forget forgets an object that is gone.
func (l *line) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
}

func (l *line) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}
