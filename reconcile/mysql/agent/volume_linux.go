package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// VolumeSize returns how many bytes the member's volume has for data.
func (l Layout) VolumeSize() (int64, error) {
	size, _, err := l.room()
	return size, err
}

// room returns how many bytes the member's volume has, and how many of them are free. Bytes that the file system reserves for root do not
// count (statfs(2)).
func (l Layout) room() (size, free int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(l.Volume, &stat); err != nil {
		return 0, 0, fmt.Errorf("read the free space of the volume %s: %w", l.Volume, err)
	}
	blocks := stat.Blocks - min(stat.Blocks, stat.Bfree) + stat.Bavail
	return int64(blocks) * stat.Bsize, int64(stat.Bavail) * stat.Bsize, nil //nolint:gosec // no file system has 2^63 bytes
}

// flush writes everything in the file system of the volume to its disk (syncfs(2)).
func (l Layout) flush() error {
	folder, err := os.Open(l.Volume)
	if err != nil {
		return fmt.Errorf("flush the volume: %w", err)
	}
	defer folder.Close()
	if err := unix.Syncfs(int(folder.Fd())); err != nil {
		return fmt.Errorf("flush the volume %s: %w", l.Volume, err)
	}
	return nil
}

// reserve creates a file that takes size bytes of the volume. It follows no link and replaces nothing.
func reserve(file string, size int64) error {
	made, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) { // the Go runtime's own signals cause that, too
		err = unix.Fallocate(int(made.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = fill(made, size)
	}
	if closed := made.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file) // it reserves nothing
		return fmt.Errorf("reserve %d bytes in %s: %w", size, file, err)
	}
	return nil
}

// fill writes random bytes, which no file system can compress.
func fill(made *os.File, size int64) error {
	if _, err := io.CopyN(made, rand.Reader, size); err != nil {
		return err
	}
	return made.Sync()
}

// taken returns how many bytes of the volume would be free without a file; 0 if the file has another name too.
func taken(info fs.FileInfo) int64 {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known || stat.Nlink > 1 {
		return 0
	}
	return stat.Blocks * 512 // independent of the file system's block size (stat(2))
}
