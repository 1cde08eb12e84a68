package clone

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Files that tell mysqld what a data directory is (MySQL source, storage/innobase/include/clone0api.h). With the first, mysqld refuses to
// start. With the second, it creates after recovery what a clone does not copy: folders of empty schemas, and empty tables of other
// engines. With the third, which is empty, it records the result of the recovery (performance_schema.clone_status).
const (
	inProgressFile = statusFolder + "/#status_in_progress"
	fixFile        = statusFolder + "/#status_fix"
	replaceFile    = statusFolder + "/#replace_files"
)

const (
	folderMode = 0o750
	fileMode   = 0o640
)

// Directory is a Sink that makes a data directory. mysqld refuses to start on it before Finish has succeeded.
type Directory struct {
	root *os.Root
	// The file that was written last stays open, because the next data mostly goes there, too.
	name string
	open *os.File
	size int64
	// unwritten belongs to that file, too.
	unwritten unwritten
}

// NewDirectory begins a data directory in a folder that is empty or does not exist. It never overwrites anything.
func NewDirectory(root string) (*Directory, error) {
	if err := os.MkdirAll(root, folderMode); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" { // the file system creates it
			return nil, fmt.Errorf("make data directory %s: it is not empty (%s)", root, entry.Name())
		}
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	d := &Directory{root: folder}
	if err := d.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("make data directory %s: %w", root, err), folder.Close())
	}
	return d, nil
}

// InProgress reports whether a folder is a Directory that has been begun and not finished.
func InProgress(root string) (bool, error) {
	_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(inProgressFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inspect data directory: %w", err)
	}
	return true, nil
}

// begin durably marks the directory as incomplete, before there is anything else in it.
func (d *Directory) begin() error {
	for _, folder := range []string{statusFolder, "mysql"} {
		if err := d.root.Mkdir(folder, folderMode); err != nil {
			return err
		}
	}
	if err := d.touch(inProgressFile); err != nil {
		return err
	}
	return errors.Join(d.sync(statusFolder), d.sync("."))
}

func (d *Directory) touch(name string) error {
	created, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	return errors.Join(created.Sync(), created.Close())
}

// sync makes the content of a file durable, or the list of files in a folder.
func (d *Directory) sync(name string) error {
	opened, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// Write implements Sink.
func (d *Directory) Write(file File, offset int64, data []byte) error {
	if err := d.use(file); err != nil {
		return err
	}
	if offset > d.size {
		if err := grow(d.open, d.size, offset); err != nil {
			return err
		}
		d.size = offset
	}
	if len(data) == 0 {
		return nil
	}
	if _, err := d.open.WriteAt(data, offset); err != nil {
		return err
	}
	end := offset + int64(len(data))
	d.size = max(d.size, end)
	d.unwritten.add(offset, end)
	if d.unwritten.bytes >= writeBackEvery {
		d.writeBack()
	}
	return nil
}

// use opens a file, or creates it.
func (d *Directory) use(file File) error {
	if d.open != nil && d.name == file.Name {
		return nil
	}
	if err := d.leave(); err != nil {
		return err
	}
	opened, err := d.root.OpenFile(filepath.FromSlash(file.Name), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return d.create(file)
	}
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	d.name, d.open, d.size = file.Name, opened, info.Size()
	return nil
}

func (d *Directory) create(file File) error {
	if err := d.root.MkdirAll(path.Dir(file.Name), folderMode); err != nil {
		return err
	}
	created, err := d.root.OpenFile(filepath.FromSlash(file.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	if err := grow(created, 0, file.Size); err != nil {
		return errors.Join(err, created.Close())
	}
	d.name, d.open, d.size = file.Name, created, file.Size
	return nil
}

func (d *Directory) leave() error {
	if d.open == nil {
		return nil
	}
	d.writeBack()
	err := d.open.Close()
	d.open = nil
	return err
}

// Rename implements Sink.
func (d *Directory) Rename(from, to string) error {
	if err := d.leave(); err != nil {
		return err
	}
	if _, err := d.root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s already exists", to), err)
	}
	if err := d.root.MkdirAll(path.Dir(to), folderMode); err != nil {
		return err
	}
	return d.root.Rename(from, to)
}

// Remove implements Sink.
func (d *Directory) Remove(name string) error {
	if err := d.leave(); err != nil {
		return err
	}
	return d.root.Remove(name)
}

// Finish durably turns the directory into one on which mysqld starts. Call it once everything has been written.
func (d *Directory) Finish() error {
	if err := d.finish(); err != nil {
		return fmt.Errorf("finish data directory: %w", err)
	}
	return nil
}

func (d *Directory) finish() error {
	if err := d.leave(); err != nil {
		return err
	}
	for _, name := range []string{fixFile, replaceFile} {
		if err := d.touch(name); err != nil {
			return err
		}
	}
	err := fs.WalkDir(d.root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "lost+found" {
			return fs.SkipDir
		}
		return d.sync(name)
	})
	if err != nil {
		return err
	}
	// Only now is the directory complete, even if the machine crashes.
	if err := d.root.Remove(inProgressFile); err != nil {
		return err
	}
	return d.sync(statusFolder)
}

// Close releases the directory's files. Without Finish before, the directory stays incomplete, and mysqld refuses it.
func (d *Directory) Close() error {
	return errors.Join(d.leave(), d.root.Close())
}
