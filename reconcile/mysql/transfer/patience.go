package transfer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Sightings remembers since when this process has seen something of an object. Patience is measured by it, with one clock: the times in
// objects are those of other clocks, which may be hours away. An operator that takes over counts anew.
type Sightings struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]map[string]time.Time
}

// NewSightings remembers nothing yet.
func NewSightings() *Sightings {
	return &Sightings{seen: map[types.NamespacedName]map[string]time.Time{}}
}

// Waited returns for how long this process has seen what is named, and remembers it if it is new.
func (s *Sightings) Waited(key types.NamespacedName, what string, now time.Time) time.Duration {
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

// End notes that what is named is over: should it come again, it counts anew.
func (s *Sightings) End(key types.NamespacedName, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen[key], what)
}

// Forget drops everything about an object.
func (s *Sightings) Forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}
