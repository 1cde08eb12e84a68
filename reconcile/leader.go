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

// endingTime is how long passes may take to end once their context is cancelled, where no lease sets a shorter time.
const endingTime = 5 * time.Second

// campaign stands for election, works while elected, and does so again until ctx ends.
//
// Leader election is no fence: a process that stalls may act after its lease ran out, until it looks at the lease again. So passes never
// overlap as long as they heed their context and no process stands still, and decisions that must not be made twice carry preconditions
// of their own. Clocks need not agree: each process only measures how long a lease has not changed (client-go, package leaderelection).
func (m *Manager) campaign(ctx context.Context) error {
	lock, err := m.lock()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := m.stand(ctx, lock); err != nil {
			return err
		}
	}
	return nil
}

// stand stands for one election and works for the term it brings. client-go's elector can give up the lease by itself when its
// context ends, but does so before those who work under the lease have heard of it. Here the order is: end the passes, stop renewing,
// give up the lease.
func (m *Manager) stand(ctx context.Context, lock *lease) error {
	lock.hold = newHold(m.config.RenewDeadline + m.config.RetryPeriod)
	defer lock.hold.release()
	// The elector's own log lines would be one for each attempt: the lease tells what matters of them.
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

	select {
	case <-elected:
		err = m.work(ctx, lock.hold.ended)
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

// work runs a term of every kind until ctx ends or the lease is lost, and returns when all passes have ended.
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
	m.config.Logger.Info("working", "kinds", kindsOf(terms))

	if m.finished(ctx, ended, lost) {
		return nil
	}
	stopBeginning()
	cancelPasses()
	return mustEnd(ended, m.endingTime(lost), terms)
}

// finished waits for a reason to end the passes. It returns true if they ended by themselves in the time they have after ctx.
func (m *Manager) finished(ctx context.Context, ended, lost <-chan struct{}) bool {
	select {
	case <-ctx.Done():
	case <-lost:
		m.config.Logger.Info("lost the lease, ending all passes")
		return false
	}
	m.config.Logger.Info("stopping, letting the passes under way finish", "for", m.config.DrainTimeout.String())
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

// endingTime is how long passes may take to end once their context is cancelled. Nobody else is elected for as long as a lease lasts
// beyond what this process counts on (hold).
func (m *Manager) endingTime(lost <-chan struct{}) time.Duration {
	if lost == nil {
		return endingTime
	}
	return min(endingTime, m.config.LeaseDuration-m.config.RenewDeadline-m.config.RetryPeriod)
}

var errPassesRunning = errors.New("passes do not end")

// mustEnd waits for the passes whose context was cancelled, and says which do not end.
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

// lock is the Lease, reached past the cap on requests and with a time-out short enough to try twice before it runs out.
func (m *Manager) lock() (*lease, error) {
	config := instrument(m.config.Rest, m.metrics, 0)
	config.UserAgent = m.rest.UserAgent
	config.Timeout = max(time.Second, m.config.RenewDeadline/2)
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the lease: %w", err)
	}
	return &lease{logger: m.config.Logger, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: m.config.LeaseNamespace, Name: LeaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: m.config.Identity},
	}}, nil
}

// release gives up the lease if this process holds it, so that the next leader need not wait until it runs out.
func (m *Manager) release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.config.RenewDeadline)
	defer cancel()
	// A renewal that was cancelled may take effect in between.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := lock.Get(ctx)
		if err != nil || record.HolderIdentity != m.config.Identity {
			return err
		}
		now := metav1.NewTime(m.now())
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		m.config.Logger.Info("could not give up the lease, it runs out by itself", logError, err.Error(), "after", m.config.LeaseDuration.String())
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
