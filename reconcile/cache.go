package reconcile

import (
	"cmp"
	"slices"

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

// view is one resource's cache as a kind sees it: one store for the whole cluster, or one for each watched namespace.
type view struct {
	resource apischema.GroupVersionResource
	selector labels.Selector
	// kind is whose view it is: it names the kind's indices.
	kind string
	// metadataOnly says that the objects have nothing but metadata.
	metadataOnly bool
	// stores has the key metav1.NamespaceAll, or one key for each namespace.
	stores map[string]cache.Indexer
}

// Get implements Lister.
func (v *view) Get(namespace, name string) (*unstructured.Unstructured, bool) {
	store, ok := v.store(namespace)
	if !ok {
		return nil, false
	}
	item, found, err := store.GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !found {
		return nil, false
	}
	return objectOf(item)
}

// List implements Lister.
func (v *view) List(namespace string) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{}
	for _, store := range v.stores {
		for _, object := range objects(store.List()) {
			if namespace == metav1.NamespaceAll || object.GetNamespace() == namespace {
				found = append(found, object)
			}
		}
	}
	return sorted(found)
}

// any says whether there is an object at all.
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
	found := make([]*unstructured.Unstructured, 0, len(v.stores))
	for _, store := range v.stores {
		items, err := store.ByIndex(ownerIndex, string(owner))
		if err != nil {
			panic("the index by controller is missing: " + err.Error())
		}
		found = append(found, objects(items)...)
	}
	return sorted(found)
}

// selects says whether an object with these labels, in this namespace, is one that the cache holds.
func (v *view) selects(object *unstructured.Unstructured) bool {
	_, ok := v.store(object.GetNamespace())
	return ok && v.selector.Matches(labels.Set(object.GetLabels()))
}

// reached says whether the namespace's store has seen everything up to a resourceVersion. What cannot be compared counts as not seen.
func (v *view) reached(namespace, version string) bool {
	store, ok := v.store(namespace)
	if !ok {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), version)
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
