package reconcile

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// ownerIndex is the name of the index by controller UID.
const ownerIndex = "controller"

// view is one kind's view of a resource's cache: one store for all namespaces, or one for each watched namespace.
type view struct {
	resource apischema.GroupVersionResource
	selector labels.Selector
	// kind is the kind that uses this view: it prefixes the names of the kind's indices.
	kind string
	// metadataOnly is true if the objects have only metadata.
	metadataOnly bool
	// stores has the key metav1.NamespaceAll, or one key for each namespace.
	stores map[string]cache.Indexer

	// list lists the resource on the API server.
	list liveList
	mu   sync.RWMutex
	// snapshots are live lists, by namespace, that replace the cache while its watch is behind. lists records when each namespace was
	// listed.
	snapshots map[string]*snapshot
	lists     map[string]*listing
	// tidied is when tidy last removed unneeded entries from snapshots and lists.
	tidied time.Time
}

// Get implements Lister.
func (v *view) Get(namespace, name string) (*unstructured.Unstructured, bool) {
	return objectOf(v.item(namespace, name))
}

// item returns an object as the cache holds it; nil if there is none.
func (v *view) item(namespace, name string) any {
	store, ok := v.store(namespace)
	if !ok {
		return nil
	}
	if taken := v.snapshotOf(namespace); taken != nil {
		store = taken.objects
	}
	item, found, err := store.GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !found {
		return nil
	}
	return item
}

// versionOf returns UID and resourceVersion of an item in a cache: no two states of objects share both. It is empty if the item is not an
// object.
func versionOf(item any) string {
	uid, version, ok := identityOf(item)
	if !ok {
		return ""
	}
	return string(uid) + "@" + version
}

// identityOf returns UID and resourceVersion of an item in a cache, and whether the item is an object.
func identityOf(item any) (uid types.UID, version string, ok bool) {
	switch object := item.(type) {
	case *packed:
		return object.uid, object.version, true
	case metav1.Object:
		return object.GetUID(), object.GetResourceVersion(), true
	}
	return "", "", false
}

// All implements Lister.
func (v *view) All() iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for _, item := range v.items(func(store cache.Indexer) []any { return store.List() }) {
			if object, ok := objectOf(item); ok && !yield(object) {
				return
			}
		}
	}
}

// any reports whether the cache has an object.
func (v *view) any() bool {
	for _, store := range v.stores {
		if len(store.ListKeys()) > 0 {
			return true
		}
	}
	return false
}

// Owned implements Lister.
func (v *view) Owned(owner types.UID) []*unstructured.Unstructured {
	return sorted(objects(v.items(func(store cache.Indexer) []any {
		items, err := store.ByIndex(ownerIndex, string(owner))
		if err != nil {
			panic("the index by controller is missing: " + err.Error())
		}
		return items
	})))
}

// selects reports whether the cache holds objects with this object's labels in its namespace.
func (v *view) selects(object *unstructured.Unstructured) bool {
	_, ok := v.store(object.GetNamespace())
	return ok && v.selector.Matches(labels.Set(object.GetLabels()))
}

// reached reports whether the view of a namespace includes all changes up to a resourceVersion. Versions that cannot be compared count as
// not included.
func (v *view) reached(namespace, version string) bool {
	if v.storeReached(namespace, version) {
		return true
	}
	v.mu.RLock()
	taken := v.snapshots[namespace]
	v.mu.RUnlock()
	return taken != nil && isAt(taken.version, version)
}

func (v *view) storeReached(namespace, version string) bool {
	store, ok := v.store(namespace)
	return !ok || isAt(store.LastStoreSyncResourceVersion(), version)
}

func isAt(version, wanted string) bool {
	order, err := resourceversion.CompareResourceVersion(version, wanted)
	return err == nil && order >= 0
}

func (v *view) store(namespace string) (cache.Indexer, bool) {
	if store, ok := v.stores[metav1.NamespaceAll]; ok {
		return store, true
	}
	store, ok := v.stores[namespace]
	return store, ok
}

func objects(items []any) []*unstructured.Unstructured {
	found := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		if object, ok := objectOf(item); ok {
			found = append(found, object)
		}
	}
	return found
}

func sorted(found []*unstructured.Unstructured) []*unstructured.Unstructured {
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found
}

// controllerUID is the index function behind Lister.Owned.
func controllerUID(item any) ([]string, error) {
	if small, ok := item.(*packed); ok {
		if small.controller == "" {
			return nil, nil
		}
		return []string{string(small.controller)}, nil
	}
	object, ok := item.(metav1.Object)
	if !ok {
		return nil, nil
	}
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil {
		return nil, nil
	}
	return []string{string(controller.UID)}, nil
}
