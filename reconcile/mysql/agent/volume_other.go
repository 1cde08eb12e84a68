//go:build !linux

package agent

import (
	"errors"
	"io/fs"
)

// VolumeSize returns 0, because the operator's Pods run only on Linux.
func (l Layout) VolumeSize() (int64, error) { return 0, nil }

func (l Layout) room() (size, free int64, err error) { return 0, 0, errors.ErrUnsupported }

func (l Layout) flush() error { return errors.ErrUnsupported }

func reserve(string, int64) error { return errors.ErrUnsupported }

func taken(fs.FileInfo) int64 { return 0 }
