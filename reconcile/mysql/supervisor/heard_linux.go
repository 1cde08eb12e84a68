package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Connections are those of this Pod.
type Connections struct {
	// list lists the addresses of interfaces; net.InterfaceAddrs except in tests.
	list func() ([]net.Addr, error)

	mu sync.Mutex
	// own are the Pod's addresses, and listed is when they were listed.
	own    []netip.Addr
	listed time.Time
}

// ownFor is for how long the Pod's addresses count as known. It is shorter than leaseEvery: each look at the connections lists them once.
const ownFor = leaseEvery / 2

// Heard returns for how long the machine of a peer, which is connected to this port, has not acknowledged a packet. A peer in this Pod
// proves nothing about another machine, so it does not count: it may be a proxy.
func (c *Connections) Heard(port uint16, peer netip.AddrPort) (time.Duration, error) {
	own, err := c.addresses()
	if err != nil {
		return 0, err
	}
	if isLocal(peer.Addr(), own) {
		return 0, errNotConnected
	}
	for _, address := range own {
		if address.Is4() != peer.Addr().Is4() {
			continue
		}
		age, err := heardOn(netip.AddrPortFrom(address, port), peer)
		if err == nil || !errors.Is(err, errNotConnected) {
			return age, err
		}
	}
	return 0, errNotConnected
}

// addresses lists the addresses of this Pod, without loopback.
func (c *Connections) addresses() ([]netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// The layout of messages of sock_diag(7), in bytes.
const (
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	diagInfo     = 2  // INET_DIAG_INFO: a struct tcp_info
	requestSize  = 56 // struct inet_diag_req_v2
	statesAt     = 4  // where a request has the states of the connections that are listed
	replySize    = 72 // struct inet_diag_msg
	established  = 1  // TCP_ESTABLISHED
	// ackAgeAt is where a tcp_info has tcpi_last_ack_recv, in milliseconds.
	ackAgeAt = 56
)

// heardOn asks the kernel about one connection.
func heardOn(own, peer netip.AddrPort) (time.Duration, error) {
	kernel, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return 0, fmt.Errorf("look at connections: %w", err)
	}
	defer kernel.Close()
	if err := kernel.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, fmt.Errorf("look at connections: %w", err)
	}
	asked := request(own, peer)
	replies, err := kernel.Execute(netlink.Message{Header: netlink.Header{Type: diagByFamily, Flags: netlink.Request}, Data: asked})
	switch {
	case errors.Is(err, unix.ENOENT):
		return 0, absence(kernel, asked)
	case err != nil:
		return 0, fmt.Errorf("look at the connection to %s: %w", peer, err)
	case len(replies) == 0:
		return 0, errNotConnected
	}
	return ageIn(replies[0].Data)
}

// absence returns errNotConnected, or an error if the kernel can find no connection at all, because it has no tcp_diag. The kernel answers
// ENOENT in both cases. A list fails only in the second one (Linux source, __inet_diag_dump). It is empty: no connection has no state.
func absence(kernel *netlink.Conn, asked []byte) error {
	binary.NativeEndian.PutUint32(asked[statesAt:], 0)
	header := netlink.Header{Type: diagByFamily, Flags: netlink.Request | netlink.Dump}
	_, err := kernel.Execute(netlink.Message{Header: header, Data: asked})
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("the kernel has no tcp_diag: %w", errors.ErrUnsupported)
	case err != nil:
		return fmt.Errorf("look at connections: %w", err)
	}
	return errNotConnected
}

func request(own, peer netip.AddrPort) []byte {
	asked := make([]byte, requestSize)
	asked[0], asked[1], asked[2] = unix.AF_INET6, unix.IPPROTO_TCP, 1<<(diagInfo-1)
	if own.Addr().Is4() {
		asked[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(asked[statesAt:], 1<<established)
	binary.BigEndian.PutUint16(asked[8:], own.Port())
	binary.BigEndian.PutUint16(asked[10:], peer.Port())
	copy(asked[12:28], own.Addr().AsSlice())
	copy(asked[28:44], peer.Addr().AsSlice())
	for i := 48; i < requestSize; i++ {
		asked[i] = 0xff // no cookie
	}
	return asked
}

// ageIn reads a reply.
func ageIn(reply []byte) (time.Duration, error) {
	if len(reply) < replySize || reply[1] != established {
		return 0, errNotConnected
	}
	attributes, err := netlink.NewAttributeDecoder(reply[replySize:])
	if err != nil {
		return 0, fmt.Errorf("read the state of a connection: %w", err)
	}
	for attributes.Next() {
		if info := attributes.Bytes(); attributes.Type() == diagInfo && len(info) >= ackAgeAt+4 {
			return time.Duration(binary.NativeEndian.Uint32(info[ackAgeAt:])) * time.Millisecond, nil
		}
	}
	return 0, errors.Join(attributes.Err(), errors.New("the kernel does not say when it last heard the peer of a connection"))
}
