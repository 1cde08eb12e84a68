package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The layout of messages of sock_diag(7), in bytes.
const (
	diagByFamily = 20  // SOCK_DIAG_BY_FAMILY
	diagInfo     = 2   // INET_DIAG_INFO: a struct tcp_info
	requestSize  = 56  // struct inet_diag_req_v2
	statesAt     = 4   // where a request has the states of the connections that are listed
	replySize    = 72  // struct inet_diag_msg
	unackedAt    = 60  // where a reply has how much is written and not acknowledged (idiag_wqueue)
	inodeAt      = 68  // where it has the inode
	quietAt      = 52  // where a tcp_info has tcpi_last_data_recv, in milliseconds
	ackedAt      = 120 // where it has tcpi_bytes_acked
)

// States of a connection (Linux source, tcp_states.h).
const (
	established = 1
	finWait1    = 4 // this side has closed it
	finWait2    = 5 // and the peer has acknowledged that
	listen      = 10
)

// Look asks the kernel about one connection that is open. It returns ErrNotConnected if there is none.
func Look(own, peer netip.AddrPort) (Connection, error) {
	asked := request(own, peer, 1<<established)
	kernel, err := dial()
	if err != nil {
		return Connection{}, err
	}
	defer kernel.Close()
	replies, err := kernel.Execute(netlink.Message{Header: netlink.Header{Type: diagByFamily, Flags: netlink.Request}, Data: asked})
	switch {
	case errors.Is(err, unix.ENOENT):
		return Connection{}, absence(kernel, asked)
	case err != nil:
		return Connection{}, fmt.Errorf("look at the connection to %s: %w", peer, err)
	case len(replies) == 0:
		return Connection{}, ErrNotConnected
	}
	found, err := parse(replies[0].Data)
	if err == nil && !found.IsOpen {
		err = ErrNotConnected
	}
	if err == nil && !found.KnowsState {
		err = fmt.Errorf("the kernel does not say how much the peer of a connection has acknowledged: %w", errors.ErrUnsupported)
	}
	return found, err
}

// To lists the connections of this Pod to a peer, also those that have been closed and that the kernel still has.
func To(peer netip.AddrPort) ([]Connection, error) {
	unspecified := netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	if peer.Addr().Is4() {
		unspecified = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	kernel, err := dial()
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	asked := request(unspecified, peer, ^uint32(1<<listen))
	replies, err := kernel.Execute(netlink.Message{Header: netlink.Header{Type: diagByFamily, Flags: netlink.Request | netlink.Dump}, Data: asked})
	if err != nil {
		return nil, fmt.Errorf("list the connections to %s: %w", peer, err)
	}
	var all []Connection
	for _, reply := range replies {
		found, err := parse(reply.Data)
		if err != nil {
			return nil, err
		}
		if found.Peer == peer {
			all = append(all, found)
		}
	}
	return all, nil
}

// dial connects to the kernel, which must answer within a second.
func dial() (*netlink.Conn, error) {
	kernel, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("look at connections: %w", err)
	}
	if err := kernel.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, errors.Join(fmt.Errorf("look at connections: %w", err), kernel.Close())
	}
	return kernel, nil
}

// absence returns ErrNotConnected, or an error if the kernel can find no connection at all, because it has no tcp_diag. The kernel answers
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
	return ErrNotConnected
}

func request(own, peer netip.AddrPort, states uint32) []byte {
	asked := make([]byte, requestSize)
	asked[0], asked[1], asked[2] = unix.AF_INET6, unix.IPPROTO_TCP, 1<<(diagInfo-1)
	if own.Addr().Is4() {
		asked[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(asked[statesAt:], states)
	binary.BigEndian.PutUint16(asked[8:], own.Port())
	binary.BigEndian.PutUint16(asked[10:], peer.Port())
	copy(asked[12:28], own.Addr().AsSlice())
	copy(asked[28:44], peer.Addr().AsSlice())
	for i := 48; i < requestSize; i++ {
		asked[i] = 0xff // no cookie
	}
	return asked
}

// parse reads a reply.
func parse(reply []byte) (Connection, error) {
	if len(reply) < replySize {
		return Connection{}, errors.New("the kernel's answer about a connection is too short")
	}
	found := Connection{
		Own: addressIn(reply, 4, 8), Peer: addressIn(reply, 6, 24),
		IsOpen: reply[1] == established, IsClosed: slices.Contains([]byte{finWait1, finWait2}, reply[1]),
		Unacked: uint64(binary.NativeEndian.Uint32(reply[unackedAt:])), Inode: binary.NativeEndian.Uint32(reply[inodeAt:]),
	}
	attributes, err := netlink.NewAttributeDecoder(reply[replySize:])
	if err != nil {
		return Connection{}, fmt.Errorf("read the state of a connection: %w", err)
	}
	for attributes.Next() {
		if info := attributes.Bytes(); attributes.Type() == diagInfo && len(info) >= ackedAt+8 {
			found.QuietFor = time.Duration(binary.NativeEndian.Uint32(info[quietAt:])) * time.Millisecond
			found.Acked, found.KnowsState = binary.NativeEndian.Uint64(info[ackedAt:]), true
		}
	}
	return found, attributes.Err()
}

// addressIn reads an address and a port of a reply.
func addressIn(reply []byte, portAt, addressAt int) netip.AddrPort {
	size := 16
	if reply[0] == unix.AF_INET {
		size = 4
	}
	address, _ := netip.AddrFromSlice(reply[addressAt : addressAt+size])
	return netip.AddrPortFrom(address, binary.BigEndian.Uint16(reply[portAt:]))
}
