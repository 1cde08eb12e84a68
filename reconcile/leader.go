package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// endingTime is how long passes may take to end after their context is cancelled, if no Lease requires a shorter time.
const endingTime = 5 * time.Second

// campaign takes part in leader election, runs passes while this process is the leader, and repeats this until ctx ends.
//
// Leader election is no fence: a process that stalls may act after its Lease expired, or was taken over (leaderFails), until it reads the
// Lease again. Passes do not overlap if they respect their context, no process stalls, and none is cut off from the API server and a
// standby at once. So decisions that must not be made twice have their own preconditions. Clocks need not agree: each process only
// measures how long a Lease has not changed (client-go, package leaderelection).
func (m *Manager) campaign(ctx context.Context) error {
	client, err := m.leases()
	if err != nil {
		return err
	}
	lock := &lease{Interface: m.lock(client), logger: m.config.Logger}
	for ctx.Err() == nil {
		if err := m.runElection(ctx, lock, m.lock(client)); err != nil {
			return err
		}
	}
	return nil
}

// runElection takes part in one election and runs the term that follows. client-go's elector can release the Lease itself when its context
// ends, but it does so before running passes have ended. Here the order is: end the passes, stop renewing, release the Lease.
//
// While this process is a standby, it watches the leader, and begins the next election at once when that one has failed.
func (m *Manager) runElection(ctx context.Context, lock *lease, reader resourcelock.Interface) error {
	lock.hold = newHold(m.config.RenewDeadline + m.config.RetryPeriod)
	defer lock.hold.release()
	// The elector would log one line for each attempt. The type lease logs what matters.
	renewing, stopRenewing := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer stopRenewing()
	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          LeaseName,
		LeaseDuration: m.config.LeaseDuration,
		RenewDeadline: m.config.RenewDeadline,
		RetryPeriod:   m.config.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
			OnNewLeader:      m.logLeader,
		},
	})
	if err != nil {
		return fmt.Errorf("configure leader election: %w", err)
	}
	retired := make(chan struct{})
	go func() {
		defer close(retired)
		defer lock.hold.end()
		elector.Run(renewing)
	}()

	failed, stopWatching := m.watchLeader(ctx, lock, reader)
	defer stopWatching()
	select {
	case <-elected:
		stopWatching()
		err = m.work(ctx, lock.hold.ended)
	case <-failed:
	case <-retired:
	case <-ctx.Done():
	}
	stopRenewing()
	<-retired
	if err != nil || ctx.Err() == nil {
		return err
	}
	m.release(ctx, lock.Interface)
	return nil
}

// work runs a term of every kind until ctx ends or the Lease is lost, and returns when all passes have ended.
func (m *Manager) work(ctx context.Context, lost <-chan struct{}) error {
	m.metrics.leader.Set(1)
	defer m.metrics.leader.Set(0)
	stop, stopBeginning := context.WithCancel(ctx)
	defer stopBeginning()
	work, cancelPasses := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelPasses()

	terms := make([]*term, 0, len(m.controllers))
	var running sync.WaitGroup
	for _, c := range m.controllers {
		begun := newTerm(c, m)
		terms = append(terms, begun)
		running.Go(func() {
			begun.run(stop, work)
			begun.passes.Wait()
			m.metrics.queue.reset(begun.controller.Kind.Kind)
		})
	}
	if m.config.Leading != nil {
		running.Go(func() { m.config.Leading(stop, m) })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		running.Wait()
	}()
	m.config.Logger.Info("started reconciling", "kinds", kindsOf(terms))

	if m.finished(ctx, ended, lost) {
		return nil
	}
	stopBeginning()
	cancelPasses()
	return mustEnd(ended, m.endingTime(lost), terms)
}

// finished waits until passes must end. It returns true if they ended by themselves within DrainTimeout after ctx ended.
func (m *Manager) finished(ctx context.Context, ended, lost <-chan struct{}) bool {
	select {
	case <-ctx.Done():
	case <-lost:
		m.config.Logger.Info("lost the lease, ending all passes")
		return false
	}
	m.config.Logger.Info("stopping, waiting for running passes", "for", m.config.DrainTimeout.String())
	timer := time.NewTimer(m.config.DrainTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-lost:
		m.config.Logger.Info("lost the lease while stopping, ending all passes")
	case <-timer.C:
	}
	return false
}

// endingTime returns how long passes may take to end after their context is cancelled. Unless this process has failed, no other one is
// elected until the Lease expires, which is later than the end of this process's hold.
func (m *Manager) endingTime(lost <-chan struct{}) time.Duration {
	if lost == nil {
		return endingTime
	}
	return min(endingTime, m.config.LeaseDuration-m.config.RenewDeadline-m.config.RetryPeriod)
}

var errPassesRunning = errors.New("passes do not end")

// mustEnd waits for the passes whose context was cancelled. Its error names those that do not end.
func mustEnd(ended <-chan struct{}, patience time.Duration, terms []*term) error {
	if happens(ended, patience) {
		return nil
	}
	names := []string{}
	for _, one := range terms {
		for _, key := range one.running() {
			names = append(names, one.controller.Kind.Kind+" "+key.String())
		}
	}
	slices.Sort(names)
	return fmt.Errorf("stop within %s: %w: %s", patience, errPassesRunning, strings.Join(names, ", "))
}

func happens(event <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-event:
		return true
	case <-timer.C:
		return false
	}
}

// leases makes the client for the Lease. Its requests are not limited by MaxRequests. Its timeout is short enough for two attempts before
// the Lease expires.
func (m *Manager) leases() (*coordinationv1.CoordinationV1Client, error) {
	config := instrument(m.config.Rest, m.metrics, 0)
	config.UserAgent = m.rest.UserAgent
	config.Timeout = max(time.Second, m.config.RenewDeadline/2)
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the lease: %w", err)
	}
	return leases, nil
}

func (m *Manager) lock(client *coordinationv1.CoordinationV1Client) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: m.config.LeaseNamespace, Name: LeaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: m.config.Identity},
	}
}

// release gives up the Lease if this process holds it, so that the next leader need not wait until it expires.
func (m *Manager) release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.config.RenewDeadline)
	defer cancel()
	// A cancelled renewal may take effect between Get and Update.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := lock.Get(ctx)
		if err != nil || record.HolderIdentity != m.config.Identity {
			return err
		}
		now := metav1.NewTime(m.now())
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		m.config.Logger.Info("failed to release the lease, it will expire", logError, err.Error(), "after", m.config.LeaseDuration.String())
	}
}

func (m *Manager) logLeader(identity string) {
	m.config.Logger.Info("leader elected", "leader", identity, logInstance, m.config.Identity)
}

func kindsOf(terms []*term) []string {
	names := make([]string, 0, len(terms))
	for _, one := range terms {
		names = append(names, one.controller.Kind.Kind)
	}
	return names
}
