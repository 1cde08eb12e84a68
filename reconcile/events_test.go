package reconcile

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// mailbox is an API server that accepts events, and refuses some first.
type mailbox struct {
	mu     sync.Mutex
	refuse int
	code   int
	// lost is true if refused events are stored anyway.
	lost  bool
	names []string
}

func (b *mailbox) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer.Header().Set("Content-Type", "application/json")
	name := nameIn(request)
	isThere := slices.Contains(b.names, name)
	if b.refuse > 0 {
		b.refuse--
		if b.lost && !isThere {
			b.names = append(b.names, name)
		}
		answer.WriteHeader(b.code)
		_, _ = answer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + map[int]string{500: "InternalError", 403: "Forbidden"}[b.code] + `"}`))
		return
	}
	if isThere {
		answer.WriteHeader(http.StatusConflict)
		_, _ = answer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`))
		return
	}
	b.names = append(b.names, name)
	_, _ = answer.Write([]byte(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + name + `"}}`))
}

func (b *mailbox) has() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.names)
}

func (b *mailbox) teller(t *testing.T) *eventWriter {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	m, err := New(Config{Rest: &rest.Config{Host: server.URL}, Registry: prometheus.NewRegistry()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newTeller(m.api, "test", time.Now)
}

func TestAnEventThatWasNotAcceptedIsToldByTheNextPass(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"refused": false, "its answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &mailbox{refuse: 2, code: http.StatusInternalServerError, lost: lost}
			speaker, object := b.teller(t), ownerAt("1", "1")
			once := Event{Type: Normal, Reason: "RestoreCompleted"}
			if err := speaker.writeAll(t.Context(), object, []Event{once}); err == nil || !speaker.hasUnsent(owner()) {
				t.Fatal("a refused event counts as written")
			}
			_ = speaker.writeAll(t.Context(), object, []Event{once}) // refused again
			if err := speaker.writeAll(t.Context(), object, nil); err != nil {
				t.Fatal(err)
			}
			same(t, b.has(), 1)
			same(t, speaker.hasUnsent(owner()), false)
		})
	}
}

// TestWhatWasToldAtOnceIsToldOnce: every pass writes the same event, because the status that would prevent this cannot be written.
func TestWhatWasToldAtOnceIsToldOnce(t *testing.T) {
	t.Parallel()
	b := &mailbox{}
	speaker := b.teller(t)
	for range 10 {
		if err := speaker.writeNow(t.Context(), ownerAt("1", "1"), Event{Type: Warning, Reason: "BackupDataLeft"}); err != nil {
			t.Fatal(err)
		}
		if err := speaker.writeAll(t.Context(), ownerAt("1", "1"), nil); err != nil {
			t.Fatal(err)
		}
	}
	same(t, b.has(), 1)
}

func TestAnEventThatIsNeverAcceptedIsGivenUp(t *testing.T) {
	t.Parallel()
	b := &mailbox{refuse: 1000, code: http.StatusForbidden}
	speaker := b.teller(t)
	_ = speaker.writeAll(t.Context(), ownerAt("1", "1"), []Event{{Reason: "Ready"}})
	for range tellTries {
		_ = speaker.writeAll(t.Context(), ownerAt("1", "1"), nil)
	}
	same(t, speaker.hasUnsent(owner()), false)
	same(t, b.refuse, 1000-tellTries)
}

func TestAPassComesAgainForItsEvents(t *testing.T) {
	t.Parallel()
	w := &watching{outcome: Outcome{Events: []Event{{Reason: "Ready"}}}}
	s := newStage(t, w)
	s.has(ownerAt("1", "10"))
	s.shows(t, ownerAt("1", "10"))
	same(t, s.attempt(t.Context(), owner()).requeueAfter, time.Duration(0))
	w.outcome.Events = []Event{{Reason: "Lost"}}
	s.answers(func(answer http.ResponseWriter, _ *http.Request) {
		http.Error(answer, "no", http.StatusInternalServerError)
	})
	same(t, s.attempt(t.Context(), owner()).requeueAfter, requeueForEvents)
}

func TestTell(t *testing.T) {
	t.Parallel()
	left := Event{Type: Warning, Reason: "BackupDataLeft", Note: "s3://bucket/nightly"}
	tests := map[string]struct {
		box       *mailbox
		wantError bool
		want      int
	}{
		"at once":                   {box: &mailbox{}, want: 1},
		"after two failures":        {box: &mailbox{refuse: 2, code: http.StatusInternalServerError}, want: 1},
		"a lost answer":             {box: &mailbox{refuse: 1, code: http.StatusInternalServerError, lost: true}, want: 1},
		"the permission is missing": {box: &mailbox{refuse: 1000, code: http.StatusForbidden}, wantError: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &Client{teller: test.box.teller(t), owner: ownerAt("1", "1")}
			for range 2 { // the second one stands for the next pass of an object whose pass could not continue
				err := client.WriteEvent(t.Context(), left)
				same(t, err != nil, test.wantError)
			}
			same(t, test.box.has(), test.want)
		})
	}
}

func TestTellEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := &mailbox{refuse: 1000, code: http.StatusInternalServerError}
	ctx, cancel := context.WithCancel(t.Context())
	client := &Client{teller: b.teller(t), owner: ownerAt("1", "1")}
	cancel()
	if err := client.WriteEvent(ctx, Event{Reason: "Left"}); err == nil {
		t.Error("an event that was not sent counts as written")
	}
}

func TestWhatTellSaidIsNotToldAgainByThePass(t *testing.T) {
	t.Parallel()
	b := &mailbox{}
	speaker := b.teller(t)
	left := Event{Reason: "Left"}
	if err := speaker.writeNow(t.Context(), ownerAt("1", "1"), left); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := speaker.writeAll(t.Context(), ownerAt("1", "1"), []Event{left}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, b.has(), 1)
}

// Tell returns without an error only if the API server has the event, not if a pass only tried to write it.
func TestTellSendsWhatThePassCouldNot(t *testing.T) {
	t.Parallel()
	left := Event{Type: Warning, Reason: "BackupDataLeft", Note: "s3://bucket/nightly"}
	tests := map[string]struct {
		refuse int
		before []Event
	}{
		"it was refused":                    {refuse: 1, before: []Event{left}},
		"the object wrote too many at once": {before: append(manyEvents(eventBurst), left)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &mailbox{refuse: test.refuse, code: http.StatusForbidden}
			speaker := b.teller(t)
			now := time.Now()
			speaker.now = func() time.Time { // too slow for the rate limit to allow another event
				now = now.Add(time.Microsecond)
				return now
			}
			_ = speaker.writeAll(t.Context(), ownerAt("1", "1"), test.before)
			had := b.has()
			for range 2 {
				if err := speaker.writeNow(t.Context(), ownerAt("1", "1"), left); err != nil {
					t.Fatal(err)
				}
				same(t, b.has(), had+1)
			}
			if err := speaker.writeAll(t.Context(), ownerAt("1", "1"), []Event{left}); err != nil {
				t.Fatal(err)
			}
			same(t, b.has(), had+1)
			same(t, speaker.hasUnsent(owner()), false)
		})
	}
}

func manyEvents(count int) []Event {
	all := make([]Event, 0, count)
	for i := range count {
		all = append(all, Event{Reason: "Flips", Note: strconv.Itoa(i)})
	}
	return all
}

func nameIn(request *http.Request) string {
	var document struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(request.Body).Decode(&document); err != nil {
		return ""
	}
	return document.Metadata.Name
}
