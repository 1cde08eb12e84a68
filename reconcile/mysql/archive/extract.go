package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"
	"sync"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// ReadOptions say how a backup is read.
type ReadOptions struct {
	// Identities are the keys to try on an encrypted backup. See encryption.ParseKeys.
	Identities []age.Identity
	// Limit is the maximum number of bytes of the copy that are passed on per second; 0 means no limit.
	Limit int64
	// Progress, if not nil, is called from time to time and at the end. bytes is the part of the tar stream that is done, of
	// Manifest.Data.Raw.
	Progress func(bytes int64)
}

// Extract restores a backup. It makes the same calls to sink as the Writer received. But Writes may be divided or joined differently, and
// File.Size is always that of the file's first Write. Everything it reads is verified, but a part's checksum only at the part's end. The
// files are good if and only if Extract returns no error. Errors: *IncompleteError, *CorruptError, *encryption.KeyError,
// *destination.StoreError, and the sink's.
func Extract(ctx context.Context, store *Store, manifest Manifest, options ReadOptions, sink clone.Sink) error {
	if err := check(manifest); err != nil {
		return &CorruptError{URL: store.url, Reason: "the manifest is invalid: " + err.Error()}
	}
	if manifest.Encryption.Scheme != "" && len(options.Identities) == 0 {
		return &encryption.KeyError{Reason: "the backup is encrypted, and there is no identity (age secret key) to decrypt it with"}
	}
	decoder, err := newDecoder()
	if err != nil {
		return err
	}
	defer decoder.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pool := newPool(ctx.Done(), func(one *chunk) error { return unpack(decoder, one) })
	fetcher := &fetcher{store: store, manifest: manifest, identities: options.Identities, pool: pool}
	var fetching sync.WaitGroup
	fetching.Go(func() {
		if err := fetcher.run(ctx); err != nil {
			cancel(err)
		}
		pool.finish()
	})
	stream := &unpacker{ctx: ctx, pool: pool, limiter: newLimiter(options.Limit), progress: options.Progress, left: manifest.Data.Raw}
	err = replay(stream, sink)
	if err == nil {
		err = stream.expectEnd(manifest.Data.Raw)
	}
	cancel(err) // stop the goroutines that still run; the first error counts
	fetching.Wait()
	pool.wait() // a worker may still use the decoder
	if err == nil {
		return fetcher.err
	}
	return inContext(ctx, err, store.url)
}

// inContext returns the cause that ended the context, if any, and makes a CorruptError of an error of the stream.
func inContext(ctx context.Context, err error, url string) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if malformed, ok := errors.AsType[*streamError](err); ok {
		return &CorruptError{URL: url, Reason: malformed.Error()}
	}
	return err
}

// Verify reads and checks a backup as Extract does, and keeps nothing.
func Verify(ctx context.Context, store *Store, manifest Manifest, options ReadOptions) error {
	return Extract(ctx, store, manifest, options, discardSink{})
}

// discardSink is the clone.Sink that keeps nothing.
type discardSink struct{}

func (discardSink) Write(clone.File, int64, []byte) error { return nil }
func (discardSink) Rename(string, string) error           { return nil }
func (discardSink) Remove(string) error                   { return nil }

// fetcher reads all parts and finds their chunks.
type fetcher struct {
	store      *Store
	manifest   Manifest
	identities []age.Identity
	pool       *pool
	err        error
}

func (f *fetcher) run(ctx context.Context) error {
	for _, part := range f.manifest.Parts {
		if err := f.fetch(ctx, part); err != nil {
			f.err = err
			return err
		}
	}
	return nil
}

