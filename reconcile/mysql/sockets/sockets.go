// Package sockets asks the kernel about the TCP connections of this Pod, which its containers share (sock_diag(7), tcp(7)).
package sockets

import (
	"errors"
	"net/netip"
	"time"
)

// ErrNotConnected means that there is no such connection.
var ErrNotConnected = errors.New("it is not connected")

// Connection is what the kernel says about one TCP connection.
type Connection struct {
	Own, Peer netip.AddrPort
	// IsOpen reports whether both sides may send. IsClosed reports whether this side has closed it and the peer has not. Then everything that
	// arrived was read: a connection with unread data ends at once (Linux source, __tcp_close, tcp_rcv_state_process).
	IsOpen, IsClosed bool
	// Inode identifies the socket among those that a process has open; 0 after it has closed it.
	Inode uint32
	// Acked is how many bytes the machine of the peer has acknowledged. Unacked is how many more a process has written.
	Acked, Unacked uint64
	// QuietFor is for how long no data has arrived. The kernel knows it, and Acked, only if KnowsState.
	QuietFor   time.Duration
	KnowsState bool
}
