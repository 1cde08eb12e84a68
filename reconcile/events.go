package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// The API's limits of an Event (API reference, Event v1 events.k8s.io).
const (
	maxNote         = 1024
	maxReason       = 128
	maxInstance     = 128
	maxResourceName = 253
)

// An object may write eventBurst events at once, and one more each eventRefill. A kind that switches between two states with every pass
// must not flood the API server.
const (
	eventBurst  = 25
	eventRefill = time.Minute
)

// If an event could not be sent, the object's next passes retry it. The next pass then begins within requeueForEvents. The operator drops
// the event after tellTries.
const (
	tellTries        = 5
	requeueForEvents = 15 * time.Second
)

// tellAtOnce is the back-off with which Client.WriteEvent retries an event that the API server did not accept: for about three seconds.
func tellAtOnce() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5}
}

// eventWriter writes the events of passes, one events.k8s.io/v1 Event each. Unlike client-go's recorder, it does not combine events with
// the same reason into a series. A series keeps only the first note, and is written again minutes later, when nothing happens.
type eventWriter struct {
	api      dynamic.Interface
	instance string
	now      func() time.Time

	mu        sync.Mutex
	histories map[types.NamespacedName]*eventHistory
}

// eventHistory is what is remembered of an object's events.
type eventHistory struct {
	// last are the events of the object's last pass, early those that Client.WriteEvent has sent since then; true if the API server has them.
	last, early map[Event]bool
	// unsent are those that the API server has not accepted yet.
	unsent []unsentEvent
	limit  *rate.Limiter
}

// unsentEvent is an event to send. Retries use the same name, so that the event exists once even if an answer is lost.
type unsentEvent struct {
	event    Event
	document *unstructured.Unstructured
	tries    int
}

func newTeller(api dynamic.Interface, instance string, now func() time.Time) *eventWriter {
	return &eventWriter{api: api, instance: instance, now: now, histories: map[types.NamespacedName]*eventHistory{}}
}

// writeAll writes the events of a pass, except those that the object's previous pass wrote as well. It also retries events that earlier
// passes could not write.
func (t *eventWriter) writeAll(ctx context.Context, object *unstructured.Unstructured, events []Event) error {
	key := keyOf(object)
	letters := t.takeUnsent(key)
	for _, event := range t.newEvents(key, events) {
		letters = append(letters, unsentEvent{event: event, document: t.document(object, event)})
	}
	var failures []error
	for _, one := range letters {
		err := t.send(ctx, one.document)
		if err == nil {
			t.accepted(key, one.event)
			continue
		}
		failures = append(failures, err)
		one.tries++
		if one.tries < tellTries && !IsNamespaceTerminating(err) {
			t.keepUnsent(key, one)
		}
	}
	return errors.Join(failures...)
}

// writeNow writes an event, and returns when the API server has stored it. It skips an event that the API server has from the object's last
// pass or from an earlier writeNow since.
func (t *eventWriter) writeNow(ctx context.Context, object *unstructured.Unstructured, event Event) error {
	key := keyOf(object)
	if !t.isWritten(key, event) {
		document := t.document(object, event)
		err := retry.OnError(tellAtOnce(), func(err error) bool { return ctx.Err() == nil && isTransient(err) }, func() error { return t.send(ctx, document) })
		if err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.speech(key)
	told.early[event] = true
	told.unsent = slices.DeleteFunc(told.unsent, func(one unsentEvent) bool { return one.event == event })
	return nil
}

// isTransient reports whether a request may succeed if it is repeated.
func isTransient(err error) bool {
	return IsUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err)
}

func (t *eventWriter) send(ctx context.Context, document *unstructured.Unstructured) error {
	resource := apischema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	_, err := t.api.Resource(resource).Namespace(document.GetNamespace()).Create(ctx, document, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create event %v: %w", document.Object["reason"], served(err))
}

// newEvents returns the events of a pass that must be written now, and remembers the pass's events.
func (t *eventWriter) newEvents(key types.NamespacedName, events []Event) []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.histories[key]; !ok && len(events) == 0 {
		return nil
	}
	told := t.speech(key)
	current := map[Event]bool{}
	fresh := []Event{}
	for _, event := range events {
		if _, twice := current[event]; twice {
			continue
		}
		isAccepted, isOld := told.last[event]
		current[event] = isAccepted
		if !isOld && !told.early[event] && told.limit.AllowN(t.now(), 1) {
			fresh = append(fresh, event)
		}
	}
	maps.Copy(current, told.early)
	told.last, told.early = current, map[Event]bool{}
	return fresh
}

// accepted notes that the API server has an event of the object's last pass.
func (t *eventWriter) accepted(key types.NamespacedName, event Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.speech(key)
	if _, isOfLast := told.last[event]; isOfLast {
		told.last[event] = true
	}
}

// isWritten reports whether the API server has an event of the object's last pass, or one that Client.WriteEvent has sent since.
func (t *eventWriter) isWritten(key types.NamespacedName, event Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	told, ok := t.histories[key]
	return ok && (told.last[event] || told.early[event])
}

// speech returns what is remembered of an object's events. The caller holds mu.
func (t *eventWriter) speech(key types.NamespacedName) *eventHistory {
	told, ok := t.histories[key]
	if !ok {
		told = &eventHistory{early: map[Event]bool{}, limit: rate.NewLimiter(rate.Every(eventRefill), eventBurst)}
		t.histories[key] = told
	}
	return told
}

// hasUnsent reports whether the object has events that could not be sent yet.
func (t *eventWriter) hasUnsent(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	told, ok := t.histories[key]
	return ok && len(told.unsent) > 0
}

func (t *eventWriter) takeUnsent(key types.NamespacedName) []unsentEvent {
	t.mu.Lock()
	defer t.mu.Unlock()
	told, ok := t.histories[key]
	if !ok {
		return nil
	}
	letters := told.unsent
	told.unsent = nil
	return letters
}

// keepUnsent keeps an event for the next pass. If there are too many, it drops the newest.
func (t *eventWriter) keepUnsent(key types.NamespacedName, one unsentEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if told := t.speech(key); len(told.unsent) < eventBurst {
		told.unsent = append(told.unsent, one)
	}
}

// forget removes what is remembered of an object that is gone.
func (t *eventWriter) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.histories, key)
}

func (t *eventWriter) document(object *unstructured.Unstructured, event Event) *unstructured.Unstructured {
	now := t.now()
	suffix := "." + strconv.FormatInt(now.UnixNano(), 16)
	name := cut(object.GetName(), maxResourceName-len(suffix)) + suffix
	regarding := map[string]any{
		versionField:      object.GetAPIVersion(),
		"kind":            object.GetKind(),
		"namespace":       object.GetNamespace(),
		"name":            object.GetName(),
		"uid":             string(object.GetUID()),
		"resourceVersion": object.GetResourceVersion(),
	}
	document := newObject("events.k8s.io/v1", "Event", types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), Name: name})
	maps.Copy(document.Object, map[string]any{
		"eventTime":           now.UTC().Format(metav1.RFC3339Micro),
		"type":                cmp.Or(event.Type, Normal),
		"reason":              cut(event.Reason, maxReason),
		"action":              cut(cmp.Or(event.Action, event.Reason), maxReason),
		"note":                cut(event.Note, maxNote),
		"regarding":           regarding,
		"reportingController": ManagerChildren,
		"reportingInstance":   cut(t.instance, maxInstance),
	})
	return document
}

// cut shortens text to at most limit bytes, and never splits a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := 0
	for index := range text {
		if index > limit {
			break
		}
		end = index
	}
	return text[:end]
}
