package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
)

// stage is a term over one object. The test sets what the cache shows and what the API server has.
type stage struct {
	*term
	store cache.Indexer

	mu   sync.Mutex
	live *unstructured.Unstructured
	// refuse answers the status writes. If effective is true, they take effect anyway.
	refuse    *apierrors.StatusError
	effective bool
	// told counts the events.
	told int
	// noEvents refuses events.
	noEvents bool
	// instead answers every request if it is set.
	instead http.HandlerFunc
}

func newStage(t *testing.T, reconciler Reconciler) *stage {
	t.Helper()
	s := &stage{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{ownerIndex: controllerUID})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	kind := schema.Kind{Group: "engine.example.com", Version: "v1", Kind: "Probe", Plural: "probes"}
	m, err := New(Config{Rest: &rest.Config{Host: server.URL}, Registry: prometheus.NewRegistry()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := &view{
		resource: kind.GVR(), selector: labels.Everything(), stores: map[string]cache.Indexer{metav1.NamespaceAll: s.store},
		list: m.informers.lister(informerKey{resource: kind.GVR()}, nil),
	}
	m.names[kind.GVK()] = kind.GVR()
	s.term = newTerm(&controller{
		Controller: Controller{Kind: kind, New: func(*Reader) Reconciler { return reconciler }},
		logger:     logr.Discard(),
		own:        own,
		caches:     map[apischema.GroupVersionResource]*view{kind.GVR(): own},
	}, m)
	return s
}

// ServeHTTP answers as the API server.
func (s *stage) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instead != nil {
		s.instead(answer, request)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	if request.Method == http.MethodPost {
		if s.noEvents {
			answer.WriteHeader(http.StatusInternalServerError)
			return
		}
		s.told++
		_, _ = io.Copy(answer, request.Body)
		return
	}
	refused := s.refuse
	if request.Method != http.MethodGet && (refused == nil || s.effective) {
		s.live = s.live.DeepCopy()
		s.live.SetResourceVersion(s.live.GetResourceVersion() + "0")
		s.live.Object["status"] = map[string]any{"phase": "Written"}
	}
	if request.Method != http.MethodGet && refused != nil {
		answer.WriteHeader(int(refused.ErrStatus.Code))
		_ = json.NewEncoder(answer).Encode(refused.ErrStatus)
		return
	}
	if strings.HasSuffix(request.URL.Path, "/probes") {
		_ = json.NewEncoder(answer).Encode(map[string]any{
			"apiVersion": s.live.GetAPIVersion(), "kind": "ProbeList", "items": []any{s.live.Object},
			"metadata": map[string]any{"resourceVersion": s.live.GetResourceVersion()},
		})
		return
	}
	_ = json.NewEncoder(answer).Encode(s.live.Object)
}

// answers makes the handler answer every request; nil ends that.
func (s *stage) answers(instead http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = instead
}

func (s *stage) refuseEvents(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noEvents = refuse
}

// has sets the object that the API server has.
func (s *stage) has(object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = object
}

// shows sets the object that the cache shows.
func (s *stage) shows(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := s.store.Update(object); err != nil {
		t.Fatal(err)
	}
}

func ownerAt(uid types.UID, version string) *unstructured.Unstructured {
	object := newObject("engine.example.com/v1", "Probe", owner())
	object.SetUID(uid)
	object.SetResourceVersion(version)
	return object
}

// watching records which versions of the object its passes saw, and how often Forget was called.
type watching struct {
	outcome Outcome
	saw     []string
	forgot  int
}

// Reconcile implements Reconciler.
func (w *watching) Reconcile(_ context.Context, _ *Client, object *unstructured.Unstructured) (Outcome, error) {
	w.saw = append(w.saw, string(object.GetUID())+"@"+object.GetResourceVersion())
	return w.outcome, nil
}

// Forget implements Forgetter.
func (w *watching) Forget(types.NamespacedName) { w.forgot++ }

func TestNoPassSeesLessThanTheOneBefore(t *testing.T) {
	t.Parallel()
	w := &watching{}
	s := newStage(t, w)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "20"))

	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, s.attempt(t.Context(), owner()).result, resultBehind)
	s.shows(t, ownerAt("1", "20"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, w.saw, []string{"1@20", "1@20"})
}

func TestPassesReadLiveAsLongAsTheCacheLags(t *testing.T) {
	t.Parallel()
	w := &watching{}
	s := newStage(t, w)
	clock := time.Unix(1000, 0)
	s.journal.now = func() time.Time { return clock }
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "20"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)

	clock = clock.Add(barrierPatience + time.Second)
	for range 3 {
		same(t, s.attempt(t.Context(), owner()).result, resultDone)
	}
	same(t, w.saw, []string{"1@20", "1@20", "1@20", "1@20"})
}

func TestAStatusOfWhichNobodyKnowsIsReadLive(t *testing.T) {
	t.Parallel()
	w := &watching{outcome: Outcome{Status: map[string]any{"phase": "Written"}}}
	s := newStage(t, w)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	s.refuse, s.effective = told(apierrors.NewTimeoutError("the write took effect", 0)), true

	same(t, s.attempt(t.Context(), owner()).result, resultFailed)
	// The cache does not show the write yet, but the write took effect.
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, w.saw, []string{"1@10", "1@100"})
}

// glancing needs no pass over one version of an object.
type glancing struct {
	watching
	enough string
}

// CanSkip implements SkipChecker.
func (g *glancing) CanSkip(_ context.Context, _ types.NamespacedName, uid types.UID, version string) (time.Duration, bool) {
	return time.Minute, string(uid)+"@"+version == g.enough
}

