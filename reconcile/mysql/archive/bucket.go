package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// object is one stored file of a folder.
type object struct {
	name string
	size int64
}

// bucket is a folder somewhere; names have no slash. Its errors are raw: Store says what they mean.
type bucket interface {
	// put stores all that body yields. The object appears whole, or not at all, and has replaced one of the same name.
	put(ctx context.Context, name string, body io.Reader) error
	// get reads an object from an offset on. One that is not there is fs.ErrNotExist.
	get(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	// list names what is stored. A folder that does not exist is empty.
	list(ctx context.Context) ([]object, error)
	// remove deletes an object; one that is not there is success.
	remove(ctx context.Context, name string) error
	// sweep removes what puts that were interrupted have left and list does not show, and the folder itself if it is empty.
	sweep(ctx context.Context) error
}

// errMissing is what get returns for an object that is not there.
func errMissing(name string) error { return fmt.Errorf("%s: %w", name, fs.ErrNotExist) }

// put stores an object; see bucket.
func (s *Store) put(ctx context.Context, name string, body io.Reader) error {
	return s.explain(ctx, "write "+name+" to "+s.url, s.bucket.put(ctx, name, body))
}

// remove deletes an object; see bucket.
func (s *Store) remove(ctx context.Context, name string) error {
	return s.explain(ctx, "delete "+name+" from "+s.url, s.bucket.remove(ctx, name))
}

// list names what is stored; see bucket.
func (s *Store) list(ctx context.Context) ([]object, error) {
	objects, err := s.bucket.list(ctx)
	return objects, s.explain(ctx, "list "+s.url, err)
}

// sweep removes what interrupted writes left; see bucket.
func (s *Store) sweep(ctx context.Context) error {
	return s.explain(ctx, "clean up "+s.url, s.bucket.sweep(ctx))
}

// read returns a small object whole. One that is not there is fs.ErrNotExist, one that is larger than limit a CorruptError.
func (s *Store) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	body := s.open(ctx, name)
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &CorruptError{URL: s.url, Reason: fmt.Sprintf("%s is larger than any can be, %d bytes", name, limit)}
	}
	return content, nil
}

// explain makes a StoreError of what a bucket returned. The end of the context, what the caller's own body returned, and an absent object
// stay what they are.
func (s *Store) explain(ctx context.Context, op string, err error) error {
	var explained *destination.StoreError
	var own *bodyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.cause
	case errors.As(err, &explained), errors.Is(err, fs.ErrNotExist):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	return &destination.StoreError{Kind: s.classify(err), Op: settled(op), Err: inPlainWords(err)}
}

// bodyError marks an error as that of the body that is being stored, and none of the store.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return e.cause.Error() }
func (e *bodyError) Unwrap() error { return e.cause }

// body marks what a reader returns.
type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !isEnd(err) {
		err = &bodyError{cause: err}
	}
	return n, err
}
