package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// state is what a member keeps beside its data. It outlives the Pod, the cluster resource and, on a moved volume, the whole
// Kubernetes.
type state struct {
	Data replication.Origin `json:"data"`
	// IsCopied says, of fresh data, that a copy of the primary's has taken its place: CLONE went through, and its mysqld has ended since.
	IsCopied bool `json:"copied,omitempty"`
	// ServerID is the member's server_id, chosen once for its volume; 0 where no agent that knows the field has started yet.
	ServerID uint32 `json:"serverID,omitempty"`
	// Held is the record of the last assignment that was accepted, HeldRole its role.
	Held     replication.Record `json:"held"`
	HeldRole replication.Role   `json:"heldRole,omitempty"`
	// Last is that assignment; nil where an agent kept it that did not know the field.
	Last *replication.Assignment `json:"last,omitempty"`
	// Lacking are the tables that the data came without the rows of; nil where nobody has looked since it came.
	Lacking *lacking `json:"lacking,omitempty"`
	// RestoredFrom is the backup that the volume's data began as; nil where it began otherwise. It stays, whatever becomes of the data.
	RestoredFrom *RestoredFrom `json:"restoredFrom,omitempty"`
}

// accepting is the state once an assignment is accepted.
func (s state) accepting(next replication.Assignment) state {
	s.Held, s.HeldRole, s.Last = next.Record, next.Role, &next
	return s
}

// loadState reads the state; found is false where there is none.
func loadState(file string) (loaded state, found bool, err error) {
	content, err := readRegular(file, maxState)
	odd := (*oddFileError)(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{}, false, nil
	case errors.As(err, &odd):
		return state{}, false, fmt.Errorf("read the member's state: %w: delete it, or restore the volume", err)
	}
	if err != nil {
		return state{}, false, fmt.Errorf("read the member's state: %w", err)
	}
	if err := json.Unmarshal(content, &loaded); err != nil {
		return state{}, false, &damagedError{file, err}
	}
	return loaded, true, nil
}

// maxState is how many bytes of a state are read.
const maxState = 1 << 20

// readRegular reads a regular file of at most so many bytes and follows no link: other programs may have written to the volume before this
// one runs beside what they must not read.
func readRegular(file string, most int64) ([]byte, error) {
	opened, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, &oddFileError{file, most}
	}
	return io.ReadAll(io.LimitReader(opened, most))
}

// oddFileError is about something that is there and not what should be.
type oddFileError struct {
	file string
	most int64
}

func (e *oddFileError) Error() string {
	return fmt.Sprintf("%s is no file of at most %d bytes", e.file, e.most)
}

// damagedError is about a state that is there and makes no sense.
type damagedError struct {
	file  string
	cause error
}

func (e *damagedError) Error() string {
	return "read the member's state from " + e.file + ": " + e.cause.Error()
}
func (e *damagedError) Unwrap() error { return e.cause }

// saveState replaces the state in one step that a crash cannot halve.
func saveState(file string, next state) error {
	content, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("write the member's state: %w", err)
	}
	return writeDurably(file, content, 0o640)
}

// saveAtStart saves the state before mysqld runs. On a full volume it takes the room of the ballast, which is there for that.
func saveAtStart(layout Layout, next state) error {
	err := saveState(layout.stateFile(), next)
	if !isFull(err) {
		return err
	}
	if removed := os.RemoveAll(layout.ballast()); removed != nil {
		return errors.Join(err, removed)
	}
	return saveState(layout.stateFile(), next)
}

// isFull says whether something failed for want of room on the volume.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// writeDurably writes beside the file, flushes, renames and flushes the folder.
func writeDurably(file string, content []byte, mode fs.FileMode) error {
	beside := file + ".new"
	// What a crash left there, or somebody planted, is neither followed nor written to.
	if err := os.RemoveAll(beside); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := writeAndSync(beside, content, mode); err != nil {
		_ = os.Remove(beside) // it takes room
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(beside, file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := flushFolder(filepath.Dir(file)); err != nil {
		return fmt.Errorf("write %s: flush folder: %w", file, err)
	}
	return nil
}

// writeAndSync makes a new file.
func writeAndSync(file string, content []byte, mode fs.FileMode) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	if _, err := out.Write(content); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Sync(); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
