package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

const (
	manifestName = "manifest.json"
	markerName   = "started.json"
	partPrefix   = "part-"
	// markerLimit is larger than any marker.
	markerLimit = 64 << 10
)

// marker names the owner of a folder from the beginning. Attempt distinguishes the attempts of one instance: a Pod that is believed to be
// dead, but still runs, must not mix its parts with those of its successor.
type marker struct {
	Format  int       `json:"format"`
	Product string    `json:"product"`
	Backup  Identity  `json:"backup"`
	Attempt string    `json:"attempt"`
	Started time.Time `json:"started"`
}

// newAttempt returns a random identifier for an attempt.
func newAttempt() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand
	return hex.EncodeToString(random[:])
}

// isArchiveFile reports whether this package uses a name.
func isArchiveFile(name string) bool {
	return name == manifestName || name == markerName || strings.HasPrefix(name, partPrefix)
}

// readMarker returns the folder's marker. The error is fs.ErrNotExist if it has none.
func readMarker(ctx context.Context, store *Store) (marker, error) {
	content, err := store.read(ctx, markerName, markerLimit)
	if err != nil {
		return marker{}, err
	}
	var found marker
	if err := json.Unmarshal(content, &found); err != nil {
		return marker{}, &CorruptError{URL: store.url, Reason: fmt.Sprintf("read %s: %v", markerName, err)}
	}
	if found.Product != Product || found.Backup.UID == "" {
		return marker{}, &ForeignError{URL: store.url, Reason: markerName + " is not one of " + Product}
	}
	return found, nil
}

// ownership describes the owner of a folder.
type ownership struct {
	objects []object
	// identity is empty if it is unknown.
	identity Identity
	// complete: the manifest and all parts that it names exist.
	complete bool
}

// free reports whether the folder is empty.
func (h ownership) free() bool { return len(h.objects) == 0 }

// readOwnership finds the owner of a folder. An intact manifest of a complete backup decides, else the marker.
func readOwnership(ctx context.Context, store *Store) (ownership, error) {
	objects, err := store.list(ctx)
	if err != nil {
		return ownership{}, err
	}
	held := ownership{objects: objects}
	if held.free() {
		return held, nil
	}
	manifest, _, err := Load(ctx, store)
	if err == nil {
		held.identity, held.complete = manifest.Backup, true
		return held, nil
	}
	if unreadable(err) {
		return ownership{}, err
	}
	found, err := readMarker(ctx, store)
	if err == nil {
		held.identity = found.Backup
		return held, nil
	}
	if unreadable(err) {
		return ownership{}, err
	}
	held.identity = manifest.Backup // of an incomplete backup, or empty
	return held, nil
}

// unreadable reports whether an error is about reaching the store, not about its content.
func unreadable(err error) bool {
	var missing *NotFoundError
	var incomplete *IncompleteError
	var corrupt *CorruptError
	var foreign *ForeignError
	known := errors.As(err, &missing) || errors.As(err, &incomplete) || errors.As(err, &corrupt) || errors.As(err, &foreign)
	return !known && !errors.Is(err, fs.ErrNotExist)
}

// removeAll deletes all of this package's files in a folder: the manifest first, the marker last.
func removeAll(ctx context.Context, store *Store, objects []object) error {
	if err := store.remove(ctx, manifestName); err != nil {
		return err
	}
	for _, one := range objects {
		if !isArchiveFile(one.name) || one.name == manifestName || one.name == markerName {
			continue
		}
		if err := store.remove(ctx, one.name); err != nil {
			return err
		}
	}
	if err := store.sweep(ctx); err != nil {
		return err
	}
	if err := store.remove(ctx, markerName); err != nil {
		return err
	}
	return store.sweep(ctx)
}
