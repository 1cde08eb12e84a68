package listen

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// places is a listener with a bounded number of connections. A new connection always gets a place: when the places of strangers are taken,
// one of them ends, see victim. So nobody keeps others out by holding connections open.
type places struct {
	net.Listener
	strangers, trusted int
	// slots bounds the connections that the server has not let go of yet, ended ones included.
	slots chan struct{}

	mu sync.Mutex
	// new and known are the open connections of strangers and of trusted clients, the oldest first.
	new, known []*connection
	closed     chan struct{}
	closing    sync.Once
}

func newPlaces(listener net.Listener, strangers, trusted int) *places {
	return &places{
		Listener: listener, strangers: strangers, trusted: trusted, closed: make(chan struct{}),
		slots: make(chan struct{}, 2*strangers+trusted),
	}
}

// connection is one client's.
type connection struct {
	net.Conn
	places *places
	// address is the client's, without the port.
	address string
	// busy is set while a request is being answered.
	busy    bool
	closing sync.Once
	// header is how much of the next request's header may still come, in bytes. It counts only while no request is being answered.
	header    atomic.Int64
	answering atomic.Bool
}

// longHeaderError ends a connection at once. Go's server would answer a long header, and keep the connection for half a second more.
// Without an answer it ends those that time out (net/http, isCommonNetReadError).
type longHeaderError struct{}

func (longHeaderError) Error() string   { return "the header is too long" }
func (longHeaderError) Timeout() bool   { return true }
func (longHeaderError) Temporary() bool { return false }

// Read reads what the client sends, and no more of a header than MaxHeader.
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

// answers notes whether a request is being answered. When that is done, the next header may come.
func (c *connection) answers(busy bool) {
	c.busy = busy
	c.header.Store(MaxHeader)
	c.answering.Store(busy)
}

// Accept waits for a connection, and makes room for it.
func (p *places) Accept() (net.Conn, error) {
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
		surplus = victim(p.new)
		p.forget(surplus)
	}
	p.mu.Unlock()
	if surplus != nil {
		_ = surplus.Conn.Close() // the server notices, and lets go of it
	}
	return fresh, nil
}

// Close stops accepting.
func (p *places) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

// Close ends the connection and gives its place back.
func (c *connection) Close() error {
	c.closing.Do(func() {
		c.places.mu.Lock()
		c.places.forget(c)
		c.places.mu.Unlock()
		<-c.places.slots
	})
	return c.Conn.Close()
}

// endIdle ends the connections on which no request is being answered.
func (p *places) endIdle() {
	p.mu.Lock()
	open := slices.Concat(p.new, p.known)
	open = slices.DeleteFunc(open, func(one *connection) bool { return one.busy })
	p.mu.Unlock()
	for _, one := range open {
		_ = one.Conn.Close()
	}
}

// forget takes a connection off the lists; the caller holds the lock.
func (p *places) forget(c *connection) {
	isIt := func(one *connection) bool { return one == c }
	p.new, p.known = slices.DeleteFunc(p.new, isIt), slices.DeleteFunc(p.known, isIt)
}

// follow notes what the server does with a connection. The first request of a trusted client gives it a reserved place.
func (p *places) follow(served net.Conn, state http.ConnState, trusts func(*tls.ConnectionState) bool) {
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
			surplus = victim(p.known)
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

// victim is the connection that has to go when there are too many; the last is the newest, and stays. It is one of the address that has the
// most, so that one client cannot drive out another: the oldest that is not being answered, or else the oldest.
func victim(open []*connection) *connection {
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

// host is an address without its port.
func host(address net.Addr) string {
	name, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return name
}
