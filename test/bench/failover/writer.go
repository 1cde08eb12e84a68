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

// startWriter starts one whose rows have numbers above first.
func startWriter(ctx context.Context, db *sql.DB, first int, pause time.Duration) *writer {
	w := &writer{session: session{db: db}, id: first}
	w.loop = startLoop(ctx, pause, func(ctx context.Context) {
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

// mostRows is more rows than one client writes.
const mostRows = 10_000_000

// load are clients that write without a pause, beside the one whose time without writes counts.
type load []*writer

func startLoad(ctx context.Context, db *sql.DB, clients int) load {
	all := make(load, 0, clients)
	for number := range clients {
		all = append(all, startWriter(ctx, db, (number+1)*mostRows, 0))
	}
	return all
}

// end returns what they have written.
func (l load) end() []attempt {
	var all []attempt
	for _, one := range l {
		one.end()
		all = append(all, one.seen()...)
	}
	return all
}
