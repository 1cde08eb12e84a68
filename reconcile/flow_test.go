package reconcile

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"
)

func TestTellerTellsNewsOnly(t *testing.T) {
	t.Parallel()
	ready := Event{Type: Normal, Reason: "Ready", Note: "3 of 3 members"}
	lost := Event{Type: Warning, Reason: "MemberLost", Note: "my-cluster-1"}
	other := Event{Type: Warning, Reason: "MemberLost", Note: "my-cluster-2"}
	tests := map[string]struct {
		passes [][]Event
		want   [][]Event
	}{
		"the same event in every pass is written once": {
			passes: [][]Event{{ready}, {ready}, {ready}},
			want:   [][]Event{{ready}, {}, {}},
		},
		"an event that recurs after a pass without it is written again": {
			passes: [][]Event{{lost}, {}, {lost}},
			want:   [][]Event{{lost}, {}, {lost}},
		},
		"the same reason with another note is written": {
			passes: [][]Event{{lost}, {lost, other}, {other}},
			want:   [][]Event{{lost}, {other}, {}},
		},
		"the same event twice in a pass is written once": {
			passes: [][]Event{{lost, lost}},
			want:   [][]Event{{lost}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			speaker := newTeller(nil, "test", func() time.Time { return time.Unix(1000, 0) })
			got := [][]Event{}
			for _, events := range test.passes {
				got = append(got, speaker.newEvents(owner(), events))
			}
			same(t, got, test.want)
		})
	}
}

func TestTellerBoundsAFlappingObject(t *testing.T) {
	t.Parallel()
	clock := time.Unix(1000, 0)
	speaker := newTeller(nil, "test", func() time.Time { return clock })
	told := 0
	for flip := range 1000 {
		told += len(speaker.newEvents(owner(), []Event{{Reason: "Flipped", Note: fmt.Sprint(flip)}}))
	}
	if told != eventBurst {
		t.Errorf("%d events were written at once, want %d", told, eventBurst)
	}
	clock = clock.Add(eventRefill)
	if more := speaker.newEvents(owner(), []Event{{Reason: "Flipped", Note: "later"}}); len(more) != 1 {
		t.Errorf("%d events were written a minute later, want 1", len(more))
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"short": "short", "abcdefgh": "abcdef", "abcdeé": "abcde", "ééé": "ééé", "éééé": "ééé"} {
		if got := cut(text, 6); got != want {
			t.Errorf("cut(%q, 6) = %q, want %q", text, got, want)
		}
	}
}

func TestDescribeRequests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		method, target, content string
		want                    requestInfo
	}{
		{method: "GET", target: "/api/v1/namespaces/shop/pods/db-0", want: requestInfo{"get", "pods"}},
		{method: "GET", target: "/api/v1/pods?labelSelector=a%3Db", want: requestInfo{"list", "pods"}},
		{method: "GET", target: "/apis/apps/v1/namespaces/shop/statefulsets?watch=true", want: requestInfo{"watch", "statefulsets.apps"}},
		{method: "PATCH", target: "/apis/apps/v1/namespaces/shop/statefulsets/db", content: "application/apply-patch+yaml", want: requestInfo{"apply", "statefulsets.apps"}},
		{method: "PATCH", target: "/apis/x.example.com/v1/namespaces/shop/probes/a/status", content: "application/merge-patch+json", want: requestInfo{"patch", "probes.x.example.com/status"}},
		{method: "POST", target: "/api/v1/namespaces/shop/pods/db-0/eviction", want: requestInfo{"create", "pods/eviction"}},
		{method: "GET", target: "/api/v1/namespaces/shop", want: requestInfo{"get", "namespaces"}},
		{method: "GET", target: "/api/v1/namespaces", want: requestInfo{"list", "namespaces"}},
		{method: "DELETE", target: "/api/v1/namespaces/shop/pods/db-0", want: requestInfo{"delete", "pods"}},
		{method: "GET", target: "/apis/apps/v1", want: requestInfo{"get", "discovery"}},
		{method: "GET", target: "/proxy/cluster/api/v1/namespaces/shop/pods/db-0", want: requestInfo{"get", "pods"}},
		{method: "GET", target: "/version", want: requestInfo{"get", "other"}},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.target, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequestWithContext(t.Context(), test.method, test.target, nil)
			request.Header.Set("Content-Type", test.content)
			if got := describe(request); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTransportBoundsRequestsButNotWatches(t *testing.T) {
	t.Parallel()
	arrived, answer := make(chan string, 4), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		arrived <- request.URL.Path
		<-answer
	}))
	defer server.Close()
	measured, err := newMetrics(prometheus.NewRegistry(), "test")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(instrument(&rest.Config{Host: server.URL}, measured, 1))
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{}, 4)
	get := func(path string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := client.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		answered <- struct{}{}
	}

	go get("/api/v1/pods/first")
	first := <-arrived
	go get("/api/v1/pods?watch=true")
	watch := <-arrived
	same(t, []string{first, watch}, []string{"/api/v1/pods/first", "/api/v1/pods"})
	go get("/api/v1/pods/second")
	select {
	case path := <-arrived:
		t.Errorf("%s was sent, though one request runs and one is allowed", path)
	case <-time.After(20 * time.Millisecond):
	}
	close(answer)
	for range 3 {
		<-answered
	}
	same(t, testutil.ToFloat64(measured.requests.WithLabelValues("get", "pods", "200")), 2.0)
}

