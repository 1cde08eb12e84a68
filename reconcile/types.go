package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
)

// The field managers the operator writes as (Kubernetes documentation, "Server-Side Apply"): one for each concern, so that each can
// be told from the others in an object's managedFields.
const (
	// ManagerChildren owns the fields of the objects that Client.Apply makes.
	ManagerChildren = "mysql-operator"
	// ManagerStatus owns the status of the kinds' own objects.
	ManagerStatus = "mysql-operator-status"
)

// The types of an Event, as the events.k8s.io/v1 API names them.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// Reconciler brings one object one step nearer to what its spec says.
type Reconciler interface {
	// Reconcile makes one pass over the object. obj is the reconciler's own copy. ctx ends when the pass has used up its time
	// (Config.PassTimeout), when the operator stops and when it loses its lease; it carries the logger (logr.FromContext). The
	// engine never runs two passes over the same object at once. An error sends the object into back-off; the outcome is
	// carried out all the same.
	Reconcile(ctx context.Context, obj *unstructured.Unstructured) (Outcome, error)
}

// Glancer is what a Reconciler implements if it can tell, without an object's content, that a pass over it would change nothing.
type Glancer interface {
	// Glance reports whether the object in this version needs no pass now, and if so, when to come again. It is called before a pass where the
	// object had one in this term and the caches show all that its passes wrote. It must write nothing, and bound its own time: ctx ends when
	// the operator stops. After false or a panic the pass is made as usual.
	Glance(ctx context.Context, key types.NamespacedName, uid types.UID, version string) (again time.Duration, isEnough bool)
}

// Forgetter is what a Reconciler implements if it remembers things about objects between passes.
type Forgetter interface {
	// Forget is told that the object is gone. It must return at once.
	Forget(key types.NamespacedName)
}

// Ender is what a Reconciler implements if something has to go with an object that Kubernetes' garbage collection does not take along, and
// that is not worth a finalizer.
type Ender interface {
	// End is called when the object is gone, as far as the caches know: what it deletes, it deletes only if the API server says the same.
	// Until it returns nil it is called again. No pass over an object of that name is made at the same time.
	End(ctx context.Context, key types.NamespacedName) error
	// Left is called when a term begins, until it returns no error: it returns the objects that may have ended while no operator worked.
	Left(ctx context.Context) ([]types.NamespacedName, error)
}

// Outcome is what a pass wants done when it is over.
type Outcome struct {
	// Status is the whole desired status: a type that JSON turns into an object. Nil leaves the status alone. It is written once
	// a pass, only if it differs from the object's, and only if nobody changed the object since the pass began (else the object
	// comes again at once).
	Status any
	// Events tell people what happened. An event that the object's previous full pass told already, word for word, is not told again. One that
	// the API server does not accept is tried again in the next passes, a few times: Client.Tell is for what must be told for certain.
	Events []Event
	// Again is when to come again although nothing changed; zero means never.
	Again time.Duration
}

// Event is one thing that happened to an object (events.k8s.io/v1).
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is why: one CamelCase word, a constant, the same as in the condition that speaks of it. At most 128 characters.
	Reason string
	// Action is what was done or tried: one CamelCase word. Empty means the same as Reason.
	Action string
	// Note is the sentence for people. It is cut at 1024 characters.
	Note string
}

// Controller is one kind, as the engine knows it.
type Controller struct {
	// Kind names the resource whose objects are reconciled.
	Kind schema.Kind
	// Watches are the other resources whose changes concern this kind's objects. What is watched is also cached (Client.Cached).
	Watches []Watch
	// Indices are what the kind's cached objects can be found by (Lister.Indexed), beside their names. With one, Watch.Owners finds whom a
	// change concerns without looking at all objects.
	Indices map[string]IndexFunc
	// Childless says that the Reconciler never gives an owner to what it writes, and so needs no right to. Applied children always have one.
	Childless bool
	// Rules are the permissions the Reconciler needs beyond those the engine knows of by itself (see the function Rules).
	Rules []rbacv1.PolicyRule
	// OwnRules are those it needs in the operator's own namespace, whichever others it works in.
	OwnRules []rbacv1.PolicyRule
	// Metrics makes what the kind measures beyond what the engine does, from the kind's cached objects whenever the metrics are read: what
	// a series speaks of, it ends with, and a restart loses nothing. Names begin with MetricsPrefix. Nil means nothing.
	Metrics func(objects Lister) prometheus.Collector
	// New makes the Reconciler. It is called at the beginning of every term as leader, so that nothing remembered in an earlier
	// term survives into a later one.
	New func(*Client) Reconciler
}

