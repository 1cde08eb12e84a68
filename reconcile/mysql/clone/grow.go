package clone

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// grow extends a file with zeros, and reserves the room on the volume. On a full volume, mysqld waits when it extends a file, but it
// crashes when it fills a hole in one (MySQL 9.7, fil0fil.cc).
func grow(file *os.File, from, to int64) error {
	if from == to {
		return nil
	}
	for {
		err := unix.Fallocate(int(file.Fd()), 0, from, to-from)
		switch {
		case errors.Is(err, unix.EINTR): // signals of the Go runtime cause this, too
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return file.Truncate(to) // this file system cannot reserve room
		default:
			return err
		}
	}
}
