package archive

import (
	"context"
	"slices"
)

// Remove deletes the data of owner's backup, complete or not, and nothing else. It deletes the manifest first, so that the rest after an
// interruption is never taken for a backup. It deletes the marker, which names the owner, last, so that a later Remove can continue. An
// empty folder is a success. Errors: *OccupiedError if the folder belongs to another instance, *destination.StoreError.
func Remove(ctx context.Context, store *Store, owner Identity) error {
	held, err := readOwnership(ctx, store)
	if err != nil {
		return err
	}
	if held.free() {
		return nil
	}
	if owner.UID == "" || held.identity.UID != owner.UID {
		return &OccupiedError{URL: store.url, Holder: held.identity, Complete: held.complete}
	}
	return removeAll(ctx, store, held.objects)
}

// RemoveUnfinished deletes the files of unfinished attempts at owner's backup, and nothing else. It does nothing in a folder that is empty
// or belongs to another instance. It leaves a folder with a manifest as it is, even if parts are missing: a user may need it. Errors:
// *FinishedError if there is a manifest, *destination.StoreError.
func RemoveUnfinished(ctx context.Context, store *Store, owner Identity) error {
	held, err := readOwnership(ctx, store)
	if err != nil {
		return err
	}
	if held.free() || owner.UID == "" || held.identity.UID != owner.UID {
		return nil
	}
	if slices.ContainsFunc(held.objects, func(one object) bool { return one.name == manifestName }) {
		return &FinishedError{URL: store.url}
	}
	return removeAll(ctx, store, held.objects)
}
