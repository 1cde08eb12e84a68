package reconcile

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// serverClock is the API server's clock, as its answers tell it: a second one, for what must not be done by this machine's alone.
type serverClock struct {
	// now is the clock by which time is measured since an answer. That of time.Now goes on evenly when somebody sets this machine's clock.
	now  func() time.Time
	last atomic.Pointer[answered]
}

// answered is the time that an answer said, in whole seconds, and when it came.
type answered struct{ said, came time.Time }

// listenTo returns a copy of a client configuration whose answers tell the time.
func (c *serverClock) listenTo(config *rest.Config) *rest.Config {
	heard := rest.CopyConfig(config)
	heard.Wrap(func(next http.RoundTripper) http.RoundTripper { return &listener{next: next, clock: c} })
	return heard
}

// note remembers what an answer says. One that comes out of somebody's cache, with an age, tells of another time.
func (c *serverClock) note(answer http.Header) {
	said, err := http.ParseTime(answer.Get("Date"))
	if err != nil || answer.Get("Age") != "" {
		return
	}
	c.last.Store(&answered{said: said, came: c.now()})
}

// read returns the API server's time; zero while no answer has told it.
func (c *serverClock) read() time.Time {
	last := c.last.Load()
	if last == nil {
		return time.Time{}
	}
	return last.said.Add(c.now().Sub(last.came))
}

// listener has a clock hear all answers.
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

// WrappedRoundTripper lets client-go find the connection pool beneath.
func (l *listener) WrappedRoundTripper() http.RoundTripper {
	return l.next
}
