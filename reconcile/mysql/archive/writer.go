package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/time/rate"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// DefaultPartSize is the default number of stored bytes after which a part ends.
const DefaultPartSize = 1 << 30

// MaxPartSize is the largest allowed size of a part: S3 uploads have 10,000 pieces at most, and a piece has uploadPiece bytes.
const MaxPartSize = 32 << 30

// WriteOptions name the owner of a backup and the way it is written.
type WriteOptions struct {
	// Identity is the owner of the backup. The UID is required.
	Identity Identity
	// Recipients are the keys that can decrypt the backup. Without one, the backup is not encrypted. See encryption.ParseKeys.
	Recipients []age.Recipient
	// PartSize is the number of stored bytes after which a part ends, up to MaxPartSize. 0 means DefaultPartSize.
	PartSize int64
	// Limit is the maximum number of bytes of the copy that are taken per second. 0 means no limit.
	Limit int64
}

// Writer writes one backup. It is a clone.Sink: only one goroutine at a time may call Write, Rename and Remove. After an error every
// further call fails with that same error.
type Writer struct {
	ctx     context.Context //nolint:containedctx // clone.Sink has none
	cancel  context.CancelCauseFunc
	store   *Store
	options WriteOptions
	attempt string
	started time.Time
	limiter *limiter
	encoder *zstd.Encoder

	recorder *recorder
	packer   *packer
	shipper  *uploader
	shipping sync.WaitGroup
	stored   atomic.Int64
	// closed: the Writer accepts nothing more. finished: the manifest is stored and was verified.
	closed, finished bool
}

var _ clone.Sink = (*Writer)(nil)

// errAborted is the cause that Abort ends a Writer's context with.
var errAborted = errors.New("the backup was aborted")

// Begin starts a backup. It removes the files of an unfinished attempt of the same instance, and claims the folder for the instance. The
// context bounds the whole backup: when it ends, every call fails and all background work stops. Errors: *OccupiedError,
// *encryption.KeyError, *destination.StoreError.
func Begin(ctx context.Context, store *Store, options WriteOptions) (*Writer, error) {
	if options.PartSize == 0 {
		options.PartSize = DefaultPartSize
	}
	if options.Identity.UID == "" || options.PartSize < 1 || options.PartSize > MaxPartSize || options.Limit < 0 {
		return nil, fmt.Errorf("begin backup: invalid identity %+v, part size %d, or limit %d", options.Identity, options.PartSize, options.Limit)
	}
	if len(options.Recipients) > 0 {
		if _, err := age.Encrypt(io.Discard, options.Recipients...); err != nil {
			return nil, &encryption.KeyError{Reason: err.Error()}
		}
	}
	encoder, err := newEncoder()
	if err != nil {
		return nil, err
	}
	w := &Writer{store: store, options: options, attempt: newAttempt(), started: time.Now().UTC().Truncate(time.Second), limiter: newLimiter(options.Limit), encoder: encoder}
	if err := w.claim(ctx); err != nil {
		return nil, err
	}
	w.start(ctx)
	return w, nil
}

// claim makes this attempt the owner of the folder.
func (w *Writer) claim(ctx context.Context) error {
	held, err := readOwnership(ctx, w.store)
	if err != nil {
		return err
	}
	if !held.free() {
		if held.identity.UID != w.options.Identity.UID || held.complete {
			return &OccupiedError{URL: w.store.url, Holder: held.identity, Complete: held.complete}
		}
		if err := removeAll(ctx, w.store, held.objects); err != nil {
			return err
		}
	}
	content, err := json.Marshal(marker{Format: Format, Product: Product, Backup: w.options.Identity, Attempt: w.attempt, Started: w.started})
	if err != nil {
		return fmt.Errorf("encode marker: %w", err)
	}
	return w.store.put(ctx, markerName, bytes.NewReader(append(content, '\n')))
}

