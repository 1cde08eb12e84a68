package reconcile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// IndexFunc returns the keys by which an object is to be found in a cache (Lister.Indexed); none if it is not to be. It is asked at every
// change of the object, with what the Transform has left of it: it must be quick, depend on nothing else, and not change the object.
type IndexFunc func(object *unstructured.Unstructured) []string

// indexName tells the indices of kinds that share a cache from each other, and from the engine's own.
func indexName(kind, name string) string {
	return kind + "/" + name
}

// indexers turns a kind's indices into those of a cache.
func (s *informers) indexers(kind string, indices map[string]IndexFunc) cache.Indexers {
	named := cache.Indexers{}
	for name, keys := range indices {
		named[indexName(kind, name)] = s.keysOf(kind, name, keys)
	}
	return named
}

// keysOf keeps a mistake in a kind's index from ending the process: such an object is not found by it.
func (s *informers) keysOf(kind, name string, keys IndexFunc) cache.IndexFunc {
	return func(item any) ([]string, error) {
		object, ok := objectOf(item)
		if !ok {
			return nil, nil
		}
		var found []string
		err := contained(func() error {
			found = keys(object)
			return nil
		})
		if err != nil {
			s.logger.Error(err, "object not indexed, it will not be found by this index", logKind, kind, "index", name, "child", object.GetName(), logNamespace, object.GetNamespace())
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
