package mysqlcluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
)

const (
	// secretsEvery is how often the Secrets, which are never watched, are looked at again while nothing is wrong with them.
	secretsEvery = 5 * time.Minute
	// agentTimeout bounds one question to one agent.
	agentTimeout = 2 * time.Second
)

// memory is what a Reconciler remembers of the clusters between passes: only what it could find out again at any time.
type memory struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]remembered
}

type remembered struct {
	uid types.UID
	// secret is the name of the user's Secret that was found good.
	secret string
	agents *agent.Client
	// until is when to look at the Secrets again.
	until time.Time
}

func (m *memory) recall(key types.NamespacedName, uid types.UID, now time.Time) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.clusters[key]
	return known, found && known.uid == uid && now.Before(known.until)
}

func (m *memory) keep(key types.NamespacedName, what remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters[key] = what
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clusters, key)
}
