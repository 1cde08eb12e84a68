package listen

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// connections is a listener with a limited number of connections. It always accepts a new connection: if strangers have all their
// connections, it closes one of them, see victim. So no client keeps others out by holding connections open.
type connections struct {
	net.Listener
	strangers, trusted int
	// slots limits the connections that the server has not closed yet, including those that have ended.
	slots chan struct{}

	mu sync.Mutex
	// new and known are the open connections of strangers and of trusted clients, the oldest first.
	new, known []*connection
	closed     chan struct{}
	closing    sync.Once
}

func newPlaces(listener net.Listener, strangers, trusted int) *connections {
	return &connections{
		Listener: listener, strangers: strangers, trusted: trusted, closed: make(chan struct{}),
		slots: make(chan struct{}, 2*strangers+trusted),
	}
}

// connection is the connection of one client.
type connection struct {
	net.Conn
	places *connections
	// address is the client's address without the port.
	address string
	// busy is true while the server answers a request.
	busy    bool
	closing sync.Once
	// header is how many bytes of the next request's header may still come. It is used only while the server answers no request.
	header    atomic.Int64
	answering atomic.Bool
}

// longHeaderError ends a connection at once. Go's server would answer a long header, and keep the connection open for half a second. It
// closes connections that time out without an answer (net/http, isCommonNetReadError).
type longHeaderError struct{}

func (longHeaderError) Error() string   { return "the header is too long" }
func (longHeaderError) Timeout() bool   { return true }
func (longHeaderError) Temporary() bool { return false }

// Read reads what the client sends, and at most MaxHeader bytes of a header.
func (c *connection) Read(into []byte) (int, error) {
	if c.answering.Load() {
		return c.Conn.Read(into)
	}
	left := c.header.Load()
	if left <= 0 {
		return 0, longHeaderError{}
	}
	read, err := c.Conn.Read(into[:min(int64(len(into)), left)])
	c.header.Add(-int64(read))
	return read, err
}

// answers records whether the server is answering a request. After an answer, the next header may come.
func (c *connection) answers(busy bool) {
	c.busy = busy
	c.header.Store(MaxHeader)
	c.answering.Store(busy)
}

// Accept waits for a connection, and closes another one if there are too many.
func (p *connections) Accept() (net.Conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-p.closed:
		return nil, net.ErrClosed
	}
	accepted, err := p.Listener.Accept()
	if err != nil {
		<-p.slots
		return nil, err
	}
	fresh := &connection{Conn: accepted, places: p, address: host(accepted.RemoteAddr())}
	fresh.answers(false)
	p.mu.Lock()
	p.new = append(p.new, fresh)
	var surplus *connection
	if len(p.new) > p.strangers {
		surplus = connectionToClose(p.new)
		p.forget(surplus)
	}
	p.mu.Unlock()
	if surplus != nil {
		_ = surplus.Conn.Close() // the server notices that, and calls Close
	}
	return fresh, nil
}

// Close stops accepting.
func (p *connections) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

// Close closes the connection and releases its slot.
func (c *connection) Close() error {
	c.closing.Do(func() {
		c.places.mu.Lock()
		c.places.forget(c)
		c.places.mu.Unlock()
		<-c.places.slots
	})
	return c.Conn.Close()
}

// endIdle closes the connections on which the server is answering no request.
func (p *connections) endIdle() {
	p.mu.Lock()
	open := slices.Concat(p.new, p.known)
	open = slices.DeleteFunc(open, func(one *connection) bool { return one.busy })
	p.mu.Unlock()
	for _, one := range open {
		_ = one.Conn.Close()
	}
}

// forget removes a connection from the lists; the caller holds the lock.
func (p *connections) forget(c *connection) {
	isIt := func(one *connection) bool { return one == c }
	p.new, p.known = slices.DeleteFunc(p.new, isIt), slices.DeleteFunc(p.known, isIt)
}

// updateState records the state that the server reports for a connection. The first request of a trusted client moves its connection to the
// reserved ones.
func (p *connections) updateState(served net.Conn, state http.ConnState, trusts func(*tls.ConnectionState) bool) {
	own, security := unwrap(served)
	if own == nil || (state != http.StateActive && state != http.StateIdle) {
		return
	}
	trusted := state == http.StateActive && trusts(security)
	p.mu.Lock()
	own.answers(state == http.StateActive)
	var surplus *connection
	if at := slices.Index(p.new, own); trusted && at >= 0 {
		p.new, p.known = slices.Delete(p.new, at, at+1), append(p.known, own)
		if len(p.known) > p.trusted {
			surplus = connectionToClose(p.known)
			p.forget(surplus)
		}
	}
	p.mu.Unlock()
	if surplus != nil {
		_ = surplus.Conn.Close()
	}
}

func unwrap(served net.Conn) (*connection, *tls.ConnectionState) {
	if secure, ok := served.(*tls.Conn); ok {
		state := secure.ConnectionState()
		own, _ := secure.NetConn().(*connection)
		return own, &state
	}
	own, _ := served.(*connection)
	return own, nil
}

// connectionToClose returns the connection to close when there are too many; the last one is the newest, and stays. It belongs to the
// address with the most connections, so that no client can drive out another. Of these it is the oldest that is idle, or else the oldest.
func connectionToClose(open []*connection) *connection {
	counts, most := map[string]int{}, 0
	for _, one := range open {
		counts[one.address]++
		most = max(most, counts[one.address])
	}
	var oldest *connection
	for _, one := range open[:len(open)-1] {
		if counts[one.address] < most {
			continue
		}
		if !one.busy {
			return one
		}
		if oldest == nil {
			oldest = one
		}
	}
	return oldest
}

// host returns an address without its port.
func host(address net.Addr) string {
	name, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return name
}
