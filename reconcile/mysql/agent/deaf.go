package agent

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// While a primary is replaced, it counts for how long its replicas have heard nothing from it (replication.Status.DeafFor). mysqld does not
// know that: what has arrived at its machine may wait to be read. The kernel knows it, until the receiver's connection has ended.

// stoppedReceiver is a receiver that the agent has stopped; the zero value is for none. heard is when data arrived last, by
// supervisor.Clock, for this start of mysqld, and got is what the receiver had got.
type stoppedReceiver struct {
	start string
	heard time.Duration
	got   replication.Received
}

// stopReceiver runs a verb that stops the receiver, and notes when that one has heard its primary last.
func (a *Agent) stopReceiver(ctx context.Context, channel replication.Channel, stop func(context.Context) error) error {
	before, isKnown := receiverIn(channel)
	if err := stop(ctx); err != nil || channel.IO == "No" {
		return err
	}
	a.deaf = stoppedReceiver{}
	if !isKnown {
		return nil
	}
	if heard, isKnown := before.heardUntil(connectionsTo(before.Peer)); isKnown {
		a.deaf = stoppedReceiver{a.start, heard, channel.Received}
	}
	return nil
}

// openReceiver is the connection of a receiver that runs, as it was at a time.
type openReceiver struct {
	sockets.Connection
	at time.Duration
}

// stopsWithin is how long a receiver may take to stop, if the kernel does not know afterwards when data arrived.
const stopsWithin = 500 * time.Millisecond

// heardUntil returns when data arrived last, from what is left of the connection after mysqld has stopped the receiver. The kernel keeps a
// connection that mysqld has closed until the primary has closed it, too. It does not keep one with data that mysqld had not read, or to
// which the primary sends more. Once the primary's machine has acknowledged that it is closed, the kernel does not know any more when data
// arrived. Then it was before the receiver was stopped, unless mysqld has read something since (stoppedReceiver.since).
func (r openReceiver) heardUntil(left []sockets.Connection, now time.Duration) (heard time.Duration, isKnown bool) {
	for _, one := range left {
		switch {
		case one.Own != r.Own:
		case !one.IsClosed || one.Inode != 0:
			return 0, false
		case one.KnowsState:
			return now - one.QuietFor, true
		default:
			return r.at - r.QuietFor, now-r.at < stopsWithin
		}
	}
	return 0, false
}

// forgetReceiver forgets the receiver that the agent has stopped, because another one starts.
func (a *Agent) forgetReceiver() {
	a.deaf = stoppedReceiver{}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deafSince = 0
}

// since is since when this member has certainly heard no primary, by supervisor.Clock; 0 if that is not known.
func (r stoppedReceiver) since(start string, channel replication.Channel) time.Duration {
	got := channel.Received
	got.RelayLogSpace = r.got.RelayLogSpace // the applier changes it
	if r.start != start || channel.IO != "No" || got != r.got {
		return 0
	}
	return r.heard
}

// receiverIn finds the connection of mysqld's receiver. isKnown is false if it may be another one.
func receiverIn(channel replication.Channel) (found openReceiver, isKnown bool) {
	source := sourceOf(channel)
	if !source.IsValid() || channel.IO != "Yes" || !channel.KnowsReceived {
		return openReceiver{}, false
	}
	own := ownSockets()
	all, now := connectionsTo(source)
	one, isKnown := onlyOpen(all, append(own, ownSockets()...))
	return openReceiver{one, now}, isKnown
}

// sourceOf is the address and the port of the source; not valid if it is unknown, or a name.
func sourceOf(channel replication.Channel) netip.AddrPort {
	source, _ := netip.ParseAddrPort(net.JoinHostPort(channel.SourceHost, strconv.Itoa(channel.SourcePort)))
	return source
}

// connectionsTo lists the connections to a primary, and returns the time after that. It lists none if the kernel does not say.
func connectionsTo(source netip.AddrPort) ([]sockets.Connection, time.Duration) {
	all, err := sockets.To(source)
	now, unknown := supervisor.Clock()
	if err != nil || unknown != nil {
		return nil, 0
	}
	return all, now
}

// onlyOpen returns the one open connection that this process does not have.
func onlyOpen(all []sockets.Connection, own []uint32) (sockets.Connection, bool) {
	var open []sockets.Connection
	for _, one := range all {
		if one.IsOpen && one.KnowsState && !slices.Contains(own, one.Inode) {
			open = append(open, one)
		}
	}
	if len(open) != 1 {
		return sockets.Connection{}, false
	}
	return open[0], true
}

// ownSockets are the inodes of this process's sockets (proc_pid_fd(5)).
func ownSockets() []uint32 {
	var own []uint32
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range files {
		to, err := os.Readlink(file)
		if inode, isSocket := strings.CutPrefix(to, "socket:["); err == nil && isSocket {
			if number, err := strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 32); err == nil {
				own = append(own, uint32(number))
			}
		}
	}
	return own
}
