package archive

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// lent lends the body of a request to a transport until the answer is there. Go's transport may read on in the background: where a store
// answers early, and where a request is given up. Azure's SDK takes the memory away by then (azblob v1.7.0, internal/shared/mmf_unix.go),
// and the process would end with a fault. It is for bodies in memory, whose Read never waits.
type lent struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lent) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return l.base.RoundTrip(request)
	}
	terms := &loan{}
	defer terms.end()
	borrowing := request.WithContext(request.Context())
	borrowing.Body = borrowed{request.Body, terms}
	if request.GetBody != nil {
		borrowing.GetBody = func() (io.ReadCloser, error) {
			again, err := request.GetBody()
			return borrowed{again, terms}, err
		}
	}
	return l.base.RoundTrip(borrowing)
}

// errReturned is what is read of a body after the answer.
var errReturned = errors.New("the request has ended")

// loan says whether the bodies of a request may still be read.
type loan struct {
	mu   sync.RWMutex
	over bool
}

// end returns when nobody reads any more.
func (l *loan) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// borrowed is a body that can be read until the loan is over.
type borrowed struct {
	io.ReadCloser
	terms *loan
}

// Read implements io.Reader.
func (b borrowed) Read(into []byte) (int, error) {
	b.terms.mu.RLock()
	defer b.terms.mu.RUnlock()
	if b.terms.over {
		return 0, errReturned
	}
	return b.ReadCloser.Read(into)
}
