package reconcile

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// verbWatch is RBAC's verb for a watch, and the name of the API's query parameter.
const verbWatch = "watch"

// transport counts and limits the requests to the API server. client-go's own throttle is off: it delays requests without reporting it,
// while the API server's priority and fairness knows the API server's capacity. A limit on the number of running requests bounds memory and
// sockets.
//
// A watch that cannot reach the API server waits here until it is available again. Informers would back off for up to a minute instead, and
// miss changes for that time. The first connection is not retried here: a user who starts an operator with a wrong address must see the
// error.
type transport struct {
	next    http.RoundTripper
	slots   *requestSlots
	metrics *metrics
	// retry is how long a watch waits before it tries to reach the API server again.
	retry   time.Duration
	reached atomic.Bool
}

// lookAgain is the default of transport.retry.
const lookAgain = time.Second

// instrument returns a copy of a client configuration whose requests are counted, with at most atOnce of them running (0: no limit).
func instrument(config *rest.Config, m *metrics, atOnce int) *rest.Config {
	instrumented := rest.CopyConfig(config)
	instrumented.QPS = -1
	var slots *requestSlots
	if atOnce > 0 {
		slots = newRequestSlots(atOnce)
	}
	instrumented.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{next: next, slots: slots, metrics: m, retry: lookAgain}
	})
	return instrumented
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	wanted := describe(request)
	if t.slots != nil && wanted.verb != verbWatch {
		give, err := t.slots.take(request.Context(), wanted)
		if err != nil {
			return nil, err
		}
		defer give()
	}

	for {
		response, err := t.send(request, wanted)
		if err == nil {
			t.reached.Store(true)
			return response, nil
		}
		if wanted.verb != verbWatch || !t.reached.Load() || !IsUnavailable(&url.Error{Op: request.Method, URL: request.URL.Path, Err: err}) {
			return nil, err
		}
		select {
		case <-time.After(wait.Jitter(t.retry, 0.5)):
		case <-request.Context().Done():
			return nil, err
		}
	}
}

// send sends a request and measures it.
func (t *transport) send(request *http.Request, wanted requestInfo) (*http.Response, error) {
	began := time.Now()
	response, err := t.next.RoundTrip(request)
	code := 0
	if err == nil {
		code = response.StatusCode
	}
	t.metrics.requests.WithLabelValues(wanted.verb, wanted.resource, strconv.Itoa(code)).Inc()
	if wanted.verb != verbWatch {
		t.metrics.latencies.WithLabelValues(wanted.verb).Observe(time.Since(began).Seconds())
	}
	return response, err
}

// requestInfo is the verb and the resource of a request, in RBAC's terms, except that an apply is distinguished from other patches.
type requestInfo struct {
	verb, resource string
}

// describe reads a request's verb and resource from its method, path and query (Kubernetes documentation, "Kubernetes API Concepts").
func describe(request *http.Request) requestInfo {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	// The API may be served under a path prefix.
	start := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if start < 0 {
		return requestInfo{verb: strings.ToLower(request.Method), resource: "other"}
	}
	group, path := "", parts[start+1:]
	if parts[start] == "apis" && len(path) > 0 {
		group, path = path[0], path[1:]
	}
	if len(path) < 2 {
		return requestInfo{verb: "get", resource: "discovery"}
	}
	path = path[1:]
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}

	resource := path[0]
	if group != "" {
		resource += "." + group
	}
	if len(path) > 2 {
		resource += "/" + path[2]
	}
	return requestInfo{verb: verbOf(request, len(path) > 1), resource: resource}
}

func verbOf(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		if request.URL.Query().Get(verbWatch) == "true" || request.URL.Query().Get(verbWatch) == "1" {
			return verbWatch
		}
		if named {
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	default:
		return strings.ToLower(request.Method)
	}
}

// WrappedRoundTripper lets client-go find the underlying connection pool.
func (t *transport) WrappedRoundTripper() http.RoundTripper {
	return t.next
}
