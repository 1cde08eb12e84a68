//go:build !linux

package machine

import "errors"

// The launcher refuses to run elsewhere than on Linux before it gets here;
// these let it compile, to say so.

// Snapshotter cannot be answered here.
func Snapshotter(string) (string, error) { return "", errors.ErrUnsupported }

// OOMScore is 0 here.
func OOMScore() int { return 0 }

// MaxFiles is unknown here.
func MaxFiles() int { return 0 }