// fetch reads a part. It reports corrupt content only if the object was read without an error: a broken connection is no corruption.
func (f *fetcher) fetch(ctx context.Context, part Part) error {
	object := f.store.open(ctx, part.Name)
	defer object.close()
	stored := &hashedReader{from: object, hash: sha256.New()}
	chunks, err := f.chunks(part, stored)
	switch {
	case errors.Is(err, errStopped):
		return err
	case object.err != nil && !isEnd(object.err):
		if errors.Is(object.err, fs.ErrNotExist) {
			return &IncompleteError{URL: f.store.url, Reason: part.Name + " is missing"}
		}
		return object.err
	case err != nil:
		if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
			return &encryption.KeyError{Reason: "none of the identities decrypts the backup; it is encrypted for " + strings.Join(f.manifest.Encryption.Recipients, ", ")}
		}
		return &CorruptError{URL: f.store.url, Reason: fmt.Sprintf("%s: chunk %d: %v", part.Name, chunks+1, err)}
	case stored.size != part.Size || hex.EncodeToString(stored.hash.Sum(nil)) != part.SHA256:
		return &CorruptError{URL: f.store.url, Reason: part.Name + " is not what was stored: its size or SHA-256 does not match the manifest"}
	case chunks != part.Chunks:
		return &CorruptError{URL: f.store.url, Reason: fmt.Sprintf("%s has %d chunks and should have %d", part.Name, chunks, part.Chunks)}
	}
	return nil
}

// chunks submits all chunks of a part and returns their number.
func (f *fetcher) chunks(part Part, stored io.Reader) (int, error) {
	packed := stored
	if f.manifest.Encryption.Scheme != "" {
		decrypted, err := age.Decrypt(stored, f.identities...)
		if err != nil {
			return 0, err
		}
		packed = decrypted
	}
	for n := 0; ; n++ {
		one, err := f.pool.take()
		if err != nil {
			return n, err
		}
		err = readFrame(packed, one)
		if isEnd(err) {
			f.pool.giveBack(one)
			return n, drain(stored)
		}
		if err != nil {
			f.pool.giveBack(one)
			return n, err
		}
		if n == part.Chunks {
			f.pool.giveBack(one)
			return n, errors.New("the part has more chunks than the manifest says")
		}
		f.pool.submit(one)
	}
}

// drain returns an error if a stream is not at its end.
func drain(from io.Reader) error {
	n, err := io.Copy(io.Discard, from)
	if err == nil && n > 0 {
		return fmt.Errorf("%d bytes follow the end", n)
	}
	return err
}

// hashedReader hashes and counts what is read.
type hashedReader struct {
	from io.Reader
	hash hash.Hash
	size int64
}

func (r *hashedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.size += int64(n)
	_, _ = r.hash.Write(p[:n]) // never fails: hash.Hash
	return n, err
}

// unpacker is the tar stream, read from the pool's chunks.
type unpacker struct {
	ctx      context.Context //nolint:containedctx // io.Reader has none
	pool     *pool
	limiter  *limiter
	progress func(int64)
	current  *chunk
	rest     []byte
	read     int64
	// left is how many bytes may still follow according to the manifest. The manifest, not the stream, limits how much space is used.
	left int64
}

// Read implements io.Reader.
func (u *unpacker) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if err := u.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p[:min(len(p), u.limiter.step())], u.rest)
	if err := u.limiter.wait(u.ctx, n); err != nil {
		return 0, err
	}
	u.rest = u.rest[n:]
	u.read += int64(n)
	return n, nil
}

// next gets the next chunk.
func (u *unpacker) next() error {
	if u.current != nil {
		u.pool.giveBack(u.current)
		u.current = nil
	}
	if u.progress != nil {
		u.progress(u.read)
	}
	one, err := u.pool.next()
	switch {
	case isEnd(err):
		// The pool also ends after an error.
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		return io.EOF
	case errors.Is(err, errStopped):
		return context.Cause(u.ctx)
	case err != nil:
		return &streamError{reason: err.Error()}
	}
	u.current, u.left = one, u.left-int64(len(one.raw))
	if u.left < 0 {
		return &streamError{reason: "the stream has more bytes than the manifest says"}
	}
	u.rest = one.raw
	return nil
}

// expectEnd checks that nothing follows the tar stream, and that it is as long as the manifest says.
func (u *unpacker) expectEnd(raw int64) error {
	rest, err := io.Copy(io.Discard, u)
	if err != nil {
		return err
	}
	if u.read != raw || rest > 0 {
		return &streamError{reason: fmt.Sprintf("the stream has %d bytes, and %d after its end; it should have %d", u.read, rest, raw)}
	}
	return nil
}
