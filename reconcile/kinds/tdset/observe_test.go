package tdset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return made
}

// The field managers of the tests' Deployments, as the API server writes them.
const (
	ours     = `{manager: mysql-operator, operation: Apply, apiVersion: apps/v1, time: "2026-11-21T09:00:00Z", fieldsType: FieldsV1, fieldsV1: {f:spec: {f:replicas: {}, f:template: {}}}}`
	oursLess = `{manager: mysql-operator, operation: Apply, apiVersion: apps/v1, time: "2026-11-21T09:00:00Z", fieldsType: FieldsV1, fieldsV1: {f:spec: {f:template: {}}}}`
	kubectl  = `{manager: kubectl, operation: Update, apiVersion: apps/v1, subresource: scale, time: "2026-11-21T10:00:00Z", fieldsType: FieldsV1, fieldsV1: {f:spec: {f:replicas: {}}}}`
	argo     = `{manager: argocd-controller, operation: Apply, apiVersion: apps/v1, time: "2026-11-21T08:00:00Z", fieldsType: FieldsV1, fieldsV1: {f:spec: {f:replicas: {}}}}`
	kubelets = `{manager: kube-controller-manager, operation: Update, apiVersion: apps/v1, subresource: status, time: "2026-11-21T11:00:00Z", fieldsType: FieldsV1, fieldsV1: {f:status: {f:replicas: {}}}}`
)

func TestWhoHasScaled(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		managers string
		want     string
	}{
		"this operator":                    {ours + "," + kubelets, ""},
		"this operator and another, alike": {ours + "," + argo, ""},
		"another client since":             {oursLess + "," + kubectl + "," + kubelets, "kubectl"},
		"two since: the later one":         {oursLess + "," + argo + "," + kubectl, "kubectl"},
		"no manager owns it: scaled to 0":  {oursLess + "," + kubelets, unknownScaler},
		"there are no managers":            {"", unknownScaler},
		"a manager that cannot be read":    {`{manager: kubectl, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1}`, unknownScaler},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			cached := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, managedFields: ["+test.managers+"]}, spec: {replicas: 4}}")
			for range 2 { // a transform may be applied twice
				if _, err := keepScaler(cached); err != nil {
					t.Fatal(err)
				}
				found, err := deploymentOf(cached)
				if err != nil {
					t.Fatal(err)
				}
				same(t, []any{found.scaler, found.replicas}, []any{test.want, int32(4)})
			}
		})
	}
}

// TestADefaultIsNobodysScaling: a Deployment created without replicas has 1, the API server's default, which no client has set.
func TestADefaultIsNobodysScaling(t *testing.T) {
	t.Parallel()
	for managers, want := range map[string]string{oursLess: "", oursLess + "," + kubectl: "kubectl"} {
		cached := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, managedFields: ["+managers+"]}, spec: {replicas: 1}}")
		if _, err := keepScaler(cached); err != nil {
			t.Fatal(err)
		}
		found, err := deploymentOf(cached)
		if err != nil {
			t.Fatal(err)
		}
		same(t, found.scaler, want)
	}
}

func TestDeploymentOf(t *testing.T) {
	t.Parallel()
	const rolled = "observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3"
	const available = "{type: Available, status: 'True', reason: MinimumReplicasAvailable, message: m}"
	for story, test := range map[string]struct {
		status string
		want   deployment
	}{
		"all is well":                            {rolled + ", conditions: [" + available + "]", deployment{settled: true, available: true, availableReason: "MinimumReplicasAvailable", availableMessage: "m", pods: 3, ready: 3}},
		"its controller has not observed it yet": {"observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3", deployment{pods: 3, ready: 3}},
		"a Pod starts":                           {"observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 2", deployment{pods: 3, ready: 2}},
		"a Pod is old":                           {"observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 4", deployment{pods: 4, ready: 4}},
		"too few serve":                          {rolled + ", conditions: [{type: Available, status: 'False', reason: MinimumReplicasUnavailable, message: m}]", deployment{settled: true, availableReason: "MinimumReplicasUnavailable", availableMessage: "m", pods: 3, ready: 3}},
		"a roll-out is stuck":                    {rolled + ", conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: late}]", deployment{settled: true, stuck: "late", pods: 3, ready: 3}},
		"a quota is used up":                     {rolled + ", conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]", deployment{settled: true, failure: "quota", pods: 3, ready: 3}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			found, err := deploymentOf(object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: 2, annotations: {schedule.rs/scaled: 3 held}}, spec: {replicas: 3}, status: {"+test.status+"}}"))
			if err != nil {
				t.Fatal(err)
			}
			test.want.replicas, test.want.updated, test.want.mark = 3, 3, "3 held"
			if diff := cmp.Diff(&test.want, found, cmp.AllowUnexported(deployment{})); diff != "" {
				t.Errorf("read as (-want +got):\n%s", diff)
			}
		})
	}
}

// listing is a cache of TDSets with only shop/web.
type listing struct{ reconcile.Lister }

func (listing) Get(namespace, name string) (*unstructured.Unstructured, bool) {
	return nil, namespace == "shop" && name == "web"
}

func TestWhichAutoscalersConcernATDSet(t *testing.T) {
	t.Parallel()
	web := []types.NamespacedName{{Namespace: "shop", Name: "web"}}
	for story, test := range map[string]struct {
		target string
		want   []types.NamespacedName
	}{
		"one of its Deployment":                 {"{apiVersion: apps/v1, kind: Deployment, name: web}", web},
		"one of itself":                         {"{apiVersion: schedule.rs/v1, kind: TDSet, name: web}", web},
		"one of another Deployment":             {"{apiVersion: apps/v1, kind: Deployment, name: api}", nil},
		"one of a StatefulSet":                  {"{apiVersion: apps/v1, kind: StatefulSet, name: web}", nil},
		"a Deployment of another group":         {"{apiVersion: example.com/v1, kind: Deployment, name: web}", nil},
		"a name that is too long for an object": {"{apiVersion: apps/v1, kind: Deployment, name: " + strings.Repeat("w", 254) + "}", nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			kept, err := keepTarget(object(t, "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: cpu, namespace: shop, annotations: {a: b}}, spec: {maxReplicas: 9, scaleTargetRef: "+test.target+"}, status: {currentReplicas: 3}}"))
			if err != nil {
				t.Fatal(err)
			}
			autoscaler, ok := kept.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("kept as %T", kept)
			}
			same(t, scaledBy(autoscaler, listing{}), test.want)
			if content, _ := autoscaler.MarshalJSON(); len(content) > 300 || autoscaler.GetAnnotations() != nil {
				t.Errorf("the cache keeps fields that no code reads: %v", autoscaler.Object)
			}
		})
	}
}