// Watch is a resource whose changes concern a kind's objects.
type Watch struct {
	// Resource is what to watch. Secrets are refused: they are never cached.
	Resource apischema.GroupVersionResource
	// Selector is a label selector in kubectl's form; empty selects all. What it does not select is neither cached nor noticed.
	Selector string
	// MetadataOnly asks the API server for the objects' metadata and nothing else, and keeps no more: for resources with many or large
	// objects of which only the existence, the labels or the owners matter. What comes out of the cache has the kind
	// PartialObjectMetadata. Updates that leave the (transformed) metadata as it was are not noticed.
	MetadataOnly bool
	// Indices are what the cached objects can be found by (Lister.Indexed), beside their names.
	Indices map[string]IndexFunc
	// Transform is applied to every object before it is cached. It must keep the metadata, and the managedFields entries that
	// TrimMetadata keeps if the resource is written through Client.Apply or Client.ApplyFields. It must be quick, tolerate any
	// type of object, and give the same result when applied twice. With MetadataOnly it is given a
	// *metav1.PartialObjectMetadata, and need not keep managedFields. Nil means TrimMetadata; KeepDigest is for what only Client.Apply
	// reads.
	Transform cache.TransformFunc
	// Owners tells which objects of the kind a change to child concerns; objects lists the kind's cached objects (with Indexed, not List,
	// where there may be many of either). Nil means the controller owner (metadata.ownerReferences) if it is of the kind.
	Owners func(child *unstructured.Unstructured, objects Lister) []types.NamespacedName
}

// Lister reads a cache. Objects that come out of it are shared with everyone: they must not be changed (DeepCopy first).
type Lister interface {
	// Get returns an object by its name, and whether there is one.
	Get(namespace, name string) (*unstructured.Unstructured, bool)
	// List returns the objects of a namespace, or all for the empty string, ordered by namespace and name.
	List(namespace string) []*unstructured.Unstructured
	// Owned returns the objects whose controller (metadata.ownerReferences) has this UID, ordered by namespace and name.
	Owned(owner types.UID) []*unstructured.Unstructured
	// Indexed returns the objects that have this key in one of the Indices of the Controller or of the Watch, ordered by namespace and name.
	// What it costs depends on how many there are of these, and not of others. An index that was not asked for is a mistake in the program,
	// and panics.
	Indexed(index, key string) []*unstructured.Unstructured
}

// Change is what a write did to an object.
type Change string

// The changes a write can make.
const (
	// Unchanged: everything was as desired already; most of the time no request was sent.
	Unchanged Change = "unchanged"
	// Created: the object did not exist.
	Created Change = "created"
	// Updated: something in the object changed.
	Updated Change = "updated"
	// Awaiting: the object is being deleted; nothing was written. If a watch selects it, its end starts another pass, which creates it anew.
	Awaiting Change = "awaiting deletion"
)

// ForeignError says that an object under the desired name exists and does not belong to the owner. It is never taken over.
type ForeignError struct {
	Resource  apischema.GroupVersionResource
	Namespace string
	Name      string
	// Controller is the "Kind/name" of the object that controls it; empty if nothing does.
	Controller string
	// Predecessor says that the controller is an earlier object of the owner's kind and name, already deleted. Kubernetes' garbage
	// collection will remove the object soon: waiting is enough.
	Predecessor bool
	// Unproven names what would show that an orphan with our marks is ours, and is not there; empty if that is not asked for.
	Unproven string
}

// Error says what is in the way and what a person can do.
func (e *ForeignError) Error() string {
	what := fmt.Sprintf("%s %s/%s exists already", e.Resource.GroupResource(), e.Namespace, e.Name)
	if e.Predecessor {
		return what + " and belongs to a deleted predecessor of the same name: wait until garbage collection has removed it"
	}
	if e.Unproven != "" {
		return what + " with this operator's marks, which anybody can copy, and without " + e.Unproven + ": delete it, and it is made anew"
	}
	if e.Controller == "" {
		return what + " and was not made by this operator: delete or rename it, or choose another name"
	}
	return fmt.Sprintf("%s and belongs to %s: delete or rename it, or choose another name", what, e.Controller)
}
