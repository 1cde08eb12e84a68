package backup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// progressTimeout bounds one request to a Pod.
	progressTimeout = 2 * time.Second
	// clientLife is for how long a client is used: much shorter than its certificate is valid, and long enough to be cheap.
	clientLife = 10 * time.Minute
)

// memory keeps data between passes: clients for the Pods of backups in progress, since when deletions fail, and since when this process has
// observed something.
type memory struct {
	mu       sync.Mutex
	clients  map[types.NamespacedName]known
	failures map[types.NamespacedName]failing
	sights   *transfer.Stopwatch
}

// failing is a deletion that fails. A new operator process starts to count at zero: it has not tried yet.
type failing struct {
	uid   types.UID
	since time.Time
}

// known is a client for the Pods of one instance.
type known struct {
	uid    types.UID
	client *protocol.Client
	made   time.Time
}

func newMemory() *memory {
	return &memory{clients: map[types.NamespacedName]known{}, failures: map[types.NamespacedName]failing{}, sights: transfer.NewStopwatch()}
}

func (m *memory) recall(key types.NamespacedName) known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients[key]
}

func (m *memory) keep(key types.NamespacedName, what known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients[key] = what
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clients, key)
	delete(m.failures, key)
	m.sights.Forget(key)
}

// fail records that a deletion failed, and returns since when it fails.
func (m *memory) fail(key types.NamespacedName, uid types.UID, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures[key].uid != uid {
		m.failures[key] = failing{uid: uid, since: now}
	}
	return m.failures[key].since
}

// succeed records that a deletion no longer fails.
func (m *memory) succeed(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failures, key)
}

// observeProgress asks the running Pod for its progress. A Pod that does not answer is no error: it may have just started, be about to end,
// or be unreachable for the operator.
func (r *reconciler) observeProgress(ctx context.Context, instance v1.MySQLBackupInstance, seen *observed) {
	if seen.transfer.PodIP == "" {
		return
	}
	progress, err := r.ask(ctx, instance, *seen)
	if err != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("failed to get progress", "pod", seen.transfer.Pod, "reason", err.Error())
		return
	}
	seen.progress = &progress
}

func (r *reconciler) ask(ctx context.Context, instance v1.MySQLBackupInstance, seen observed) (protocol.Progress, error) {
	key := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
	kept := r.memory.recall(key)
	if kept.uid != instance.UID || seen.now.Sub(kept.made) > clientLife {
		client, err := r.transferClient(ctx, instance.Namespace, seen.name, seen.now)
		if err != nil {
			return protocol.Progress{}, err
		}
		kept = known{uid: instance.UID, client: client, made: seen.now}
		r.memory.keep(key, kept)
	}
	return kept.client.Progress(ctx, seen.transfer.PodIP, protocol.Host(instance.Namespace, seen.name))
}

// transferClient returns a client for the Pods that copy a cluster. It uses the cluster's own CA, which the cluster's operator created.
func (r *reconciler) transferClient(ctx context.Context, namespace, cluster string, now time.Time) (*protocol.Client, error) {
	name := agent.AuthoritySecret(namespace, cluster)
	object, err := r.reader.Get(ctx, secrets(), r.home, name)
	if err != nil {
		return nil, err
	}
	var held corev1.Secret
	if err := schema.Decode(object, &held); err != nil {
		return nil, err
	}
	authorities, err := agent.ReadAuthorities(held.Data)
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", r.home, name, err)
	}
	security, err := agent.NewOperatorTLS(authorities, "", now)
	if err != nil {
		return nil, err
	}
	return protocol.NewClient(security.Client, progressTimeout, agent.Port), nil
}
