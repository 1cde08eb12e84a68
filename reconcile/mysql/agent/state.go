package agent

import (
	"bytes"
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

// state is what a member stores next to its data. It outlives the Pod, the cluster resource and, on a moved volume, the whole Kubernetes
// cluster.
type state struct {
	Data replication.Origin `json:"data"`
	// IsCopied reports, for fresh data, whether a copy of another member's data has replaced it: CLONE succeeded, and its mysqld has ended
	// since.
	IsCopied bool `json:"copied,omitempty"`
	// CopiedFrom is the server_uuid of the replica whose copy replaces the data, or has replaced it, until the member follows its primary.
	CopiedFrom string `json:"copiedFrom,omitempty"`
	// ServerID is the member's server_id, chosen once for its volume; 0 if no agent that knows the field has started yet.
	ServerID uint32 `json:"serverID,omitempty"`
	// Held is the record of the last assignment that was accepted, HeldRole its role.
	Held     replication.Record `json:"held"`
	HeldRole replication.Role   `json:"heldRole,omitempty"`
	// Last is that assignment; nil if an agent stored the state that did not know the field.
	Last *replication.Assignment `json:"last,omitempty"`
	// TablesWithoutRows are the tables whose rows were missing when the data came; nil if the agent has not looked since.
	TablesWithoutRows *missingRows `json:"lacking,omitempty"`
	// Life identifies the Pod and the boot of its machine in which mysqld last ran; empty if all that it wrote has been flushed since,
	// while it flushes each transaction (recordSyncing), or if an agent stored the state that did not know the field. IsForgetful reports
	// whether the member may have lost transactions that it has acknowledged.
	Life        string `json:"life,omitempty"`
	IsForgetful bool   `json:"forgetful,omitempty"`
	// HasLed means that the member was the primary, and that no assignment since has named another one. Then all that it has is on its
	// disk: it has received nothing, and the record counts what members in sync have received, also if they must not acknowledge.
	HasLed bool `json:"hasLed,omitempty"`
	// ForgotUnder is the record that the member held when it last may have lost some.
	ForgotUnder replication.Version `json:"forgotUnder,omitzero"`
	// LeasedUnder is the last record under which this member had a lease as the primary (supervisor.Lease); zero if it never had one.
	LeasedUnder replication.Version `json:"leasedUnder,omitzero"`
	// Replaced is set from when another member replaces this one as the primary until this one follows it.
	Replaced *replaced `json:"replaced,omitempty"`
	// InDoubt are transactions that the member made as the primary, and that a client may have been told had succeeded although no other
	// member has them (replication.AcksWatch). The member forgets them when it follows another one.
	InDoubt replication.GTIDSet `json:"inDoubt,omitzero"`
	// SetAside is what the member set aside last; nil for nothing.
	SetAside *replication.SetAside `json:"setAside,omitempty"`
	// Events are the scheduled events that this member must enable when it becomes the primary, or has to enable as the primary.
	Events []replication.ScheduledEvent `json:"events,omitempty"`
	// RestoredFrom is the backup that the volume's data began as; nil if it did not begin as a backup. It never changes, even if clients
	// write to the data.
	RestoredFrom *RestoredFrom `json:"restoredFrom,omitempty"`
}

// accepting returns the state after an assignment is accepted.
func (s state) accepting(next replication.Assignment) state {
	switch {
	case replication.IsReplaced(s.Last, next):
		s.Replaced = &replaced{Epoch: next.Record.Epoch, IsForced: next.Record.Forgets(s.Last.Record.Epoch)}
	case next.Role == replication.RolePrimary:
		s.Replaced = nil
	case s.Replaced != nil && next.Record.Forgets(s.Replaced.Epoch-1):
		s.Replaced = &replaced{Epoch: s.Replaced.Epoch, IsForced: true}
	}
	if next.Role == replication.RoleReplica && next.Record.Primary != "" {
		s.Events = next.Events
	}
	s.HasLed = (s.HasLed || s.HeldRole == replication.RolePrimary) && next.Record.Primary == ""
	s.Held, s.HeldRole, s.Last = next.Record, next.Role, &next
	return s
}

// commitsMayHaveWaited reports whether mysqld last ran as the primary, and its commits waited for replicas. It may have been replaced
// since.
func (s state) commitsMayHaveWaited() bool {
	if s.Replaced != nil {
		return !s.Replaced.IsForced && s.Replaced.Epoch == s.Held.Epoch && !s.Replaced.IsKnown
	}
	return s.HeldRole == replication.RolePrimary && s.Last != nil && s.Last.Acks > 0
}

// addressOf returns the address of the primary in the last assignment; empty if that had another primary, or none.
func (s state) addressOf(primary string) string {
	if s.Last == nil || primary == "" || s.Last.Record.Primary != primary {
		return ""
	}
	return s.Last.SourceAddress
}

// loadState reads the state. found is false if there is none.
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

// maxState is how many bytes a state has at most.
const maxState = 1 << 20

// readRegular reads a regular file of at most most bytes and follows no link: other programs may have written to the volume, and this
// program can read files that they must not read.
func readRegular(file string, most int64) ([]byte, error) {
	opened, err := openRegular(file, most, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return io.ReadAll(io.LimitReader(opened, most))
}

// openRegular opens such a file, to read it (O_RDONLY) or to change it, too (O_RDWR). With O_CREATE, it creates one if there is none.
func openRegular(file string, most int64, mode int) (*os.File, error) {
	opened, err := os.OpenFile(file, mode|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > most) {
		err = &oddFileError{file, most}
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// oddFileError reports that a path is not a regular file of the expected size.
type oddFileError struct {
	file string
	most int64
}

func (e *oddFileError) Error() string {
	return fmt.Sprintf("%s is not a regular file of at most %d bytes", e.file, e.most)
}

// damagedError reports a state that cannot be parsed.
type damagedError struct {
	file  string
	cause error
}

func (e *damagedError) Error() string {
	return "read the member's state from " + e.file + ": " + e.cause.Error()
}
func (e *damagedError) Unwrap() error { return e.cause }

// saveState replaces the state atomically, also if a crash interrupts it.
func saveState(file string, next state) error {
	content, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("write the member's state: %w", err)
	}
	if len(content) > maxState {
		return fmt.Errorf("write the member's state: it has %d bytes, and an agent that starts reads %d", len(content), maxState)
	}
	return writeDurably(file, content, 0o640)
}

// saveAtStart saves the state before mysqld runs. On a full volume it removes the ballast to get space.
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

// isFull reports whether an operation failed because the volume has no free space.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// writeDurably writes a new file next to the old one, flushes it, renames it and flushes the folder.
func writeDurably(file string, content []byte, mode fs.FileMode) error {
	return copyDurably(file, bytes.NewReader(content), mode)
}

// copyDurably does the same with what it reads.
func copyDurably(file string, content io.Reader, mode fs.FileMode) error {
	beside := file + ".new"
	// A file that a crash left there, or that another program planted, is neither followed nor written to.
	if err := os.RemoveAll(beside); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := writeAndSync(beside, content, mode); err != nil {
		_ = os.Remove(beside) // it takes space
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

// writeAndSync writes and flushes a new file.
func writeAndSync(file string, content io.Reader, mode fs.FileMode) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, content); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Sync(); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
