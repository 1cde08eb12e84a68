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

// bucket is a folder in some store. Names have no slash. The errors are those of the client library; Store explains them.
type bucket interface {
	// put stores all of body. The object appears whole or not at all, and replaces one of the same name.
	put(ctx context.Context, name string, body io.Reader) error
	// get reads an object from an offset on. If there is no such object, the error is fs.ErrNotExist.
	get(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	// list returns the stored objects. A folder that does not exist is empty.
	list(ctx context.Context) ([]object, error)
	// remove deletes an object. It succeeds if there is no such object.
	remove(ctx context.Context, name string) error
	// sweep removes what interrupted calls of put left and list does not show. It also removes the folder itself if it is empty.
	sweep(ctx context.Context) error
}

// errMissing is the error that get returns for an object that does not exist.
func errMissing(name string) error { return fmt.Errorf("%s: %w", name, fs.ErrNotExist) }

// put stores an object; see bucket.
func (s *Store) put(ctx context.Context, name string, body io.Reader) error {
	return s.explain(ctx, "write "+name+" to "+s.url, s.bucket.put(ctx, name, body))
}

// remove deletes an object; see bucket.
func (s *Store) remove(ctx context.Context, name string) error {
	return s.explain(ctx, "delete "+name+" from "+s.url, s.bucket.remove(ctx, name))
}

// list returns the stored objects; see bucket.
func (s *Store) list(ctx context.Context) ([]object, error) {
	objects, err := s.bucket.list(ctx)
	return objects, s.explain(ctx, "list "+s.url, err)
}

// sweep removes what interrupted writes left; see bucket.
func (s *Store) sweep(ctx context.Context) error {
	return s.explain(ctx, "clean up "+s.url, s.bucket.sweep(ctx))
}

// read returns all of a small object. The error is fs.ErrNotExist if there is no such object, and a CorruptError if it is larger than
// limit.
func (s *Store) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	body := s.open(ctx, name)
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &CorruptError{URL: s.url, Reason: fmt.Sprintf("%s is larger than its limit of %d bytes", name, limit)}
	}
	return content, nil
}

// explain turns a bucket's error into a StoreError. Three errors stay as they are: the end of the context, an error of the caller's own
// body, and a missing object.
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
	return &destination.StoreError{Kind: s.classify(err), Op: stableText(op), Err: inPlainWords(err)}
}

// bodyError marks an error as one of the body that is being stored, not of the store.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return e.cause.Error() }
func (e *bodyError) Unwrap() error { return e.cause }

// body marks the errors that a reader returns.
type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !isEnd(err) {
		err = &bodyError{cause: err}
	}
	return n, err
}
