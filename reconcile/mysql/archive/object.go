package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// reader reads an object, and goes on where it was when a connection breaks.
type reader struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none
	store  *Store
	name   string
	offset int64
	open   io.ReadCloser
	// tries counts those since the last byte.
	tries int
	err   error
}

// open reads an object. Errors, also that there is none, come with the first Read.
func (s *Store) open(ctx context.Context, name string) *reader {
	return &reader{ctx: ctx, store: s, name: name}
}

// Read implements io.Reader. Its errors are those of the Store, and io.EOF only at the object's end.
func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil {
		n, err := r.attempt(p)
		r.offset += int64(n)
		if n > 0 {
			r.tries = 0
		}
		if err != nil {
			r.failed(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, r.err
}

// attempt reads once, having opened the object where it is not open.
func (r *reader) attempt(p []byte) (int, error) {
	if r.open == nil {
		open, err := r.store.bucket.get(r.ctx, r.name, r.offset)
		if err != nil {
			r.tries = r.store.tuning.attempts // the bucket has tried often enough
			return 0, err
		}
		r.open = open
	}
	return r.open.Read(p)
}

// failed decides whether to go on after an error.
func (r *reader) failed(err error) {
	if isEnd(err) && r.open != nil {
		r.err = io.EOF
		return
	}
	r.close()
	r.tries++
	if kind := r.store.classify(err); r.tries < r.store.tuning.attempts && kind == destination.KindUnavailable && !errors.Is(err, fs.ErrNotExist) {
		if pause(r.ctx, r.store.tuning.backoff(r.tries)) == nil {
			return
		}
	}
	r.err = r.store.explain(r.ctx, fmt.Sprintf("read %s of %s", r.name, r.store.url), err)
}

// isEnd says that a reader is at its end. A broken connection may be an io.EOF, too, but a wrapped one: errors.Is would take it for the
// end.
func isEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// isShort says that io.ReadFull came to a reader's end, having read less than it was asked for.
func isShort(err error) bool { return isEnd(err) || err == io.ErrUnexpectedEOF } //nolint:errorlint // see isEnd

// Close implements io.Closer.
func (r *reader) Close() error {
	r.close()
	return nil
}

func (r *reader) close() {
	if r.open == nil {
		return
	}
	_ = r.open.Close() // what was only read has nothing to say
	r.open = nil
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
