//go:build !linux

package sockets

import (
	"errors"
	"net/netip"
)

// Look works on Linux only, where members run.
func Look(_, _ netip.AddrPort) (Connection, error) { return Connection{}, errors.ErrUnsupported }

// To works on Linux only, where members run.
func To(netip.AddrPort) ([]Connection, error) { return nil, errors.ErrUnsupported }
