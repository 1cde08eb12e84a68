package reconcile

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// set is a StatefulSet with everything that makes the comparison hard: lists with several and with defaulted key fields, maps, atomic maps,
// empty structures.
const set = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  namespace: shop
  labels: {app.kubernetes.io/name: mysql}
  ownerReferences: [{apiVersion: v1, kind: Owner, name: db, uid: "1", controller: true, blockOwnerDeletion: true}]
spec:
  replicas: 2
  serviceName: db-pods
  selector: {matchLabels: {app.kubernetes.io/name: mysql}}
  template:
    metadata: {labels: {app.kubernetes.io/name: mysql}}
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: mysqld
        image: mysql:9
        command: [mysqld, --port=3306]
        env: [{name: A, value: "1"}, {name: B, value: "$(A)"}]
        ports: [{containerPort: 3306}, {containerPort: 33060, protocol: TCP}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
        securityContext: {capabilities: {drop: [ALL]}}
      - name: agent
        image: operator
      volumes:
      - name: scratch
        emptyDir: {}
`

func TestDifferenceFindsWhatAnApplyWouldChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		// others changes the object after the operator applied it; desired changes what the operator wants now.
		others  func(t *testing.T, live *unstructured.Unstructured)
		desired func(t *testing.T, desired *unstructured.Unstructured)
		want    string
	}{
		"what was applied is still wanted": {want: ""},
		"the API server's defaults are ignored": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				put(t, live.Object, "Parallel", "spec", "podManagementPolicy")
				container := first(t, live.Object, "spec", "template", "spec", "containers")
				put(t, container, "/dev/termination-log", "terminationMessagePath")
				put(t, first(t, container, "ports"), "TCP", "protocol")
			},
			want: "",
		},
		"another client's annotation is ignored": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				live.SetAnnotations(map[string]string{"example.com/seen": "yes"})
			},
			want: "",
		},
		"a user scaled it by hand": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				put(t, live.Object, int64(7), "spec", "replicas")
			},
			want: ".spec.replicas",
		},
		"a user removed the operator's label": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				live.SetLabels(nil)
			},
			want: ".metadata.labels",
		},
		"a user removed a container": {
			others: func(t *testing.T, live *unstructured.Unstructured) {
				t.Helper()
				containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
				put(t, live.Object, containers[:1], "spec", "template", "spec", "containers")
			},
			want: ".spec.template.spec.containers",
		},
		"a new image is wanted": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, first(t, desired.Object, "spec", "template", "spec", "containers"), "mysql:10", "image")
			},
			want: ".spec.template.spec.containers[0].image",
		},
		"a field is not wanted any more": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				unstructured.RemoveNestedField(desired.Object, "spec", "template", "spec", "nodeSelector")
			},
			want: ".spec.template.spec.nodeSelector",
		},
		"an entry of an atomic map is not wanted any more": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, desired.Object, map[string]any{}, "spec", "template", "spec", "nodeSelector")
			},
			want: ".spec.template.spec.nodeSelector",
		},
		"an argument is added to an atomic list": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, first(t, desired.Object, "spec", "template", "spec", "containers"), []any{"mysqld", "--port=3306", "--skip-name-resolve"}, "command")
			},
			want: ".spec.template.spec.containers[0].command",
		},
		"a list item is not wanted any more": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, desired.Object, []any{first(t, desired.Object, "spec", "template", "spec", "containers")}, "spec", "template", "spec", "containers")
			},
			want: ".spec.template.spec.containers",
		},
		"one list item takes another's place": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, first(t, desired.Object, "spec", "template", "spec", "volumes"), "other", "name")
			},
			want: ".spec.template.spec.volumes[0]",
		},
		"a new field is wanted": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, desired.Object, "OnDelete", "spec", "updateStrategy", "type")
			},
			want: ".spec.updateStrategy",
		},
		"the order of the environment matters": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				env := []any{map[string]any{"name": "B", "value": "$(A)"}, map[string]any{"name": "A", "value": "1"}}
				put(t, first(t, desired.Object, "spec", "template", "spec", "containers"), env, "env")
			},
			want: ".spec.template.spec.containers[0].env[1]",
		},
		"the same quantity in other words": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				requests := map[string]any{"cpu": int64(1), "memory": "1Gi"}
				put(t, first(t, desired.Object, "spec", "template", "spec", "containers"), requests, "resources", "requests")
			},
			want: "",
		},
		"an owner is added": {
			desired: func(t *testing.T, desired *unstructured.Unstructured) {
				t.Helper()
				put(t, first(t, desired.Object, "metadata", "ownerReferences"), false, "blockOwnerDeletion")
			},
			want: ".metadata.ownerReferences[0]",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired := parse(t, set)
			canonicalise(desired)
			live := applyAs(t, desired, test.others)
			if test.desired != nil {
				test.desired(t, desired)
			}
			canonicalise(desired)
			kept, err := KeepDigest()(live.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			digested, _ := kept.(*unstructured.Unstructured)
			if got, _ := digestIn(digested, ManagerChildren); (got == wantedDigest(desired)) != (test.want == "") {
				t.Errorf("the digest of the live object fits: %t, though an apply would change %q", got == wantedDigest(desired), test.want)
			}
			for _, from := range []string{"the API server", "a cache"} {
				owned, ok := ownedBy(live, ManagerChildren)
				if !ok {
					t.Fatalf("the operator's entry in managedFields is missing in an object from %s", from)
				}
				if got := difference(desired, live, owned); got != test.want {
					t.Errorf("an apply over an object from %s would change %q, want %q", from, got, test.want)
				}
				if _, err := TrimMetadata(live); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestOwnedByNeedsAnEntryOfTheSameVersion(t *testing.T) {
	t.Parallel()
	live := applyAs(t, parse(t, set), nil)
	if _, ok := ownedBy(live, "mysql-operator-other"); ok {
		t.Error("another manager's entry was taken for the operator's")
	}
	live.SetAPIVersion("apps/v2")
	if _, ok := ownedBy(live, ManagerChildren); ok {
		t.Error("an entry of another version was taken: its paths may mean something else")
	}
}

func TestCanonicaliseLeavesTextAlone(t *testing.T) {
	t.Parallel()
	object := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {divisor: 1000m}}
data: {limits: 1000m, sizeLimit: 1024Ki}
spec: {template: {metadata: {annotations: {sizeLimit: 1024Ki}}}, volume: {sizeLimit: 1024Ki}, resources: {limits: {cpu: nonsense}}}
`)
	canonicalise(object)
	want := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {divisor: 1000m}}
