package reconcile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, annotations: {cni: much}}
spec: {nodeName: node-1, containers: [{name: mysqld, image: mysql}]}
status:
  phase: Pending
  podIP: 10.0.0.7
  hostIP: 10.0.0.1
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: not yet, lastProbeTime: null}]
  containerStatuses:
  - {name: agent, image: operator, imageID: sha, restartCount: 0, state: {running: {startedAt: "2026-11-21T09:00:00Z"}}, lastState: {}}
  - {name: mysqld, image: mysql, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error, message: no room}}}
`

func TestKeepPodKeepsHowAPodIs(t *testing.T) {
	t.Parallel()
	whole := parse(t, pod)
	for range 2 { // a transform may be applied twice
		if _, err := KeepPod(whole); err != nil {
			t.Fatal(err)
		}
		same(t, whole.Object, map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "db-0", "namespace": "shop"},
			"spec": map[string]any{"nodeName": "node-1"},
			"status": map[string]any{
				"phase": "Pending", "podIP": "10.0.0.7",
				"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "not yet"}},
				"containerStatuses": []any{
					map[string]any{"name": "agent", "state": map[string]any{"running": map[string]any{}}, "lastState": map[string]any{}},
					map[string]any{
						"name": "mysqld", "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}},
						"lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(1), "reason": "Error", "message": "no room"}},
					},
				},
			},
		})
	}
}

// Users name containers and images, and the Pod's status repeats these names. KeepPod keeps kubelet's whole message of one container, and
// of many containers as much as the limit allows. It always keeps the Pod's state.
func TestKeepBoundsWhatAStatusRepeats(t *testing.T) {
	t.Parallel()
	outcome := strings.Repeat("o", maxText)
	for story, test := range map[string]struct {
		containers int
		message    string
		most       int
	}{
		"one that says as much as kubelet lets it": {1, outcome, 5_000},
		"one image with a name of a megabyte":      {1, strings.Repeat("ü", 500_000), 5_000},
		"a thousand containers":                    {1000, "", 5_000},
		"a thousand that cannot be pulled":         {1000, outcome, 25_000},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			statuses := []any{}
			for number := range test.containers {
				ended := map[string]any{"terminated": map[string]any{"message": test.message}}
				statuses = append(statuses, map[string]any{"name": fmt.Sprint("c", number), "image": test.message, "state": ended})
			}
			whole := parse(t, pod)
			put(t, whole.Object, statuses, "status", "containerStatuses")
			first := keptOf(t, whole)
			if len(first) > test.most {
				t.Errorf("%d bytes are kept, want %d", len(first), test.most)
			}
			same(t, keptOf(t, whole), first)
			phase, _, _ := unstructured.NestedString(whole.Object, "status", "phase")
			same(t, phase, "Pending")
			if test.message == outcome && !strings.Contains(first, outcome) {
				t.Error("what the first one said is cut")
			}
		})
	}
}

func keptOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	if _, err := KeepPod(object); err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
