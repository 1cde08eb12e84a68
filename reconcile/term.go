package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
)

// closingTime is how long writing the status and the events of a pass may take, in addition to the pass's own time.
const closingTime = 10 * time.Second

// When to requeue an object whose pass waits for a cache or for the API server.
const (
	requeueForCache  = 50 * time.Millisecond
	requeueForServer = 2 * time.Second
)

// term runs the passes of a kind while this process is the leader. Nothing in it outlives the term.
type term struct {
	controller  *controller
	queue       queue
	reader      *Reader
	journal     *journal
	reconciler  Reconciler
	teller      *eventWriter
	metrics     *metrics
	line        *passQueue
	logger      logr.Logger
	passTimeout time.Duration
	unavailable func(error)

	// lagging limits how often the operator logs that a cache is behind the operator's own writes.
	lagging rate.Sometimes

	passes     sync.WaitGroup
	mu         sync.Mutex
	livePasses map[types.NamespacedName]visit
	current    sets.Set[types.NamespacedName]
	// deletionsToHandle are the objects for which the engine must call DeletionHandler.HandleDeletion when they are gone. An object is in the
	// set before its first pass, because it may be gone by then.
	deletionsToHandle sets.Set[types.NamespacedName]
}

// visit records an object's last live pass.
type visit struct {
	uid types.UID
	// uncertain is true if the state on the API server became unknown since then: the next pass is again a live one.
	uncertain bool
}

func newTerm(c *controller, m *Manager) *term {
	reader := c.reader(m)
	return &term{
		controller:        c,
		reader:            reader,
		journal:           newJournal(c.caches, m.now),
		reconciler:        c.New(reader),
		teller:            newTeller(m.api, m.config.Identity, m.now),
		metrics:           m.metrics,
		line:              newLine(m.config.Workers, c.isUnseen),
		logger:            c.logger,
		passTimeout:       m.config.PassTimeout,
		unavailable:       m.serverUnavailable,
		lagging:           rate.Sometimes{Interval: time.Minute},
		livePasses:        map[types.NamespacedName]visit{},
		current:           sets.Set[types.NamespacedName]{},
		deletionsToHandle: sets.Set[types.NamespacedName]{},
	}
}

// client makes the Client of a pass over object; nil if it is gone.
func (t *term) client(current pass, object *unstructured.Unstructured) *Client {
	return &Client{Reader: t.reader, pass: current, journal: t.journal, teller: t.teller, owner: object}
}

// run starts passes until stop ends. It returns while some may still be running: wait for t.passes. work is the context of the passes.
func (t *term) run(stop, work context.Context) {
	t.queue = t.controller.open(t.metrics.queue, t.line, t.expectDeletion)
	defer context.AfterFunc(stop, t.controller.close)()
	defer t.controller.close()
	t.passes.Go(func() { t.lookForLeft(stop) })
	t.passes.Go(func() { t.listen(stop) })
	for {
		for stop.Err() == nil && t.line.mayBegin() {
			key, down := t.queue.Get()
			if down {
				return
			}
			current := work
			if t.line.beginsUrgent(key) {
				current = urgently(work)
			}
			t.passes.Go(func() { t.line.use(key, func() { t.pass(current, key) }) })
		}
		select {
		case <-t.line.ready:
		case <-stop.Done():
			return
		}
	}
}

// running returns the objects whose passes have not ended.
func (t *term) running() []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current.UnsortedList()
}

func (t *term) pass(work context.Context, key types.NamespacedName) {
	defer t.queue.Done(key)
	logger := t.logger.WithValues(logNamespace, key.Namespace, logName, key.Name)
	began := time.Now()
	t.begin(key)
	defer t.end(key)

	reached := decision{}
	if err := recoverPanic(func() error {
		reached = t.attempt(logr.NewContext(work, logger), key)
		return nil
	}); err != nil {
		reached = decide(Outcome{}, state{}, err)
	}
	if work.Err() != nil {
		reached = decision{result: resultStopped, err: reached.err}
	}
	took := time.Since(began)
	t.metrics.passed(t.controller.Kind.Kind, string(reached.result), took)
	logDecision(logger, reached, took)
	t.requeue(key, reached)
}

func (t *term) begin(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.Insert(key)
}

func (t *term) end(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.Delete(key)
}

