package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// agentTimeout bounds one question to one agent.
const agentTimeout = 2 * time.Second

// memory is what a Reconciler remembers of the clusters between passes: only what it could find out again at any time.
type memory struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]remembered
	sights   map[types.NamespacedName]sight
	// calm are the clusters that have nothing to do, unchanged is what the children of each were made of when none had to be changed.
	calm      map[types.NamespacedName]*settled
	unchanged map[types.NamespacedName]made
	// hollow is when a cluster's event about hollow transactions was told last.
	hollow map[types.NamespacedName]telling
	// held is why clusters' members do not get what the spec asks for, so that it need not be found out anew at every look.
	held map[types.NamespacedName]heldFor
	// failures are of restores that ended: since when this process has seen that.
	failures *transfer.Sightings
}

func newMemory() *memory {
	return &memory{
		clusters: map[types.NamespacedName]remembered{}, sights: map[types.NamespacedName]sight{},
		calm: map[types.NamespacedName]*settled{}, unchanged: map[types.NamespacedName]made{},
		hollow: map[types.NamespacedName]telling{}, held: map[types.NamespacedName]heldFor{}, failures: transfer.NewSightings(),
	}
}

// sight is what a cluster looked like when it was looked at last, to tell for how long nothing has changed.
type sight struct {
	uid    types.UID
	digest uint64
	// idle counts the looks since anything changed, and looks how often the Secrets were looked at since then.
	idle, looks int
	// wanted says that a Pod may wait for the Secrets.
	wanted bool
	// uses stands for the certificates that all members used.
	uses string
}

// made is what a cluster's children follow from.
type made struct {
	uid    types.UID
	digest uint64
}

// heldFor is why settings or an image are held back, what that follows from, and until when it need not be found out again.
type heldFor struct {
	of    made
	found problem
	until time.Time
}

// telling is when something was told of a cluster.
type telling struct {
	uid types.UID
	at  time.Time
}

type remembered struct {
	uid types.UID
	// secret is the name of the user's Secret that was found good.
	secret string
	// papers are what was found out about the certificates; security is how agents and transfers are asked.
	papers
	// asked is what people asked for about the CA when the Secrets were looked at.
	asked  rotationRequest
	agents *agent.Client
	// transfers asks Pods that restore how far they are.
	transfers *transfer.Client
	// tidied says that nothing is left of the restore that the cluster began with.
	tidied bool
	// looked is when the Secrets were looked at.
	looked time.Time
}

// reaching returns clients that show and trust what security says: those that are known, with the connections that they keep, as long as
// they trust the same CA and show a certificate that lasts.
func (known remembered) reaching(security *tls.Config, now time.Time) remembered {
	if known.security != nil && known.security.RootCAs.Equal(security.RootCAs) && lasts(known.security, now) {
		return remembered{papers: papers{security: known.security}, agents: known.agents, transfers: known.transfers}
	}
	if known.agents != nil {
		known.agents.Close()
	}
	return remembered{papers: papers{security: security}, agents: agent.NewClient(security, agentTimeout), transfers: transfer.NewClient(security, agentTimeout, agent.Port)}
}

// stillHolds says whether nothing asks for another look at the Secrets: neither the cluster, nor what its members use by now, nor that so
// much time has passed.
func (known remembered) stillHolds(cluster v1.MySQLCluster, last sight, now time.Time) bool {
	every := secretsAfter(isAtRest(cluster.Status), last.wanted, last.looks)
	return now.Before(known.lookAgain(every)) && known.secret == cluster.Spec.Secret && known.asked.same(rotationRequestOf(cluster.Annotations)) &&
		!known.ripe(last.uses)
}

// lookAgain is when the Secrets are looked at again: after a while, or when the time has come before which people want no CA to be made.
func (known remembered) lookAgain(every time.Duration) time.Time {
	again := known.looked.Add(every)
	if asked := known.asked.before; asked.After(known.looked) && asked.Before(again) {
		return asked
	}
	return again
}

// lasts says whether the operator's certificate is good for more than half of its life.
func lasts(security *tls.Config, now time.Time) bool {
	for _, own := range security.Certificates {
		if own.Leaf == nil || !isFresh(own.Leaf, now) {
			return false
		}
	}
	return true
}

func isFresh(own *x509.Certificate, now time.Time) bool {
	return own.NotAfter.Sub(now) >= agent.OperatorLife/2
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

// sight returns how a cluster looked last.
func (m *memory) sight(key types.NamespacedName, uid types.UID) sight {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.sights[key]; last.uid == uid {
		return last
	}
	return sight{uid: uid}
}

// see notes how a cluster looks now, and returns for how many looks it has looked the same.
func (m *memory) see(key types.NamespacedName, now sight) (idle int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.sights[key]; last.uid == now.uid && last.digest == now.digest {
		now.idle, now.looks = last.idle+1, last.looks
	}
	m.sights[key] = now
	return now.idle
}

// lookedAtSecrets notes that a cluster's Secrets were looked at.
func (m *memory) lookedAtSecrets(key types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.sights[key]
	if last.uid != uid {
		last = sight{uid: uid}
	}
	last.looks++
	m.sights[key] = last
}

// settled returns a cluster that had nothing to do when it was looked at last; nil for any other.
func (m *memory) settled(key types.NamespacedName, uid types.UID) *settled {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.calm[key]; known != nil && known.uid == uid {
		return known
	}
	return nil
}

// settle remembers a cluster that has nothing to do; nil says that it has.
func (m *memory) settle(key types.NamespacedName, what *settled) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what == nil {
		delete(m.calm, key)
		return
	}
	m.calm[key] = what
}

// tellsHollow reports whether it is time to tell of hollow transactions, and notes that it is done.
func (m *memory) tellsHollow(key types.NamespacedName, uid types.UID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.hollow[key]; last.uid == uid && now.Sub(last.at) < hollowEvery {
		return false
	}
	m.hollow[key] = telling{uid, now}
	return true
}

// isMade says whether the children that follow from this were found to be as they have to be.
func (m *memory) isMade(key types.NamespacedName, of made) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unchanged[key] == of
}

// noteMade remembers what the children follow from that are all as they have to be.
func (m *memory) noteMade(key types.NamespacedName, of made) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unchanged[key] = of
}

// heldSettings returns why settings or an image are held back, if that was found out not long ago and nothing has changed; nil otherwise.
func (m *memory) heldSettings(key types.NamespacedName, of made, now time.Time) *problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.held[key]
	if known.of != of || !now.Before(known.until) {
		return nil
	}
	return &known.found
}

// holdSettings remembers why settings or an image are held back.
func (m *memory) holdSettings(key types.NamespacedName, what heldFor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[key] = what
}

// hangUp ends the connections to the agents of a cluster that is not looked after at present.
func (m *memory) hangUp(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.clusters[key]; known.agents != nil {
		known.agents.Close()
	}
}

func (m *memory) forget(key types.NamespacedName) {
	m.hangUp(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clusters, key)
	delete(m.sights, key)
	delete(m.calm, key)
	delete(m.unchanged, key)
	delete(m.hollow, key)
	delete(m.held, key)
	m.failures.Forget(key)
}
