//go:build !without_pulsar

package pulsar

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

// connectionState records whether a consumer is connected. The library does not report this. But for each partition that it loses, it asks
// for a back-off, and resets the back-off when the partition is connected again.
type connectionState struct {
	now func() time.Time
	log interface {
		Info(message string, arguments ...any)
	}

	mu   sync.Mutex
	lost map[*backoffPolicy]time.Time
}

// policy implements the library's BackOffPolicyFunc.
func (l *connectionState) policy() backoff.Policy {
	lost := &backoffPolicy{next: firstPause}
	lost.done = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if since, ok := l.lost[lost]; ok {
			delete(l.lost, lost)
			l.log.Info("connected again", "after", l.now().Sub(since).Round(time.Millisecond).String())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = map[*backoffPolicy]time.Time{}
	}
	l.lost[lost] = l.now()
	l.log.Info("connection lost, connecting again")
	return lost
}

// isConnected reports whether no partition is lost.
func (l *connectionState) isConnected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lost) == 0
}

// lostFor returns the time since the earliest loss; 0 if no partition is lost.
func (l *connectionState) lostFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := time.Duration(0)
	for _, since := range l.lost {
		longest = max(longest, l.now().Sub(since))
	}
	return longest
}

// backoffPolicy is a back-off. It doubles with each attempt up to lastPause, and adds up to a fifth, so that the replicas do not connect
// all at once.
type backoffPolicy struct {
	next time.Duration
	done func()
}

// Next implements backoff.Policy.
func (p *backoffPolicy) Next() time.Duration {
	now := p.next
	p.next = min(2*p.next, lastPause)
	return now + rand.N(now/5) //nolint:gosec // not a secret
}

// IsMaxBackoffReached implements backoff.Policy.
func (p *backoffPolicy) IsMaxBackoffReached() bool { return p.next >= lastPause }

// Reset implements backoff.Policy: the library calls it when it is connected.
func (p *backoffPolicy) Reset() {
	p.next = firstPause
	if p.done != nil {
		p.done()
	}
}
