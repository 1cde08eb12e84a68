package main

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"
)

const (
	// statementLimit bounds a statement of the client, and connectLimit a new connection with its handshake.
	statementLimit = time.Second
	connectLimit   = time.Second
	// dialLimit bounds the wait for TCP's first answer: often, there is none while a Service has no endpoint. The bench is only that exact.
	dialLimit = 250 * time.Millisecond
)

// session is a client's connection, which it keeps until an error. The database must keep no idle connections, so that a closed one is not
// used again.
type session struct {
	db   *sql.DB
	conn *sql.Conn
	// number counts the connections.
	number int
}

// use sends a statement, on a new connection if there is none. It returns when the statement was sent, the zero time if it was not.
func (s *session) use(ctx context.Context, do func(context.Context, *sql.Conn) error) (sent time.Time, err error) {
	if err := s.connect(ctx); err != nil {
		return sent, err
	}
	sent = time.Now()
	err = do(ctx, s.conn)
	if err != nil {
		s.disconnect()
	}
	return sent, err
}

// connect makes a connection if there is none.
func (s *session) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := s.db.Conn(ctx)
	if err == nil {
		s.conn = conn
		s.number++
	}
	return err
}

func (s *session) disconnect() {
	if s.conn != nil {
		_ = s.conn.Close() // it may be broken already
		s.conn = nil
	}
}

// bounded limits the time of a statement.
func bounded(do func(context.Context, *sql.Conn) error) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, conn *sql.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, statementLimit)
		defer cancel()
		return do(ctx, conn)
	}
}

// notes are what a client noted. Others may read them meanwhile.
type notes[T any] struct {
	mu  sync.Mutex
	all []T
}

func (n *notes[T]) note(one T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, one)
}

// seen returns the notes so far.
func (n *notes[T]) seen() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// loop is what a client does again and again.
type loop struct {
	stop context.CancelFunc
	done chan struct{}
}

// startLoop does something with pauses, until it is ended.
func startLoop(ctx context.Context, pause time.Duration, do func(context.Context)) loop {
	ctx, stop := context.WithCancel(ctx)
	l := loop{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for ctx.Err() == nil {
			do(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return l
}

// end returns when the client has finished what it was doing.
func (l loop) end() {
	l.stop()
	<-l.done
}