func TestAGlanceIsEnoughOnlyWhereTheCacheShowsAll(t *testing.T) {
	t.Parallel()
	g := &glancing{enough: "1@10"}
	s := newStage(t, g)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))

	// The first pass of a term is a full one.
	same(t, s.attempt(t.Context(), owner()).requeueAfter, 0*time.Second)
	same(t, g.saw, []string{"1@10"})
	for range 3 {
		same(t, s.attempt(t.Context(), owner()).requeueAfter, time.Minute)
	}
	same(t, g.saw, []string{"1@10"})

	// The object's own write that the cache does not show.
	s.journal.wrote(pass{key: owner(), uid: "1"}, s.controller.Kind.GVR(), ownerAt("1", "20"))
	same(t, s.attempt(t.Context(), owner()).result, resultBehind)
	s.shows(t, ownerAt("1", "20"))
	s.has(ownerAt("1", "20"))
	same(t, s.attempt(t.Context(), owner()).requeueAfter, 0*time.Second)
	same(t, g.saw, []string{"1@10", "1@20"})

	// A status write with an unknown result.
	g.enough = "1@20"
	s.requireLivePass(owner())
	same(t, s.attempt(t.Context(), owner()).requeueAfter, 0*time.Second)
	same(t, g.saw, []string{"1@10", "1@20", "1@20"})
	same(t, s.attempt(t.Context(), owner()).requeueAfter, time.Minute)
}

// panicking panics in CanSkip.
type panicking struct{ watching }

// CanSkip implements SkipChecker.
func (*panicking) CanSkip(context.Context, types.NamespacedName, types.UID, string) (time.Duration, bool) {
	panic("a bug in a kind")
}

func TestAGlanceThatPanicsKeepsNobodyFromAPass(t *testing.T) {
	t.Parallel()
	p := &panicking{}
	s := newStage(t, p)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	for range 2 {
		same(t, s.attempt(t.Context(), owner()).result, resultDone)
	}
	same(t, p.saw, []string{"1@10", "1@10"})
	same(t, testutil.ToFloat64(s.metrics.panics.WithLabelValues("Probe")), 1.0)
}

// listening requests a pass over each key that it hears of, and then panics.
type listening struct{ hears, passes chan types.NamespacedName }

// Listen implements Listener.
func (l listening) Listen(_ context.Context, request func(types.NamespacedName)) {
	for key := range l.hears {
		request(key)
	}
	panic("a bug in a kind")
}

// Reconcile implements Reconciler.
func (l listening) Reconcile(_ context.Context, _ *Client, object *unstructured.Unstructured) (Outcome, error) {
	l.passes <- keyOf(object)
	return Outcome{}, nil
}

func TestAListenerRequestsPasses(t *testing.T) {
	t.Parallel()
	l := listening{hears: make(chan types.NamespacedName), passes: make(chan types.NamespacedName, 10)}
	s := newStage(t, l)
	stop, end := context.WithCancel(t.Context())
	go s.run(stop, t.Context())
	s.has(ownerAt("1", "10"))
	s.shows(t, ownerAt("1", "10")) // without an event
	l.hears <- owner()
	same(t, <-l.passes, owner())
	close(l.hears)
	end()
	s.passes.Wait()
	same(t, testutil.ToFloat64(s.metrics.panics.WithLabelValues("Probe")), 1.0)
}

func TestEventsThatAreOwedAreToldBeforeAGlance(t *testing.T) {
	t.Parallel()
	g := &glancing{enough: "1@10", watching: watching{outcome: Outcome{Events: []Event{{Type: Warning, Reason: "SecretMissing"}}}}}
	s := newStage(t, g)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, s.told, 1)
	g.outcome.Events[0].Note = "now it is another one"
	s.requireLivePass(owner())
	s.refuseEvents(true)
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	s.refuseEvents(false)
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, s.told, 2)
	same(t, s.attempt(t.Context(), owner()).requeueAfter, time.Minute)
}

// told returns an error in the form in which the API server sends it.
func told(err *apierrors.StatusError) *apierrors.StatusError {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return err
}

func TestAnObjectDeletedDuringItsPassIsNoFailure(t *testing.T) {
	t.Parallel()
	probes := apischema.GroupResource{Group: "engine.example.com", Resource: "probes"}
	tests := map[string]struct {
		answer *apierrors.StatusError
		want   result
	}{
		"it is gone":                     {answer: told(apierrors.NewNotFound(probes, "owner")), want: resultGone},
		"another has its name":           {answer: told(apierrors.NewConflict(probes, "owner", errors.New("uid mismatch"))), want: resultConflict},
		"the resource is not served now": {answer: apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", probes, "owner", "404 page not found", 0, true), want: resultFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, &watching{outcome: Outcome{Status: map[string]any{"phase": "Written"}}})
			s.shows(t, ownerAt("1", "10"))
			s.has(ownerAt("1", "10"))
			s.refuse = test.answer
			same(t, s.attempt(t.Context(), owner()).result, test.want)
		})
	}
}

func TestASuccessorIsNotTakenForItsPredecessor(t *testing.T) {
	t.Parallel()
	w := &watching{outcome: Outcome{Events: []Event{{Type: Warning, Reason: "SecretMissing"}}}}
	s := newStage(t, w)
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, s.told, 1)

	// Deleted and created again before a pass saw it.
	s.shows(t, ownerAt("2", "30"))
	s.has(ownerAt("2", "30"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, w.saw, []string{"1@10", "1@10", "2@30"})
	same(t, w.forgot, 1)
	same(t, s.told, 2)
}
