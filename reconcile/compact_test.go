package reconcile

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const aPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a-0","labels":{},"finalizers":null},"spec":{"replicas":3,"share":0.5,"paused":false,
	"containers":[{"name":"mysql","args":["--a-rather-long-argument-that-nobody-else-has=1","--a"],"env":[]}]}}`

func decoded(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(document)); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestCompactChangesNothing(t *testing.T) {
	t.Parallel()
	object := decoded(t, aPod)
	object.Object["status"] = map[string]any(nil)
	before := object.DeepCopy()
	if diff := cmp.Diff(before, compact(object)); diff != "" {
		t.Errorf("before and after:\n%s", diff)
	}
	for _, other := range []any{nil, "tombstone", &unstructured.Unstructured{}} {
		if got := compact(other); !cmp.Equal(got, other) {
			t.Errorf("got %v for %v", got, other)
		}
	}
}

func TestCompactKeepsATextOnce(t *testing.T) {
	t.Parallel()
	texts := func(object *unstructured.Unstructured) map[string]*byte {
		compact(object)
		places := map[string]*byte{"v1": unsafe.StringData(object.GetAPIVersion())}
		for name := range object.Object {
			places[name] = unsafe.StringData(name)
		}
		return places
	}
	if diff := cmp.Diff(texts(decoded(t, aPod)), texts(decoded(t, aPod)), cmp.Comparer(func(a, b *byte) bool { return a == b })); diff != "" {
		t.Errorf("the same texts of two objects lie apart:\n%s", diff)
	}
}
