package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
	"time"
)

// While mysqld runs, its supervisor has a file in the run folder locked. Whoever changes the data of a mysqld that has ended locks the file
// first. mysqld's own locks do not suffice: mysqld reads auto.cnf before it waits for InnoDB's (seen on 9.7.4). The kernel releases a lock
// when its process ends.

func lockFile(run string) string { return path.Join(run, "mysqld.lock") }

// lockEvery is how often the supervisor tries to lock.
const lockEvery = 10 * time.Millisecond

// LockData keeps mysqld from starting until release is called. It fails if mysqld runs.
func LockData(run string) (release func(), err error) {
	locked, err := lock(run)
	if err != nil {
		return nil, fmt.Errorf("lock the data of mysqld: %w", err)
	}
	return func() { _ = locked.Close() }, nil
}

// lock locks the file. The error wraps EWOULDBLOCK if another process has it locked.
func lock(run string) (*os.File, error) {
	file, err := os.OpenFile(lockFile(run), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
	}
	return file, nil
}

// lockToStart waits until nothing else changes the data. It fails if the container stops meanwhile.
func (s *Supervisor) lockToStart() (*os.File, error) {
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		locked, err := lock(s.RunDir)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return locked, err
		}
		now, changed := s.now()
		if now.Stopping {
			return nil, fmt.Errorf("the container stops: %w", err)
		}
		select {
		case <-changed:
		case <-again.C:
		}
	}
}
