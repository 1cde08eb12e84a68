package transfer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Stopwatch records since when this process has observed something of an object. It measures waiting times with one clock: times in objects
// come from other clocks, which may differ by hours. A new operator process starts to count at zero.
type Stopwatch struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]map[string]time.Time
}

// NewStopwatch returns empty Sightings.
func NewStopwatch() *Stopwatch {
	return &Stopwatch{seen: map[types.NamespacedName]map[string]time.Time{}}
}

// Waited returns for how long this process has observed what, and records it if it is new.
func (s *Stopwatch) Waited(key types.NamespacedName, what string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[key] == nil {
		s.seen[key] = map[string]time.Time{}
	}
	since, found := s.seen[key][what]
	if !found {
		since = now
		s.seen[key][what] = now
	}
	return now.Sub(since)
}

// IsTimed reports whether a time for what runs.
func (s *Stopwatch) IsTimed(key types.NamespacedName, what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.seen[key][what]
	return found
}

// End removes what: if it appears again, it counts from zero.
func (s *Stopwatch) End(key types.NamespacedName, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen[key], what)
	if len(s.seen[key]) == 0 {
		delete(s.seen, key) // an empty map keeps its memory
	}
}

// Forget removes everything about an object.
func (s *Stopwatch) Forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}
