package archive

import (
	"context"
	"errors"
)

// Remove deletes the data of owner's backup, complete or not, and nothing else. The manifest goes first, so that what an interrupted
// Remove leaves is never taken for a backup, and who owns it goes last, so that it can be continued. A folder without anything is
// success. Errors: *OccupiedError if the folder is another's, *StoreError.
func Remove(ctx context.Context, store *Store, owner Identity) error { return errors.ErrUnsupported }
