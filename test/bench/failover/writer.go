package main

import (
	"context"
	"database/sql"
	"time"
)

// thinking is the client's pause between two writes.
const thinking = 10 * time.Millisecond

// writer is a client that inserts numbered rows, one after the other, and notes the last row of each transaction.
type writer struct {
	session
	loop
	notes[attempt]
	id, rows int
}

// startWriter starts one whose rows have numbers above first, and whose transactions have so many rows each.
func startWriter(ctx context.Context, db *sql.DB, first, rows int, pause time.Duration) *writer {
	w := &writer{session: session{db: db}, id: first, rows: rows}
	w.loop = startLoop(ctx, pause, func(ctx context.Context) {
		// The last one ends, too: a row that is committed after its client has left would come while the bench counts.
		w.note(w.write(context.WithoutCancel(ctx)))
	})
	return w
}

func (w *writer) write(ctx context.Context) attempt {
	one := attempt{began: time.Now()}
	sent, err := w.use(ctx, w.transact)
	one.id = w.id
	if !sent.IsZero() {
		one.began = sent
	}
	one.ended, one.isAcknowledged = time.Now(), err == nil
	return one
}

// transact inserts the rows of a transaction. A number is not used again.
func (w *writer) transact(ctx context.Context, conn *sql.Conn) error {
	if w.rows > 1 {
		if err := execute(ctx, conn, "BEGIN"); err != nil {
			return err
		}
	}
	for range w.rows {
		w.id++
		if err := execute(ctx, conn, "INSERT INTO "+table+" VALUES (?, 'written by a benchmark')", w.id); err != nil {
			return err
		}
	}
	if w.rows > 1 {
		return execute(ctx, conn, "COMMIT")
	}
	return nil
}

// execute runs a statement in limited time.
func execute(ctx context.Context, conn *sql.Conn, statement string, arguments ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	_, err := conn.ExecContext(ctx, statement, arguments...)
	return err
}

func (w *writer) end() {
	w.loop.end()
	w.disconnect()
}

// mostRows is more rows than one client writes.
const mostRows = 10_000_000

// load are clients that write without a pause, beside the one whose time without writes counts.
type load []*writer

func startLoad(ctx context.Context, db *sql.DB, clients, rows int) load {
	all := make(load, 0, clients)
	for number := range clients {
		all = append(all, startWriter(ctx, db, (number+1)*mostRows, rows, 0))
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
