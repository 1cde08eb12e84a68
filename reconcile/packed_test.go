package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// What a cache holds takes little memory, and is read as it was. Whoever reads it may change what he was given.
func TestPackedObjectsAreReadAsTheyWere(t *testing.T) {
	t.Parallel()
	object := configMap("shop", "db", "7")
	object.Object["spec"] = map[string]any{"replicas": int64(3), "share": 0.5, "on": true, "none": nil, "text": "a<b>&\u2028", "items": []any{"a", int64(1)}}
	item := pack(object.DeepCopy())
	if _, isPacked := item.(*packed); !isPacked {
		t.Fatalf("a cache holds %T", item)
	}
	same(t, pack(item) == item, true)
	for range 2 {
		read, ok := objectOf(item)
		same(t, ok, true)
		same(t, read.Object, object.Object)
		unstructured.RemoveNestedField(read.Object, "spec")
		read.SetLabels(nil)
	}
	key, err := cache.MetaNamespaceKeyFunc(item)
	same(t, err, nil)
	same(t, key, "shop/db")
	owners, err := controllerUID(item)
	same(t, err, nil)
	same(t, owners, []string{"1"})
	same(t, versionOf(item), "shop/db@7")
	same(t, isNews(item, pack(configMap("shop", "db", "7"))), false)
	same(t, isNews(item, pack(configMap("shop", "db", "8"))), true)
}
