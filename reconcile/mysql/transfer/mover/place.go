package mover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// place is a target of a restore.
type place interface {
	// look reports what is there and changes nothing.
	look() (agent.VolumeContents, error)
	// free returns the free space in bytes, as if an unfinished attempt were removed.
	free() (int64, error)
	// begin removes an unfinished attempt, and creates the folder to restore into.
	begin() (root string, err error)
	// finish moves the folder to its place; everything in it is flushed.
	finish(from agent.RestoredFrom) error
}

// memberVolume is the volume of a cluster's member, which owns the data afterwards.
type memberVolume struct{ layout agent.Layout }

func (v memberVolume) look() (agent.VolumeContents, error) { return agent.LookAtVolume(v.layout) }
func (v memberVolume) begin() (string, error)              { return agent.BeginRestore(v.layout) }

// finish checks that it records a complete copy. Two Pods may have run here for a moment: one that was thought to be dead, and its
// replacement, which has started the restore again.
func (v memberVolume) finish(from agent.RestoredFrom) error {
	begun, err := clone.InProgress(v.layout.RestoringDir())
	if err != nil {
		return err
	}
	if begun {
		return retry(protocol.ReasonRestoreFailed, "finish the restore: another process has begun a restore in %s", v.layout.RestoringDir())
	}
	return agent.FinishRestore(v.layout, from)
}

func (v memberVolume) free() (int64, error) {
	return freeWith(v.layout.Volume, v.layout.RestoringDir())
}

// folder is a data directory that a person requests. No member owns it. It is created under another name and renamed.
type folder struct{ path string }

func (f folder) temporaryPath() string { return f.path + ".restoring" }

func (f folder) look() (agent.VolumeContents, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.VolumeContents{}, fmt.Errorf("read %s: %w", f.path, err)
	}
	if len(entries) > 0 {
		return agent.VolumeContents{Contents: agent.VolumeOccupied, Description: "other files in " + f.path}, nil
	}
	if isMount(f.path) {
		return agent.VolumeContents{}, refused(protocol.ReasonRestoreFailed, "restore into %s: it is the root of a file system, which cannot be the target of a rename; name a folder in it", f.path)
	}
	return agent.VolumeContents{Contents: agent.VolumeEmpty, Description: "nothing"}, f.unfinished()
}

// unfinished refuses an existing temporary folder, unless it is certainly an interrupted restore, or contains no files.
func (f folder) unfinished() error {
	begun, err := clone.InProgress(f.temporaryPath())
	if err != nil || begun {
		return err
	}
	err = filepath.WalkDir(f.temporaryPath(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = refused(protocol.ReasonDataExists, "restore into %s: the temporary folder %s contains %s and is not an interrupted restore; move it away, or, if it is the restored data, rename it", f.path, f.temporaryPath(), filepath.Base(path))
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f folder) free() (int64, error) {
	parent := filepath.Dir(f.path)
	if err := os.MkdirAll(parent, folderMode); err != nil {
		return 0, fmt.Errorf("create %s: %w", parent, err)
	}
	return freeWith(parent, f.temporaryPath())
}

func (f folder) begin() (string, error) {
	if err := f.unfinished(); err != nil {
		return "", err
	}
	if err := os.RemoveAll(f.temporaryPath()); err != nil {
		return "", fmt.Errorf("remove the unfinished restore: %w", err)
	}
	if err := os.MkdirAll(f.temporaryPath(), folderMode); err != nil {
		return "", fmt.Errorf("create a folder to restore into: %w", err)
	}
	return f.temporaryPath(), nil
}

// folderMode is the mode that mysqld --initialize gives its data directory.
const folderMode = 0o750

// finish renames the folder. It replaces an empty folder, but never removes one with content.
func (f folder) finish(agent.RestoredFrom) error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move the restored data to its place: %w; the complete data is in %s", err, f.temporaryPath())
	}
	if err := os.Rename(f.temporaryPath(), f.path); err != nil {
		return fmt.Errorf("move the restored data to its place: %w; the complete data is in %s", err, f.temporaryPath())
	}
	parent, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return fmt.Errorf("flush %s: %w", filepath.Dir(f.path), err)
	}
	if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
		return fmt.Errorf("flush %s: %w", filepath.Dir(f.path), err)
	}
	return nil
}

// freeWith returns the free space of the file system at path, as if the folder without were removed.
func freeWith(path, without string) (int64, error) {
	free, err := freeSpace(path)
	if err != nil {
		return 0, fmt.Errorf("get the free space of %s: %w", path, err)
	}
	err = filepath.WalkDir(without, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			free += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the unfinished restore: %w", err)
	}
	return free, nil
}
