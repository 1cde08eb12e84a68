package agent

import (
	"io"
	"net"
	"sync"
	"testing"
)

// heldCopy forwards the connections of a copy to the donor. It holds each one that has sent heldAfter bytes, until release is called. A
// small copy on a fast machine is complete within 0.1 s, and MySQL limits the rate only after that.
type heldCopy struct {
	port    int
	release func()
}

// heldAfter is less than the data of an empty server, and more than what the agent asks before a copy.
const heldAfter = 1 << 20

func holdCopies(t *testing.T, donor *realMember) heldCopy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(func() {
		release()
		_ = listener.Close()
	})
	go func() {
		for {
			recipient, err := listener.Accept()
			if err != nil {
				return
			}
			go donor.forward(recipient, released)
		}
	}()
	return heldCopy{port: listener.Addr().(*net.TCPAddr).Port, release: release}
}

// forward connects a recipient to the member's mysqld until one of the two ends.
func (m *realMember) forward(recipient net.Conn, released <-chan struct{}) {
	defer recipient.Close()
	donor, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: m.port})
	if err != nil {
		return // mysqld is restarting: the recipient tries again
	}
	defer donor.Close()
	go func() {
		_, _ = io.Copy(donor, recipient)
		_ = donor.CloseWrite()
	}()
	if _, err := io.CopyN(recipient, donor, heldAfter); err != nil {
		return
	}
	<-released
	_, _ = io.Copy(recipient, donor)
}
