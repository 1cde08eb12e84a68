package bare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// Backlog lets clients write, and returns how long it then takes until a replica has applied everything: a takeover would take as much
// longer. rate is how many commits a second the clients got. If it is controlled, the source delays commits as the agent of a primary does.
func (g *Group) Backlog(ctx context.Context, clients int, long time.Duration, isControlled bool) (backlog time.Duration, rate float64, err error) {
	controlling, stop := context.WithCancel(ctx)
	defer stop()
	var control errgroup.Group
	if isControlled {
		control.Go(func() error { return g.control(controlling) })
	}
	count, took, err := g.Write(ctx, clients, long)
	stop()
	err = errors.Join(err, control.Wait(), g.delay(ctx, 0))
	if err != nil {
		return 0, 0, err
	}
	backlog, err = g.firstApplied(ctx)
	return backlog, float64(count) / took.Seconds(), errors.Join(err, g.Same(ctx))
}

// firstApplied waits until one replica has applied everything.
func (g *Group) firstApplied(ctx context.Context) (time.Duration, error) {
	has, err := g.Source.Value(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return 0, err
	}
	ended := make(chan error, len(g.Replicas))
	began := time.Now()
	for _, replica := range g.Replicas {
		go func() { ended <- replica.applied(ctx, has, 10*time.Minute) }()
	}
	err = <-ended
	return time.Since(began), err
}

// control decides every second how long the source delays commits, until the context ends.
func (g *Group) control(ctx context.Context) error {
	last, delay := replication.Progress{}, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		now, err := g.progress(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		delay = replication.NextDelay(delay, now.Since(last))
		last = now
		if err := g.delay(context.WithoutCancel(ctx), delay); err != nil {
			return err
		}
	}
}

func (g *Group) progress(ctx context.Context) (replication.Progress, error) {
	now := replication.Progress{At: time.Now(), Answers: map[string]replication.Answer{}}
	executed, err := g.Source.executed(ctx)
	if err != nil {
		return now, err
	}
	now.Made = executed.Count()
	for _, replica := range g.Replicas {
		applied, err := replica.executed(ctx)
		if err != nil {
			return now, err
		}
		now.Answers[strconv.Itoa(replica.id)] = replication.Answer{At: time.Now(), Applied: applied.Count(), Missing: executed.Subtract(applied).Count()}
	}
	return now, nil
}

func (s *Server) executed(ctx context.Context) (replication.GTIDSet, error) {
	text, err := s.Value(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return replication.GTIDSet{}, err
	}
	return replication.ParseGTIDSet(text)
}

func (g *Group) delay(ctx context.Context, delay time.Duration) error {
	return g.Source.Run(ctx, fmt.Sprintf("SET GLOBAL binlog_group_commit_sync_delay = %d", delay.Microseconds()))
}
