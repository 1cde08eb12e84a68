package mover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

const (
	// DefaultPrimaryLimit is the default read rate of a primary, in bytes per second: it has clients.
	DefaultPrimaryLimit = 64 << 20
	// donorWait is how long to look for a member that answers. donorPause is the time between two tries.
	donorWait  = time.Minute
	donorPause = 2 * time.Second
	// busyWait is how long to wait for a member that gives a copy to another client. busyPause is the time between two tries.
	busyWait  = 2 * time.Hour
	busyPause = 30 * time.Second
	// lookTimeout bounds one query to a member.
	lookTimeout = 10 * time.Second
)

// server is a member that answers.
type server interface {
	ObserveDonor(ctx context.Context) (mysqld.Donor, error)
	ObserveActivity(ctx context.Context) (int64, error)
	Close() error
}

// members connects to the cluster's members.
type members struct {
	// connect returns a connection to a host; it may connect only at the first query.
	connect func(host string) (server, error)
	// copy takes the copy.
	copy func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error)
	// wait and pause bound the search for a member. busyWait and busyPause bound the wait for a busy one.
	wait, pause, busyWait, busyPause time.Duration
}

// source is the member to copy, and a connection to it.
type source struct {
	mysqld.Donor
	server server
}

// name is the member's name: the first label of its host.
func (s source) name() string {
	name, _, _ := strings.Cut(s.Host, ".")
	return name
}

// choose finds the member to copy, at the last moment. The Service for reading leads to a ready replica, or to the primary if there is
// none. The member that answers reports its own name, and from then on choose uses that name, not the Service.
func (m members) choose(ctx context.Context, service string) (source, error) {
	bounded, cancel := context.WithTimeout(ctx, m.wait)
	defer cancel()
	for {
		found, err := m.tryChoose(bounded, service)
		if err == nil {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return source{}, ctx.Err()
		case <-bounded.Done():
			return source{}, retry(protocol.ReasonDonorUnavailable, "find a member to copy: no member answered at %s for %s: %w", service, m.wait, err)
		case <-time.After(m.pause):
		}
	}
}

func (m members) tryChoose(ctx context.Context, service string) (source, error) {
	some, err := m.connect(service)
	if err != nil {
		return source{}, err
	}
	defer func() { _ = some.Close() }()
	told, err := observe(ctx, some)
	if err != nil {
		return source{}, err
	}
	member, err := m.connect(told.Host)
	if err != nil {
		return source{}, err
	}
	donor, err := observe(ctx, member)
	if err == nil && donor.ServerUUID != told.ServerUUID {
		err = fmt.Errorf("%s is not the server that reported this name", told.Host)
	}
	if err != nil {
		_ = member.Close() // it is no longer needed
		return source{}, err
	}
	return source{Donor: donor, server: member}, nil
}

func observe(ctx context.Context, from server) (mysqld.Donor, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return from.ObserveDonor(ctx)
}
