//go:build !unix

// Package filelock prevents two launchers from working on the same files.
package filelock

import (
	"context"
	"errors"
)

// Acquire does nothing here. The launcher runs only on Linux and refuses to run elsewhere before it calls this function, which lets it
// compile there.
func Acquire(context.Context, string, func()) (func(), error) { return nil, errors.ErrUnsupported }
