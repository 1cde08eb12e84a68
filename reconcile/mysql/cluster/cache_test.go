package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

func TestCachesKeepWhatIsRead(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		transform   cache.TransformFunc
		whole, kept string
	}{
		"a Service: the member that it selects": {
			slimService, `{spec: {selector: {statefulset.kubernetes.io/pod-name: db-1, mine: too}, ports: [{port: 3306}]}}`,
			`{spec: {selector: {statefulset.kubernetes.io/pod-name: db-1}}}`,
		},
		"a Service of all members": {slimService, `{spec: {selector: {app: db}}}`, `{}`},
		"a StatefulSet: its size, its claims', its images, what it restarts and how far it is": {
			slimSet(),
			`{spec: {replicas: 3, template: {metadata: {}, spec: {containers: [{name: mysqld, image: "mysql:9.7", ports: []}], volumes: []}}, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2, maxUnavailable: 1}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 2Gi, mine: "1"}}}}]},
				status: {currentRevision: a, updateRevision: b, conditions: []}}`,
			`{spec: {replicas: 3, template: {spec: {containers: [{name: mysqld, image: "mysql:9.7"}]}}, updateStrategy: {rollingUpdate: {partition: 2}}, volumeClaimTemplates: [{spec: {resources: {requests: {storage: 2Gi}}}}]}, status: {currentRevision: a, updateRevision: b}}`,
		},
		"a StatefulSet: the image that it was applied for": {
			slimSet(), `{metadata: {annotations: {mysql-operator.example/mine: x, ` + children.AnnotationImage + `: "mysql:9.7"}}, spec: {replicas: 1}}`,
			`{metadata: {annotations: {` + children.AnnotationImage + `: "mysql:9.7"}}, spec: {replicas: 1}}`,
		},
		"a claim: its size, its class and how it is": {
			slimVolume,
			`{spec: {storageClassName: fast, resources: {requests: {storage: 2Gi, mine: "1"}, limits: {mine: "1"}}}, status: {phase: Bound, capacity: {storage: 2Gi}}}`,
			`{spec: {storageClassName: fast, resources: {requests: {storage: 2Gi}}}, status: {phase: Bound}}`,
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			var kept any = &unstructured.Unstructured{Object: document(t, test.whole)}
			for range 2 { // a transform may be applied twice
				var err error
				if kept, err = test.transform(kept); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(document(t, test.kept), content(t, kept)); diff != "" {
					t.Errorf("kept is (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func document(t *testing.T, text string) map[string]any {
	t.Helper()
	read := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// content returns the spec and the status of a cached object.
func content(t *testing.T, cached any) map[string]any {
	t.Helper()
	object, ok := cached.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("kept is a %T", cached)
	}
	said := map[string]any{}
	if annotations, found, _ := unstructured.NestedMap(object.Object, "metadata", "annotations"); found {
		said["metadata"] = map[string]any{"annotations": annotations}
	}
	for _, part := range []string{"spec", "status"} {
		if value, found := object.Object[part]; found {
			said[part] = value
		}
	}
	return said
}
