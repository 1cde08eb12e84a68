package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
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

// TestWhatCountsIsWhenItWasSent: a peer is heard at the time of the last look after which something was written that it has acknowledged.
func TestWhatCountsIsWhenItWasSent(t *testing.T) {
	t.Parallel()
	var sent stream
	for _, look := range []struct {
		what                 string
		at                   time.Duration
		acked, written, want uint64
	}{
		{"the first look knows nothing", 10, 500, 500, 0},
		{"nothing is sent", 11, 500, 500, 0},
		{"a heartbeat is on its way", 12, 500, 600, 0},
		{"it has arrived: it was sent after the look before", 13, 600, 600, 11},
		{"nothing is sent", 14, 600, 600, 11},
		{"two heartbeats are on their way", 15, 600, 800, 11},
		{"the peer has acknowledged a part of it", 16, 601, 800, 14},
		{"and all of what was written then", 17, 800, 900, 14},
		{"and a byte more", 20, 801, 900, 16},
		{"the network delays the last acknowledgement", 90, 900, 900, 16},
	} {
		if got := sent.observe(look.at*time.Second, look.acked, look.written); got != time.Duration(look.want)*time.Second {
			t.Errorf("%s: heard at %s, want %ds", look.what, got, look.want)
		}
	}
	for n := range uint64(2 * mostMarks) {
		sent.observe(time.Duration(100+n)*time.Second, 900, 1000+n)
	}
	if len(sent.marks) > mostMarks || sent.heard != 16*time.Second {
		t.Errorf("a peer that acknowledges nothing has %d marks, and is heard at %s", len(sent.marks), sent.heard)
	}
	if got := sent.observe(time.Hour, 5000, 5000); got < 100*time.Second || got > time.Hour {
		t.Errorf("it acknowledges everything: heard at %s", got)
	}
}

// TestAPeerIsHeardWhileItIsConnected: a peer that connects again begins again, and one in this Pod never counts.
func TestAPeerIsHeardWhileItIsConnected(t *testing.T) {
	t.Parallel()
	peer, proxy := netip.MustParseAddrPort("10.0.0.2:4000"), netip.MustParseAddrPort("10.0.0.1:4000")
	var now sockets.Connection
	var failed error
	var slow time.Duration
	connections := &Connections{
		list: func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}, &net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)}}, nil
		},
		look: func(own, _ netip.AddrPort) (sockets.Connection, error) {
			if own != netip.MustParseAddrPort("10.0.0.1:3306") {
				t.Errorf("it looks at %s", own)
			}
			<-time.After(slow)
			return now, failed
		},
	}
	heard := func(what string, from netip.AddrPort, acked uint64, want error) {
		t.Helper()
		now.Acked = acked
		if age, err := connections.Heard(3306, from); !errors.Is(err, want) || err == nil && (age < 0 || age > time.Minute) {
			t.Errorf("%s: heard %s ago (%v), want %v", what, age, err, want)
		}
	}
	heard("first", peer, 100, errNotHeard)
	heard("a heartbeat", peer, 200, nil)
	now.Unacked = 50
	heard("more is written", peer, 200, nil)
	<-time.After(2 * time.Millisecond)
	now.Unacked = 0
	heard("nothing is known of it", peer, 200, nil)
	now.Acked = 250
	if age, err := connections.Heard(3306, peer); age < 2*time.Millisecond || err != nil {
		t.Errorf("what was written before arrives: heard %s ago (%v)", age, err)
	}
	slow = 20 * time.Millisecond
	heard("a heartbeat", peer, 300, nil)
	now.Acked, slow = 400, 0
	if age, err := connections.Heard(3306, peer); err != nil || age < 20*time.Millisecond {
		t.Errorf("the kernel answers late, and the peer is heard %s ago (%v)", age, err)
	}
	heard("a proxy", proxy, 200, sockets.ErrNotConnected)
	failed = sockets.ErrNotConnected
	heard("it is gone", peer, 200, sockets.ErrNotConnected)
	failed = nil
	heard("it is back", peer, 300, errNotHeard)
	if len(connections.streams) != 1 {
		t.Errorf("it remembers %d peers", len(connections.streams))
	}
	connections.streams[peer].looked = -2 * streamFor
	heard("another peer", netip.MustParseAddrPort("10.0.0.3:4000"), 100, errNotHeard)
	if len(connections.streams) != 1 {
		t.Errorf("it remembers %d peers", len(connections.streams))
	}
}
