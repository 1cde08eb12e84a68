package agent

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sockets"
)

// TestTheReceiversConnectionIsCertain: it is the only one that another process has to the primary.
func TestTheReceiversConnectionIsCertain(t *testing.T) {
	t.Parallel()
	open := func(port uint16, inode uint32) sockets.Connection {
		return sockets.Connection{Own: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), port), IsOpen: true, Inode: inode, KnowsState: true}
	}
	mine, receiver, old := open(1, 11), open(2, 12), open(3, 0)
	old.IsOpen, old.IsClosed, old.KnowsState = false, true, false
	for what, test := range map[string]struct {
		all  []sockets.Connection
		want bool
	}{
		"one of the agent, and an old one": {[]sockets.Connection{mine, receiver, old}, true},
		"none":                             {[]sockets.Connection{mine, old}, false},
		"one without a state":              {[]sockets.Connection{{Own: receiver.Own, IsOpen: true, Inode: 12}}, false},
		"one of another process":           {[]sockets.Connection{receiver, open(4, 14)}, false},
	} {
		if got, isKnown := onlyOpen(test.all, []uint32{11}); isKnown != test.want || isKnown && got != receiver {
			t.Errorf("%s: %+v, %t", what, got, isKnown)
		}
	}
	if _, isKnown := receiverIn(replication.Channel{IO: "Connecting", SourceHost: "127.0.0.1", SourcePort: 3306}); isKnown {
		t.Error("the receiver is not connected, and its connection is known")
	}
}

// TestWhatIsLeftOfAConnectionIsCertain: mysqld has closed it, and nothing has arrived that was not read.
func TestWhatIsLeftOfAConnectionIsCertain(t *testing.T) {
	t.Parallel()
	const at = time.Hour
	before := openReceiver{sockets.Connection{Own: netip.MustParseAddrPort("10.0.0.2:4000"), IsOpen: true, Inode: 12, QuietFor: 5 * time.Second}, at}
	for what, test := range map[string]struct {
		change func(*sockets.Connection)
		took   time.Duration
		want   time.Duration
	}{
		"it is closed":                            {func(*sockets.Connection) {}, time.Second, at},
		"mysqld still has it":                     {func(c *sockets.Connection) { c.Inode = 12 }, 0, 0},
		"it is open":                              {func(c *sockets.Connection) { c.IsClosed, c.IsOpen = false, true }, 0, 0},
		"the primary closes it, too":              {func(c *sockets.Connection) { c.IsClosed = false }, 0, 0},
		"the kernel forgets its state":            {func(c *sockets.Connection) { c.KnowsState = false }, stopsWithin - 1, at - before.QuietFor},
		"it took long, and the kernel forgets it": {func(c *sockets.Connection) { c.KnowsState = false }, stopsWithin, 0},
		"it is another one, of that time":         {func(c *sockets.Connection) { c.Own = netip.MustParseAddrPort("10.0.0.2:4001") }, 0, 0},
	} {
		closed := sockets.Connection{Own: before.Own, IsClosed: true, KnowsState: true, QuietFor: time.Second}
		test.change(&closed)
		if heard, isKnown := before.heardUntil([]sockets.Connection{closed}, at+test.took); isKnown != (test.want > 0) || isKnown && heard != test.want {
			t.Errorf("%s: heard until %s, %t", what, heard, isKnown)
		}
	}
}

// TestAStoppedReceiverHearsNothing: until a receiver runs again, or mysqld has started again, with which one may have run.
func TestAStoppedReceiverHearsNothing(t *testing.T) {
	t.Parallel()
	stopped := stoppedReceiver{"one", time.Hour, replication.Received{Heartbeats: 7, Position: "4", RelayLogSpace: 900}}
	for what, test := range map[string]struct {
		start, io string
		got       replication.Received
		want      time.Duration
	}{
		"it is stopped":            {"one", "No", stopped.got, time.Hour},
		"the applier runs":         {"one", "No", replication.Received{Heartbeats: 7, Position: "4"}, time.Hour},
		"it has got a heartbeat":   {"one", "No", replication.Received{Heartbeats: 8, Position: "4"}, 0},
		"a receiver runs":          {"one", "Connecting", stopped.got, 0},
		"mysqld has started again": {"two", "No", stopped.got, 0},
	} {
		if got := stopped.since(test.start, replication.Channel{IO: test.io, Received: test.got}); got != test.want {
			t.Errorf("%s: since %s, want %s", what, got, test.want)
		}
	}
	a := &Agent{deaf: stopped, deafSince: time.Hour}
	a.forgetReceiver()
	if a.deaf != (stoppedReceiver{}) || a.deafSince != 0 {
		t.Errorf("another receiver starts: %+v, %s", a.deaf, a.deafSince)
	}
}

// TestOwnSocketsAreKnown: the agent's own connections to a primary. The kernel still has one that has ended, and maybe those of another
// process that had the same port before.
func TestOwnSocketsAreKnown(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	to := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // it listens on TCP
	dial := func() net.Conn {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		return connection
	}
	_ = dial().Close()
	defer dial().Close()
	channel := replication.Channel{IO: "Yes", KnowsReceived: true, SourceHost: "127.0.0.1", SourcePort: to.Port}
	all, err := sockets.To(to.AddrPort())
	if err != nil || len(all) < 2 {
		t.Fatalf("it has %+v (%v)", all, err)
	}
	if one, isKnown := onlyOpen(all, nil); !isKnown {
		t.Fatalf("it has %+v (%v)", all, err)
	} else if found, isKnown := onlyOpen(all, []uint32{one.Inode}); isKnown {
		t.Errorf("a connection of this process counts: %+v", found)
	}
	if found, isKnown := receiverIn(channel); isKnown {
		t.Errorf("the agent's own connection counts as mysqld's: %+v", found)
	}
}

// TestOthersThanBeforeBeginAgain: evidence that a member gave which is locked out now does not count.
func TestOthersThanBeforeBeginAgain(t *testing.T) {
	t.Parallel()
	before := receivers{start: "one", allowed: []string{"db-1", "db-2"}, since: time.Hour}
	for what, test := range map[string]struct {
		change func(before, next *receivers)
		want   bool
	}{
		"the same":                      {func(*receivers, *receivers) {}, true},
		"one more":                      {func(_, next *receivers) { next.allowed = []string{"db-1", "db-2", "db-3"} }, true},
		"one less":                      {func(_, next *receivers) { next.allowed = []string{"db-2"} }, false},
		"mysqld has started again":      {func(_, next *receivers) { next.start = "two" }, false},
		"the agent has started again":   {func(before, _ *receivers) { before.since = 0 }, false},
		"a change has failed meanwhile": {func(before, _ *receivers) { before.isUnsure = true }, false},
	} {
		was, next := before, before
		test.change(&was, &next)
		if got := was.within(next); got != test.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
