package reconcile

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

// claiming is a StatefulSet with volumeClaimTemplates, which are owned as a whole, and in which the API server sets defaults.
const claiming = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop, labels: {app.kubernetes.io/name: mysql}}
spec:
  replicas: 2
  volumeClaimTemplates:
  - metadata: {name: data, namespace: ""}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
`

func TestDefaultsWithinWhatIsOwnedAsAWhole(t *testing.T) {
	t.Parallel()
	const claims = ".spec.volumeClaimTemplates"
	tests := map[string]struct {
		// unmarked is true if the last apply left no mark.
		unmarked bool
		// others changes the live object, and desired changes the desired one, after it was applied.
		others  func(t *testing.T, live *unstructured.Unstructured)
		desired func(t *testing.T, desired *unstructured.Unstructured)
		want    string
	}{
		"the same is desired: defaults are no difference":               {},
		"who applied it left no mark: defaults cannot be distinguished": {unmarked: true, want: ".metadata.annotations or " + claims},
		"a field is no longer desired: it is no default": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				unstructured.RemoveNestedField(first(t, desired.Object, "spec", "volumeClaimTemplates"), "spec", "storageClassName")
			},
			want: claims,
		},
		"a user added a field: the operator no longer owns the list": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				put(t, first(t, live.Object, "spec", "volumeClaimTemplates"), "Block", "spec", "volumeMode")
			},
			want: claims,
		},
		"a user forged the mark": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				live.SetAnnotations(map[string]string{schema.AppliedAnnotation: "forged"})
			},
			want: ".metadata.annotations or " + claims,
		},
		"something else is desired as well": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, desired.Object, int64(3), "spec", "replicas")
			},
			want: ".spec.replicas or " + claims,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired := parse(t, claiming)
			if !test.unmarked {
				mark(desired)
			}
			live := applyAs(t, desired, test.others)
			template := first(t, live.Object, "spec", "volumeClaimTemplates")
			put(t, template, map[string]any{"phase": "Pending"}, "status") // as the API server does, whoever owns the list
			unstructured.RemoveNestedField(template, "metadata", "namespace")
			owned, _ := ownedBy(live, ManagerChildren)

			if test.desired != nil {
				test.desired(t, desired)
			}
			mark(desired)
			got := difference(desired, live, owned)
			if !slices.Contains(strings.Split(test.want, " or "), got) { // the first one found
				t.Errorf("an apply would change %q, want %q", got, test.want)
			}
		})
	}
}

// An operator that adds marks applies an unchanged child once more, to add the mark.
func TestAnEqualChildWithoutAMarkIsMarked(t *testing.T) {
	t.Parallel()
	desired := parse(t, claiming)
	live := applyAs(t, desired, nil)
	mark(desired)
	owned, _ := ownedBy(live, ManagerChildren)
	same(t, difference(desired, live, owned), ".metadata.annotations")
	live = applyAs(t, desired, nil)
	owned, _ = ownedBy(live, ManagerChildren)
	mark(desired)
	same(t, difference(desired, live, owned), "")
}

func TestOnlyWhatHasASpecIsMarked(t *testing.T) {
	t.Parallel()
	config := parse(t, settings)
	mark(config)
	same(t, markOf(config), "")
}
