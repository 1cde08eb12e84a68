package agent

import (
	"net/netip"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
)

// receiverSocket is the connection of mysqld's receiver, as far as the agent has found it. To find it means to list connections, which
// takes milliseconds on a large machine. A look at one that is known takes microseconds.
type receiverSocket struct {
	own, peer netip.AddrPort
	// searched is when the agent last looked for it in vain.
	searched time.Time
}

// searchEvery is how often the agent looks for the connection at most if it finds none, as behind a proxy.
const searchEvery = 5 * time.Second

// quietFor is for how long nothing has arrived from the primary; 0 if that is not known. A look at mysqld shows only that something has
// arrived since the look before.
func (s *receiverSocket) quietFor(now time.Time, channel replication.Channel) time.Duration {
	if channel.IO != "Yes" {
		*s = receiverSocket{}
		return 0
	}
	if s.peer == sourceOf(channel) {
		if quiet, isKnown := s.look(); isKnown {
			return quiet
		}
	}
	if now.Sub(s.searched) < searchEvery {
		return 0
	}
	found, isKnown := receiverIn(channel)
	if !isKnown {
		s.searched = now
		return 0
	}
	s.own, s.peer = found.Own, found.Peer
	return found.QuietFor
}

func (s *receiverSocket) look() (quiet time.Duration, isKnown bool) {
	if !s.peer.IsValid() {
		return 0, false
	}
	found, err := sockets.Look(s.own, s.peer)
	return found.QuietFor, err == nil
}

// isQuiet reports whether heartbeats have been missing for a short while.
func (s *receiverSocket) isQuiet() bool {
	quiet, isKnown := s.look()
	return isKnown && isRestless(quiet)
}
