package bare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Group are three servers: one is the source, and the others are its replicas.
type Group struct {
	Source   *Server
	Replicas []*Server
	folder   string
}

const size = 3

// NewGroup starts the servers. Their data is where temporary files are. Remove ends them.
func NewGroup(ctx context.Context, root string) (g *Group, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "bare")
	if err != nil {
		return nil, err
	}
	g = &Group{folder: folder}
	if err := g.start(ctx, root); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

func (g *Group) start(ctx context.Context, root string) error {
	for id := range size {
		server, err := newServer(ctx, root, g.folder, id+1)
		if err != nil {
			return err
		}
		if id == 0 {
			g.Source = server
		} else {
			g.Replicas = append(g.Replicas, server)
		}
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
	// Only the source makes the account: the replicas get it from there.
	err := g.Source.Run(ctx, append(lead(0), "CREATE USER "+account+" IDENTIFIED BY '"+password+"'",
		"GRANT REPLICATION SLAVE, BACKUP_ADMIN ON *.* TO "+account, "CREATE DATABASE bench",
		"CREATE TABLE bench.numbers (id BIGINT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(40))")...)
	if err != nil {
		return err
	}
	for _, replica := range g.Replicas {
		if err := replica.Run(ctx, g.follow()...); err != nil {
			return err
		}
	}
	return g.Same(ctx)
}

// lead are the statements that make a server take writes, whose commits wait for so many acknowledgements.
func lead(acks int) []string {
	wait := "SET GLOBAL rpl_semi_sync_source_enabled = OFF"
	if acks > 0 {
		wait = "SET GLOBAL rpl_semi_sync_source_enabled = ON"
	}
	return []string{
		fmt.Sprintf("SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = %d", max(acks, 1)), wait,
		"SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF",
	}
}

// follow are the statements that make a server a replica of the source.
func (g *Group) follow() []string {
	return []string{
		"SET GLOBAL super_read_only = ON", "SET GLOBAL rpl_semi_sync_source_enabled = OFF", "SET GLOBAL rpl_semi_sync_replica_enabled = ON",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', "+
			"SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, GET_SOURCE_PUBLIC_KEY=1", g.Source.port(), account, password),
		"START REPLICA",
	}
}

// Acks makes commits wait for so many acknowledgements, and replicas flush each event of their relay logs, or not.
func (g *Group) Acks(ctx context.Context, acks, syncRelayLog int) error {
	for _, replica := range g.Replicas {
		if err := replica.Run(ctx, fmt.Sprintf("SET GLOBAL sync_relay_log = %d", syncRelayLog)); err != nil {
			return err
		}
	}
	return g.Source.Run(ctx, lead(acks)...)
}

// Same waits until all replicas have applied what the source has executed.
func (g *Group) Same(ctx context.Context) error {
	has, err := g.Source.Value(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return err
	}
	for _, replica := range g.Replicas {
		if err := replica.applied(ctx, has, 10*time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// applied waits until a server has executed these transactions.
func (s *Server) applied(ctx context.Context, gtids string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	late := 0
	if err := s.DB.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)", gtids, limit.Seconds()).Scan(&late); err != nil {
		return fmt.Errorf("wait until server %d has applied everything: %w", s.id, err)
	}
	if late != 0 {
		return fmt.Errorf("server %d has not applied everything after %s", s.id, limit)
	}
	return nil
}

// Remove ends the servers and removes their data.
func (g *Group) Remove() error {
	var failed []error
	for _, server := range append(g.Replicas, g.Source) {
		if server != nil {
			failed = append(failed, server.Kill())
		}
	}
	return errors.Join(append(failed, os.RemoveAll(g.folder))...)
}
