package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// agentTimeout bounds one request to one agent.
const agentTimeout = 2 * time.Second

// memory is what a reconciler remembers of the clusters between passes: only what it could find out again at any time.
type memory struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]clusterMemory
	sights   map[types.NamespacedName]lookHistory
	// calm are the clusters that have nothing to do. unchanged are the inputs of each cluster's children when none of them had to be
	// changed.
	calm      map[types.NamespacedName]*restingCluster
	unchanged map[types.NamespacedName]childInputs
	// hollow is when the operator last sent a cluster's event about hollow transactions.
	hollow map[types.NamespacedName]eventRecord
	// held is why clusters' members do not get what the spec asks for, so that not every look must find that out again.
	held map[types.NamespacedName]heldBackResult
	// silences is since when members were seen not to acknowledge under a cluster's record.
	silences map[types.NamespacedName]silence
	// had are the transactions that members had when they reported last.
	had map[types.NamespacedName]reported
	// takeovers are those in progress that this process has seen begin.
	takeovers map[types.NamespacedName]takeoverPhase
	// alarms limits the alarms of each cluster.
	alarms alarmLimits
	// alarmPort is the port on which the operator takes alarms; nil while it takes none.
	alarmPort atomic.Pointer[string]
	// failures records since when this process has seen that something is not as it should be, such as a member that does not answer.
	failures *transfer.Stopwatch
}

func newMemory() *memory {
	return &memory{
		clusters: map[types.NamespacedName]clusterMemory{}, sights: map[types.NamespacedName]lookHistory{},
		calm: map[types.NamespacedName]*restingCluster{}, unchanged: map[types.NamespacedName]childInputs{},
		hollow: map[types.NamespacedName]eventRecord{}, held: map[types.NamespacedName]heldBackResult{}, silences: map[types.NamespacedName]silence{}, had: map[types.NamespacedName]reported{}, takeovers: map[types.NamespacedName]takeoverPhase{},
		failures: transfer.NewStopwatch(),
	}
}

// lookHistory is what a cluster looked like at the last look. It shows for how long nothing has changed.
type lookHistory struct {
	uid    types.UID
	digest uint64
	// idle counts the looks since the last change, and looks how often the Secrets were read since then.
	idle, looks int
	// wanted reports whether a Pod may wait for the Secrets.
	wanted bool
	// uses identifies the certificates that all members used.
	uses string
}

// childInputs identifies the inputs of a cluster's children.
type childInputs struct {
	uid    types.UID
	digest uint64
}

// heldBackResult is why settings or an image are held back, the inputs of that, and until when it need not be found out again.
type heldBackResult struct {
	of    childInputs
	found report.Problem
	until time.Time
}

// eventRecord is when the operator reported something about a cluster.
type eventRecord struct {
	uid types.UID
	at  time.Time
}

type clusterMemory struct {
	uid types.UID
	// secret is the name of the user's Secret that passed the check.
	secret string
	// papers are what was found out about the certificates; security is how the operator connects to agents and transfers.
	certificateState
	// asked is what the user asked for about the CA when the Secrets were read.
	asked  rotationRequest
	agents *agent.Client
	// transfers asks restoring Pods for their progress.
	transfers *protocol.Client
	// tidied reports whether nothing is left of the restore that the cluster started with.
	tidied bool
	// looked is when the Secrets were read. earlier is the random part of the period by which the next reading comes sooner. It keeps
	// clusters that were created together apart.
	looked  time.Time
	earlier float64
}

// withClients returns clients that show and trust what security says. It returns the known clients, with their open connections, as long as
// they trust the same CA and show a certificate that lasts. alarms returns where the operator takes the cluster's alarms.
func (known clusterMemory) withClients(security *agent.OperatorTLS, alarms func() string, now time.Time) clusterMemory {
	if known.security != nil && known.security.HasSameCAs(security) && known.security.Lasts(now) {
		return clusterMemory{certificateState: certificateState{security: known.security}, agents: known.agents, transfers: known.transfers}
	}
	if known.agents != nil {
		known.agents.Close()
	}
	return clusterMemory{certificateState: certificateState{security: security}, agents: agent.NewClient(security.Client, agentTimeout).WithAlarms(alarms), transfers: protocol.NewClient(security.Client, agentTimeout, agent.Port)}
}

