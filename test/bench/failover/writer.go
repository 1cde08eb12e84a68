package main

import (
	"context"
	"database/sql"
	"time"
)

// thinking is the client's pause between two writes.
const thinking = 10 * time.Millisecond

// writer is a client that inserts numbered rows, one after the other, and notes each attempt.
type writer struct {
	session
	loop
	notes[attempt]
	id int
}

func startWriter(ctx context.Context, db *sql.DB) *writer {
	w := &writer{session: session{db: db}}
	w.loop = startLoop(ctx, thinking, func(ctx context.Context) {
		w.id++
		// The last one ends, too: a row that is committed after its client has left would come while the bench counts.
		w.note(w.write(context.WithoutCancel(ctx), w.id))
	})
	return w
}

func (w *writer) write(ctx context.Context, id int) attempt {
	one := attempt{id: id, began: time.Now()}
	sent, err := w.use(ctx, bounded(func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?, 'written by a benchmark')", id)
		return err
	}))
	if !sent.IsZero() {
		one.began = sent
	}
	one.ended, one.isAcknowledged = time.Now(), err == nil
	return one
}

func (w *writer) end() {
	w.loop.end()
	w.disconnect()
}
