//go:build !without_pulsar

package pulsar

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

// link knows whether a consumer is connected. The library does not tell; but for each partition of the topic that it loses, it asks for a
// back-off and resets that when it is connected again.
type link struct {
	now func() time.Time
	log interface {
		Info(message string, arguments ...any)
	}

	mu   sync.Mutex
	lost map[*pause]time.Time
}

// policy implements the library's BackOffPolicyFunc.
func (l *link) policy() backoff.Policy {
	lost := &pause{next: firstPause}
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
		l.lost = map[*pause]time.Time{}
	}
	l.lost[lost] = l.now()
	l.log.Info("connection lost, connecting again")
	return lost
}

// whole says that nothing is lost.
func (l *link) whole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lost) == 0
}

// lostFor returns how long the longest loss lasts; 0 if nothing is lost.
func (l *link) lostFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := time.Duration(0)
	for _, since := range l.lost {
		longest = max(longest, l.now().Sub(since))
	}
	return longest
}

// pause is a back-off: doubled with every attempt, up to lastPause and a fifth more, so that the replicas do not come all at once.
type pause struct {
	next time.Duration
	done func()
}

// Next implements backoff.Policy.
func (p *pause) Next() time.Duration {
	now := p.next
	p.next = min(2*p.next, lastPause)
	return now + rand.N(now/5) //nolint:gosec // not a secret
}

// IsMaxBackoffReached implements backoff.Policy.
func (p *pause) IsMaxBackoffReached() bool { return p.next >= lastPause }

// Reset implements backoff.Policy: the library calls it when it is connected.
func (p *pause) Reset() {
	p.next = firstPause
	if p.done != nil {
		p.done()
	}
}
