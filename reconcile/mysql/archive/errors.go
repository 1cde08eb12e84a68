package archive

import "fmt"

// NotFoundError says that a folder has no backup, nor any part of one.
type NotFoundError struct{ URL string }

func (e *NotFoundError) Error() string { return "no backup at " + e.URL }

// IncompleteError says that a folder has parts of a backup, but not a whole one: the backup was never finished, or something was
// deleted since.
type IncompleteError struct{ URL, Reason string }

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("backup at %s is incomplete: %s", e.URL, e.Reason)
}

// CorruptError says that what is stored is not what was written.
type CorruptError struct{ URL, Reason string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("backup at %s is corrupt: %s", e.URL, e.Reason)
}

// ForeignError says that a folder holds something that this program did not write, or that a newer one wrote.
type ForeignError struct{ URL, Reason string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("what is at %s cannot be used: %s", e.URL, e.Reason)
}

// OccupiedError says that a folder holds something other than an unfinished attempt of the same instance: it is never overwritten.
type OccupiedError struct {
	URL string
	// Holder is whose backup it is; empty where that cannot be told.
	Holder Identity
	// Complete says that there is a manifest. With the caller's own UID in Holder, an earlier attempt got everything done: Load it.
	Complete bool
}

func (e *OccupiedError) Error() string {
	if e.Holder.UID == "" {
		return fmt.Sprintf("%s holds files of somebody else; choose another destination or remove them", e.URL)
	}
	state := "an unfinished backup"
	if e.Complete {
		state = "the backup"
	}
	return fmt.Sprintf("%s holds %s of MySQLBackupInstance %s/%s (UID %s); choose another destination or remove it",
		e.URL, state, e.Holder.Namespace, e.Holder.Instance, e.Holder.UID)
}

// FinishedError says that a folder has a manifest where only what was never finished was to be deleted.
type FinishedError struct{ URL string }

func (e *FinishedError) Error() string {
	return e.URL + " has a " + manifestName + ": it may be a good backup and stays; mysql-operator backup verify tells, and whoever does not need it may delete it"
}
