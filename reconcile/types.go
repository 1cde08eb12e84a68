package reconcile

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
)

// The field managers that the operator uses (Kubernetes documentation, "Server-Side Apply"): one for each purpose, so that an object's
// managedFields distinguish them.
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

// Reconciler brings one object one step nearer to its spec.
type Reconciler interface {
	// Reconcile makes one pass over the object, with the client of this pass. obj is the reconciler's own copy. ctx ends when the pass has
	// used up its time (Config.PassTimeout), when the operator stops, and when it loses its Lease. ctx has the logger (logr.FromContext). The
	// engine never runs two passes over the same object at once. After an error the engine requeues the object with back-off. It uses the
	// Outcome even if there is an error.
	Reconcile(ctx context.Context, client *Client, obj *unstructured.Unstructured) (Outcome, error)
}

// SkipChecker is implemented by a Reconciler that can decide, without an object's content, that a pass over it would change nothing.
type SkipChecker interface {
	// CanSkip reports whether the object in this version needs no pass now, and if so, when to requeue it. The engine calls it before a pass
	// if the object had a pass in this term and the caches show all that its passes wrote. It must write nothing, and limit its own time:
	// ctx ends only when the operator stops. If CanSkip returns false or panics, the engine makes the pass.
	CanSkip(ctx context.Context, key types.NamespacedName, uid types.UID, version string) (again time.Duration, isEnough bool)
}

// Forgetter is implemented by a Reconciler that remembers things about objects between passes.
type Forgetter interface {
	// Forget is called when the object is gone. It must return at once.
	Forget(key types.NamespacedName)
}

// DeletionHandler is implemented by a Reconciler that must delete something together with an object, if garbage collection does not delete
// it and it does not justify a finalizer.
type DeletionHandler interface {
	// HandleDeletion is called when the object is gone from the caches. Before it deletes anything, it must check with the API server that the
	// object is gone. client has no owner, so it can only read, delete, patch, and create objects without an owner. The engine calls it again
	// until it returns nil. During the call, no pass over an object of that name runs.
	HandleDeletion(ctx context.Context, client *Client, key types.NamespacedName) error
	// ListDeleted returns the objects that may have been deleted while no operator ran. The engine calls it when a term begins, until it
	// returns no error.
	ListDeleted(ctx context.Context) ([]types.NamespacedName, error)
}

// Listener is implemented by a Reconciler that also learns from elsewhere than from watches when an object needs a pass.
type Listener interface {
	// Listen runs concurrently with the passes of a term, until ctx ends or it returns. It calls request for an object that needs a pass at
	// once: for a while, passes over the object go before those of others. ctx has the logger. If Listen panics, the engine logs that, and
	// objects get their passes as without it.
	Listen(ctx context.Context, request func(types.NamespacedName))
}

// Outcome is the result of a pass, which the engine writes when the pass is over.
type Outcome struct {
	// Status is the whole desired status: a type that JSON encodes as an object. Nil leaves the status as it is. The engine writes it at
	// most once a pass, only if it differs from the object's, and only if the object was not changed since the pass began. Otherwise the
	// object is requeued at once.
	Status any
	// Events inform users of what happened. The engine does not write an event again that is identical to one of the object's previous full
	// pass. If the API server does not accept an event, the next passes retry it a few times. Use Client.WriteEvent for events that must be
	// written.
	Events []Event
	// RequeueAfter is when to requeue the object even if nothing changed; zero means never.
	RequeueAfter time.Duration
}

// Event is one thing that happened to an object (events.k8s.io/v1).
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is why: one CamelCase word, a constant, the same as in the condition about it. At most 128 characters.
	Reason string
	// Action is what the operator did or tried: one CamelCase word. Empty means the same as Reason.
	Action string
	// Note is the sentence for users. It is cut at 1024 bytes.
	Note string
}

// Controller describes one kind to the engine.
type Controller struct {
	// Kind names the resource whose objects are reconciled.
	Kind schema.Kind
	// Watches are the other resources whose changes concern this kind's objects. Watched objects are also cached (Client.Cached).
	Watches []Watch
	// Indices are the indices of the kind's cached objects (Lister.Indexed), in addition to their names. With one, Watch.Owners finds the
	// objects that a change concerns without listing all objects.
	Indices map[string]IndexFunc
	// Childless is true if the Reconciler never sets an owner on what it writes, and so needs no permission for that. Applied children
	// always have an owner.
	Childless bool
	// Rules are the permissions that the Reconciler needs in addition to the engine's (see the function Rules).
	Rules []rbacv1.PolicyRule
	// OwnRules are the permissions that it needs in the operator's own namespace, whichever namespaces it works in.
	OwnRules []rbacv1.PolicyRule
	// Metrics makes the kind's own metrics, from its cached objects when the metrics are read. So a series ends with its object, and a
	// restart loses nothing. Names begin with MetricsPrefix. Nil means none.
	Metrics func(objects Lister) prometheus.Collector
	// New makes the Reconciler. The engine calls it at the beginning of every term as leader, so that no memory of an earlier term
	// survives.
	New func(*Reader) Reconciler
}

