package mysqld

import (
	"errors"
	"net"
	"testing"
)

// endless is a connection on which more has arrived than anybody asks for.
type endless struct{ net.Conn }

func (endless) Read(into []byte) (int, error) { return len(into), nil }

// TestOneReadStaysWithinTheAllowance: while mysqld sends, one read can return megabytes.
func TestOneReadStaysWithinTheAllowance(t *testing.T) {
	t.Parallel()
	left := newAllowance()
	left.Store(10)
	conn := &boundedConn{Conn: endless{}, left: left}
	if count, err := conn.Read(make([]byte, 1000)); count != 10 || err != nil {
		t.Errorf("read %d bytes, want the 10 that are allowed: %v", count, err)
	}
	if count, err := conn.Read(make([]byte, 1000)); count != 0 || !errors.Is(err, errTooMuch) {
		t.Errorf("then %d more: %v", count, err)
	}
}
