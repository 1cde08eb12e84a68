package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

func TestPeersInThePodDoNotCount(t *testing.T) {
	t.Parallel()
	own := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	for address, want := range map[string]bool{
		"127.0.0.6": true, "::1": true, "::6": true, "10.0.0.1": true, "fd00::1": true, "10.0.0.2": false, "fd00::2": false, "192.168.0.1": false,
	} {
		if got := isLocal(netip.MustParseAddr(address), own); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

// TestAddressesThatThePodGetsLaterCount: from the next look at the connections on. A look lists them once.
func TestAddressesThatThePodGetsLaterCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loopback := &net.IPNet{IP: net.IPv4(127, 0, 0, 1), Mask: net.CIDRMask(8, 32)}
		first := &net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)}
		later := &net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}
		var has []net.Addr
		lists := 0
		connections := &Connections{list: func() ([]net.Addr, error) {
			lists++
			return has, nil
		}}
		for n, look := range []struct {
			has  []net.Addr
			want string
		}{
			{[]net.Addr{loopback}, "[]"}, {[]net.Addr{loopback, first}, "[10.0.0.1]"},
			{[]net.Addr{loopback, first, later}, "[10.0.0.1 fd00::1]"}, {[]net.Addr{loopback, later}, "[fd00::1]"},
		} {
			has = look.has
			for range mostReplicas {
				if own, err := connections.addresses(); err != nil || fmt.Sprint(own) != look.want {
					t.Errorf("look %d: the Pod has %s (%v), want %s", n, own, err, look.want)
				}
			}
			if lists != n+1 {
				t.Errorf("after look %d, the addresses have been listed %d times", n, lists)
			}
			<-time.After(leaseEvery)
		}
	})
}

// TestKernelSaysWhenAPeerWasHeard: over IPv4, over IPv6, and over IPv4 to a socket that listens on both, as mysqld does.
func TestKernelSaysWhenAPeerWasHeard(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ network, listen, dial string }{
		{"tcp4", "127.0.0.1:0", "127.0.0.1"}, {"tcp", "[::]:0", "127.0.0.1"}, {"tcp", "[::]:0", "::1"},
	} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), test.network, test.listen)
		if err != nil {
			t.Skipf("no address of this family: %v", err)
		}
		port := listener.Addr().(*net.TCPAddr).AddrPort().Port() //nolint:forcetypeassert // it listens on TCP
		server := netip.AddrPortFrom(netip.MustParseAddr(test.dial), port)
		accepted := make(chan net.Conn, 1)
		go func() {
			open, err := listener.Accept()
			if err == nil {
				accepted <- open
			}
		}()
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.String())
		if err != nil {
			t.Fatal(err)
		}
		open := <-accepted
		peer := client.LocalAddr().(*net.TCPAddr).AddrPort() //nolint:forcetypeassert // it is TCP
		begun := time.Now()
		<-time.After(120 * time.Millisecond)
		quiet, err := heardOn(server, peer)
		if most := time.Since(begun) + time.Second; err != nil || quiet < 80*time.Millisecond || quiet > most {
			t.Errorf("%s: heard %s ago (%v), want between 80ms and %s", test.dial, quiet, err, most)
		}
		if _, err := open.Write([]byte("heartbeat")); err != nil {
			t.Fatal(err)
		}
		heard := quiet
		for deadline := time.Now().Add(10 * time.Second); heard >= quiet && time.Now().Before(deadline); {
			heard, err = heardOn(server, peer)
		}
		if err != nil || heard >= quiet {
			t.Errorf("%s: heard %s ago (%v) after a packet, and %s before", test.dial, heard, err, quiet)
		}
		if _, err := new(Connections).Heard(port, peer); err == nil {
			t.Errorf("%s: a peer on this machine counts", test.dial)
		}
		_, _, _ = client.Close(), open.Close(), listener.Close()
		// A process that another test starts has a copy of the connection until it runs its program.
		_, err = heardOn(server, peer)
		for deadline := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(deadline); {
			_, err = heardOn(server, peer)
		}
		if err == nil {
			t.Errorf("%s: a closed connection counts", test.dial)
		}
	}
}

// TestAKernelWithoutTCPDiagCannotLook: it answers as if there were no connection. No kernel has the module of a protocol that is reserved
// for experiments (RFC 3692).
func TestAKernelWithoutTCPDiagCannotLook(t *testing.T) {
	t.Parallel()
	kernel, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	for _, address := range []string{"127.0.0.1", "::1"} {
		closed := netip.AddrPortFrom(netip.MustParseAddr(address), 1)
		for protocol, isImpossible := range map[byte]bool{unix.IPPROTO_TCP: false, 253: true} {
			asked := request(closed, closed)
			asked[1] = protocol
			_, err := kernel.Execute(netlink.Message{Header: netlink.Header{Type: diagByFamily, Flags: netlink.Request}, Data: asked})
			if !errors.Is(err, unix.ENOENT) {
				t.Errorf("%s, protocol %d: the kernel says %v", address, protocol, err)
			}
			err = absence(kernel, asked)
			if isForbidden(err) != isImpossible || errors.Is(err, errNotConnected) == isImpossible {
				t.Errorf("%s, protocol %d: %v", address, protocol, err)
			}
		}
		if _, err := heardOn(closed, closed); !errors.Is(err, errNotConnected) {
			t.Errorf("%s: a connection that does not exist: %v", address, err)
		}
	}
}
