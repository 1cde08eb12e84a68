package bare

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// thinking is the client's pause between two writes, and writeLimit bounds one.
	thinking   = 10 * time.Millisecond
	writeLimit = time.Second
	// calm is for how long the client writes before each kill.
	calm = 2 * time.Second
	// openLimit is for how long a client may wait for its first write after a kill.
	openLimit = time.Minute
)

// Failovers kills the source so many times while a client writes, and makes a replica that has everything the next one, as fast as MySQL
// can. It returns for how long the client got no write acknowledged each time. A lost row is an error.
func (g *Group) Failovers(ctx context.Context, rounds int) ([]time.Duration, error) {
	if err := g.Acks(ctx, 1, 10_000); err != nil {
		return nil, err
	}
	c := &client{}
	c.to.Store(g.Source)
	running, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { c.run(running) })
	gaps, err := g.failovers(ctx, c, rounds)
	stop()
	wait.Wait()
	return gaps, errors.Join(err, g.hasAll(ctx, c.acknowledged()))
}

func (g *Group) failovers(ctx context.Context, c *client, rounds int) ([]time.Duration, error) {
	gaps := make([]time.Duration, 0, rounds)
	for range rounds {
		select {
		case <-ctx.Done():
			return gaps, ctx.Err()
		case <-time.After(calm):
		}
		former := g.Source
		if err := former.Kill(); err != nil {
			return gaps, err
		}
		count := len(c.acknowledged())
		if err := g.promote(ctx); err != nil {
			return gaps, err
		}
		c.to.Store(g.Source)
		gap, err := c.gapAfter(ctx, count)
		if err != nil {
			return gaps, err
		}
		gaps = append(gaps, gap)
		if err := g.rejoin(ctx, former); err != nil {
			return gaps, fmt.Errorf("make the former source a replica: %w", err)
		}
	}
	return gaps, nil
}

// promote makes a replica that has received all that the other one has the source.
func (g *Group) promote(ctx context.Context) error {
	has := make([]string, len(g.Replicas))
	all, asking := errgroup.WithContext(ctx)
	for i, replica := range g.Replicas {
		all.Go(func() (err error) {
			if err := replica.Run(asking, "STOP REPLICA IO_THREAD"); err != nil {
				return err
			}
			const received = "SELECT CONCAT(@@GLOBAL.gtid_executed, ',', COALESCE((SELECT received_transaction_set FROM performance_schema.replication_connection_status WHERE channel_name = ''), ''))"
			has[i], err = replica.Value(asking, received)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	next, other := g.Replicas[0], g.Replicas[1]
	isAhead := 0
	if err := next.DB.QueryRowContext(ctx, "SELECT GTID_SUBSET(?, ?)", has[0], has[1]).Scan(&isAhead); err != nil {
		return err
	}
	if isAhead == 1 {
		next, other, has[0] = other, next, has[1]
	}
	former := g.Source
	g.Source, g.Replicas = next, []*Server{other, former}
	all, acting := errgroup.WithContext(ctx)
	all.Go(func() error {
		if err := next.applied(acting, has[0], stepLimit); err != nil {
			return err
		}
		return next.Run(acting, append([]string{"STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL rpl_semi_sync_replica_enabled = OFF"}, lead(1)...)...)
	})
	all.Go(func() error {
		// CHANGE REPLICATION SOURCE keeps the relay log while the applier runs, and then refuses SOURCE_AUTO_POSITION, which is on already.
		turn := fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d", next.port())
		return other.Run(acting, turn, "START REPLICA IO_THREAD")
	})
	return all.Wait()
}

// rejoin makes a former source a replica. If it has more than the source, a copy replaces its data.
func (g *Group) rejoin(ctx context.Context, former *Server) error {
	if err := former.Start(ctx); err != nil {
		return err
	}
	has, err := former.Value(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return err
	}
	isSubset := 0
	if err := g.Source.DB.QueryRowContext(ctx, "SELECT GTID_SUBSET(?, @@GLOBAL.gtid_executed)", has).Scan(&isSubset); err != nil {
		return err
	}
	if isSubset == 0 {
		if err := g.copyTo(ctx, former); err != nil {
			return err
		}
	}
	if err := former.Run(ctx, g.follow()...); err != nil {
		return err
	}
	return g.Same(ctx)
}

// copyTo replaces a server's data with the source's. It ends mysqld, and starts it with the copy.
func (g *Group) copyTo(ctx context.Context, server *Server) error {
	donor := fmt.Sprintf("127.0.0.1:%d", g.Source.port())
	err := server.Run(ctx, "SET GLOBAL super_read_only = OFF", "SET GLOBAL clone_valid_donor_list = '"+donor+"'",
		fmt.Sprintf("CLONE INSTANCE FROM '%s'@'127.0.0.1':%d IDENTIFIED BY '%s'", account, g.Source.port(), password))
	select {
	case <-server.ended: // nothing starts it again, so the statement ends with an error
	case <-time.After(stepLimit):
		return fmt.Errorf("mysqld does not end after a copy: %w", err)
	}
	return server.Start(ctx)
}

// hasAll checks that the source has these rows.
func (g *Group) hasAll(ctx context.Context, acknowledged []write) error {
	rows, err := g.Source.DB.QueryContext(ctx, "SELECT id FROM bench.numbers")
	if err != nil {
		return err
	}
	defer rows.Close()
	found := map[int]bool{}
	for rows.Next() {
		id := 0
		if err := rows.Scan(&id); err != nil {
			return err
		}
		found[id] = true
	}
	for _, one := range acknowledged {
		if !found[one.id] {
			return fmt.Errorf("the acknowledged row %d is lost", one.id)
		}
	}
	return rows.Err()
}

// write is a row that was acknowledged.
type write struct {
	id int
	at time.Time
}

// client inserts numbered rows, one after the other.
type client struct {
	to atomic.Pointer[Server]
	mu sync.Mutex
	// all are the acknowledged rows, in order.
	all []write
}

func (c *client) run(ctx context.Context) {
	for id := 1; ctx.Err() == nil; {
		server := c.to.Load()
		conn, err := server.DB.Conn(ctx)
		for err == nil && server == c.to.Load() && ctx.Err() == nil {
			err = insert(ctx, conn, id)
			if err == nil {
				c.mu.Lock()
				c.all = append(c.all, write{id, time.Now()})
				c.mu.Unlock()
			}
			id++ // a row that was not acknowledged may be there
			pause(ctx)
		}
		if conn != nil {
			_ = conn.Close() // it may be broken already
		}
		pause(ctx)
	}
}

func insert(ctx context.Context, conn *sql.Conn, id int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	_, err := conn.ExecContext(ctx, "INSERT INTO bench.numbers VALUES (?, 'written by a benchmark')", id)
	return err
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(thinking):
	}
}

func (c *client) acknowledged() []write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// gapAfter waits for the next acknowledged write after so many, and returns the time between it and the one before.
func (c *client) gapAfter(ctx context.Context, count int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	for {
		if all := c.acknowledged(); len(all) > count {
			return all[count].at.Sub(all[count-1].at), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for a write after the kill: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}
