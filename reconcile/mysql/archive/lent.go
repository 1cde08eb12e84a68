package archive

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// lendingTransport lends the body of a request to a transport until the answer arrives. Go's transport may continue to read in the
// background: if a store answers early, or if a request is canceled. Azure's SDK has then already unmapped the memory (azblob v1.7.0,
// internal/shared/mmf_unix.go), and the process would crash. lent is for bodies in memory, whose Read never blocks.
type lendingTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lendingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return l.base.RoundTrip(request)
	}
	terms := &loan{}
	defer terms.end()
	borrowing := request.WithContext(request.Context())
	borrowing.Body = lentBody{request.Body, terms}
	if request.GetBody != nil {
		borrowing.GetBody = func() (io.ReadCloser, error) {
			again, err := request.GetBody()
			return lentBody{again, terms}, err
		}
	}
	return l.base.RoundTrip(borrowing)
}

// errReturned is the error of reading a body after the answer.
var errReturned = errors.New("the request has ended")

// loan records whether the bodies of a request may still be read.
type loan struct {
	mu   sync.RWMutex
	over bool
}

// end ends the loan. It returns when no Read is in progress.
func (l *loan) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// lentBody is a body that can be read until the loan is over.
type lentBody struct {
	io.ReadCloser
	terms *loan
}

// Read implements io.Reader.
func (b lentBody) Read(into []byte) (int, error) {
	b.terms.mu.RLock()
	defer b.terms.mu.RUnlock()
	if b.terms.over {
		return 0, errReturned
	}
	return b.ReadCloser.Read(into)
}
