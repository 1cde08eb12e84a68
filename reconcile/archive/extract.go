package archive

import (
	"context"
	"errors"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// ReadOptions say how a backup is read.
type ReadOptions struct {
	// Identities are the keys to try on an encrypted backup. See ParseKeys.
	Identities []age.Identity
	// Limit is how many bytes of the copy are handed on per second, at most; 0 is no limit.
	Limit int64
	// Progress, if not nil, is told now and then, and at the end, how many bytes of the tar stream are through, of Manifest.Data.Raw.
	Progress func(bytes int64)
}

// Extract puts a backup together again: the calls to sink are those that the Writer had, except that Writes may be divided or joined
// otherwise. All that is read is verified, but a part's checksum only at its end: what the sink has made is good when, and only
// when, Extract returns without an error. Errors: *IncompleteError, *CorruptError, *KeyError, *StoreError, and the sink's.
func Extract(ctx context.Context, store *Store, manifest Manifest, options ReadOptions, sink clone.Sink) error {
	return errors.ErrUnsupported
}

// Verify reads a backup as Extract does, and keeps nothing.
func Verify(ctx context.Context, store *Store, manifest Manifest, options ReadOptions) error {
	return errors.ErrUnsupported
}
