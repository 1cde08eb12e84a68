package sockets

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// pair is a connection between two sockets of this machine.
type pair struct {
	client, server net.Conn
	// from and to are the addresses of the client and of the server.
	from, to netip.AddrPort
}

func connect(t *testing.T, network, listen, host string) pair {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, listen)
	if err != nil {
		t.Skipf("no address of this family: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port() //nolint:forcetypeassert // it listens on TCP
	made := pair{to: netip.AddrPortFrom(netip.MustParseAddr(host), port)}
	accepted := make(chan net.Conn, 1)
	go func() {
		if open, err := listener.Accept(); err == nil {
			accepted <- open
		}
	}()
	if made.client, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", made.to.String()); err != nil {
		t.Fatal(err)
	}
	made.server = <-accepted
	made.from = made.client.LocalAddr().(*net.TCPAddr).AddrPort() //nolint:forcetypeassert // it is TCP
	t.Cleanup(func() { _, _ = made.client.Close(), made.server.Close() })
	return made
}

// until looks until the connection is as it should be.
func until(t *testing.T, what string, look func() (Connection, error), isSo func(Connection, error) bool) Connection {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		found, err := look()
		if isSo(found, err) {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v (%v)", what, found, err)
		}
	}
}

// TestLookSeesWhatThePeerAcknowledges: over IPv4, over IPv6, and over IPv4 to a socket that listens on both, as mysqld does.
func TestLookSeesWhatThePeerAcknowledges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ network, listen, host string }{
		{"tcp4", "127.0.0.1:0", "127.0.0.1"}, {"tcp", "[::]:0", "127.0.0.1"}, {"tcp", "[::]:0", "::1"},
	} {
		made := connect(t, test.network, test.listen, test.host)
		look := func() (Connection, error) { return Look(made.to, made.from) }
		before, err := look()
		if err != nil || !before.IsOpen || !before.KnowsState || before.Inode == 0 || before.Own.Port() != made.to.Port() || before.Peer.Port() != made.from.Port() {
			t.Fatalf("%s: %+v (%v)", test.host, before, err)
		}
		if _, err := made.server.Write([]byte("heartbeat")); err != nil {
			t.Fatal(err)
		}
		until(t, "it is acknowledged", look, func(now Connection, _ error) bool {
			return now.Acked == before.Acked+uint64(len("heartbeat")) && now.Unacked == 0
		})
		unread := make([]byte, 64<<20)
		if err := made.server.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		written, _ := made.server.Write(unread)
		full := until(t, "the peer reads nothing", look, func(now Connection, _ error) bool { return now.Unacked > 0 })
		if got, want := full.Acked+full.Unacked, before.Acked+uint64(written)+uint64(len("heartbeat")); got != want {
			t.Errorf("%s: %d bytes are written, it says %d", test.host, want, got)
		}
		_, _ = made.client.Close(), made.server.Close()
		// A process that another test starts has a copy of the connection until it runs its program.
		until(t, "it is closed", look, func(_ Connection, err error) bool { return errors.Is(err, ErrNotConnected) })
	}
}

// TestToFollowsAConnectionThatThisSideCloses: what arrived before is known, and a connection with unread data is no longer there.
func TestToFollowsAConnectionThatThisSideCloses(t *testing.T) {
	t.Parallel()
	for name, isRead := range map[string]bool{"everything is read": true, "something is not read": false} {
		made := connect(t, "tcp4", "127.0.0.1:0", "127.0.0.1")
		look := func() (Connection, error) {
			all, err := To(made.to)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			// The kernel may also have connections of another process that had the port before.
			i := slices.IndexFunc(all, func(one Connection) bool { return one.Own == made.from })
			if i < 0 {
				return Connection{}, ErrNotConnected
			}
			return all[i], nil
		}
		if _, err := made.server.Write([]byte("heartbeat")); err != nil {
			t.Fatal(err)
		}
		if _, err := made.client.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		other, err := To(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), made.to.Port()))
		if err != nil || slices.ContainsFunc(other, func(one Connection) bool { return one.Own == made.from }) {
			t.Errorf("%s: another peer has %+v (%v)", name, other, err)
		}
		<-time.After(100 * time.Millisecond)
		if open, err := look(); err != nil || !open.IsOpen || open.IsClosed || open.Own != made.from || open.QuietFor < 80*time.Millisecond {
			t.Errorf("%s: %+v (%v)", name, open, err)
		}
		if !isRead {
			if _, err := made.server.Write([]byte("heartbeat")); err != nil {
				t.Fatal(err)
			}
			until(t, "it arrives", look, func(now Connection, _ error) bool { return now.QuietFor < 80*time.Millisecond })
		}
		_ = made.client.Close()
		until(t, name, look, func(now Connection, err error) bool {
			isGone := errors.Is(err, ErrNotConnected)
			return isRead && now.IsClosed && !now.IsOpen && now.Inode == 0 || !isRead && isGone
		})
		if isRead {
			until(t, "the peer acknowledges that, and the kernel forgets its state", look, func(now Connection, err error) bool {
				return err == nil && now.IsClosed && !now.KnowsState
			})
			_ = made.server.Close()
			until(t, "the peer closes it, too", look, func(now Connection, _ error) bool { return !now.IsClosed })
		}
	}
}

// TestAKernelWithoutTCPDiagCannotLook: it answers as if there were no connection. No kernel has the module of a protocol that is reserved
// for experiments (RFC 3692).
func TestAKernelWithoutTCPDiagCannotLook(t *testing.T) {
	t.Parallel()
	kernel, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	for _, address := range []string{"127.0.0.1", "::1"} {
		closed := netip.AddrPortFrom(netip.MustParseAddr(address), 1)
		for protocol, isImpossible := range map[byte]bool{unix.IPPROTO_TCP: false, 253: true} {
			asked := request(closed, closed, 1<<established)
			asked[1] = protocol
			_, err := kernel.Execute(netlink.Message{Header: netlink.Header{Type: diagByFamily, Flags: netlink.Request}, Data: asked})
			if !errors.Is(err, unix.ENOENT) {
				t.Errorf("%s, protocol %d: the kernel says %v", address, protocol, err)
			}
			err = absence(kernel, asked)
			if errors.Is(err, errors.ErrUnsupported) != isImpossible || errors.Is(err, ErrNotConnected) == isImpossible {
				t.Errorf("%s, protocol %d: %v", address, protocol, err)
			}
		}
		if _, err := Look(closed, closed); !errors.Is(err, ErrNotConnected) {
			t.Errorf("%s: a connection that does not exist: %v", address, err)
		}
	}
}
