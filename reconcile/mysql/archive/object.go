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

// reader reads an object. If a connection breaks, it continues at the same offset.
type reader struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none
	store  *Store
	name   string
	offset int64
	open   io.ReadCloser
	// tries counts the attempts since the last byte was read.
	tries int
	err   error
}

// open returns a reader of an object. Errors come with the first Read, also if there is no such object.
func (s *Store) open(ctx context.Context, name string) *reader {
	return &reader{ctx: ctx, store: s, name: name}
}

// Read implements io.Reader. Its errors are those of the Store, and io.EOF only at the end of the object.
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

// attempt opens the object if it is not open, and reads once.
func (r *reader) attempt(p []byte) (int, error) {
	if r.open == nil {
		open, err := r.store.bucket.get(r.ctx, r.name, r.offset)
		if err != nil {
			r.tries = r.store.tuning.attempts // the bucket has retried already
			return 0, err
		}
		r.open = open
	}
	return r.open.Read(p)
}

// failed decides whether to continue after an error.
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

// isEnd reports whether a reader is at its end. An error of a broken connection may wrap io.EOF: errors.Is would take it for the end.
func isEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// isShort reports whether io.ReadFull reached a reader's end before it had read all bytes that it was asked for.
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
	_ = r.open.Close() // nothing was written
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
