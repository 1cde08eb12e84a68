package reconcile

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// barrierPatience is how long an object waits for the caches to show its own last writes. After that, its passes list what they need from
// the API server.
const barrierPatience = 30 * time.Second

// journal remembers what each object's passes wrote until the caches show it: the read-your-own-writes barrier. Without it, a pass right
// after a write could read the state before that write and decide the same again.
//
// A cache shows a write when its store has reached the written resourceVersion. Resource versions of one resource can be compared
// (Kubernetes documentation, "Resource Versions"). A cache shows a deletion when the object is gone or marked as being deleted.
//
// The journal also remembers what was applied last to each child, see applied.
type journal struct {
	now    func() time.Time
	caches map[apischema.GroupVersionResource]*view

	mu      sync.Mutex
	records map[types.NamespacedName]*record
}

// record is what the journal remembers of one object of the kind.
type record struct {
	uid     types.UID
	writes  []write
	applied map[appliedTo]applied
	// taken are names of children under which a pass found an object that the caches did not show; nil for none.
	taken map[childName]bool
}

// childName identifies a child by resource, namespace and name.
type childName struct {
	resource        apischema.GroupVersionResource
	namespace, name string
}

// write is one write that a cache does not show yet.
type write struct {
	resource  apischema.GroupVersionResource
	namespace string
	name      string
	uid       types.UID
	// version is the resourceVersion that the write made; empty for a deletion.
	version string
	at      time.Time
}

// appliedTo names a child and the field manager that wrote it. A later child of the same name uses the same entry.
type appliedTo struct {
	manager string
	child   childName
}

// applied is a digest of the child's UID, of what was applied last to the child, and of what the API server stored for it. While it stays
// the same, nothing that the operator applied has changed.
type applied [sha256.Size]byte

// appliedAs returns the applied of a child from the digests of the desired and of the stored content.
func appliedAs(uid types.UID, desired, stored string) applied {
	return sha256.Sum256([]byte(string(uid) + " " + desired + " " + stored))
}

func newJournal(caches map[apischema.GroupVersionResource]*view, now func() time.Time) *journal {
	return &journal{now: now, caches: caches, records: map[types.NamespacedName]*record{}}
}

// pass identifies a pass over one object.
type pass struct {
	key types.NamespacedName
	uid types.UID
	// live is true if the caches did not catch up in time. The pass then lists from the API server what the caches do not show yet, and
	// Apply compares with live objects.
	live bool
}

// wrote remembers the API server's answer object, which the pass wrote or read live.
func (j *journal) wrote(current pass, resource apischema.GroupVersionResource, object *unstructured.Unstructured) {
	cached, ok := j.caches[resource]
	if !ok || !cached.selects(object) {
		return
	}
	j.add(current, write{resource: resource, namespace: object.GetNamespace(), name: object.GetName(), uid: object.GetUID(), version: object.GetResourceVersion()})
}

// deleted remembers that the pass deleted object.
func (j *journal) deleted(current pass, resource apischema.GroupVersionResource, object *unstructured.Unstructured) {
	j.forgetApplied(current, nameOf(resource, object))
	if _, ok := j.caches[resource]; !ok {
		return
	}
	j.add(current, write{resource: resource, namespace: object.GetNamespace(), name: object.GetName(), uid: object.GetUID()})
}

func (j *journal) add(current pass, written write) {
	written.at = j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	held := j.record(current)
	for i, earlier := range held.writes {
		if earlier.supersededBy(written) {
			held.writes[i].version = written.version
			return
		}
	}
	held.writes = append(held.writes, written)
}

// supersededBy reports whether a cache that shows the later write shows this one as well.
func (w write) supersededBy(later write) bool {
	w.version, w.at = later.version, later.at
	return w == later && later.version != ""
}

// pending returns a write of the object's earlier passes that the caches do not show yet, and whether there is one.
func (j *journal) pending(key types.NamespacedName, uid types.UID) (write, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	held, ok := j.records[key]
	if !ok || held.uid != uid {
		return write{}, false
	}
	held.writes = slices.DeleteFunc(held.writes, j.shown)
	if len(held.writes) == 0 {
		held.writes = nil // the slice grew with the object's largest pass
		return write{}, false
	}
	return held.writes[0], true
}

func (j *journal) shown(written write) bool {
	cached := j.caches[written.resource]
	if written.version != "" {
		return cached.reached(written.namespace, written.version)
	}
	object, found := cached.Get(written.namespace, written.name)
	return !found || object.GetUID() != written.uid || object.GetDeletionTimestamp() != nil
}

// overdue reports whether the object has waited long enough for the caches to show the write.
func (j *journal) overdue(written write) bool {
	return j.now().Sub(written.at) > barrierPatience
}

// forget removes what is remembered of an object that is gone.
func (j *journal) forget(key types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.records, key)
}

// lastApplied returns what the object's passes applied last to a child.
func (j *journal) lastApplied(current pass, child appliedTo) (applied, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last, ok := j.record(current).applied[child]
	return last, ok
}

// remember stores what the pass applied to a child.
func (j *journal) remember(current pass, child appliedTo, what applied) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.record(current).applied[child] = what
}

// forgetApplied removes what was applied to a child that the pass deleted.
func (j *journal) forgetApplied(current pass, child childName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.record(current).applied, func(to appliedTo, _ applied) bool { return to.child == child })
}

// isTaken reports whether a pass found an object that the caches do not show under a child's name.
func (j *journal) isTaken(current pass, child childName) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.record(current).taken[child]
}

// noteTaken remembers whether there is an object that the caches do not show under a child's name.
func (j *journal) noteTaken(current pass, child childName, isTaken bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	held := j.record(current)
	switch {
	case !isTaken:
		delete(held.taken, child)
	case held.taken == nil:
		held.taken = map[childName]bool{child: true}
	default:
		held.taken[child] = true
	}
}

// record returns the record of the pass's object. It drops the record of an earlier object of the same name.
func (j *journal) record(current pass) *record {
	held, ok := j.records[current.key]
	if !ok || held.uid != current.uid {
		held = &record{uid: current.uid, applied: map[appliedTo]applied{}}
		j.records[current.key] = held
	}
	return held
}