// Watch is a resource whose changes concern a kind's objects.
type Watch struct {
	// Resource is the resource to watch. Secrets are refused: they are never cached.
	Resource apischema.GroupVersionResource
	// Selector is a label selector in kubectl's form; empty selects all. Objects that it does not select are not cached, and their changes
	// start no pass.
	Selector string
	// MetadataOnly requests and keeps only the objects' metadata. Use it for resources with many or large objects of which only the
	// existence, the labels or the owners matter. Cached objects have the kind PartialObjectMetadata. Updates that do not change the
	// (transformed) metadata start no pass.
	MetadataOnly bool
	// Indices are the indices of the cached objects (Lister.Indexed), in addition to their names.
	Indices map[string]IndexFunc
	// Transform is applied to every object before it is cached. It must keep the metadata. If the resource is written through Client.Apply
	// or Client.ApplyFields, it must also keep the managedFields entries that TrimMetadata keeps. It must be quick, accept any type of
	// object, and give the same result when applied twice. With MetadataOnly it gets a *metav1.PartialObjectMetadata, and need not keep
	// managedFields. Nil means TrimMetadata. Use KeepDigest for objects whose content only Client.Apply reads.
	Transform cache.TransformFunc
	// Owners returns the objects of the kind that a change to child concerns. objects are the kind's cached objects (use Indexed, not List,
	// if there may be many of either). Nil means the controller owner (metadata.ownerReferences) if it is of the kind.
	Owners func(child *unstructured.Unstructured, objects Lister) []types.NamespacedName
}

// Lister reads a cache. Its objects are shared: do not change them (DeepCopy first).
type Lister interface {
	// Get returns an object by its name, and whether there is one.
	Get(namespace, name string) (*unstructured.Unstructured, bool)
	// All returns all objects, in no order. It decodes each when the loop comes to it: there may be thousands.
	All() iter.Seq[*unstructured.Unstructured]
	// Owned returns the objects whose controller (metadata.ownerReferences) has this UID, ordered by namespace and name.
	Owned(owner types.UID) []*unstructured.Unstructured
	// Indexed returns the objects that have this key in one of the Indices of the Controller or of the Watch, ordered by namespace and
	// name. Its cost depends only on the number of these objects. It panics for an unknown index, which is a bug.
	Indexed(index, key string) []*unstructured.Unstructured
}

// Change is what a write did to an object.
type Change string

// The changes a write can make.
const (
	// Unchanged: everything was already as desired. Most of the time no request was sent.
	Unchanged Change = "unchanged"
	// Created: the object did not exist.
	Created Change = "created"
	// Updated: something in the object changed.
	Updated Change = "updated"
	// Awaiting: the object is being deleted, and nothing was written. If a watch selects it, its end starts another pass, which creates it
	// again.
	Awaiting Change = "awaiting deletion"
)

// ForeignError reports that an object with the desired name exists and does not belong to the owner. The operator never takes it over.
type ForeignError struct {
	Resource  apischema.GroupVersionResource
	Namespace string
	Name      string
	// Controller is the "Kind/name" of the object that controls it; empty if there is none.
	Controller string
	// Predecessor is true if the controller is an earlier object of the owner's kind and name that is already deleted. Kubernetes' garbage
	// collection will delete the object soon: the operator only needs to wait.
	Predecessor bool
	// MissingProof names the missing object that would prove that an orphan with the operator's labels was made by the operator. It is empty
	// if no such proof is required.
	MissingProof string
}

// Error says which object is in the way and what a user can do.
func (e *ForeignError) Error() string {
	what := fmt.Sprintf("%s %s/%s exists already", e.Resource.GroupResource(), e.Namespace, e.Name)
	if e.Predecessor {
		return what + " and belongs to a deleted predecessor of the same name: wait until garbage collection removes it"
	}
	if e.MissingProof != "" {
		return what + " with this operator's labels and field manager, which any user can copy, and without " + e.MissingProof + ": delete it, and the operator creates it again"
	}
	if e.Controller == "" {
		return what + " and was not made by this operator: delete or rename it, or choose another name"
	}
	return fmt.Sprintf("%s and belongs to %s: delete or rename it, or choose another name", what, e.Controller)
}
