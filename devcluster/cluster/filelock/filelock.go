//go:build unix

// Package filelock prevents two launchers from working on the same files.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Acquire locks the file, which it creates if needed, and returns the function that unlocks it. While another process holds the lock, it
// calls waiting once and waits until the context ends. The kernel releases the lock of a process that dies.
func Acquire(ctx context.Context, path string, waiting func()) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = poll(ctx, int(file.Fd()), waiting)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s, held by another run: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func poll(ctx context.Context, fd int, waiting func()) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
