package mover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

const (
	// DefaultPrimaryLimit is how fast a primary is read, in bytes per second, where nobody said otherwise: it has clients.
	DefaultPrimaryLimit = 64 << 20
	// donorWait is for how long a member is looked for that answers, donorPause the time between two tries.
	donorWait  = time.Minute
	donorPause = 2 * time.Second
	// busyWait is for how long a member is waited for that gives a copy to somebody else, busyPause the time between two tries.
	busyWait  = 2 * time.Hour
	busyPause = 30 * time.Second
	// lookTimeout bounds one look at a member.
	lookTimeout = 10 * time.Second
)

// server is a member that answers.
type server interface {
	ObserveDonor(ctx context.Context) (mysqld.Donor, error)
	ObserveActivity(ctx context.Context) (int64, error)
	Close() error
}

// members is how to reach the cluster's members.
type members struct {
	// connect makes a connection to a host; it may connect only when it is asked something.
	connect func(host string) (server, error)
	// copy takes the copy.
	copy func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error)
	// wait and pause bound the search for a member, busyWait and busyPause the patience with one that is busy.
	wait, pause, busyWait, busyPause time.Duration
}

// source is the member that is copied, and a connection to it.
type source struct {
	mysqld.Donor
	server server
}

// name is the member's: its host's first label.
func (s source) name() string {
	name, _, _ := strings.Cut(s.Host, ".")
	return name
}

// choose finds the member to copy, at the last moment: the Service for reading leads to a replica that serves, or to the primary where
// there is none, and whoever answers there says its own name. From then on that member is spoken to, not the Service.
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
			return source{}, retry(transfer.ReasonDonorUnavailable, "find a member to copy: nobody answered at %s for %s: %w", service, m.wait, err)
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
		err = fmt.Errorf("%s is another server than the one that goes by this name", told.Host)
	}
	if err != nil {
		_ = member.Close() // it has served its purpose
		return source{}, err
	}
	return source{Donor: donor, server: member}, nil
}

func observe(ctx context.Context, from server) (mysqld.Donor, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return from.ObserveDonor(ctx)
}
