package archive

import "fmt"

// NotFoundError means that a folder has no backup, nor any part of one.
type NotFoundError struct{ URL string }

func (e *NotFoundError) Error() string { return "no backup at " + e.URL }

// IncompleteError means that a folder has only parts of a backup: the backup was never finished, or files were deleted later.
type IncompleteError struct{ URL, Reason string }

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("backup at %s is incomplete: %s", e.URL, e.Reason)
}

// CorruptError means that the stored data is not what was written.
type CorruptError struct{ URL, Reason string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("backup at %s is corrupt: %s", e.URL, e.Reason)
}

// ForeignError means that a folder holds files that this program did not write, or that a newer release wrote.
type ForeignError struct{ URL, Reason string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the files at %s cannot be used: %s", e.URL, e.Reason)
}

// OccupiedError means that a folder holds something other than an unfinished attempt of the same instance. Such a folder is never
// overwritten.
type OccupiedError struct {
	URL string
	// Holder is the owner of the backup. It is empty if the owner is unknown.
	Holder Identity
	// Complete means that there is a complete backup. If Holder has the caller's own UID, an earlier attempt has finished the backup: Load
	// it.
	Complete bool
}

func (e *OccupiedError) Error() string {
	if e.Holder.UID == "" {
		return fmt.Sprintf("%s holds files of an unknown owner; choose another destination or remove them", e.URL)
	}
	state := "an unfinished backup"
	if e.Complete {
		state = "the backup"
	}
	return fmt.Sprintf("%s holds %s of MySQLBackupInstance %s/%s (UID %s); choose another destination or remove it",
		e.URL, state, e.Holder.Namespace, e.Holder.Instance, e.Holder.UID)
}

// FinishedError means that a folder has a manifest, although only an unfinished backup was to be deleted.
type FinishedError struct{ URL string }

func (e *FinishedError) Error() string {
	return e.URL + " has a " + manifestName + ": it may be a good backup and is not deleted; check it with mysql-operator backup verify, and delete it if you do not need it"
}