// attempt makes one pass; panics in the Reconciler become errors.
func (t *term) attempt(work context.Context, key types.NamespacedName) decision {
	if again, isEnough := t.canSkip(work, key); isEnough {
		return decide(Outcome{RequeueAfter: again}, state{}, nil)
	}
	object, state, err := t.observe(work, key)
	if object == nil {
		return decide(Outcome{}, state, t.endOf(work, key, state, err))
	}
	t.expectDeletion(key)
	client := t.client(state.pass, object)
	outcome, isFirst := accept(object), isUnseen(object)
	if !isFirst {
		outcome, err = t.reconcile(work, client)
		if err != nil {
			outcome.Events = append(outcome.Events, persistentFailureEvents(err, t.queue.NumRequeues(key))...)
		}
	}
	closing := recoverPanic(func() error { return t.close(work, client, outcome) })
	switch {
	case closing != nil:
		// The API server refused because the cache was behind, or returned an error after the write took effect.
		t.requireLivePass(key)
	case isFirst:
		// The API server accepted the status for exactly the version that this pass saw: no earlier leader has worked on the object.
		t.visit(state.pass)
	}
	if IsGone(closing) {
		// The object was deleted during the pass.
		closing, state.gone = nil, true
	}
	if err == nil {
		err = closing
	}
	if t.teller.hasUnsent(key) && (outcome.RequeueAfter == 0 || outcome.RequeueAfter > requeueForEvents) {
		outcome.RequeueAfter = requeueForEvents
	}
	return decide(outcome, state, err)
}

// canSkip asks the Reconciler, before the object's content is decoded, whether it needs no pass. In a steady state, nearly all passes end
// here.
func (t *term) canSkip(work context.Context, key types.NamespacedName) (again time.Duration, isEnough bool) {
	checker, ok := t.reconciler.(SkipChecker)
	if !ok {
		return 0, false
	}
	uid, version, ok := identityOf(t.controller.own.item(key.Namespace, key.Name))
	if !ok || !t.hasVisited(pass{key: key, uid: uid}) || t.teller.hasUnsent(key) || t.controller.isBehind(key.Namespace, t.journal.now()) {
		return 0, false
	}
	if _, isMissing := t.journal.pending(key, uid); isMissing {
		return 0, false
	}
	err := recoverPanic(func() error {
		again, isEnough = checker.CanSkip(work, key, uid, version)
		return nil
	})
	if err != nil {
		t.metrics.panics.WithLabelValues(t.controller.Kind.Kind).Inc()
		logr.FromContextOrDiscard(work).Error(err, "failed to check whether a pass is needed, making the pass")
		return 0, false
	}
	return again, isEnough
}

// reconcile makes a full pass over an object that has a first status.
func (t *term) reconcile(work context.Context, client *Client) (outcome Outcome, err error) {
	err = recoverPanic(func() error {
		ctx, cancel := context.WithTimeoutCause(work, t.passTimeout, fmt.Errorf("the pass took longer than %s", t.passTimeout))
		defer cancel()
		var err error
		outcome, err = t.reconciler.Reconcile(ctx, client, client.owner.DeepCopy())
		if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
		return err
	})
	if panicked, ok := errors.AsType[*panicError](err); ok {
		t.metrics.panics.WithLabelValues(t.controller.Kind.Kind).Inc()
		outcome = Outcome{Events: []Event{{Type: Warning, Reason: "Panicked", Action: "Reconcile", Note: panicNote(panicked)}}}
	}
	return outcome, err
}

// state is what observe found out about an object.
type state struct {
	pass   pass
	gone   bool
	behind bool
}

// observe returns the object to make a pass over; nil if it is gone, or the cache does not show its last writes yet.
func (t *term) observe(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, state, error) {
	cached, found := t.controller.own.Get(key.Namespace, key.Name)
	if !found {
		t.forget(key)
		return nil, state{gone: true}, nil
	}
	current := pass{key: key, uid: cached.GetUID()}
	missing, isMissing := t.journal.pending(key, cached.GetUID())
	isBehind := t.controller.isBehind(key.Namespace, t.journal.now())
	if isMissing && !isBehind && !t.journal.overdue(missing) {
		return nil, state{pass: current, behind: true}, nil
	}
	if isMissing || isBehind {
		if isThere, err := t.catchUp(ctx, current); err != nil || !isThere {
			return nil, state{pass: current, behind: err == nil}, err
		}
		current.live = true
	}
	if current.live || t.isFirstFull(current, cached) {
		return t.observeLive(ctx, current)
	}
	return cached, state{pass: current}, nil
}

