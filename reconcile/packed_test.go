package reconcile

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// A cache's items take little memory, and are read unchanged. Readers may change the objects that they get.
func TestPackedObjectsAreReadAsTheyWere(t *testing.T) {
	t.Parallel()
	object := configMap("shop", "db", "7")
	object.Object["spec"] = map[string]any{"replicas": int64(3), "share": 0.5, "on": true, "none": nil, "text": "a<b>&\u2028", "items": []any{"a", int64(1)}}
	small := &packer{}
	small.pack(configMap("shop", "first", "1"))
	item := small.pack(object.DeepCopy())
	if _, isPacked := item.(*packed); !isPacked {
		t.Fatalf("a cache holds %T", item)
	}
	same(t, small.pack(item) == item, true)
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
	same(t, isNews(item, small.pack(configMap("shop", "db", "7"))), false)
	same(t, isNews(item, small.pack(configMap("shop", "db", "8"))), true)
}

// Objects of one watch are very similar. Whatever the first of them contains, the others are read unchanged.
func TestObjectsThatAreAlikeTakeLittleMemory(t *testing.T) {
	t.Parallel()
	source, random := rand.New(rand.NewPCG(1, 2)), make([]byte, 1<<20)
	for i := range random {
		random[i] = byte('0' + source.IntN(64)) // content that can hardly be compressed
	}
	for name, first := range map[string]*unstructured.Unstructured{
		"one like it": configMap("shop", "first", "1"), "an empty one": {Object: map[string]any{}},
		"a large one": {Object: map[string]any{"data": strings.Repeat("0123456789abcdef", 1<<16)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small := &packer{}
			small.pack(first.DeepCopy())
			large := configMap("shop", "large", "8")
			large.Object["data"] = map[string]any{"a": strings.Repeat("words and ", 1<<17), "b": string(random)}
			object := configMap("shop", "db", "7")
			var item *packed
			for _, one := range []*unstructured.Unstructured{large, object} {
				item, _ = small.pack(one.DeepCopy()).(*packed)
				read, ok := objectOf(item)
				same(t, ok, true)
				same(t, reflect.DeepEqual(read.Object, one.Object), true)
			}
			if whole, err := object.MarshalJSON(); name == "one like it" && (err != nil || len(item.content) > len(whole)/3) {
				t.Errorf("an object of %d bytes (%v) takes %d", len(whole), err, len(item.content))
			}
		})
	}
}
