package configmonitor

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

func configMap(t *testing.T, body string) *unstructured.Unstructured {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte("apiVersion: v1\nkind: ConfigMap\n" + body))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(document); err != nil {
		t.Fatal(err)
	}
	return object
}

func hashOf(t *testing.T, body string) string {
	t.Helper()
	found, err := configFrom(configMap(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return found.hash
}

func TestHashIsOfTheDataOnly(t *testing.T) {
	t.Parallel()
	const base = "metadata: {name: c, resourceVersion: '1'}\ndata: {a: one, b: two}\nbinaryData: {c: AAE=}"
	for story, test := range map[string]struct {
		body string
		same bool
	}{
		"other metadata":             {"metadata: {name: c, resourceVersion: '2', uid: x, labels: {l: m}, annotations: {n: o}}\ndata: {a: one, b: two}\nbinaryData: {c: AAE=}", true},
		"another order":              {"metadata: {name: c}\nbinaryData: {c: AAE=}\ndata: {b: two, a: one}", true},
		"made immutable":             {"metadata: {name: c}\nimmutable: true\ndata: {a: one, b: two}\nbinaryData: {c: AAE=}", true},
		"another value":              {"metadata: {name: c}\ndata: {a: one, b: three}\nbinaryData: {c: AAE=}", false},
		"another key":                {"metadata: {name: c}\ndata: {a: one, d: two}\nbinaryData: {c: AAE=}", false},
		"one more":                   {"metadata: {name: c}\ndata: {a: one, b: two, d: ''}\nbinaryData: {c: AAE=}", false},
		"other bytes":                {"metadata: {name: c}\ndata: {a: one, b: two}\nbinaryData: {c: AAI=}", false},
		"no bytes":                   {"metadata: {name: c}\ndata: {a: one, b: two}", false},
		"values that changed places": {"metadata: {name: c}\ndata: {a: two, b: one}\nbinaryData: {c: AAE=}", false},
		"nothing":                    {"metadata: {name: c}", false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if got := hashOf(t, test.body) == hashOf(t, base); got != test.same {
				t.Errorf("the hash is the same: %t, want %t", got, test.same)
			}
		})
	}
	if hashOf(t, "metadata: {name: c}") != hashOf(t, "metadata: {name: c}\ndata: {}\nbinaryData: {}") {
		t.Error("no data and empty data are the same")
	}
}

func TestTheCacheHoldsNoData(t *testing.T) {
	t.Parallel()
	const body = `
metadata:
  name: c
  namespace: shop
  uid: u
  resourceVersion: "7"
  annotations: {kubectl.kubernetes.io/last-applied-configuration: secret-word}
  managedFields: [{manager: someone, operation: Update, fieldsV1: {}}]
data: {a: secret-word}
binaryData: {b: c2VjcmV0LXdvcmQ=}
`
	kept, err := keepHash(configMap(t, body))
	if err != nil {
		t.Fatal(err)
	}
	again, err := keepHash(kept)
	if err != nil {
		t.Fatal(err)
	}
	object, ok := again.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("the transform made a %T", again)
	}
	found, err := configFrom(object)
	if err != nil {
		t.Fatal(err)
	}
	same(t, found == config{name: "c", found: true, hash: hashOf(t, body), version: "7"}, true)
	document, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"secret-word", "c2VjcmV0LXdvcmQ", "someone"} {
		if strings.Contains(string(document), word) {
			t.Errorf("the cache keeps %q: %s", word, document)
		}
	}
	if object.GetNamespace() != "shop" || object.GetUID() != "u" {
		t.Errorf("the cached ConfigMap has lost its identity: %s", document)
	}
	if tombstone, err := keepHash("not an object"); err != nil || tombstone != "not an object" {
		t.Errorf("anything else must pass unchanged: %v, %v", tombstone, err)
	}
}

func TestNamesOfStampsFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 51) + "." + strings.Repeat("b", 201)
	other := strings.Repeat("a", 51) + "." + strings.Repeat("b", 200) + "c"
	for _, name := range []string{"settings", "my.settings", strings.Repeat("a", 56), strings.Repeat("a", 57), long, other} {
		if faults := validation.IsQualifiedName(stampKey(name)); len(faults) > 0 {
			t.Errorf("annotation %s: %v", stampKey(name), faults)
		}
		manager := stampManager(name)
		if len(manager) > 128 || !strings.HasPrefix(manager, reconcile.ManagerChildren+"-") {
			t.Errorf("field manager %s of %d characters", manager, len(manager))
		}
	}
	if stampKey(long) == stampKey(other) || stampManager(long) == stampManager(other) {
		t.Error("two ConfigMaps must not share an annotation")
	}
	same(t, stampKey("flaskapp-config"), "magalix.com/config-flaskapp-config")
}

// lister is a cache of monitors.
type lister []*unstructured.Unstructured

func (l lister) Get(string, string) (*unstructured.Unstructured, bool) { return nil, false }
func (l lister) Owned(types.UID) []*unstructured.Unstructured          { return nil }
func (l lister) All() iter.Seq[*unstructured.Unstructured] {
	panic("a change of one ConfigMap must not look at all monitors")
}

func (l lister) Indexed(_, key string) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{}
	for _, object := range l {
		if slices.Contains(configMapKey(object), key) {
			found = append(found, object)
		}
	}
	return found
}

func TestMonitorsOfAConfigMap(t *testing.T) {
	t.Parallel()
	monitor := func(namespace, name string, spec map[string]any) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
	all := lister{
		monitor("shop", "a", map[string]any{"configMap": "c"}),
		monitor("shop", "b", map[string]any{"configmap": "c"}),
		monitor("shop", "d", map[string]any{"configMap": "other"}),
		monitor("elsewhere", "e", map[string]any{"configMap": "c"}),
	}
	got := monitorsOf(configMap(t, "metadata: {name: c, namespace: shop}"), all)
	same(t, got, []types.NamespacedName{{Namespace: "shop", Name: "a"}, {Namespace: "shop", Name: "b"}})
}
