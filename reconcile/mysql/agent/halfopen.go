package agent

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// halfOpenAfter is for how long no commit may have ended before the agent looks at the connections of replicas.
	halfOpenAfter = 3 * time.Second
	// silentRetransmits is how often Linux has sent a packet again to a peer that counts as gone. It waits 200 ms before the first time, and
	// twice as long before each further time: three seconds in all.
	silentRetransmits = 4
)

// commitStand is since when commits have waited for acknowledgements without any commit that ended. The zero value has seen none.
type commitStand struct {
	since    time.Time
	executed replication.GTIDSet
}

// lasts returns for how long commits have waited.
func (c *commitStand) lasts(now time.Time, observed mysqld.Observed) time.Duration {
	if !observed.CommitsWait || c.since.IsZero() || !observed.Server.Executed.Equal(c.executed) {
		c.since, c.executed = now, observed.Server.Executed
	}
	return now.Sub(c.since)
}

// endHalfOpen ends the sessions of replicas whose machine or network is gone. mysqld counts such a replica as connected, and commits wait
// for it, until Linux gives up: about 15 minutes (tcp(7), tcp_retries2). A replica that is there after all connects again within a second.
func (a *Agent) endHalfOpen(ctx context.Context, observed mysqld.Observed) {
	if a.stand.lasts(time.Now(), observed) < halfOpenAfter {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := a.endSilent(bounded); err != nil {
		a.log.Info("cannot end the sessions of replicas that are gone, will try again", "error", err.Error())
	}
}

func (a *Agent) endSilent(ctx context.Context) error {
	silent, err := silentPeers("/proc/net/tcp", "/proc/net/tcp6")
	if err != nil || len(silent) == 0 {
		return err
	}
	sessions, err := a.local.ReceiverSessions(ctx)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if !silent[session.Peer] {
			continue
		}
		if err := a.local.EndSession(ctx, session.ID); err != nil {
			return err
		}
		a.log.Info("ended the session of a replica that has not acknowledged a packet for seconds", "peer", session.Peer.String())
	}
	return nil
}

// silentPeers returns the peers of this Pod's connections that have not acknowledged packets for seconds. It reads the kernel's tables
// (proc_pid_net(5)), which all containers of a Pod share.
func silentPeers(tables ...string) (map[netip.AddrPort]bool, error) {
	silent := map[netip.AddrPort]bool{}
	for _, table := range tables {
		file, err := os.Open(table)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		err = readSilent(file, silent)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", table, err)
		}
	}
	return silent, nil
}

// readSilent adds the silent peers in a table. In its lines, field 3 is the peer's address and field 7 the count of retransmissions of the
// oldest packet.
func readSilent(table io.Reader, silent map[netip.AddrPort]bool) error {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 7 || fields[0] == "sl" {
			continue
		}
		count, err := strconv.ParseUint(fields[6], 16, 32)
		if err != nil {
			return fmt.Errorf("count of retransmissions: %w", err)
		}
		if count < silentRetransmits {
			continue
		}
		peer, err := parsePeer(fields[2])
		if err != nil {
			return err
		}
		silent[peer] = true
	}
	return lines.Err()
}

// parsePeer reads an address and port such as 0100007F:0CEA. The address is made of 32-bit words in the byte order of the machine.
func parsePeer(text string) (netip.AddrPort, error) {
	words, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(words)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", text, err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q is not an IP address with a port", text)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), nil
}
