package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

const (
	// rowSize is how much of the pool and the volume a row takes, in bytes: a page has about 14 rows.
	rowSize = 1190
	// workers read and write; the other connections wait.
	workers = 8
	// startLimit bounds a start, loadLimit the loading of data.
	startLimit, loadLimit = 3 * time.Minute, 20 * time.Minute
	// purgeEvery is how often binary logs are purged that no member needs, as the agent does where the volume has little room.
	purgeEvery = 2 * time.Second
	// stuckAfter is how long transactions may take to end after the window. Those that wait for room on a full volume do not end.
	stuckAfter = 30 * time.Second
)

// trial is what came of one mysqld.
type trial struct {
	perSecond          float64
	connections, kills int
	peak               int64
	died               bool
}

func (t trial) end() string {
	if t.died {
		return "did not survive, "
	}
	return ""
}

// try has clients read and write, with every connection open that mysqld allows.
func try(ctx context.Context, o options, at place, data int64, settings sizing.Settings) (found trial, err error) {
	s, err := newServer(ctx, o.rootfs, at, settings)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, s.remove(context.WithoutCancel(ctx))) }()
	if err := s.start(ctx); err != nil {
		return found, err
	}
	watching, stop := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() { peak <- s.watch(watching) }()
	found.connections, found.perSecond, err = s.serve(ctx, o.window, data)
	stop()
	found.peak = <-peak
	found.died = s.anonymous() == 0
	kills, unread := s.kills()
	found.kills = kills
	if found.died && kills > 0 {
		err = nil // that is what the figure says
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.messages())
	}
	return found, errors.Join(err, unread)
}

// watch returns the most anonymous memory that mysqld ever had.
func (s *server) watch(ctx context.Context) int64 {
	most := int64(0)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		most = max(most, s.anonymous())
		select {
		case <-ctx.Done():
			return most
		case <-ticker.C:
		}
	}
}

func (s *server) serve(ctx context.Context, window time.Duration, data int64) (connections int, perSecond float64, err error) {
	config := driver.NewConfig()
	config.User, config.Net, config.Addr, config.Logger = "root", "unix", s.socket(), &driver.NopLogger{}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return 0, 0, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := s.answers(ctx, db); err != nil {
		return 0, 0, err
	}
	var pool string
	var allowed int
	if err := db.QueryRowContext(ctx, "SELECT @@innodb_buffer_pool_size, @@max_connections").Scan(&pool, &allowed); err != nil {
		return 0, 0, err
	}
	if asked := s.settings[poolName]; asked != "" && asked != pool {
		return 0, 0, fmt.Errorf("mysqld made a pool of %s bytes of the %s that it was asked for", pool, asked)
	}
	rows, err := load(ctx, db, data)
	if err != nil {
		return 0, 0, fmt.Errorf("load data: %w", err)
	}
	idle, err := occupy(ctx, db, allowed-workers-1) // one purges
	defer func() {
		for _, one := range idle {
			_ = one.Close() // mysqld is about to be killed
		}
	}()
	if err != nil {
		return len(idle), 0, err
	}
	purging, stop := context.WithCancel(ctx)
	defer stop()
	go purge(purging, db)
	defer time.AfterFunc(window+stuckAfter, func() { _ = s.process.Process.Kill() }).Stop() // it may have ended
	perSecond, err = work(ctx, db, rows, window)
	return len(idle) + workers + 1, perSecond, err
}

// answers waits until mysqld does.
func (s *server) answers(ctx context.Context, db *sql.DB) error {
	bounded, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := db.PingContext(bounded)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("mysqld ended: %s", s.process.ProcessState)
		case <-bounded.Done():
			return fmt.Errorf("mysqld does not answer within %s: %w", startLimit, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// load makes a table of so many bytes, which the binary log has not.
func load(ctx context.Context, all *sql.DB, data int64) (int64, error) {
	bounded, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	db, err := all.Conn(bounded)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	for _, statement := range []string{
		"SET sql_log_bin = OFF",
		"CREATE DATABASE bench", "CREATE TABLE bench.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, counted INT NOT NULL DEFAULT 0, note VARCHAR(1024) NOT NULL)",
		"INSERT INTO bench.orders (note) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT REPEAT(SHA2(RAND(), 512), 8) FROM n",
	} {
		if _, err := db.ExecContext(bounded, statement); err != nil {
			return 0, err
		}
	}
	rows := int64(1000)
	for rows*rowSize < data {
		count := min(rows, 5000, data/rowSize-rows+1)
		if _, err := db.ExecContext(bounded, "INSERT INTO bench.orders (note) SELECT REPEAT(SHA2(RAND(), 512), 8) FROM bench.orders LIMIT ?", count); err != nil {
			return 0, err
		}
		rows += count
	}
	_, err = db.ExecContext(bounded, "SET sql_log_bin = ON")
	return rows, err
}

// occupy opens connections, each of which has run a query.
func occupy(ctx context.Context, db *sql.DB, count int) ([]*sql.Conn, error) {
	open := make([]*sql.Conn, 0, max(0, count))
	for range count {
		one, err := db.Conn(ctx)
		if err != nil {
			return open, fmt.Errorf("open connection %d: %w", len(open)+1, err)
		}
		open = append(open, one)
		if _, err := one.ExecContext(ctx, "DO (SELECT COUNT(*) FROM (SELECT note FROM bench.orders LIMIT 100) AS few)"); err != nil {
			return open, err
		}
	}
	return open, nil
}

// purge purges binary logs. Those that are in use stay.
func purge(ctx context.Context, db *sql.DB) {
	ticker := time.NewTicker(purgeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, _ = db.ExecContext(ctx, "PURGE BINARY LOGS BEFORE NOW()") // the clients notice what is wrong with mysqld
		}
	}
}

// work counts transactions: each reads ten rows and changes one.
func work(ctx context.Context, db *sql.DB, rows int64, window time.Duration) (float64, error) {
	bounded, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	var done atomic.Int64
	failures := make(chan error, workers)
	var running sync.WaitGroup
	began := time.Now()
	for range workers {
		running.Go(func() {
			for bounded.Err() == nil {
				if err := transaction(bounded, db, rows); err != nil {
					if bounded.Err() == nil {
						failures <- err
					}
					return
				}
				done.Add(1)
			}
		})
	}
	running.Wait()
	close(failures)
	return float64(done.Load()) / time.Since(began).Seconds(), <-failures
}

func transaction(ctx context.Context, db *sql.DB, rows int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to take back
	for range 10 {
		var counted int
		if err := tx.QueryRowContext(ctx, "SELECT counted FROM bench.orders WHERE id = ?", some(rows)).Scan(&counted); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "UPDATE bench.orders SET counted = counted + 1 WHERE id = ?", some(rows)); err != nil {
		return err
	}
	return tx.Commit()
}

func some(rows int64) int64 {
	return 1 + rand.Int64N(rows)
}
