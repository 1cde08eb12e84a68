//go:build !linux

package supervisor

import (
	"errors"
	"net/netip"
	"time"
)

// Connections are those of this Pod.
type Connections struct{}

// Heard works on Linux only, where members run.
func (*Connections) Heard(uint16, netip.AddrPort) (time.Duration, error) {
	return 0, errors.ErrUnsupported
}
