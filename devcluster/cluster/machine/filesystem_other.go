//go:build !linux

package machine

import "errors"

// The launcher runs only on Linux and refuses to run elsewhere before it calls these functions. They let it compile there.

// Snapshotter is not supported here.
func Snapshotter(string) (string, error) { return "", errors.ErrUnsupported }

// OOMScore is 0 here.
func OOMScore() int { return 0 }

// MaxFiles is unknown here.
func MaxFiles() int { return 0 }
