package mysqlcluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/backup"
)

const (
	// secretsEvery is how often the Secrets, which are never watched, are looked at again while the cluster is as it should be, and
	// secretsSoon while it is not: a Pod may wait for one that somebody deleted.
	secretsEvery = 5 * time.Minute
	secretsSoon  = 15 * time.Second
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
	// transfers asks Pods that restore how far they are.
	transfers *backup.Client
	// tidied says that nothing is left of the restore that the cluster began with.
	tidied bool
	// looked is when the Secrets were looked at.
	looked time.Time
}

// recall returns what is known of a cluster; nothing of one that only has the same name.
func (m *memory) recall(key types.NamespacedName, uid types.UID) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.clusters[key]; known.uid == uid {
		return known
	}
	return remembered{}
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
