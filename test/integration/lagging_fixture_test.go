package integration

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// laggard holds back what an operator's watches on one resource tell, from when it is told to until it is told to stop. Everything else is
// as the API server says.
type laggard struct {
	resource string

	mu sync.Mutex
	// caughtUp is closed while nothing is held back.
	caughtUp chan struct{}
}

func newLaggard(resource string) *laggard {
	l := &laggard{resource: resource, caughtUp: make(chan struct{})}
	close(l.caughtUp)
	return l
}

// lag begins to hold back.
func (l *laggard) lag() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caughtUp = make(chan struct{})
}

// catchUp hands on what was held back.
func (l *laggard) catchUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.caughtUp)
}

func (l *laggard) wait(ctx context.Context) {
	l.mu.Lock()
	caughtUp := l.caughtUp
	l.mu.Unlock()
	select {
	case <-caughtUp:
	case <-ctx.Done():
	}
}

// slow has an operator see the resource through the laggard.
func (l *laggard) slow(config *reconcile.Config) {
	config.Rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") == "true" && strings.HasSuffix(request.URL.Path, "/"+l.resource) {
				response.Body = &laggingBody{ReadCloser: response.Body, laggard: l, ctx: request.Context()}
			}
			return response, err
		})
	})
}

type laggingBody struct {
	io.ReadCloser
	laggard *laggard
	ctx     context.Context //nolint:containedctx // the request's, whose answer this is
}

// Read hands on what has arrived as soon as nothing is held back.
func (b *laggingBody) Read(into []byte) (int, error) {
	count, err := b.ReadCloser.Read(into)
	b.laggard.wait(b.ctx)
	return count, err
}