// flaky is an API server that answers some requests and refuses the connections of the others.
type flaky struct{ answers []bool }

// RoundTrip implements http.RoundTripper.
func (f *flaky) RoundTrip(*http.Request) (*http.Response, error) {
	answer := f.answers[0]
	f.answers = f.answers[1:]
	if !answer {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestTransportHoldsWatchesWhileTheAPIServerIsGone(t *testing.T) {
	t.Parallel()
	const get, watch = "/api/v1/pods/a", "/api/v1/pods?watch=true"
	tests := map[string]struct {
		server []bool
		ask    []string
		want   []bool
	}{
		"a watch waits until it is back":      {server: []bool{true, false, false, true}, ask: []string{watch, watch}, want: []bool{true, true}},
		"other requests fail at once":         {server: []bool{true, false}, ask: []string{get, get}, want: []bool{true, false}},
		"it was never reached: a watch fails": {server: []bool{false}, ask: []string{watch}, want: []bool{false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measured, err := newMetrics(prometheus.NewRegistry(), "test")
			if err != nil {
				t.Fatal(err)
			}
			server := &flaky{answers: test.server}
			between := &transport{next: server, metrics: measured, retry: time.Millisecond}
			got := []bool{}
			for _, target := range test.ask {
				response, err := between.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody))
				if err == nil {
					_ = response.Body.Close()
				}
				got = append(got, err == nil)
			}
			same(t, got, test.want)
			if len(server.answers) > 0 {
				t.Errorf("%d answers were not asked for", len(server.answers))
			}
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	missing := fmt.Errorf("pods.v1 in all namespaces: no answer yet")
	probes := &Health{}
	probes.Add("definitions", func() error { return nil })
	probes.Add("caches", func() error { return missing })
	ask := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		probes.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return answer.Code, answer.Body.String()
	}

	code, body := ask("/readyz")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "[-] caches: pods.v1 in all namespaces") {
		t.Errorf("not ready yet: got %d %q", code, body)
	}
	if code, _ := ask("/healthz"); code != http.StatusOK {
		t.Errorf("a process that is not ready yet must be healthy: got %d", code)
	}
	missing = nil
	if code, body := ask("/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("ready: got %d %q", code, body)
	}
	if _, body := ask("/readyz?verbose"); body != "[+] definitions: ok\n[+] caches: ok\n" {
		t.Errorf("verbose: got %q", body)
	}
}

func TestATransformThatFailsConcernsItsObjectOnly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		transform func(any) (any, error)
		want      any
	}{
		"it works":   {transform: func(any) (any, error) { return "slim", nil }, want: "slim"},
		"it fails":   {transform: func(any) (any, error) { return nil, io.ErrUnexpectedEOF }, want: "whole"},
		"it panics":  {transform: func(any) (any, error) { panic("a bug in the kind") }, want: "whole"},
		"it is ours": {transform: TrimMetadata, want: "whole"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watches := newInformers(nil, nil, nil, logr.Discard())
			kept, err := watches.contained(informerKey{}, test.transform)("whole")
			if kept != test.want || err != nil {
				t.Errorf("got %v and %v, want %v", kept, err, test.want)
			}
		})
	}
}
