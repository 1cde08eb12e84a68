package reconcile

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// notServing answers as an API server that does not know a resource's version yet, for example one of several during an upgrade.
func notServing(answer http.ResponseWriter, _ *http.Request) {
	http.Error(answer, "404 page not found", http.StatusNotFound)
}

func TestAnObjectThatIsNotServedIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := &watching{}
	s := newStage(t, w)
	s.answers(notServing)
	s.shows(t, ownerAt("1", "10"))
	s.queue = s.controller.open(s.metrics.queue, s.line, s.expectDeletion)
	key, _ := s.queue.Get()

	s.pass(t.Context(), key)
	same(t, len(w.saw), 0)
	same(t, w.forgot, 0)
	same(t, s.queue.NumRequeues(key), 1)

	s.answers(nil)
	s.has(ownerAt("1", "10"))
	key, _ = s.queue.Get() // the queue retries it
	s.pass(t.Context(), key)
	same(t, w.saw, []string{"1@10"})
}

func TestAnObjectThatIsNotServedAfterAConflictIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := &watching{outcome: Outcome{RequeueAfter: time.Hour}}
	s := newStage(t, w)
	s.has(ownerAt("1", "10"))
	s.shows(t, ownerAt("1", "10"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)

	s.requireLivePass(owner())
	s.answers(notServing)
	reached := s.attempt(t.Context(), owner())
	same(t, reached.result, resultFailed)
	same(t, w.forgot, 0)
}

// A reconciler must not assume that an object is gone because the API server does not serve its resource for a while.
func TestClientNeverTakesUnservedForGone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(notServing))
	t.Cleanup(server.Close)
	m, err := New(Config{Rest: &rest.Config{Host: server.URL}, Registry: prometheus.NewRegistry()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &Client{Reader: &Reader{api: m.api, names: m.names}, journal: newJournal(nil, time.Now), owner: ownerAt("1", "1")}
	pods := apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pod := newObject("v1", "Pod", owner())
	for name, request := range map[string]func() error{
		"get":    func() error { _, err := client.Get(t.Context(), pods, "a", "b"); return err },
		"list":   func() error { _, err := client.List(t.Context(), pods, "a", ""); return err },
		"create": func() error { _, err := client.CreateUnowned(t.Context(), pod); return err },
		"delete": func() error { return client.Delete(t.Context(), pods, pod) },
		"patch":  func() error { _, err := client.Patch(t.Context(), pods, pod, nil); return err },
		"evict":  func() error { return client.Evict(t.Context(), pod) },
		"apply":  func() error { _, err := client.Apply(t.Context(), pod); return err },
		"fields": func() error { _, err := client.ApplyFields(t.Context(), "mysql-operator-role", pod); return err },
		"status": func() error { return client.writeStatus(t.Context(), map[string]any{"phase": "Ready"}) },
		"events": func() error { _, err := client.Regarding(t.Context(), pod); return err },
	} {
		if err := request(); err == nil || apierrors.IsNotFound(err) || IsGone(err) {
			t.Errorf("%s: the error is %v: want one that does not say that the object is gone", name, err)
		}
	}
}
