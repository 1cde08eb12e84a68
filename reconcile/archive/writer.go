package archive

import (
	"context"
	"errors"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// DefaultPartSize is at how many stored bytes a part ends.
const DefaultPartSize = 1 << 30

// WriteOptions say whose backup it is and how it is written.
type WriteOptions struct {
	// Identity is whose backup it is; the UID is required.
	Identity Identity
	// Recipients are who can decrypt it; none means that it is not encrypted. See ParseKeys.
	Recipients []age.Recipient
	// PartSize is at how many stored bytes a part ends. 0 means DefaultPartSize.
	PartSize int64
	// Limit is how many bytes of the copy are taken per second, at most; 0 is no limit.
	Limit int64
}

// Writer is a backup being made. It is a clone.Sink: its Write, Rename and Remove are for one goroutine at a time. After an error every
// further call fails with that same error.
type Writer struct{}

var _ clone.Sink = (*Writer)(nil)

// Begin starts a backup: it claims the folder for the instance, having removed what an unfinished attempt of the same instance
// left. The context bounds the whole backup: with its end every call fails and all that goes on beside them stops. Errors:
// *OccupiedError, *StoreError.
func Begin(ctx context.Context, store *Store, options WriteOptions) (*Writer, error) {
	return nil, errors.ErrUnsupported
}

// Write adds data to a file; see clone.Sink. It waits where the store is slower than the donor, or Limit says so.
func (w *Writer) Write(file clone.File, offset int64, data []byte) error {
	return errors.ErrUnsupported
}

// Rename moves a file with what was written to it so far.
func (w *Writer) Rename(from, to string) error { return errors.ErrUnsupported }

// Remove deletes a file with what was written to it so far.
func (w *Writer) Remove(name string) error { return errors.ErrUnsupported }

// Stored is how many bytes have been handed to the store so far. It may be called by any goroutine.
func (w *Writer) Stored() int64 { return 0 }

// Finish stores what is left, checks that all is there and still this attempt's, writes the manifest, and reads it back: when it
// returns without an error, the backup is complete and, in a volume, flushed to disk. It returns the manifest with all that the Writer
// filled in, and its checksum (see Load). After an error call Abort.
func (w *Writer) Finish(ctx context.Context, manifest Manifest) (Manifest, string, error) {
	return Manifest{}, "", errors.ErrUnsupported
}

// Abort ends a backup that was not finished and removes what it stored. It may be called after any error and more than once; after a
// Finish that succeeded it does nothing. The context bounds the cleaning up, and is not the one given to Begin, which may be over.
// What could not be removed is removed by the instance's next Begin, or by Remove.
func (w *Writer) Abort(ctx context.Context) error { return errors.ErrUnsupported }