data: {limits: 1000m, sizeLimit: 1024Ki}
spec: {template: {metadata: {annotations: {sizeLimit: 1024Ki}}}, volume: {sizeLimit: 1Mi}, resources: {limits: {cpu: nonsense}}}
`)
	same(t, object.Object, want.Object)
}

// applyAs applies desired as the operator, with the API server's own implementation of server-side apply. Then others changes the object as
// another client.
func applyAs(t *testing.T, desired *unstructured.Unstructured, others func(*testing.T, *unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	kind := apischema.FromAPIVersionAndKind(desired.GetAPIVersion(), desired.GetKind())
	server := managedfieldstest.NewTestFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), kind)
	if err := server.Apply(desired.DeepCopy(), ManagerChildren, true); err != nil {
		t.Fatal(err)
	}
	live := asUnstructured(t, server.Live())
	if others == nil {
		return live
	}
	others(t, live)
	if err := server.Update(live, "someone"); err != nil {
		t.Fatal(err)
	}
	return asUnstructured(t, server.Live())
}

func asUnstructured(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	document, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(document))
}

func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(converted); err != nil {
		t.Fatal(err)
	}
	return object
}

func put(t *testing.T, content map[string]any, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(content, value, path...); err != nil {
		t.Fatal(err)
	}
}

// first returns the first item of a list, not a copy.
func first(t *testing.T, content map[string]any, path ...string) map[string]any {
	t.Helper()
	found, _, err := unstructured.NestedFieldNoCopy(content, path...)
	if err != nil {
		t.Fatal(err)
	}
	items, ok := found.([]any)
	if !ok || len(items) == 0 {
		t.Fatalf("%v is no list with items", path)
	}
	item, ok := items[0].(map[string]any)
	if !ok {
		t.Fatalf("%v does not hold objects", path)
	}
	return item
}
