package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// A backup is restored beside the place of the data directory, in data.restoring, and takes that place in two steps, after everything in it
// is checked and flushed: member.json says what is about to be there, then the folder is renamed. Whatever is killed in between, the
// volume holds no data directory, or a whole one, and tells which.

// RestoredFrom says which backup a member's data came from.
type RestoredFrom struct {
	// UID is that of the MySQLBackupInstance, Checksum that of the backup's manifest, URL where it was.
	UID      string `json:"uid,omitempty"`
	Checksum string `json:"checksum,omitempty"`
	URL      string `json:"url,omitempty"`
	// Version is that of the server whose data it is; empty where an agent kept it that did not know the field.
	Version string `json:"version,omitempty"`
}

// Is says whether both are the same backup, as far as is known of them: a checksum is certain, the instance's identity is next, and of a
// folder it is taken for granted that it holds one backup only, ever.
func (f RestoredFrom) Is(other RestoredFrom) bool {
	for _, pair := range [][2]string{{f.Checksum, other.Checksum}, {f.UID, other.UID}, {f.URL, other.URL}} {
		if pair[0] != "" && pair[1] != "" {
			return pair[0] == pair[1]
		}
	}
	return false
}

// Contents is what a member's volume holds, in one word.
type Contents string

const (
	// VolumeEmpty: nothing that anybody could miss.
	VolumeEmpty Contents = "Empty"
	// VolumeUnfinished: a restore that broke off; it may be thrown away.
	VolumeUnfinished Contents = "Unfinished"
	// VolumeStaged: a whole restored data directory that has not taken its place yet.
	VolumeStaged Contents = "Staged"
	// VolumeRestored: a data directory that began as a restored backup, whatever was written since.
	VolumeRestored Contents = "Restored"
	// VolumeOccupied: any other data.
	VolumeOccupied Contents = "Occupied"
)

// Holding is what was found on a volume.
type Holding struct {
	Contents Contents
	// From is the backup, for Staged and Restored. Used says that a cluster has used the data since, so that it is not the backup any more.
	From RestoredFrom
	Used bool
	// What says it in words.
	What string
}

// OccupiedError refuses to restore to a volume that holds data.
type OccupiedError struct{ What string }

func (e *OccupiedError) Error() string {
	return "the volume holds " + e.What + ", which is never overwritten"
}

// LookAtVolume tells what a member's volume holds, and changes nothing.
func LookAtVolume(layout Layout) (Holding, error) {
	data, err := hasEntries(layout.DataDir())
	if err != nil {
		return Holding{}, err
	}
	restoring, err := hasEntries(layout.RestoringDir())
	if err != nil {
		return Holding{}, err
	}
	kept, found, err := loadState(layout.stateFile())
	if unread := (*damagedError)(nil); errors.As(err, &unread) {
		return Holding{Contents: VolumeOccupied, What: "a member.json that cannot be read"}, nil
	}
	if err != nil {
		return Holding{}, err
	}
	if data {
		return holdingData(kept, found), nil
	}
	return holdingNone(kept, found, restoring), nil
}

// holdingData judges a data directory by the member's state, if one was found.
func holdingData(kept state, found bool) Holding {
	switch {
	case !found:
		return Holding{Contents: VolumeOccupied, What: "a data directory of which nothing is known"}
	case kept.RestoredFrom != nil && kept.Held.Epoch > 0:
		what := "data that began as a restored backup (" + kept.RestoredFrom.URL + ") and that a cluster has used since" + heldBy(kept.Held)
		return Holding{Contents: VolumeRestored, From: *kept.RestoredFrom, Used: true, What: what}
	case kept.RestoredFrom != nil:
		return Holding{Contents: VolumeRestored, From: *kept.RestoredFrom, What: "data that began as a restored backup (" + kept.RestoredFrom.URL + ")"}
	case kept.Data == replication.OriginMember:
		return Holding{Contents: VolumeOccupied, What: "the data of a cluster's member" + heldBy(kept.Held)}
	}
	return Holding{Contents: VolumeOccupied, What: "a data directory that mysqld made and no cluster has used"}
}

// holdingNone judges a volume without a data directory.
func holdingNone(kept state, found, restoring bool) Holding {
	switch {
	case kept.RestoredFrom != nil && restoring:
		return Holding{Contents: VolumeStaged, From: *kept.RestoredFrom, What: "a restored backup that has yet to take its place (" + kept.RestoredFrom.URL + ")"}
	case found && kept.Data == replication.OriginMember:
		return Holding{Contents: VolumeOccupied, What: "a member.json that tells of data, and no data"}
	case restoring:
		return Holding{Contents: VolumeUnfinished, What: "a restore that was not finished"}
	}
	return Holding{Contents: VolumeEmpty, What: "nothing"}
}

func heldBy(record replication.Record) string {
	if record.Primary == "" {
		return ""
	}
	return fmt.Sprintf(" (of epoch %d, with primary %s)", record.Epoch, record.Primary)
}

// BeginRestore makes the folder to restore into, removing what a former attempt left there. A volume with anything else on it is refused
// with an *OccupiedError.
func BeginRestore(layout Layout) (folder string, err error) {
	found, err := LookAtVolume(layout)
	if err != nil {
		return "", err
	}
	if found.Contents != VolumeEmpty && found.Contents != VolumeUnfinished {
		return "", &OccupiedError{What: found.What}
	}
	folder = layout.RestoringDir()
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("remove the unfinished restore: %w", err)
	}
	if err := os.Mkdir(folder, restoredMode); err != nil {
		return "", fmt.Errorf("make a folder to restore into: %w", err)
	}
	return folder, nil
}

// restoredMode is what mysqld --initialize gives its data directory.
const restoredMode = 0o750

// FinishRestore puts what was restored in the place of the data directory; every file in it must be complete and flushed. It also carries
// on where it was killed, with the same backup. With any other data on the volume it refuses with an *OccupiedError.
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
		return &OccupiedError{What: found.What}
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
	// An empty folder may stand in its place; one with anything in it is not removed.
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
