package reconcile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// IndexFunc returns the keys under which a cache indexes an object (Lister.Indexed); none if it does not index the object. It is called at
// every change of the object, with the object that the Transform returned. It must be quick, depend on nothing else, and not change the
// object.
type IndexFunc func(object *unstructured.Unstructured) []string

// indexName distinguishes the indices of kinds that share a cache from each other, and from the engine's own.
func indexName(kind, name string) string {
	return kind + "/" + name
}

// indexers returns a kind's indices in the form that a cache takes.
func (s *informers) indexers(kind string, indices map[string]IndexFunc) cache.Indexers {
	named := cache.Indexers{}
	for name, keys := range indices {
		named[indexName(kind, name)] = s.keysOf(kind, name, keys)
	}
	return named
}

// keysOf prevents a bug in a kind's index function from ending the process. The index then does not contain the object.
func (s *informers) keysOf(kind, name string, keys IndexFunc) cache.IndexFunc {
	return func(item any) ([]string, error) {
		object, ok := objectOf(item)
		if !ok {
			return nil, nil
		}
		var found []string
		err := recoverPanic(func() error {
			found = keys(object)
			return nil
		})
		if err != nil {
			s.logger.Error(err, "failed to index object, lookups by this index will not find it", logKind, kind, "index", name, "child", object.GetName(), logNamespace, object.GetNamespace())
			return nil, nil
		}
		return found, nil
	}
}

// Indexed implements Lister.
func (v *view) Indexed(index, key string) []*unstructured.Unstructured {
	return sorted(objects(v.items(v.byIndex(index, key))))
}

func (v *view) byIndex(index, key string) func(cache.Indexer) []any {
	return func(store cache.Indexer) []any {
		items, err := store.ByIndex(indexName(v.kind, index), key)
		if err != nil {
			panic(fmt.Sprintf("%s has no index %q: add it to the Indices of the controller or of its watch", v.resource.GroupResource(), index))
		}
		return items
	}
}
