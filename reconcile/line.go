package reconcile

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// slowAfter is the duration after which a pass counts as slow.
const slowAfter = 2 * time.Second

// slowPerWorker and firstPerWorker are how many slow passes, and passes over unseen objects, may run for each worker.
const (
	slowPerWorker  = 16
	firstPerWorker = 3
)

// yieldTo limits full passes while unseen objects wait: to a quarter of their places. So the API server writes first statuses first, and no
// object starves. If the pass of an unseen object is slow, the reason is not the API server's load, and full passes are not limited.
const yieldTo = 4

// urgentFor is for how long an object's passes go first after one was asked for (Listener): they may not show at once what is wrong.
const urgentFor = 15 * time.Second

// The groups of a kind's waiting objects.
const (
	// urgent are the objects for which a pass was asked for a short while ago. There are further places for their passes, so that a failover
	// waits for no other object.
	urgent = iota
	// unseen objects are new to every operator. Their pass takes one write, and begins in a first place.
	unseen
	// newcomers had no pass in this term yet.
	newcomers
	// regulars are all other objects except the sluggish.
	regulars
	// sluggish objects had a slow last pass. Their next pass begins in a slow place.
	sluggish
	groups
)

// passQueue decides in which order a kind's objects get their passes, and limits how many passes run at once. It is the storage of the
// kind's work queue (workqueue.Queue).
//
// Within a group the namespaces take turns, and no namespace may have more than three quarters of the places. A pass that becomes slow
// leaves its place to others and continues in one of the slow places. So objects whose passes hang, however many there are, delay neither
// objects of other namespaces nor new ones. Unseen objects wait only for each other.
type passQueue struct {
	after time.Duration
	// isUnseen reports whether an object is new to every operator.
	isUnseen func(types.NamespacedName) bool
	// ready has a message when there may be an object whose pass can begin.
	ready chan struct{}

	mu      sync.Mutex
	waiting [groups]ring
	// turn counts the objects that left the line, except urgent and unseen ones.
	turn int
	// known are the objects that had a pass; true if their last one was slow.
	known map[types.NamespacedName]bool
	// left are the objects that Pop returned and use has not started, each with its places.
	left map[types.NamespacedName]*passSlots
	// atWork are the objects with a running pass; true if forget was called during the pass.
	atWork                      map[types.NamespacedName]bool
	hurried, first, quick, slow passSlots
	// urgentUntil is until when an object is urgent.
	urgentUntil map[types.NamespacedName]time.Time
	// hanging counts the running passes over unseen objects that have become slow: they do not wait for a busy API server.
	hanging int
}

// ring holds waiting objects by namespace.
type ring struct {
	lanes map[string][]types.NamespacedName
	// order has the namespaces with waiting objects, the next one first.
	order []string
}

// passSlots limits how many passes run at once, and counts the running ones.
type passSlots struct {
	limit, share int
	taken        int
	of           map[string]int
}

func newPlaces(limit int) passSlots {
	return passSlots{limit: limit, share: max(1, limit*3/4), of: map[string]int{}}
}

func (p *passSlots) hasRoom(namespace string) bool {
	return p.taken < p.limit && p.of[namespace] < p.share
}

func (p *passSlots) take(namespace string) {
	p.taken++
	p.of[namespace]++
}

func (p *passSlots) give(namespace string) {
	p.taken--
	p.of[namespace]--
	if p.of[namespace] == 0 {
		delete(p.of, namespace)
	}
}

func newLine(workers int, isUnseen func(types.NamespacedName) bool) *passQueue {
	l := &passQueue{
		after: slowAfter, isUnseen: isUnseen, ready: make(chan struct{}, 1),
		known: map[types.NamespacedName]bool{}, left: map[types.NamespacedName]*passSlots{}, atWork: map[types.NamespacedName]bool{},
		urgentUntil: map[types.NamespacedName]time.Time{},
		hurried:     newPlaces(workers), first: newPlaces(workers * firstPerWorker), quick: newPlaces(workers), slow: newPlaces(workers * slowPerWorker),
	}
	for group := range l.waiting {
		l.waiting[group].lanes = map[string][]types.NamespacedName{}
	}
	return l
}

