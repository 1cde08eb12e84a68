package mover

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeSpace is how many bytes an unprivileged process may still write to the file system at path (statfs(2), f_bavail).
func freeSpace(path string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * stat.Bsize, nil //nolint:gosec // no file system has 2^63 bytes
}

// isMount reports whether a file system begins at path.
func isMount(path string) bool {
	own, err := os.Stat(path)
	if err != nil {
		return false
	}
	parent, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return false
	}
	here, known := own.Sys().(*syscall.Stat_t)
	above, knownAbove := parent.Sys().(*syscall.Stat_t)
	return known && knownAbove && here.Dev != above.Dev
}