// start starts the background work.
func (w *Writer) start(ctx context.Context) {
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	pool := newPool(w.ctx.Done(), func(one *chunk) error { return pack(w.encoder, one) })
	w.packer = &packer{pool: pool}
	w.recorder = newRecorder(w.packer, w.started)
	w.shipper = &uploader{store: w.store, attempt: w.attempt, recipients: w.options.Recipients, partSize: w.options.PartSize, stored: &w.stored}
	w.shipping.Go(func() {
		if err := w.shipper.run(w.ctx, pool); err != nil {
			w.cancel(err) // the first one counts
		}
	})
}

// Write adds data to a file; see clone.Sink. It waits while the store is slower than the donor, and to keep to the limit.
func (w *Writer) Write(file clone.File, offset int64, data []byte) error {
	for {
		step := data[:min(len(data), w.limiter.step())]
		if err := w.limiter.wait(w.ctx, len(step)); err != nil {
			return w.fail(err)
		}
		if err := w.record(func(r *recorder) error { return r.write(file, offset, step) }); err != nil {
			return err
		}
		if data, offset = data[len(step):], offset+int64(len(step)); len(data) == 0 {
			return nil
		}
	}
}

// Rename renames a file; the data written so far moves with it.
func (w *Writer) Rename(from, to string) error {
	return w.record(func(r *recorder) error { return r.rename(from, to) })
}

// Remove deletes a file and the data written to it so far. It succeeds if there is no such file.
func (w *Writer) Remove(name string) error {
	return w.record(func(r *recorder) error { return r.remove(name) })
}

// record makes one call to the recorder, unless the backup has failed.
func (w *Writer) record(do func(*recorder) error) error {
	if w.ctx.Err() != nil {
		return w.fail(nil)
	}
	if w.closed {
		return errors.New("write backup: it is already finished")
	}
	if err := do(w.recorder); err != nil {
		return w.fail(err)
	}
	return nil
}

// fail stops the backup and returns the cause, which is the first of all errors.
func (w *Writer) fail(err error) error {
	w.cancel(err)
	return fmt.Errorf("write backup: %w", context.Cause(w.ctx))
}

// Stored returns the number of bytes handed to the store so far. Any goroutine may call it.
func (w *Writer) Stored() int64 { return w.stored.Load() }

// Finish stores the rest, and checks that all parts are stored and that the folder still belongs to this attempt. Then it writes the
// manifest and reads it back. If it returns no error, the backup is complete and, in a volume, flushed to disk. It returns the manifest
// with all fields that the Writer fills in, and its checksum (see Load). After an error the caller must call Abort.
func (w *Writer) Finish(ctx context.Context, manifest Manifest) (Manifest, string, error) {
	if err := w.record((*recorder).finish); err != nil {
		return Manifest{}, "", err
	}
	w.closed = true
	w.packer.finish()
	w.shipping.Wait()
	if w.ctx.Err() != nil {
		return Manifest{}, "", w.fail(nil)
	}
	manifest, checksum, err := w.commit(ctx, w.complete(manifest))
	if err != nil {
		return Manifest{}, "", w.fail(err)
	}
	w.finished = true
	w.cancel(nil)
	return manifest, checksum, nil
}

// complete fills in the fields of the manifest that the Writer knows.
func (w *Writer) complete(manifest Manifest) Manifest {
	manifest.Format, manifest.Product, manifest.Backup = Format, Product, w.options.Identity
	manifest.Started, manifest.Completed = w.started, time.Now().UTC().Truncate(time.Second)
	manifest.Data.Size, manifest.Data.Raw = w.recorder.size(), w.packer.raw
	manifest.Parts, manifest.Compression = w.shipper.parts, compression
	manifest.Encryption = Encryption{}
	if len(w.options.Recipients) > 0 {
		manifest.Encryption = Encryption{Scheme: encryptionScheme, Recipients: recipientNames(w.options.Recipients)}
	}
	return manifest
}

