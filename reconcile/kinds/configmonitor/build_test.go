package configmonitor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// noon is the time when the tests' restarts are planned.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant, which a time cannot be

const oldHash, newHash = "old", "new"

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want +got):\n%s", diff)
	}
}

// The origins of the tests' Pods.
func deployment(name string) origin {
	return origin{kind: kindDeployment, name: name, uid: types.UID("uid-" + name), treatment: treatRoll}
}

func bareSet(name string) origin {
	return origin{kind: kindReplicaSet, name: name, uid: types.UID("uid-" + name), treatment: treatEvict}
}

func nobody() origin {
	return origin{treatment: treatLeave, why: "it has no owner"}
}

// running returns a Pod that is ready; its UID is "uid-" and its name.
func running(name string, from origin) pod {
	return pod{name: name, uid: types.UID("uid-" + name), labels: labels.Set{"app": "web"}, ready: true, origin: from}
}

func (p pod) but(change func(*pod)) pod {
	change(&p)
	return p
}

func unready(p *pod) { p.ready = false }
func ending(p *pod)  { p.ending = true }
func over(p *pod)    { p.ended, p.ready = true, false }

// entry returns a workload of a plan made at noon.
func entry(kind, name string, action v1.Action) v1.RestartedWorkload {
	return v1.RestartedWorkload{Kind: kind, Name: name, UID: types.UID("uid-" + name), Action: action, Time: metav1.NewTime(noon)}
}

// podEntry returns a workload for a Pod of the ReplicaSet "rs".
func podEntry(name string, action v1.Action) v1.RestartedWorkload {
	made := entry(kindPod, name, action)
	made.Owner = "ReplicaSet/rs"
	return made
}

// summary returns one line for each workload of a plan: "Kind name: Action, message".
func summary(workloads []v1.RestartedWorkload) []string {
	lines := []string{}
	for _, entry := range workloads {
		lines = append(lines, describe(entry))
	}
	return lines
}
