package reconcile

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// serverClock is the API server's clock, read from its answers. It is a second clock for decisions that must not rely on this machine's
// clock alone.
type serverClock struct {
	// now is the clock that measures the time since an answer. time.Now is monotonic: it continues evenly if the machine's clock is set.
	now  func() time.Time
	last atomic.Pointer[answered]
}

// answered is the time in an answer, in whole seconds, and when the answer came.
type answered struct{ said, came time.Time }

// listenTo returns a copy of a client configuration whose answers update the clock.
func (c *serverClock) listenTo(config *rest.Config) *rest.Config {
	heard := rest.CopyConfig(config)
	heard.Wrap(func(next http.RoundTripper) http.RoundTripper { return &listener{next: next, clock: c} })
	return heard
}

// note remembers the time in an answer. An answer from a cache has an age, and its time is an earlier one.
func (c *serverClock) note(answer http.Header) {
	said, err := http.ParseTime(answer.Get("Date"))
	if err != nil || answer.Get("Age") != "" {
		return
	}
	c.last.Store(&answered{said: said, came: c.now()})
}

// read returns the API server's time; zero until an answer contained it.
func (c *serverClock) read() time.Time {
	last := c.last.Load()
	if last == nil {
		return time.Time{}
	}
	return last.said.Add(c.now().Sub(last.came))
}

// listener passes the headers of all answers to a clock.
type listener struct {
	next  http.RoundTripper
	clock *serverClock
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil {
		l.clock.note(response.Header)
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the underlying connection pool.
func (l *listener) WrappedRoundTripper() http.RoundTripper {
	return l.next
}