// commit writes the manifest, which makes the stored parts a backup.
func (w *Writer) commit(ctx context.Context, manifest Manifest) (Manifest, string, error) {
	if err := check(manifest); err != nil {
		return Manifest{}, "", fmt.Errorf("make manifest: %w", err)
	}
	objects, err := w.store.list(ctx)
	if err != nil {
		return Manifest{}, "", err
	}
	if err := checkPartsExist(manifest, objects, w.store.url); err != nil {
		return Manifest{}, "", err
	}
	if err := w.shipper.checkOwner(ctx); err != nil {
		return Manifest{}, "", err
	}
	content, err := sealManifest(manifest)
	if err != nil {
		return Manifest{}, "", err
	}
	if err := w.store.put(ctx, manifestName, bytes.NewReader(content)); err != nil {
		return Manifest{}, "", err
	}
	loaded, checksum, err := Load(ctx, w.store)
	if err != nil {
		return Manifest{}, "", fmt.Errorf("read the manifest back: %w", err)
	}
	if checksum != checksumOf(content) {
		return Manifest{}, "", &CorruptError{URL: w.store.url, Reason: "the manifest that was read back is not the one that was written"}
	}
	return loaded, checksum, nil
}

// Abort ends a backup that was not finished, and removes what it stored. It may be called after any error and more than once. After a
// successful Finish it does nothing. The context bounds the cleanup. It must not be the context given to Begin, which may have ended. The
// instance's next Begin, or Remove, removes what Abort could not remove.
func (w *Writer) Abort(ctx context.Context) error {
	if w.finished {
		return nil
	}
	w.cancel(errAborted)
	if !w.closed {
		w.closed = true
		w.packer.finish()
	}
	if err := w.ended(ctx); err != nil {
		return err
	}
	objects, err := w.store.list(ctx)
	if err != nil {
		return err
	}
	var taken *OccupiedError
	switch err := w.shipper.checkOwner(ctx); {
	case err == nil:
		return removeAll(ctx, w.store, objects)
	case errors.Is(err, fs.ErrNotExist):
		return nil // an earlier Abort removed the marker
	case errors.As(err, &taken):
		return w.removeOwn(ctx, objects)
	default:
		return err
	}
}

// ended waits for the background work to end.
func (w *Writer) ended(ctx context.Context) error {
	over := make(chan struct{})
	go func() {
		w.shipping.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for writes to %s to end: %w", w.store.url, context.Cause(ctx))
	}
}

// removeOwn removes this attempt's parts from a folder that now belongs to another attempt.
func (w *Writer) removeOwn(ctx context.Context, objects []object) error {
	for _, one := range objects {
		if !strings.HasPrefix(one.name, partPrefix) || !strings.Contains(one.name, "-"+w.attempt+".") {
			continue
		}
		if err := w.store.remove(ctx, one.name); err != nil {
			return err
		}
	}
	return nil
}

// limiter limits the bytes per second; with a nil rate it does not.
type limiter struct{ rate *rate.Limiter }

// Steps of a twentieth of a second are smooth for a network, and cost almost nothing.
const (
	stepsPerSecond = 20
	smallestStep   = 4 << 10
	largestStep    = 1 << 20
)

func newLimiter(bytesPerSecond int64) *limiter {
	if bytesPerSecond == 0 {
		return &limiter{}
	}
	step := int(max(smallestStep, min(largestStep, bytesPerSecond/stepsPerSecond)))
	return &limiter{rate: rate.NewLimiter(rate.Limit(bytesPerSecond), step)}
}

// step is the maximum number of bytes for one call of wait.
func (l *limiter) step() int {
	if l.rate == nil {
		return largestStep
	}
	return l.rate.Burst()
}

// wait returns when count more bytes may pass.
func (l *limiter) wait(ctx context.Context, count int) error {
	if l.rate == nil || count == 0 {
		return nil
	}
	reservation := l.rate.ReserveN(time.Now(), count)
	return pause(ctx, reservation.Delay())
}

// recipientNames returns the public keys as text.
func recipientNames(recipients []age.Recipient) []string {
	var names []string
	for _, recipient := range recipients {
		if named, ok := recipient.(fmt.Stringer); ok {
			names = append(names, named.String())
		}
	}
	return names
}
