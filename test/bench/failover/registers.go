package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/failover/history"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	registerTable = database + ".registers"
	// registerCount is how many registers a round has, registerClients how many clients use them.
	registerCount   = 5
	registerClients = 3
	// registerPause is the pause of such a client. With it, the check of a round takes less than a second.
	registerPause = 20 * time.Millisecond
	// readerPause is the pause of a reader.
	readerPause = 20 * time.Millisecond
)

// registers are those of one round. Each round has new ones, so that a late write of an earlier round changes none of them.
type registers struct {
	first int
	// start is the moment from which the times of operations count.
	start time.Time
	// last is the last value that a client has written.
	last atomic.Int64
}

// makeRegisters inserts the registers of a round.
func makeRegisters(ctx context.Context, db *sql.DB, number int) (*registers, error) {
	r := &registers{first: number * registerCount, start: time.Now()}
	rows := make([]string, registerCount)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, 0)", r.first+i)
	}
	// A node may still lead a new connection to the former primary, which refuses it. The rows may be there after an error, too.
	err := kube.Wait(ctx, fmt.Sprintf("the registers of round %d to be inserted", number), answerLimit, func(ctx context.Context) (bool, string) {
		_, err := db.ExecContext(ctx, "INSERT IGNORE INTO "+registerTable+" VALUES "+strings.Join(rows, ", "))
		return err == nil, fmt.Sprint(err)
	})
	return r, err
}

// value reads a register.
func (r *registers) value(ctx context.Context, conn *sql.Conn, register int) (int64, error) {
	var value int64
	err := conn.QueryRowContext(ctx, "SELECT value FROM "+registerTable+" WHERE id = ?", r.first+register).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return history.Absent, nil
	}
	return value, err
}

// registerClient reads and writes registers through the write Service.
type registerClient struct {
	session
	loop
	notes[history.Operation]
	registers *registers
	number    int
	choice    *rand.Rand
	// server is the member that the connection of this number leads to.
	server   string
	serverOf int
}

func startRegisterClient(ctx context.Context, db *sql.DB, of *registers, number int, seed uint64) *registerClient {
	c := &registerClient{session: session{db: db}, registers: of, number: number, choice: rand.New(rand.NewPCG(seed, uint64(number)))}
	c.loop = startLoop(ctx, registerPause, func(ctx context.Context) {
		ctx = context.WithoutCancel(ctx) // the last one ends, too
		if c.choice.IntN(2) == 0 {
			c.write(ctx, c.choice.IntN(registerCount))
		} else {
			c.read(ctx, c.choice.IntN(registerCount))
		}
	})
	return c
}

// write notes a write, unless it certainly did not take place.
func (c *registerClient) write(ctx context.Context, register int) {
	one := history.Operation{Client: c.number, Register: register, IsWrite: true, Value: c.registers.last.Add(1)}
	sent, err := c.use(ctx, bounded(func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "UPDATE "+registerTable+" SET value = ? WHERE id = ?", one.Value, c.registers.first+register)
		return err
	}))
	ended := time.Now()
	one.Server = c.connectedTo(ctx)
	if !sent.IsZero() && !history.Refused(err) {
		one.IsOpen = err != nil
		c.note(c.registers.timed(one, sent, ended))
	}
}

// read notes a read that got an answer.
func (c *registerClient) read(ctx context.Context, register int) {
	one := history.Operation{Client: c.number, Register: register}
	sent, err := c.use(ctx, bounded(func(ctx context.Context, conn *sql.Conn) (err error) {
		one.Value, err = c.registers.value(ctx, conn, register)
		return err
	}))
	ended := time.Now()
	if err == nil {
		one.Server = c.connectedTo(ctx)
		c.note(c.registers.timed(one, sent, ended))
	}
}

// connectedTo names the member that the client is connected to; empty if it is not, or gets no answer.
func (c *registerClient) connectedTo(ctx context.Context) string {
	if c.conn == nil {
		return ""
	}
	if c.serverOf != c.session.number {
		c.server, c.serverOf = "", c.session.number
		_ = bounded(func(ctx context.Context, conn *sql.Conn) error { // without an answer, it is not known
			return conn.QueryRowContext(ctx, "SELECT @@hostname").Scan(&c.server)
		})(ctx, c.conn)
	}
	return c.server
}

// timed adds the times of an operation.
func (r *registers) timed(one history.Operation, sent, ended time.Time) history.Operation {
	one.Began, one.Ended = sent.Sub(r.start), ended.Sub(r.start)
	return one
}

func (c *registerClient) end() {
	c.loop.end()
	c.disconnect()
}

// reader reads registers through the Service for reads. One reader keeps its connection until an error, another makes one for each read.
type reader struct {
	session
	loop
	registers *registers
	// attempts are all reads, found those that got an answer.
	attempts notes[attempt]
	found    notes[history.Operation]
	count    int
}

func startReader(ctx context.Context, db *sql.DB, of *registers, keepsConnection bool) *reader {
	r := &reader{session: session{db: db}, registers: of}
	r.loop = startLoop(ctx, readerPause, func(ctx context.Context) {
		r.read(context.WithoutCancel(ctx))
		if !keepsConnection {
			r.disconnect()
		}
	})
	return r
}

func (r *reader) read(ctx context.Context) {
	r.count++
	one := history.Operation{Register: r.count % registerCount}
	tried := attempt{id: r.count, began: time.Now()}
	sent, err := r.use(ctx, bounded(func(ctx context.Context, conn *sql.Conn) (err error) {
		one.Value, err = r.registers.value(ctx, conn, one.Register)
		return err
	}))
	tried.ended, tried.isAcknowledged = time.Now(), err == nil
	r.attempts.note(tried)
	if err == nil {
		r.found.note(r.registers.timed(one, sent, tried.ended))
	}
}

func (r *reader) end() {
	r.loop.end()
	r.disconnect()
}
