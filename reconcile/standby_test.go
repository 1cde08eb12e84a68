package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestALeaderFailsIfItNeitherAnswersNorRenews(t *testing.T) {
	t.Parallel()
	const retry = 2 * time.Second
	second := func(at float64) time.Time { return time.Time{}.Add(time.Hour + time.Duration(at*float64(time.Second))) }
	both := sighting{}.reading("first", "renewed at 0", second(0))
	both.answered = second(0.5)
	silent := sighting{}.reading("first", "renewed at 0", second(0))
	tests := map[string]struct {
		seen sighting
		at   float64
		want bool
	}{
		"it has neither answered nor renewed for long": {seen: both, at: 2.5, want: true},
		"it answered a moment ago":                     {seen: both, at: 2.4},
		"its next renewal may still come":              {seen: both.reading("first", "renewed at 1", second(1)), at: 3.2},
		"its next renewal did not come":                {seen: both.reading("first", "renewed at 1", second(1)), at: 3.3, want: true},
		"the standby has read the same Lease again":    {seen: both.reading("first", "renewed at 0", second(2)), at: 2.5, want: true},
		"it has never answered":                        {seen: silent, at: 60},
		"another leader was elected meanwhile":         {seen: both.reading("third", "renewed at 2", second(2)), at: 60},
		"the Lease has no holder":                      {seen: both.reading("", "released", second(2)), at: 60},
		"nothing was read yet":                         {at: 60},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.seen.hasFailed(second(test.at), retry); got != test.want {
				t.Errorf("has failed: %v, want %v", got, test.want)
			}
		})
	}
}

// oneLease is a Lease whose content the test sets.
type oneLease struct {
	scriptedLock
	content string
}

func (o *oneLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: o.holder}, []byte(o.content), o.err
}

func TestAStandbyTakesOverOnlyTheLeaseThatItHasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var isSilent atomic.Bool
		m := &Manager{config: Config{Identity: "us", RetryPeriod: 2 * time.Second, Logger: logr.Discard(), Ask: func(context.Context, string) error {
			if isSilent.Load() {
				return errors.New("no answer")
			}
			return nil
		}}}
		stored := &oneLease{scriptedLock: scriptedLock{holder: "first"}, content: "renewed at 0"}
		lock := &lease{Interface: stored, logger: logr.Discard(), hold: newHold(time.Hour)}
		holder := func() string {
			record, _, err := lock.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return record.HolderIdentity
		}
		holder()
		failed, end := m.watchLeader(t.Context(), lock, stored)
		defer end()
		<-time.After(10 * time.Second)
		select {
		case <-failed:
			t.Fatal("a leader that answers has failed")
		default:
		}
		isSilent.Store(true)
		began := time.Now()
		<-failed
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the standby took %s to see that the leader has failed", took)
		}
		if who := holder(); who != "" {
			t.Errorf("the elector is to wait for %q", who)
		}
		stored.content = "renewed at 15"
		if who := holder(); who != "first" {
			t.Errorf("the elector takes over a Lease of %q that was renewed since", who)
		}
	})
}

func TestAStandbyDoesNotTakeOverALeaseThatItCannotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m := &Manager{config: Config{Identity: "us", RetryPeriod: 2 * time.Second, Logger: logr.Discard(), Ask: func(context.Context, string) error {
			asked++
			if asked == 1 {
				return nil
			}
			return errors.New("no answer")
		}}}
		stored := &oneLease{scriptedLock: scriptedLock{holder: "first"}, content: "renewed at 0"}
		lock := &lease{Interface: stored, logger: logr.Discard(), hold: newHold(time.Hour)}
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored.err = errors.New("the API server does not answer")
		failed, end := m.watchLeader(t.Context(), lock, stored)
		<-time.After(time.Minute)
		select {
		case <-failed:
			t.Error("the standby takes over a Lease of which it knows only an old content")
		default:
		}
		end()
	})
}

// slowLease is a Lease that takes a while to write. A write whose client has gone has no effect.
type slowLease struct {
	scriptedLock
	mu     sync.Mutex
	stored resourcelock.LeaderElectionRecord
}

func (s *slowLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record := s.stored
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (s *slowLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = record
	return nil
}

// TestAStandbyLeadsSoonAfterALeaderHasFailed: its own watch does not end the election that acquires the Lease, although the API server is
// slow. When another process leads afterwards, nothing is known about whether that one answers.
func TestAStandbyLeadsSoonAfterALeaderHasFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var isGone atomic.Bool
		m, err := New(Config{Rest: &rest.Config{}, LeaderElect: true, LeaseNamespace: "home", Identity: "us", Ask: func(context.Context, string) error {
			if isGone.Load() {
				return errors.New("connection refused")
			}
			return nil
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stored := &slowLease{stored: resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 15}}
		lock := &lease{Interface: stored, logger: logr.Discard()}
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				if err := m.runElection(ctx, lock, stored); err != nil {
					t.Error(err)
				}
			}
		})
		<-time.After(5 * time.Second)
		isGone.Store(true)
		<-time.After(5 * time.Second)
		if record, _, err := stored.Get(ctx); err != nil || record.HolderIdentity != "us" {
			t.Errorf("five seconds after the leader has failed, %q leads (%v)", record.HolderIdentity, err)
		}
		if seen := lock.lastSighting(); !seen.answered.IsZero() {
			t.Errorf("the standby that leads now remembers that %q has answered", seen.leader)
		}
		stop()
		running.Wait()
	})
}

// sharedLease is a Lease that several processes read and write, each with its own casLease. elected counts the writes that changed its
// holder.
type sharedLease struct {
	mu               sync.Mutex
	record           resourcelock.LeaderElectionRecord
	version, elected int
}

// casLease writes only what it has read last, as a Lease with a resourceVersion.
type casLease struct {
	scriptedLock
	all      *sharedLease
	identity string
	seen     int
}

func (c *casLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.seen = c.all.version
	record := c.all.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (c *casLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	<-time.After(50 * time.Millisecond) // both have read it by then
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.seen != c.all.version {
		return errors.New("the object has been modified")
	}
	if c.all.record.HolderIdentity != record.HolderIdentity {
		c.all.elected++
	}
	c.all.record = record
	c.all.version++
	c.seen = c.all.version
	return nil
}

func (c *casLease) Identity() string { return c.identity }

// TestOfTwoStandbysOneLeads: both see that the leader has failed, at the same time. One gets the Lease, and the other one watches it.
func TestOfTwoStandbysOneLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var isGone atomic.Bool
		ask := func(_ context.Context, leader string) error {
			if leader == "first" && isGone.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		all := &sharedLease{record: resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 15}}
		var running sync.WaitGroup
		for _, who := range []string{"second", "third"} {
			m, err := New(Config{Rest: &rest.Config{}, LeaderElect: true, LeaseNamespace: "home", Identity: who, Ask: ask}, nil)
			if err != nil {
				t.Fatal(err)
			}
			lock := &lease{Interface: &casLease{all: all, identity: who}, logger: logr.Discard()}
			running.Go(func() {
				for ctx.Err() == nil {
					if err := m.runElection(ctx, lock, &casLease{all: all}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		<-time.After(5 * time.Second)
		isGone.Store(true)
		<-time.After(time.Minute)
		all.mu.Lock()
		holder, elected := all.record.HolderIdentity, all.elected
		all.mu.Unlock()
		if holder != "second" && holder != "third" || elected != 1 {
			t.Errorf("%q leads after %d elections, want one of both standbys after one", holder, elected)
		}
		stop()
		running.Wait()
	})
}
