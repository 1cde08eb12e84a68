//go:build !unix

// Package filelock keeps two launchers from working on the same files.
package filelock

import (
	"context"
	"errors"
)

// Acquire does nothing here: the launcher, which needs Linux, refuses to run
// before it gets this far, and this lets it compile, to say so.
func Acquire(context.Context, string, func()) (func(), error) { return nil, errors.ErrUnsupported }
