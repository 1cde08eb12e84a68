package reconcile

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/schema"
)

// badWatch is an API server with one object, whose watches end at once.
type badWatch struct {
	requests, unserved atomic.Int64

	mu     sync.Mutex
	object *unstructured.Unstructured
}

func (b *badWatch) has(object *unstructured.Unstructured) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.object = object
}

// ServeHTTP answers as the API server.
func (b *badWatch) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	b.requests.Add(1)
	if b.unserved.Load() > 0 {
		b.unserved.Add(-1)
		notServing(answer, request)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	switch {
	case request.URL.Query().Get("sendInitialEvents") != "":
		answer.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = answer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case request.URL.Query().Get(verbWatch) == "true": // the watch ends without events
	default:
		b.mu.Lock()
		defer b.mu.Unlock()
		_ = json.NewEncoder(answer).Encode(map[string]any{
			"apiVersion": "engine.example.com/v1", "kind": "ProbeList", "items": []any{b.object.Object},
			"metadata": map[string]any{"resourceVersion": b.object.GetResourceVersion()},
		})
	}
}

// cacheOf runs a Manager's caches against the API server until the test ends.
func cacheOf(t *testing.T, server http.Handler) *view {
	t.Helper()
	serving := httptest.NewServer(server)
	t.Cleanup(serving.Close)
	kind := schema.Kind{Group: "engine.example.com", Version: "v1", Kind: "Probe", Plural: "probes"}
	m, err := New(Config{Rest: &rest.Config{Host: serving.URL}, Registry: prometheus.NewRegistry()}, []Controller{
		{Kind: kind, New: func(*Reader) Reconciler { return &watching{} }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.informers.start(ctx)
	t.Cleanup(m.informers.wait)
	t.Cleanup(cancel)
	if err := m.informers.sync(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return m.controllers[0].own
}

func TestAWatchThatEndsAtOnceMakesNoStormOfRequests(t *testing.T) {
	t.Parallel()
	b := &badWatch{}
	b.has(ownerAt("1", "10"))
	cacheOf(t, b)
	<-time.After(3 * time.Second) // there is no event to wait for: the watch must stay quiet
	if requests := b.requests.Load(); requests > 15 {
		t.Errorf("%d requests in three seconds", requests)
	}
}

// While the API server does not serve a kind, the cache keeps the kind's objects; afterwards the cache catches up without help.
func TestAWatchOutlivesAResourceThatIsNotServed(t *testing.T) {
	t.Parallel()
	b := &badWatch{}
	b.has(ownerAt("1", "10"))
	cached := cacheOf(t, b)
	b.unserved.Store(4)
	b.has(ownerAt("1", "20"))
	deadline := time.Now().Add(time.Minute)
	for {
		object, found := cached.Get("shop", "owner")
		if !found {
			t.Fatal("the object left the cache while its kind was not served")
		}
		if object.GetResourceVersion() == "20" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the cache did not catch up within a minute")
		}
		<-time.After(20 * time.Millisecond)
	}
}
