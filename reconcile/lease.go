package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leadership tracks how long this process may still assume that it is the only leader. It ends when the Lease names another holder, or a
// fixed time after the last renewal was sent, whichever is first. client-go's elector takes longer for both: it tries to win back a lost
// Lease until its deadline, and counts the deadline from the answer to a renewal.
type leadership struct {
	lasts time.Duration
	ended chan struct{}
	end   func()

	mu sync.Mutex
	// expiry ends the hold; nil until this process won the Lease.
	expiry *time.Timer
}

func newHold(lasts time.Duration) *leadership {
	ended := make(chan struct{})
	return &leadership{lasts: lasts, ended: ended, end: sync.OnceFunc(func() { close(ended) })}
}

// renewed extends the hold: the renewal sent at that time has succeeded.
func (h *leadership) renewed(sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := h.lasts - time.Since(sent)
	if h.expiry == nil {
		h.expiry = time.AfterFunc(rest, h.end)
		return
	}
	h.expiry.Reset(rest)
}

// lostToOther ends the hold, if this process ever won the Lease: another process holds the Lease.
func (h *leadership) lostToOther() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.expiry != nil {
		h.end()
	}
}

// release stops the hold's timer.
func (h *leadership) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.end()
}

// lease is the Lease as client-go's elector reads and writes it. It observes what the elector does not report: the holder, the time of each
// renewal, and whether the Lease can be reached. Only one elector may use it at a time.
type lease struct {
	resourcelock.Interface
	logger logr.Logger
	hold   *leadership

	// failing is the time since when the Lease cannot be read or written; zero while it can.
	failing time.Time
	// wasRead is true if the Lease was read since then. The next call shows whether it can also be written: if the elector need not write,
	// or the write succeeds, the failure is over.
	wasRead bool

	mu   sync.Mutex
	seen sighting
	// abandoned is the content of a Lease whose holder has failed: the elector may acquire it. Empty for none.
	abandoned string
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.wasRead {
		l.recovered()
	}
	record, raw, err := l.Interface.Get(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		l.failed(ctx, err)
		return record, raw, err
	}
	l.wasRead = true
	if err != nil {
		return record, raw, err
	}
	if record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.hold.lostToOther()
	}
	if l.sees(record, raw) {
		released := *record
		released.HolderIdentity = ""
		record = &released
	}
	return record, raw, nil
}

// sees notes the Lease as it was read, and reports whether its holder has failed since it wrote this content.
func (l *lease) sees(record *resourcelock.LeaderElectionRecord, raw []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = l.seen.reading(record.HolderIdentity, string(raw), time.Now())
	return l.abandoned != "" && string(raw) == l.abandoned
}

func (l *lease) lastSighting() sighting {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// forget forgets what this process has seen of another leader: when it stands by again, that is old.
func (l *lease) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = sighting{}
}

// answeredBy notes that the leader of this identity has answered.
func (l *lease) answeredBy(leader string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.leader == leader {
		l.seen.answered = now
	}
}

// takeOver lets the elector acquire the Lease as it was read last, if its holder has failed. It does so once for each content: another
// time would end the election that acquires the Lease.
func (l *lease) takeOver(now time.Time, retryPeriod time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.lease == l.abandoned || !l.seen.hasFailed(now, retryPeriod) {
		return false
	}
	l.abandoned = l.seen.lease
	return true
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lease) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := time.Now()
	err := send(ctx, record)
	if err == nil {
		l.recovered()
		l.forget()
		l.hold.renewed(sent)
		return nil
	}
	// Another process was faster; the elector reads the Lease again.
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		l.failed(ctx, err)
	}
	return err
}

// failed logs the first of successive failures. The elector retries every few seconds; one line for an outage is enough.
func (l *lease) failed(ctx context.Context, err error) {
	l.wasRead = false
	if ctx.Err() != nil || !l.failing.IsZero() {
		return
	}
	l.failing = time.Now()
	l.logger.Error(err, "failed to read or write the lease, retrying", "lease", l.Describe(), "remedy", leaseRemedy(err))
}

func (l *lease) recovered() {
	l.wasRead = false
	if l.failing.IsZero() {
		return
	}
	l.logger.Info("the lease can be read and written again", "lease", l.Describe(), logDuration, time.Since(l.failing).Round(time.Second).String())
	l.failing = time.Time{}
}

func leaseRemedy(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return "grant the operator get, create and update on the lease (mysql-operator manifests rbac prints the permissions that the operator needs)"
	}
	return "none, if the API server becomes available again"
}
