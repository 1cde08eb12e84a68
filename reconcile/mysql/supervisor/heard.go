package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
)

// Connections are those of this Pod with its peers.
//
// What counts is when this machine sent what the peer has acknowledged. When the acknowledgement arrives does not count: the network may
// delay it for any time. So a peer cannot have been heard later than it has got something.
type Connections struct {
	// list lists the addresses of interfaces, and look asks the kernel about a connection; net.InterfaceAddrs and sockets.Look except in
	// tests.
	list func() ([]net.Addr, error)
	look func(own, peer netip.AddrPort) (sockets.Connection, error)

	mu sync.Mutex
	// own are the Pod's addresses, and listed is when they were listed.
	own    []netip.Addr
	listed time.Time
	// streams are what was sent to each peer.
	streams map[netip.AddrPort]*stream
}

// ownFor is for how long the Pod's addresses count as known. It is shorter than leaseEvery: each look at the connections lists them once.
const ownFor = leaseEvery / 2

// Heard returns for how long the machine of a peer, which is connected to this port, has not acknowledged anything. The first look never
// knows that. A peer in this Pod proves nothing about another machine, so it does not count: it may be a proxy.
func (c *Connections) Heard(port uint16, peer netip.AddrPort) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, err := c.addresses()
	if err != nil {
		return 0, err
	}
	if isLocal(peer.Addr(), own) {
		return 0, sockets.ErrNotConnected
	}
	for _, address := range own {
		if address.Is4() != peer.Addr().Is4() {
			continue
		}
		age, err := c.heardOn(netip.AddrPortFrom(address, port), peer)
		if err == nil || !errors.Is(err, sockets.ErrNotConnected) {
			return age, err
		}
	}
	delete(c.streams, peer)
	return 0, sockets.ErrNotConnected
}

// errNotHeard means that a peer has not acknowledged anything since the first look.
var errNotHeard = errors.New("it has not acknowledged anything yet")

// heardOn looks at one connection. The caller must hold the lock.
func (c *Connections) heardOn(own, peer netip.AddrPort) (time.Duration, error) {
	look := c.look
	if look == nil {
		look = sockets.Look
	}
	now, err := Clock()
	if err != nil {
		return 0, err
	}
	found, err := look(own, peer)
	if err != nil {
		return 0, err
	}
	if c.streams[peer] == nil {
		c.forget(now)
		c.streams[peer] = new(stream)
	}
	heard := c.streams[peer].observe(now, found.Acked, found.Acked+found.Unacked)
	if heard == 0 {
		return 0, errNotHeard
	}
	return now - heard, nil
}

// streamFor is for how long a peer is remembered at which nothing looks.
const streamFor = time.Minute

// forget drops the peers at which nothing has looked for long: their connections have ended.
func (c *Connections) forget(now time.Duration) {
	if c.streams == nil {
		c.streams = map[netip.AddrPort]*stream{}
	}
	for peer, known := range c.streams {
		if now-known.looked > streamFor {
			delete(c.streams, peer)
		}
	}
}

// stream is what was sent to a peer: marks, and the latest time after which something was sent that the peer has acknowledged; 0 for none.
// looked is when the last mark was made.
type stream struct {
	marks         []mark
	heard, looked time.Duration
}

// mark is how many bytes had been written at most at a time.
type mark struct {
	at      time.Duration
	written uint64
}

// mostMarks is how many marks a stream has at most. It has more than one while the peer acknowledges nothing.
const mostMarks = 64

// observe notes how much has been acknowledged and written. What is acknowledged beyond a mark was written, sent and received after it.
// It returns the time of the latest such mark.
func (s *stream) observe(now time.Duration, acked, written uint64) time.Duration {
	later := slices.IndexFunc(s.marks, func(one mark) bool { return one.written >= acked })
	if later < 0 {
		later = len(s.marks)
	}
	if later > 0 {
		s.heard = s.marks[later-1].at
		s.marks = slices.Delete(s.marks, 0, later)
	}
	if last := len(s.marks) - 1; last >= 0 && s.marks[last].written == written {
		s.marks[last].at = now // nothing was written since
	} else if len(s.marks) < mostMarks {
		s.marks = append(s.marks, mark{now, written})
	}
	s.looked = now
	return s.heard
}

// addresses lists the addresses of this Pod, without loopback. The caller must hold the lock.
func (c *Connections) addresses() ([]netip.Addr, error) {
	if time.Since(c.listed) < ownFor {
		return c.own, nil
	}
	list := c.list
	if list == nil {
		list = net.InterfaceAddrs
	}
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this Pod: %w", err)
	}
	c.own, c.listed = nil, time.Now()
	for _, one := range all {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil && !prefix.Addr().IsLoopback() {
			c.own = append(c.own, prefix.Addr())
		}
	}
	return c.own, nil
}

// isLocal reports whether an address is one of this Pod, or one that only proxies use, such as Istio's ::6.
func isLocal(peer netip.Addr, own []netip.Addr) bool {
	reserved := netip.PrefixFrom(netip.IPv6Unspecified(), 96) // RFC 4291, section 2.5.5.1
	return peer.IsLoopback() || reserved.Contains(peer) || slices.Contains(own, peer)
}
