package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// lookPause is the time between two looks at a member, and between two reads from a former primary.
	lookPause = 50 * time.Millisecond
	// spanPause is how far apart two times with two open members are at least, to count as two.
	spanPause = time.Second
)

// insideAddress is mysqld's within its Pod. Cuts of the network leave it alone.
const insideAddress = "127.0.0.1:3306"

// openInside connects to a member from within its Pod, as a client does that is cut off together with the member.
func (b *bench) openInside(pod string) (*sql.DB, error) {
	config := b.config(insideAddress)
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		place, err := networkOf(pod, supervisor.Program)
		if err != nil {
			return nil, err
		}
		defer place.close()
		return place.dial(ctx, network, address)
	}
	return openDB(config)
}

// dial connects within the network of the Pod: a socket stays in the network in which it was made.
func (p place) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	dialled := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and does no other work in this network
		if err := unix.Setns(int(p.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			dialled <- result{err: fmt.Errorf("enter the network of Pod %s: %w", p.pod, err)}
			return
		}
		dialer := net.Dialer{Timeout: dialLimit}
		conn, err := dialer.DialContext(ctx, network, address)
		dialled <- result{conn, err}
	}()
	one := <-dialled
	return one.conn, one.err
}

// watcher looks all the time whether clients could write on a member.
type watcher struct {
	session
	loop
	notes[look]
}

func startWatcher(ctx context.Context, db *sql.DB, member string) *watcher {
	w := &watcher{session: session{db: db}}
	w.loop = startLoop(ctx, lookPause, func(ctx context.Context) {
		one := look{member: member}
		var isReadOnly, isSuperReadOnly bool
		sent, err := w.use(ctx, bounded(func(ctx context.Context, conn *sql.Conn) error {
			return conn.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.super_read_only").Scan(&isReadOnly, &isSuperReadOnly)
		}))
		if err == nil {
			one.session, one.began, one.ended, one.isOpen = w.number, sent, time.Now(), !isReadOnly && !isSuperReadOnly
			w.note(one)
		}
	})
	return w
}

func (w *watcher) end() {
	w.loop.end()
	w.disconnect()
	_ = w.db.Close() // never fails: it has no idle connections
}

// faithful is a client that stays with the primary of the round's beginning, and reads on one connection for as long as it gets answers.
type faithful struct {
	session
	loop
	notes[tip]
}

func startFaithful(ctx context.Context, db *sql.DB) *faithful {
	f := &faithful{session: session{db: db}}
	f.loop = startLoop(ctx, lookPause, func(ctx context.Context) {
		if f.number > 0 && f.conn == nil {
			return // it has lost its connection, and makes no other
		}
		var one tip
		// Without a limit: a primary that was frozen may answer later.
		sent, err := f.use(ctx, func(ctx context.Context, conn *sql.Conn) error {
			return conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM "+table).Scan(&one.id)
		})
		if err == nil {
			one.began, one.ended = sent, time.Now()
			f.note(one)
		}
	})
	return f
}

func (f *faithful) end() {
	f.loop.end()
	f.disconnect()
	_ = f.db.Close() // never fails: it has no idle connections
}