// isFirstFull reports whether a pass is the object's first full one in the term. Such a pass reads the object live, because the cache may
// also be behind the writes of the previous leader.
func (t *term) isFirstFull(current pass, cached *unstructured.Unstructured) bool {
	return !t.hasVisited(current) && (!isUnseen(cached) || t.isUncertain(current.key))
}

// catchUp prepares a live pass: it lists from the API server what the caches of the kind show of the namespace. It reports whether the
// caches then show the object's last writes.
func (t *term) catchUp(ctx context.Context, current pass) (bool, error) {
	t.lagging.Do(func() {
		logr.FromContextOrDiscard(ctx).Info("the caches are behind the operator's own writes, passes in this namespace read from the API server until the caches catch up", "waited", barrierPatience.String())
	})
	listing, cancel := context.WithTimeout(ctx, closingTime)
	defer cancel()
	if err := t.controller.catchUp(listing, current.key.Namespace, t.journal.now()); err != nil {
		return false, err
	}
	_, isMissing := t.journal.pending(current.key, current.uid)
	return !isMissing, nil
}

func (t *term) hasVisited(current pass) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.livePasses[current.key] == visit{uid: current.uid}
}

func (t *term) isUncertain(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.livePasses[key].uncertain
}

func (t *term) observeLive(ctx context.Context, current pass) (*unstructured.Unstructured, state, error) {
	reading, cancel := context.WithTimeout(ctx, closingTime)
	defer cancel()
	object, err := t.reader.Get(reading, t.controller.Kind.GVR(), current.key.Namespace, current.key.Name)
	if IsGone(err) {
		// The watch will soon report the deletion, and start the pass that calls forget.
		return nil, state{pass: current, gone: true}, nil
	}
	if err != nil {
		return nil, state{pass: current}, err
	}
	if t.isSuccessor(current.key, object.GetUID()) {
		// The remembered object was deleted and this one created before a pass saw it.
		t.forget(current.key)
	}
	current.uid = object.GetUID()
	t.visit(current)
	// No later pass may see an older state than this one.
	t.journal.wrote(current, t.controller.Kind.GVR(), object)
	return object, state{pass: current}, nil
}

func (t *term) isSuccessor(key types.NamespacedName, uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.livePasses[key]
	return known && before.uid != "" && before.uid != uid
}

func (t *term) visit(current pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.livePasses[current.key] = visit{uid: current.uid}
}

// requireLivePass makes the object's next pass a live one.
func (t *term) requireLivePass(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.livePasses[key]
	last.uncertain = true
	t.livePasses[key] = last
}

func (t *term) forget(key types.NamespacedName) {
	t.journal.forget(key)
	t.teller.forget(key)
	t.line.forget(key)
	t.mu.Lock()
	delete(t.livePasses, key)
	t.mu.Unlock()
	if forgetter, ok := t.reconciler.(Forgetter); ok {
		forgetter.Forget(key)
	}
}

// close writes the status and the events of a pass, even if the pass used up its time.
func (t *term) close(work context.Context, client *Client, outcome Outcome) error {
	ctx, cancel := context.WithTimeout(work, closingTime)
	defer cancel()
	var err error
	if outcome.Status != nil {
		err = client.writeStatus(ctx, outcome.Status)
	}
	if told := t.teller.writeAll(ctx, client.owner, outcome.Events); told != nil {
		// Events only inform users: a pass does not fail because of an event.
		logr.FromContextOrDiscard(ctx).V(1).Info("failed to write event", logError, told.Error())
	}
	return err
}

// requeue requeues the object according to the verdict.
func (t *term) requeue(key types.NamespacedName, reached decision) {
	switch reached.result {
	case resultGone, resultStopped:
		t.queue.Forget(key)
	case resultDone:
		t.queue.Forget(key)
		if reached.requeueAfter > 0 {
			t.queue.AddAfter(key, reached.requeueAfter)
		}
	case resultBehind:
		t.queue.AddAfter(key, reached.requeueAfter)
	case resultUnavailable:
		t.unavailable(reached.err)
		// The jitter spreads the requests when the API server is available again.
		t.queue.AddAfter(key, wait.Jitter(reached.requeueAfter, 1))
	case resultConflict, resultFailed, resultPanicked:
		t.queue.AddRateLimited(key)
	}
}
