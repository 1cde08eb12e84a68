package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

const (
	// partialSuffix ends the names of files that are being written.
	partialSuffix = ".partial"
	// flushEvery is the number of bytes after which the disk is asked to start writing them. The flush at the end of a file then takes
	// little time, and pages that cannot be dropped take little of the Pod's memory.
	flushEvery = 16 << 20
	copyBuffer = 1 << 20
)

// volume is a folder of a mounted volume. A file is written under a temporary name, flushed, and renamed; then its folder is flushed
// (rename(2), fsync(2)). After a crash of the machine the file is there whole or not at all.
type volume struct {
	// root keeps all operations inside the volume, even if there are symbolic links.
	root   *os.Root
	folder string
}

func openVolume(store *Store, location Location, place destination.Place) error {
	dir := location.VolumeDir
	if dir == "" {
		dir = "/"
	}
	if place.Folder == "" {
		return errors.New("the URL of a file destination must name a folder")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return &destination.StoreError{Kind: volumeKind(err), Op: "open the volume", Err: err}
	}
	store.bucket, store.classify, store.release = volume{root: root, folder: place.Folder}, volumeKind, root.Close
	return nil
}

// volumeKind classifies the error of a system call.
func volumeKind(err error) destination.Kind {
	for kind, causes := range map[destination.Kind][]error{
		destination.KindFull:     {syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG},
		destination.KindRefused:  {fs.ErrPermission, syscall.EROFS},
		destination.KindNotFound: {fs.ErrNotExist, syscall.ENOTDIR},
	} {
		for _, cause := range causes {
			if errors.Is(err, cause) {
				return kind
			}
		}
	}
	return destination.KindUnavailable
}

func (v volume) put(ctx context.Context, name string, body io.Reader) error {
	if err := v.makeFolder(); err != nil {
		return err
	}
	partial := path.Join(v.folder, name+partialSuffix)
	file, err := v.root.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	err = errors.Join(fill(ctx, file, body), file.Close())
	if err != nil {
		return errors.Join(err, ignoreAbsent(v.root.Remove(partial)))
	}
	if err := v.root.Rename(partial, path.Join(v.folder, name)); err != nil {
		return err
	}
	return v.flush(v.folder)
}

// fill writes a file and flushes it to the disk.
func fill(ctx context.Context, file *os.File, from io.Reader) error {
	buffer := make([]byte, copyBuffer)
	for written := int64(0); ; {
		n, err := io.ReadFull(from, buffer)
		if _, err := file.Write(buffer[:n]); err != nil {
			return err
		}
		if isShort(err) {
			return file.Sync()
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if written += int64(n); written%flushEvery == 0 {
			writeBack(file, written)
		}
	}
}

// writeBack asks the disk to start writing the last bytes. It waits for the bytes before these, and drops their pages from the cache,
// because they will not be read soon. It makes nothing durable, and its errors do not matter: see sync_file_range(2), posix_fadvise(2).
func writeBack(file *os.File, written int64) {
	fd, last := int(file.Fd()), written-flushEvery
	_ = unix.SyncFileRange(fd, last, flushEvery, unix.SYNC_FILE_RANGE_WRITE) // see above
	if last == 0 {
		return
	}
	const wait = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	_ = unix.SyncFileRange(fd, last-flushEvery, flushEvery, wait)         // see above
	_ = unix.Fadvise(fd, last-flushEvery, flushEvery, unix.FADV_DONTNEED) // see above
}

func (v volume) get(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	file, err := v.root.Open(path.Join(v.folder, name))
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (v volume) list(context.Context) ([]object, error) {
	entries, err := v.entries()
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), partialSuffix) {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object{name: entry.Name(), size: info.Size()})
	}
	return objects, nil
}

// entries returns the folder's files, or none if there is no folder.
func (v volume) entries() ([]fs.DirEntry, error) {
	if _, err := v.root.Stat("."); err != nil {
		return nil, err
	}
	dir, err := v.root.Open(v.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	return entries, errors.Join(err, dir.Close())
}

func (v volume) remove(_ context.Context, name string) error {
	err := v.root.Remove(path.Join(v.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, v.flush(v.folder))
}

func (v volume) sweep(context.Context) error {
	entries, err := v.entries()
	if err != nil || entries == nil {
		return err
	}
	left := 0
	for _, entry := range entries {
		whole, isPartial := strings.CutSuffix(entry.Name(), partialSuffix)
		if !isPartial || !isArchiveFile(whole) {
			left++
			continue
		}
		if err := ignoreAbsent(v.root.Remove(path.Join(v.folder, entry.Name()))); err != nil {
			return err
		}
	}
	if left > 0 {
		return v.flush(v.folder)
	}
	if err := v.root.Remove(v.folder); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return v.flush(path.Dir(v.folder))
}

// makeFolder creates the folder and its parents, and flushes each folder that got a new entry.
func (v volume) makeFolder() error {
	if _, err := v.root.Stat(v.folder); err == nil {
		return nil
	}
	made := ""
	for element := range strings.SplitSeq(v.folder, "/") {
		parent := path.Join(".", made)
		made = path.Join(made, element)
		err := v.root.Mkdir(made, 0o750)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := v.flush(parent); err != nil {
			return err
		}
	}
	return nil
}

// flush writes a folder's entries to the disk.
func (v volume) flush(folder string) error {
	dir, err := v.root.Open(folder)
	if err != nil {
		return err
	}
	// Some network file systems cannot flush folders, and need no flush.
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return errors.Join(fmt.Errorf("flush folder %s: %w", folder, err), dir.Close())
	}
	return dir.Close()
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
