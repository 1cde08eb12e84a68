package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A standby takes over the Lease of a leader that has failed before the Lease expires. Both of these must be true:
//
//   - The leader answered this process before (Config.Ask), and has not done so for a retry period.
//   - The leader has not renewed the Lease for longer than a retry period. A leader waits for that time after each renewal.
//
// So a leader that only the standby cannot reach stays the leader as long as it renews the Lease in time, and one that cannot reach the API
// server as long as it answers.

const (
	// asksPerRetry is how often a standby asks the leader in each retry period.
	asksPerRetry = 4
	// retryPart is the part of a retry period by which a renewal may be late.
	retryPart = 8
)

// sighting is what a standby has seen of the leader. Times are by the standby's own clock.
type sighting struct {
	// leader is the identity of the leader, and lease the content of the Lease; empty while the Lease has no holder.
	leader, lease string
	// renewed is when the standby saw this content first. answered is when the leader answered last; zero if it never did.
	renewed, answered time.Time
}

// reading returns what the standby has seen after it has read the Lease.
func (s sighting) reading(leader, lease string, now time.Time) sighting {
	if leader != s.leader {
		s.answered = time.Time{}
	}
	if leader != s.leader || lease != s.lease {
		s.renewed = now
	}
	s.leader, s.lease = leader, lease
	return s
}

// hasFailed reports whether another process may lead instead.
func (s sighting) hasFailed(now time.Time, retryPeriod time.Duration) bool {
	isSilent := !s.answered.IsZero() && now.Sub(s.answered) >= retryPeriod
	return isSilent && now.Sub(s.renewed) >= retryPeriod+retryPeriod/retryPart
}

// watchLeader watches the leader. The channel is closed when the leader has failed: the next election acquires the Lease. end stops the
// watch, and returns when it has stopped.
func (m *Manager) watchLeader(ctx context.Context, lock *lease, reader resourcelock.Interface) (failed <-chan struct{}, end func()) {
	if m.config.Ask == nil {
		return nil, func() {}
	}
	watching, cancel := context.WithCancel(ctx)
	found := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		if m.leaderFails(watching, lock, reader) {
			close(found)
		}
	})
	return found, func() {
		cancel()
		running.Wait()
	}
}

// leaderFails waits until the leader has failed, and lets the elector acquire the Lease then. It returns false when ctx ends. reader reads
// the Lease beside the elector, whose client is not safe for concurrent use.
func (m *Manager) leaderFails(ctx context.Context, lock *lease, reader resourcelock.Interface) bool {
	ticks := time.NewTicker(m.config.RetryPeriod / asksPerRetry)
	defer ticks.Stop()
	for {
		if asked, isSilent := m.askLeader(ctx, lock, reader); isSilent && lock.takeOver(asked, m.config.RetryPeriod) {
			m.config.Logger.Info("the leader neither answers nor renews the lease, taking the lease over", "leader", lock.lastSighting().leader, logInstance, m.config.Identity)
			return true
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return false
		}
	}
}

// askLeader asks the leader whether it runs. If a leader that has answered before does not answer, it reads the Lease. Then isSilent is
// true, and asked is when it began to read: what it read may be as old as that.
func (m *Manager) askLeader(ctx context.Context, lock *lease, reader resourcelock.Interface) (asked time.Time, isSilent bool) {
	leader := lock.lastSighting().leader
	if leader == "" || leader == m.config.Identity {
		return asked, false
	}
	asking, cancel := context.WithTimeout(ctx, m.config.RetryPeriod/asksPerRetry)
	defer cancel()
	if err := m.config.Ask(asking, leader); err == nil {
		lock.answeredBy(leader, time.Now())
		return asked, false
	}
	if lock.lastSighting().answered.IsZero() {
		return asked, false // the Lease must expire
	}
	reading, cancel := context.WithTimeout(ctx, m.config.RetryPeriod)
	defer cancel()
	asked = time.Now()
	record, raw, err := reader.Get(reading)
	if err != nil {
		return asked, false
	}
	lock.sees(record, raw)
	return asked, true
}
