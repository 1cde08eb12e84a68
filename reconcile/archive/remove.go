package archive

import "context"

// Remove deletes the data of owner's backup, complete or not, and nothing else. The manifest goes first, so that what an interrupted
// Remove leaves is never taken for a backup, and who owns it goes last, so that it can be continued. A folder without anything is
// success. Errors: *OccupiedError if the folder is another's, *StoreError.
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
