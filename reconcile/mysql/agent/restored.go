package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// A backup is restored into data.restoring, next to the data directory. When every file is checked and flushed, it becomes the data
// directory in two steps: member.json records what will be there, then the folder is renamed. If the restore is killed in between, the
// volume has no data directory or a complete one, and LookAtVolume distinguishes the two.

// RestoredFrom identifies the backup that a member's data came from.
type RestoredFrom struct {
	// UID is the UID of the MySQLBackupInstance, Checksum the checksum of the backup's manifest, URL the backup's address.
	UID      string `json:"uid,omitempty"`
	Checksum string `json:"checksum,omitempty"`
	URL      string `json:"url,omitempty"`
	// Version is the MySQL version of the data; empty if an agent stored this that did not know the field.
	Version string `json:"version,omitempty"`
}

// Is reports whether both are the same backup, by the best identity that both have: the checksum, then the instance's UID, then the URL. A
// folder is assumed to hold only one backup, ever.
func (f RestoredFrom) Is(other RestoredFrom) bool {
	for _, pair := range [][2]string{{f.Checksum, other.Checksum}, {f.UID, other.UID}, {f.URL, other.URL}} {
		if pair[0] != "" && pair[1] != "" {
			return pair[0] == pair[1]
		}
	}
	return false
}

// VolumeState is the kind of contents of a member's volume.
type VolumeState string

const (
	// VolumeEmpty: the volume has nothing that a user could miss.
	VolumeEmpty VolumeState = "Empty"
	// VolumeUnfinished: an interrupted restore, which may be deleted.
	VolumeUnfinished VolumeState = "Unfinished"
	// VolumeStaged: a complete restored data directory that has not been renamed yet.
	VolumeStaged VolumeState = "Staged"
	// VolumeRestored: a data directory that began as a restored backup, even if clients have written since.
	VolumeRestored VolumeState = "Restored"
	// VolumeOccupied: any other data.
	VolumeOccupied VolumeState = "Occupied"
)

// VolumeContents describes what a volume holds.
type VolumeContents struct {
	Contents VolumeState
	// From is the backup, for Staged and Restored. Used reports whether a cluster has used the data since, so that it no longer equals the
	// backup.
	From RestoredFrom
	Used bool
	// Description describes it for messages.
	Description string
}

// OccupiedError reports that the operator does not restore to a volume because it holds data.
type OccupiedError struct{ Description string }

func (e *OccupiedError) Error() string {
	return "the volume holds " + e.Description + ", which the operator never overwrites"
}

// LookAtVolume returns what a member's volume holds, and changes nothing.
func LookAtVolume(layout Layout) (VolumeContents, error) {
	data, err := hasEntries(layout.DataDir())
	if err != nil {
		return VolumeContents{}, err
	}
	restoring, err := hasEntries(layout.RestoringDir())
	if err != nil {
		return VolumeContents{}, err
	}
	kept, found, err := loadState(layout.stateFile())
	if unread := (*damagedError)(nil); errors.As(err, &unread) {
		return VolumeContents{Contents: VolumeOccupied, Description: "a member.json that cannot be read"}, nil
	}
	if err != nil {
		return VolumeContents{}, err
	}
	if data {
		return holdingData(kept, found), nil
	}
	return holdingNone(kept, found, restoring), nil
}

// holdingData describes a volume with a data directory, by the member's state if there is one.
func holdingData(kept state, found bool) VolumeContents {
	switch {
	case !found:
		return VolumeContents{Contents: VolumeOccupied, Description: "a data directory without a member.json"}
	case kept.RestoredFrom != nil && kept.Held.Epoch > 0:
		what := "data that began as a restored backup (" + kept.RestoredFrom.URL + ") and that a cluster has used since" + heldBy(kept.Held)
		return VolumeContents{Contents: VolumeRestored, From: *kept.RestoredFrom, Used: true, Description: what}
	case kept.RestoredFrom != nil:
		return VolumeContents{Contents: VolumeRestored, From: *kept.RestoredFrom, Description: "data that began as a restored backup (" + kept.RestoredFrom.URL + ")"}
	case kept.Data == replication.OriginMember:
		return VolumeContents{Contents: VolumeOccupied, Description: "the data of a cluster's member" + heldBy(kept.Held)}
	}
	return VolumeContents{Contents: VolumeOccupied, Description: "a data directory that mysqld made and no cluster has used"}
}

// holdingNone describes a volume without a data directory.
func holdingNone(kept state, found, restoring bool) VolumeContents {
	switch {
	case kept.RestoredFrom != nil && restoring:
		return VolumeContents{Contents: VolumeStaged, From: *kept.RestoredFrom, Description: "a restored backup that is not yet in the data directory (" + kept.RestoredFrom.URL + ")"}
	case found && kept.Data == replication.OriginMember:
		return VolumeContents{Contents: VolumeOccupied, Description: "a member.json that says that there is data, but no data"}
	case restoring:
		return VolumeContents{Contents: VolumeUnfinished, Description: "a restore that was not finished"}
	}
	return VolumeContents{Contents: VolumeEmpty, Description: "nothing"}
}

func heldBy(record replication.Record) string {
	if record.Primary == "" {
		return ""
	}
	return fmt.Sprintf(" (of epoch %d, with primary %s)", record.Epoch, record.Primary)
}

// BeginRestore creates the folder to restore into, and removes what a former attempt left there. If the volume has anything else, it
// returns an *OccupiedError.
func BeginRestore(layout Layout) (folder string, err error) {
	found, err := LookAtVolume(layout)
	if err != nil {
		return "", err
	}
	if found.Contents != VolumeEmpty && found.Contents != VolumeUnfinished {
		return "", &OccupiedError{Description: found.Description}
	}
	folder = layout.RestoringDir()
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("remove the unfinished restore: %w", err)
	}
	if err := os.Mkdir(folder, restoredMode); err != nil {
		return "", fmt.Errorf("create a folder to restore into: %w", err)
	}
	return folder, nil
}

// restoredMode is the mode that mysqld --initialize gives its data directory.
const restoredMode = 0o750

// FinishRestore makes the restored folder the data directory. Every file in it must be complete and flushed. If FinishRestore was killed,
// another call with the same backup continues. If the volume has any other data, it returns an *OccupiedError.
func FinishRestore(layout Layout, from RestoredFrom) error {
	found, err := LookAtVolume(layout)
	if err != nil {
		return err
	}
	same := found.From.Is(from)
	switch {
	case found.Contents == VolumeRestored && same:
		return nil
	case found.Contents == VolumeEmpty:
		return errors.New("finish the restore: " + layout.RestoringDir() + " is empty")
	case found.Contents != VolumeUnfinished && (found.Contents != VolumeStaged || !same):
		return &OccupiedError{Description: found.Description}
	}
	if err := layout.putInPlace(from); err != nil {
		return fmt.Errorf("finish the restore: %w", err)
	}
	return nil
}

func (l Layout) putInPlace(from RestoredFrom) error {
	if err := flushFolder(l.RestoringDir()); err != nil {
		return err
	}
	if err := saveState(l.stateFile(), state{Data: replication.OriginMember, RestoredFrom: &from}); err != nil {
		return err
	}
	// An empty data directory may exist. os.Remove does not remove one that has files.
	if err := os.Remove(l.DataDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(l.RestoringDir(), l.DataDir()); err != nil {
		return err
	}
	return flushFolder(filepath.Dir(l.DataDir()))
}

func flushFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := folder.Sync(); err != nil {
		return errors.Join(err, folder.Close())
	}
	return folder.Close()
}
