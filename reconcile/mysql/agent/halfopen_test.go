package agent

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// tcp is a table of connections as Linux prints it: a listener, a client at rest, and peers whose packets were sent again 0, 3 and 4 times.
const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 47 1 000000008e6fa523 100 0 0 10 0
   1: 0100007F:0CEA 0100007F:D1EA 01 00000000:00000000 02:00000235 00000000     0        0 5258085 2 000000002b66f6dc 22 4 29 29 -1
   2: 0301FA0A:0CEA 0401FA0A:A4E2 01 00000480:00000000 01:00000013 00000000     0        0 5258036 2 0000000068750e53 20 4 31 10 -1
   3: 0301FA0A:0CEA 0501FA0A:A4E2 01 00000480:00000000 01:00000113 00000003     0        0 5258036 2 0000000068750e53 20 4 31 10 -1
   4: 0301FA0A:0CEA 0601FA0A:A4E2 01 00000480:00000000 01:00000213 00000004     0        0 5258036 2 0000000068750e53 20 4 31 10 -1
`

const tcp6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000301FA0A:0CEA 0000000000000000FFFF00000701FA0A:A4E3 01 00000480:00000000 01:00000013 0000000B     0        0 5258036 2 0000000068750e53 20 4 31 10 -1
   1: 010000FD000000000000000001000000:0CEA 010000FD000000000000000002000000:A4E4 01 00000480:00000000 01:00000013 0000000B     0        0 5258036 2 0000000068750e53 20 4 31 10 -1
`

func TestSilentPeersAreThoseThatAcknowledgeNoPacket(t *testing.T) {
	t.Parallel()
	silent := map[netip.AddrPort]bool{}
	for _, table := range []string{tcp, tcp6} {
		if err := readSilent(strings.NewReader(table), silent); err != nil {
			t.Fatal(err)
		}
	}
	want := map[netip.AddrPort]bool{
		netip.MustParseAddrPort("10.250.1.6:42210"): true, netip.MustParseAddrPort("10.250.1.7:42211"): true,
		netip.MustParseAddrPort("[fd00:1::2]:42212"): true,
	}
	if !maps.Equal(silent, want) {
		t.Errorf("silent are %v, want %v", silent, want)
	}
	for _, wrong := range []string{"", "0100007F", "0100007F:", "0100007F:12345", "zz00007F:0CEA", "01007F:0CEA"} {
		if peer, err := parsePeer(wrong); err == nil {
			t.Errorf("%q is read as %s", wrong, peer)
		}
	}
}

// TestCommitsStandOnlyWhileNoneEnds: a busy primary always has commits that wait.
func TestCommitsStandOnlyWhileNoneEnds(t *testing.T) {
	t.Parallel()
	began := time.Now()
	gtids := func(text string) replication.GTIDSet {
		set, err := replication.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	var stand commitStand
	for _, look := range []struct {
		after time.Duration
		waits bool
		has   string
		want  time.Duration
	}{
		{0, true, ":1", 0},
		{time.Second, true, ":1", time.Second},
		{2 * time.Second, true, ":1-2", 0},
		{5 * time.Second, true, ":1-2", 3 * time.Second},
		{6 * time.Second, false, ":1-2", 0},
		{9 * time.Second, true, ":1-2", 3 * time.Second},
	} {
		observed := mysqld.Observed{CommitsWait: look.waits, Server: replication.Server{Executed: gtids(server + look.has)}}
		if got := stand.lasts(began.Add(look.after), observed); got != look.want {
			t.Errorf("after %s commits have stood for %s, want %s", look.after, got, look.want)
		}
	}
}