// stillHolds reports whether nothing requires another look at the Secrets: neither the cluster, nor the certificates that its members use
// by now, nor the time since the last look.
func (known clusterMemory) stillHolds(cluster v1.MySQLCluster, last lookHistory, now time.Time) bool {
	every := secretsAfter(isAtRest(cluster.Status), last.wanted, last.looks)
	return now.Before(known.lookAgain(every)) && known.secret == cluster.Spec.Secret && known.asked.same(rotationRequestOf(cluster.Annotations)) &&
		!known.isStepDue(last.uses)
}

// lookAgain returns when to read the Secrets again: after a while, or at the time of AnnotationRotate, if that comes first.
func (known clusterMemory) lookAgain(every time.Duration) time.Time {
	again := known.looked.Add(every - time.Duration(known.earlier*float64(every)))
	if asked := known.asked.before; asked.After(known.looked) && asked.Before(again) {
		return asked
	}
	return again
}

// recall returns what is known of a cluster; nothing for one that only has the same name.
func (m *memory) recall(key types.NamespacedName, uid types.UID) clusterMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.clusters[key]; known.uid == uid {
		return known
	}
	return clusterMemory{}
}

func (m *memory) keep(key types.NamespacedName, what clusterMemory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters[key] = what
}

// sight returns how a cluster looked last.
func (m *memory) sight(key types.NamespacedName, uid types.UID) lookHistory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.sights[key]; last.uid == uid {
		return last
	}
	return lookHistory{uid: uid}
}

// see records how a cluster looks now, and returns for how many looks it has looked the same.
func (m *memory) see(key types.NamespacedName, now lookHistory) (idle int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.sights[key]; last.uid == now.uid && last.digest == now.digest {
		now.idle, now.looks = last.idle+1, last.looks
	}
	m.sights[key] = now
	return now.idle
}

// lookedAtSecrets records that a cluster's Secrets were read.
func (m *memory) lookedAtSecrets(key types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.sights[key]
	if last.uid != uid {
		last = lookHistory{uid: uid}
	}
	last.looks++
	m.sights[key] = last
}

// settled returns a cluster that had nothing to do at the last look; nil for any other.
func (m *memory) settled(key types.NamespacedName, uid types.UID) *restingCluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.calm[key]; known != nil && known.uid == uid {
		return known
	}
	return nil
}

// settle remembers a cluster that has nothing to do; nil means that it has.
func (m *memory) settle(key types.NamespacedName, what *restingCluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what == nil {
		delete(m.calm, key)
		return
	}
	m.calm[key] = what
}

// tellsHollow reports whether it is time for an event about hollow transactions, and records that it is sent.
func (m *memory) tellsHollow(key types.NamespacedName, uid types.UID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.hollow[key]; last.uid == uid && now.Sub(last.at) < hollowEvery {
		return false
	}
	m.hollow[key] = eventRecord{uid, now}
	return true
}

// isMade reports whether the children that follow from these inputs were found to be as they should be.
func (m *memory) isMade(key types.NamespacedName, of childInputs) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unchanged[key] == of
}

// noteMade records the inputs of children that are all as they should be.
func (m *memory) noteMade(key types.NamespacedName, of childInputs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unchanged[key] = of
}

// heldSettings returns why settings or an image are held back, if that was found out recently and nothing has changed; nil otherwise.
func (m *memory) heldSettings(key types.NamespacedName, of childInputs, now time.Time) *report.Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.held[key]
	if known.of != of || !now.Before(known.until) {
		return nil
	}
	return &known.found
}

// holdSettings remembers why settings or an image are held back.
func (m *memory) holdSettings(key types.NamespacedName, what heldBackResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[key] = what
}

// closeConnections closes the connections to the agents of a cluster that the operator does not look after at present.
func (m *memory) closeConnections(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.clusters[key]; known.agents != nil {
		known.agents.Close()
	}
}

func (m *memory) forget(key types.NamespacedName) {
	m.closeConnections(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clusters, key)
	delete(m.sights, key)
	delete(m.calm, key)
	delete(m.unchanged, key)
	delete(m.hollow, key)
	delete(m.held, key)
	delete(m.silences, key)
	delete(m.had, key)
	delete(m.takeovers, key)
	m.alarms.forget(key)
	m.failures.Forget(key)
}
