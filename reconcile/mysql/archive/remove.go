package archive

import (
	"context"
	"slices"
)

// Remove deletes the data of owner's backup, complete or not, and nothing else. The manifest goes first, so that what an interrupted
// Remove leaves is never taken for a backup, and who owns it goes last, so that it can be continued. A folder without anything is
// success. Errors: *OccupiedError if the folder is another's, *destination.StoreError.
func Remove(ctx context.Context, store *Store, owner Identity) error {
	held, err := holderOf(ctx, store)
	if err != nil {
		return err
	}
	if held.free() {
		return nil
	}
	if owner.UID == "" || held.identity.UID != owner.UID {
		return &OccupiedError{URL: store.url, Holder: held.identity, Complete: held.complete}
	}
	return empty(ctx, store, held.objects)
}

// RemoveUnfinished deletes what attempts at owner's backup have left that never came to their end, and nothing else. A folder that is
// another's, or has nothing in it, has nothing of them. One with a manifest is left as it is, whatever became of its parts: somebody may
// miss it. Errors: *FinishedError if there is a manifest, *destination.StoreError.
func RemoveUnfinished(ctx context.Context, store *Store, owner Identity) error {
	held, err := holderOf(ctx, store)
	if err != nil {
		return err
	}
	if held.free() || owner.UID == "" || held.identity.UID != owner.UID {
		return nil
	}
	if slices.ContainsFunc(held.objects, func(one object) bool { return one.name == manifestName }) {
		return &FinishedError{URL: store.url}
	}
	return empty(ctx, store, held.objects)
}
