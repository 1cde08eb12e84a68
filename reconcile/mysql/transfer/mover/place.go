package mover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// place is where a backup is restored to.
type place interface {
	// look tells what is there and changes nothing.
	look() (agent.Holding, error)
	// free is how many bytes there is room for, an unfinished attempt not counted.
	free() (int64, error)
	// begin makes the folder to restore into, having removed an unfinished attempt.
	begin() (root string, err error)
	// finish puts it in its place; everything in it is flushed.
	finish(from agent.RestoredFrom) error
}

// memberVolume is the volume of a cluster's member; the data in it is its member's from then on.
type memberVolume struct{ layout agent.Layout }

func (v memberVolume) look() (agent.Holding, error) { return agent.LookAtVolume(v.layout) }
func (v memberVolume) begin() (string, error)       { return agent.BeginRestore(v.layout) }

// finish makes sure that it is a whole copy that gets recorded: two Pods may have been at work here for a moment, one of them thought to be
// dead, and the other one has begun anew.
func (v memberVolume) finish(from agent.RestoredFrom) error {
	begun, err := clone.InProgress(v.layout.RestoringDir())
	if err != nil {
		return err
	}
	if begun {
		return retry(transfer.ReasonRestoreFailed, "finish the restore: somebody else has begun another one in %s", v.layout.RestoringDir())
	}
	return agent.FinishRestore(v.layout, from)
}

func (v memberVolume) free() (int64, error) {
	return freeWith(v.layout.Volume, v.layout.RestoringDir())
}

// folder is a data directory that a person asks for: it begins with the backup, and is nobody's. It is made beside its place and renamed.
type folder struct{ path string }

func (f folder) beside() string { return f.path + ".restoring" }

func (f folder) look() (agent.Holding, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.Holding{}, fmt.Errorf("look into %s: %w", f.path, err)
	}
	if len(entries) > 0 {
		return agent.Holding{Contents: agent.VolumeOccupied, What: "other files in " + f.path}, nil
	}
	if isMount(f.path) {
		return agent.Holding{}, refused(transfer.ReasonRestoreFailed, "restore into %s: it is the root of a file system, which nothing can be renamed to: name a folder in it", f.path)
	}
	return agent.Holding{Contents: agent.VolumeEmpty, What: "nothing"}, f.unfinished()
}

// unfinished refuses what is beside the place, unless it is certainly a restore that was broken off, or nothing that anybody could miss.
func (f folder) unfinished() error {
	begun, err := clone.InProgress(f.beside())
	if err != nil || begun {
		return err
	}
	err = filepath.WalkDir(f.beside(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = refused(transfer.ReasonDataExists, "restore into %s: %s, which is used meanwhile, holds %s and is no restore that was broken off: move it away, or, if it is the restored data, rename it", f.path, f.beside(), filepath.Base(path))
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
		return 0, fmt.Errorf("make %s: %w", parent, err)
	}
	return freeWith(parent, f.beside())
}

func (f folder) begin() (string, error) {
	if err := f.unfinished(); err != nil {
		return "", err
	}
	if err := os.RemoveAll(f.beside()); err != nil {
		return "", fmt.Errorf("remove the unfinished restore: %w", err)
	}
	if err := os.MkdirAll(f.beside(), folderMode); err != nil {
		return "", fmt.Errorf("make a folder to restore into: %w", err)
	}
	return f.beside(), nil
}

// folderMode is what mysqld --initialize gives its data directory.
const folderMode = 0o750

// finish renames. An empty folder gives way; one with anything in it is not removed.
func (f folder) finish(agent.RestoredFrom) error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("put the restored data in its place: %w; it is whole, in %s", err, f.beside())
	}
	if err := os.Rename(f.beside(), f.path); err != nil {
		return fmt.Errorf("put the restored data in its place: %w; it is whole, in %s", err, f.beside())
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

// freeWith is the free space of the file system at path, and what would be free without a folder that is going to be removed.
func freeWith(path, without string) (int64, error) {
	free, err := freeSpace(path)
	if err != nil {
		return 0, fmt.Errorf("look how much space %s has: %w", path, err)
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
		return 0, fmt.Errorf("look at the unfinished restore: %w", err)
	}
	return free, nil
}
