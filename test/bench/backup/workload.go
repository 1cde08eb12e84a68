package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	accounts = 10000
	clients  = 4
)

// measureClients has clients at work on the primary all the time, and counts their transactions in windows: without a backup, during one,
// and so on in turn, so that whatever else changes hits both.
func (b *bench) measureClients(ctx context.Context, m *measured) error {
	if b.options.rounds == 0 {
		return nil
	}
	db, err := b.open(ctx, source, source)
	if err != nil {
		return err
	}
	defer db.Close()
	err = execAll(ctx, db, []string{
		"CREATE TABLE bench.accounts (id INT PRIMARY KEY, balance INT NOT NULL, note CHAR(100) NOT NULL)",
		fmt.Sprintf("INSERT INTO bench.accounts WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT /*+ SET_VAR(cte_max_recursion_depth = 1000000) */ i, 0, 'an account' FROM n", accounts-1),
	})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	var count atomic.Int64
	var all sync.WaitGroup
	failures := make(chan error, clients)
	for range clients {
		all.Go(func() {
			if err := work(working, db, &count); err != nil && working.Err() == nil {
				failures <- err
			}
		})
	}
	err = b.windows(ctx, m, &count)
	stop()
	all.Wait()
	select {
	case failed := <-failures:
		return fmt.Errorf("a client's transaction failed: %w", failed)
	default:
		return err
	}
}

// windows counts in turn, and compares a backup with the windows before and after it.
func (b *bench) windows(ctx context.Context, m *measured, count *atomic.Int64) error {
	quiet := func() (float64, error) {
		return rate(count, func() error { return pause(ctx, b.options.window) })
	}
	before, err := quiet()
	if err != nil {
		return err
	}
	for round := range b.options.rounds {
		for _, way := range ways() {
			name := fmt.Sprintf("beside-clients-%s-%d", way.name, round)
			took, during, err := b.beside(ctx, count, name, way.line)
			if err != nil {
				return err
			}
			after, err := quiet()
			if err != nil {
				return err
			}
			way.add(m, 100*(1-during/((before+after)/2)), took.Seconds())
			before = after
		}
	}
	return nil
}

// way is how fast backups go beside clients.
type way struct {
	name, line string
	// add notes what one cost, in percent, and how long it took, in seconds.
	add func(m *measured, cost, seconds float64)
}

// ways are as a backup does by itself, and as fast as it can.
func ways() []way {
	return []way{
		{"gently", "deletionPolicy: Delete", func(m *measured, cost, seconds float64) {
			m.clientCost, m.besideClients = append(m.clientCost, cost), append(m.besideClients, seconds)
		}},
		{"fast", "deletionPolicy: Delete, bandwidthLimit: 100Gi", func(m *measured, cost, seconds float64) {
			m.clientCostFast, m.besideClientsFast = append(m.clientCostFast, cost), append(m.besideClientsFast, seconds)
		}},
	}
}

// beside takes a backup while clients are at work, and deletes it.
func (b *bench) beside(ctx context.Context, count *atomic.Int64, name, line string) (took time.Duration, during float64, err error) {
	during, err = rate(count, func() error {
		took, err = b.takeBackup(ctx, name, line)
		return err
	})
	if err == nil {
		_, err = b.kubectl.Run(ctx, "delete", "mysqlbackupinstance", name, "--namespace", b.namespace)
	}
	return took, during, err
}

// rate is how many transactions a second were counted while something was done.
func rate(count *atomic.Int64, do func() error) (float64, error) {
	began, before := time.Now(), count.Load()
	err := do()
	return float64(count.Load()-before) / time.Since(began).Seconds(), err
}

func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

// work moves money between accounts, four reads to a write, until the context ends.
func work(ctx context.Context, db *sql.DB, count *atomic.Int64) error {
	one, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer one.Close()
	for {
		for range 4 {
			var balance int
			if err := one.QueryRowContext(ctx, "SELECT balance FROM bench.accounts WHERE id = ?", rand.IntN(accounts)).Scan(&balance); err != nil {
				return err
			}
		}
		if _, err := one.ExecContext(ctx, "UPDATE bench.accounts SET balance = balance + 1 WHERE id = ?", rand.IntN(accounts)); err != nil {
			return err
		}
		count.Add(1)
	}
}
