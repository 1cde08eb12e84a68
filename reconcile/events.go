package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// The API's limits of an Event (API reference, Event v1 events.k8s.io).
const (
	maxNote         = 1024
	maxReason       = 128
	maxInstance     = 128
	maxResourceName = 253
)

// An object may tell eventBurst events at once and one more each eventRefill: a kind that flips between two states with every pass
// must not flood the API server.
const (
	eventBurst  = 25
	eventRefill = time.Minute
)

// teller writes the events that passes tell, one events.k8s.io/v1 Event each. It does not fold events with the same reason into a
// series as client-go's recorder does: that loses every note but the first, and writes again minutes later, when nothing happens.
type teller struct {
	api      dynamic.Interface
	instance string
	now      func() time.Time

	mu     sync.Mutex
	spoken map[types.NamespacedName]*speech
}

// speech is what an object has told.
type speech struct {
	last  map[Event]struct{}
	limit *rate.Limiter
}

func newTeller(api dynamic.Interface, instance string, now func() time.Time) *teller {
	return &teller{api: api, instance: instance, now: now, spoken: map[types.NamespacedName]*speech{}}
}

// tell writes the pass's events but those that the object's previous pass told as well.
func (t *teller) tell(ctx context.Context, object *unstructured.Unstructured, events []Event) error {
	var failures []error
	for _, event := range t.news(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, events) {
		resource := apischema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
		document := t.document(object, event)
		_, err := t.api.Resource(resource).Namespace(document.GetNamespace()).Create(ctx, document, metav1.CreateOptions{})
		if err != nil {
			failures = append(failures, fmt.Errorf("tell event %s: %w", event.Reason, served(err)))
		}
	}
	return errors.Join(failures...)
}

// news returns the events the object has to tell now, and remembers the pass's events.
func (t *teller) news(key types.NamespacedName, events []Event) []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	told, ok := t.spoken[key]
	if !ok {
		if len(events) == 0 {
			return nil
		}
		told = &speech{limit: rate.NewLimiter(rate.Every(eventRefill), eventBurst)}
		t.spoken[key] = told
	}

	current := map[Event]struct{}{}
	fresh := []Event{}
	for _, event := range events {
		if _, twice := current[event]; twice {
			continue
		}
		current[event] = struct{}{}
		if _, before := told.last[event]; !before && told.limit.AllowN(t.now(), 1) {
			fresh = append(fresh, event)
		}
	}
	told.last = current
	return fresh
}

// forget forgets an object that is gone.
func (t *teller) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.spoken, key)
}

func (t *teller) document(object *unstructured.Unstructured, event Event) *unstructured.Unstructured {
	now := t.now()
	suffix := "." + strconv.FormatInt(now.UnixNano(), 16)
	name := cut(object.GetName(), maxResourceName-len(suffix)) + suffix
	regarding := map[string]any{
		"apiVersion":      object.GetAPIVersion(),
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

// cut shortens text to at most limit bytes, never within a character.
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