// Push implements workqueue.Queue.
func (l *passQueue) Push(key types.NamespacedName) {
	isUnseen := l.isUnseen(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	wasSlow, isKnown := l.known[key]
	group := newcomers
	switch {
	case l.isUrgent(key):
		group = urgent
	case wasSlow:
		group = sluggish
	case isUnseen:
		group = unseen
	case isKnown:
		group = regulars
	}
	l.waiting[group].enter(key)
	l.wake()
}

// hurry makes an object urgent for a while. If it waits already, it goes to the front.
func (l *passQueue) hurry(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgentUntil[key] = time.Now().Add(urgentFor)
	for group := range l.waiting {
		if group != urgent && l.waiting[group].remove(key) {
			l.waiting[urgent].enter(key)
			l.wake()
		}
	}
}

// isUrgent reports whether an object is urgent. The caller must hold the lock.
func (l *passQueue) isUrgent(key types.NamespacedName) bool {
	until, found := l.urgentUntil[key]
	if found && time.Now().After(until) {
		delete(l.urgentUntil, key)
		return false
	}
	return found
}

// beginsUrgent reports whether the pass of an object that Pop returned is urgent.
func (l *passQueue) beginsUrgent(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isUrgent(key)
}

// Touch implements workqueue.Queue: a waiting object keeps its place.
func (l *passQueue) Touch(types.NamespacedName) {}

// Len implements workqueue.Queue.
func (l *passQueue) Len() int {
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

// Pop implements workqueue.Queue. The object takes its place here; use gives it back.
func (l *passQueue) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	group, position, place := l.next()
	if place == nil { // the queue is shut down, or the free place was taken meanwhile
		for group = range l.waiting {
			if position = 0; len(l.waiting[group].order) > 0 {
				break
			}
		}
		place = l.placesOf(group, types.NamespacedName{})[0]
	}
	key := l.waiting[group].leave(position)
	l.left[key] = place
	place.take(key.Namespace)
	switch group {
	case unseen:
		return key // its first full pass follows later
	case urgent:
	default:
		l.turn++
	}
	if _, isKnown := l.known[key]; !isKnown {
		l.known[key] = false
	}
	return key
}

// placesOf returns the places in which the pass of an object of a group may begin, in the order in which it takes one.
func (l *passQueue) placesOf(group int, key types.NamespacedName) []*passSlots {
	switch {
	case group == urgent && l.known[key]: // its last pass was slow
		return []*passSlots{&l.slow, &l.hurried, &l.quick}
	case group == urgent:
		return []*passSlots{&l.hurried, &l.quick}
	case group == unseen:
		return []*passSlots{&l.first}
	case group == sluggish:
		return []*passSlots{&l.slow}
	}
	return []*passSlots{&l.quick}
}

// placeFor returns a place in which the pass of an object of a group can begin; nil if none is free.
func (l *passQueue) placeFor(group int, key types.NamespacedName) *passSlots {
	yields := group != urgent && group != unseen && len(l.waiting[unseen].order) > 0 && l.hanging == 0
	for _, room := range l.placesOf(group, key) {
		if yields && room.taken >= max(1, room.limit/yieldTo) {
			continue
		}
		if room.hasRoom(key.Namespace) {
			return room
		}
	}
	return nil
}

// mayBegin reports whether an object waits and there is a place for its pass.
func (l *passQueue) mayBegin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, place := l.next()
	return place != nil
}

// next finds the next object. Urgent ones are first, then unseen ones and newcomers, but each of the other groups is preferred to newcomers
// in every fourth turn. place is nil if no pass can begin.
func (l *passQueue) next() (group, position int, place *passSlots) {
	order := [groups]int{urgent, unseen, newcomers, regulars, sluggish}
	switch l.turn % 4 {
	case 1:
		order = [groups]int{urgent, unseen, sluggish, newcomers, regulars}
	case 3:
		order = [groups]int{urgent, unseen, regulars, newcomers, sluggish}
	}
	for _, group := range order {
		for position, namespace := range l.waiting[group].order {
			if place := l.placeFor(group, l.waiting[group].lanes[namespace][0]); place != nil {
				return group, position, place
			}
		}
	}
	return 0, 0, nil
}

// enter adds an object behind those of its namespace.
func (r *ring) enter(key types.NamespacedName) {
	if len(r.lanes[key.Namespace]) == 0 {
		r.order = append(r.order, key.Namespace)
	}
	r.lanes[key.Namespace] = append(r.lanes[key.Namespace], key)
}

// remove removes an object, and reports whether it waited here.
func (r *ring) remove(key types.NamespacedName) bool {
	lane := r.lanes[key.Namespace]
	at := slices.Index(lane, key)
	switch {
	case at < 0:
		return false
	case len(lane) > 1:
		r.lanes[key.Namespace] = slices.Delete(lane, at, at+1)
		return true
	}
	delete(r.lanes, key.Namespace)
	r.order = slices.DeleteFunc(r.order, func(namespace string) bool { return namespace == key.Namespace })
	return true
}

// leave removes the first object of a namespace, and moves the namespace to the end.
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

// use runs the pass of an object that Pop returned. If the pass is slow, use moves it to a slow place. At the end, use gives the place
// back.
func (l *passQueue) use(key types.NamespacedName, work func()) {
	began := time.Now()
	l.mu.Lock()
	place := l.left[key] // known may differ by now: the object may have been queued again before its last pass gave its place back
	delete(l.left, key)
	l.atWork[key] = false
	l.mu.Unlock()
	finished, isFirst, isHanging := false, place == &l.first, false
	timer := time.AfterFunc(l.after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if finished {
			return
		}
		if !l.atWork[key] {
			l.known[key] = true
		}
		if isFirst {
			isHanging = true
			l.hanging++
			l.wake()
		}
		if place != &l.slow && l.slow.hasRoom(key.Namespace) {
			place.give(key.Namespace)
			place = &l.slow
			place.take(key.Namespace)
			l.wake()
		}
	})
	defer func() {
		timer.Stop()
		l.mu.Lock()
		defer l.mu.Unlock()
		finished = true
		delete(l.atWork, key)
		if _, isKnown := l.known[key]; isKnown {
			l.known[key] = time.Since(began) >= l.after
		}
		if isHanging {
			l.hanging--
		}
		place.give(key.Namespace)
		l.wake()
	}()
	work()
}

// forget removes what is remembered of an object that is gone.
func (l *passQueue) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
	delete(l.urgentUntil, key)
	if _, isAtWork := l.atWork[key]; isAtWork {
		l.atWork[key] = true
	}
}

func (l *passQueue) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}
