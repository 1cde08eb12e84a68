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

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
)

// state is what a member keeps beside its data. It outlives the Pod, the cluster resource and, on a moved volume, the whole
// Kubernetes.
type state struct {
	Data replication.Origin `json:"data"`
	// Held is the record of the last assignment that was accepted, HeldRole its role.
	Held     replication.Record `json:"held"`
	HeldRole replication.Role   `json:"heldRole,omitempty"`
	// Last is that assignment; nil where an agent kept it that did not know the field.
	Last *replication.Assignment `json:"last,omitempty"`
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
	content, err := readState(file)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, false, nil
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

// readState reads a regular file and follows no link: other programs may have written to the volume before this one runs beside what they must
// not read.
func readState(file string) ([]byte, error) {
	opened, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxState {
		return nil, fmt.Errorf("%s is no file of at most %d bytes: delete it, or restore the volume", file, maxState)
	}
	return io.ReadAll(io.LimitReader(opened, maxState))
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

// writeDurably writes beside the file, flushes, renames and flushes the folder.
func writeDurably(file string, content []byte, mode fs.FileMode) error {
	beside := file + ".new"
	if err := writeAndSync(beside, content, mode); err != nil {
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

func writeAndSync(file string, content []byte, mode fs.FileMode) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
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
