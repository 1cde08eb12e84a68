package clone

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// grow makes a file longer, all zeros, and reserves its room on the volume. On a full volume mysqld waits when it makes a file longer, but
// it crashes when it fills a hole of one (MySQL 9.7, fil0fil.cc).
func grow(file *os.File, from, to int64) error {
	if from == to {
		return nil
	}
	for {
		err := unix.Fallocate(int(file.Fd()), 0, from, to-from)
		switch {
		case errors.Is(err, unix.EINTR): // the Go runtime's own signals do that, too
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return file.Truncate(to) // this file system reserves nothing
		default:
			return err
		}
	}
}
