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
	// thinking is the client's pause between two writes.
	thinking = 10 * time.Millisecond
)

// writer is a client that inserts numbered rows, one after the other, and notes each attempt. It keeps its connection until an error.
type writer struct {
	db   *sql.DB
	stop context.CancelFunc
	done chan struct{}
	conn *sql.Conn

	mu       sync.Mutex
	attempts []attempt
}

// startWriter starts a client. The database must keep no idle connections, so that a closed one is not used again.
func startWriter(ctx context.Context, db *sql.DB) *writer {
	ctx, stop := context.WithCancel(ctx)
	w := &writer{db: db, stop: stop, done: make(chan struct{})}
	go w.run(ctx)
	return w
}

func (w *writer) run(ctx context.Context) {
	defer close(w.done)
	defer w.disconnect()
	for id := 1; ctx.Err() == nil; id++ {
		// The last one ends, too: a row that is committed after its client has left would come while the bench counts.
		w.note(w.write(context.WithoutCancel(ctx), id))
		select {
		case <-ctx.Done():
		case <-time.After(thinking):
		}
	}
}

func (w *writer) write(ctx context.Context, id int) attempt {
	one := attempt{id: id, began: time.Now()}
	err := w.connect(ctx)
	if err == nil {
		one.began = time.Now()
		bounded, cancel := context.WithTimeout(ctx, statementLimit)
		_, err = w.conn.ExecContext(bounded, "INSERT INTO "+table+" VALUES (?, 'written by a benchmark')", id)
		cancel()
	}
	one.ended, one.isAcknowledged = time.Now(), err == nil
	if err != nil {
		w.disconnect()
	}
	return one
}

// connect makes a connection if there is none.
func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := w.db.Conn(ctx)
	if err == nil {
		w.conn = conn
	}
	return err
}

func (w *writer) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close() // it may be broken already
		w.conn = nil
	}
}

func (w *writer) note(one attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts = append(w.attempts, one)
}

// seen returns the attempts so far.
func (w *writer) seen() []attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.attempts)
}

func (w *writer) end() {
	w.stop()
	<-w.done
}
