package agent

import (
	"context"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

const (
	// flowEvery is how often a busy primary asks its replicas how far they are. askTimeout bounds that.
	flowEvery  = time.Second
	askTimeout = flowEvery / 2
	// busyFrom is how many transactions a second make a primary busy. Replicas apply fewer of them in time, unless each is large.
	busyFrom = 50
	// delayedFor is for how long the report says that commits were delayed. The delay itself changes every second.
	delayedFor = time.Minute
	// settingDelay is what users may set themselves. Then the agent leaves it alone.
	settingDelay = "binlog_group_commit_sync_delay"
)

// flow is how this primary delays its commits (replication.NextDelay). The zero value delays none, and knows nothing.
type flow struct {
	// start is the start of mysqld, delay what commits are delayed by.
	start string
	delay time.Duration
	// looked is when the agent last looked whether mysqld is busy, made how many transactions it had.
	looked time.Time
	made   int64
	// last is how far the replicas were last. answer will be how far they are; nil while the agent does not ask.
	last   replication.Progress
	answer <-chan replication.Progress
	// delayedAt is when a commit was last delayed. failure is why the last try to change that failed, empty if it did not.
	delayedAt time.Time
	failure   string
}

// controlFlow delays the commits of a primary whose replicas cannot apply them fast enough. Every other member, and every member whose
// agent has just started, delays none. It waits for no replica.
func (a *Agent) controlFlow(ctx context.Context, observed mysqld.Observed, where replication.State) {
	now := time.Now()
	if where != replication.StateWriting || a.flow.start != a.start {
		a.flow = flow{start: a.start, failure: a.flow.failure}
	}
	a.flow.take()
	if where == replication.StateWriting && now.Sub(a.flow.looked) >= flowEvery {
		a.askProgress(ctx, now, observed.Server)
	}
	if a.flow.delay > 0 {
		a.flow.delayedAt = now
	}
	if observed.CommitDelay != a.flow.delay && a.mayDelay() {
		a.delayCommits(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured.commitDelay = observed.CommitDelay
	a.status.DelaysCommits = !a.flow.delayedAt.IsZero() && now.Sub(a.flow.delayedAt) < delayedFor
}

// take decides again if the replicas have answered.
func (f *flow) take() {
	select {
	case progress := <-f.answer:
		f.delay = replication.NextDelay(f.delay, progress.Since(f.last))
		f.last, f.answer = progress.Remembering(f.last), nil
	default:
	}
}

// askProgress asks the replicas if the primary is busy, or delays commits.
func (a *Agent) askProgress(ctx context.Context, now time.Time, server replication.Server) {
	made := server.Executed.Count()
	seconds := now.Sub(a.flow.looked).Seconds()
	isBusy := float64(made-a.flow.made) >= busyFrom*seconds
	a.flow.looked, a.flow.made = now, made
	if a.flow.answer != nil {
		return
	}
	if !isBusy && a.flow.delay == 0 || !a.mayDelay() {
		a.flow.last = replication.Progress{}
		return
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	port, replicas, err := a.local.Acknowledgers(bounded)
	if err != nil {
		a.log.Info("cannot look for the replicas that may lag, will try again", "error", err.Error())
	}
	answer := make(chan replication.Progress, 1)
	a.flow.answer = answer
	go func() {
		answer <- a.progressOf(ctx, server, port, replicas)
		a.Wake()
	}()
}

// progressOf asks replicas how far they are. One that does not answer in time is left out. A replica that follows gets nothing that its
// primary has purged. It lacks that for good if a user has added it to the primary's gtid_purged.
func (a *Agent) progressOf(ctx context.Context, server replication.Server, port uint16, replicas map[int]netip.AddrPort) replication.Progress {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sent := server.Executed.Subtract(server.Purged)
	progress := replication.Progress{At: time.Now(), Made: server.Executed.Count(), Answers: map[string]replication.Answer{}}
	var all sync.WaitGroup
	var mu sync.Mutex
	for ordinal, peer := range replicas {
		all.Go(func() {
			applied, err := a.executedBy(ctx, peer.Addr(), int(port))
			at := time.Now()
			if err != nil {
				return // nothing is delayed for a replica that does not answer
			}
			mu.Lock()
			defer mu.Unlock()
			progress.Answers[mysqld.ReplicationUser(ordinal)] = replication.Answer{At: at, Applied: applied.Count(), Missing: sent.Subtract(applied).Count()}
		})
	}
	all.Wait()
	return progress
}

// executedBy asks a replica for its transactions. All members share one certificate, which is also for localhost.
func (a *Agent) executedBy(ctx context.Context, address netip.Addr, port int) (replication.GTIDSet, error) {
	account, err := a.layout.readAccountOf(mysqld.ObserverUser, mysqld.ReplicationUsers)
	if err != nil {
		return replication.GTIDSet{}, err
	}
	security, err := a.tls.client()
	if err != nil {
		return replication.GTIDSet{}, err
	}
	remote, err := mysqld.Remote("localhost", address.String(), port, account, security)
	if err != nil {
		return replication.GTIDSet{}, err
	}
	defer remote.Close()
	return remote.Executed(ctx)
}

// mayDelay reports whether the delay is the agent's to choose.
func (a *Agent) mayDelay() bool {
	config, err := os.ReadFile(a.layout.serverConfig())
	return err == nil && !sizing.HasSetting(string(config), settingDelay)
}

func (a *Agent) delayCommits(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	failure := ""
	if err := a.local.DelayCommits(bounded, a.flow.delay); err != nil {
		failure = err.Error()
	}
	if failure != "" && failure != a.flow.failure {
		a.log.Info("cannot change how long commits are delayed, will try again", "error", failure)
	}
	a.flow.failure = failure
}
