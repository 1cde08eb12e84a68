package configmonitor

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

func TestNextStep(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(noon)
	settled := v1.ConfigMonitorStatus{ObservedConfigMap: "settings", ObservedHash: oldHash}
	underWay := func(target string) v1.ConfigMonitorStatus {
		return v1.ConfigMonitorStatus{ObservedConfigMap: "settings", ObservedHash: oldHash, LastRestart: &v1.Restart{Time: at, Hash: target}}
	}
	completed := v1.ConfigMonitorStatus{ObservedConfigMap: "settings", ObservedHash: newHash, LastRestart: &v1.Restart{Time: at, CompletionTime: &at, Hash: newHash}}
	has := func(hash string) config { return config{name: "settings", found: true, hash: hash, version: "7"} }

	for story, test := range map[string]struct {
		status v1.ConfigMonitorStatus
		now    config
		want   step
	}{
		"a new monitor waits for a ConfigMap that is not there": {v1.ConfigMonitorStatus{}, config{name: "settings"}, stepWait},
		"a new monitor takes a ConfigMap as the Pods have it":   {v1.ConfigMonitorStatus{}, has(oldHash), stepAdopt},
		"the same data as ever":                                 {settled, has(oldHash), stepRest},
		"other metadata, the same data":                         {settled, config{name: "settings", found: true, hash: oldHash, version: "8"}, stepRest},
		"the data changed, even while no operator ran":          {settled, has(newHash), stepBegin},
		"deleted": {settled, config{name: "settings"}, stepWait},
		"another ConfigMap is named: its data is no change":             {settled, config{name: "other", found: true, hash: newHash}, stepAdopt},
		"a restart continues after a crash":                             {underWay(newHash), has(newHash), stepContinue},
		"the data changed again during a restart":                       {underWay(newHash), has("newer"), stepBegin},
		"the data changed back during a restart, when some Pods had it": {underWay(newHash), has(oldHash), stepBegin},
		"the ConfigMap is deleted during a restart":                     {underWay(newHash), config{name: "settings"}, stepWait},
		"another ConfigMap is named during a restart":                   {underWay(newHash), config{name: "other", found: true, hash: newHash}, stepAdopt},
		"a restart is complete":                                         {completed, has(newHash), stepRest},
		"changed back after a restart":                                  {completed, has(oldHash), stepBegin},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if got := nextStep(test.status, test.now); got != test.want {
				t.Errorf("decided to %s, want %s", got, test.want)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	rs := bareSet("rs")
	sees := func(selector string, planned ...types.UID) sibling {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		names := map[types.UID]bool{}
		for _, uid := range planned {
			names[uid] = true
		}
		return sibling{selector: parsed, planned: names}
	}
	for story, test := range map[string]struct {
		running  []pod
		siblings []sibling
		want     []string
	}{
		"nothing runs": {want: []string{}},
		"a Deployment is rolled once, however many Pods it has": {
			running: []pod{running("web-1", deployment("web")), running("web-2", deployment("web")), running("web-3", deployment("web")).but(unready)},
			want:    []string{"Deployment web: Pending"},
		},
		"all that is selected is restarted, in an order that does not depend on the API server": {
			running: []pod{running("z", rs), running("web-1", deployment("web")), running("a", rs), running("api-1", deployment("api"))},
			want:    []string{"Deployment api: Pending", "Deployment web: Pending", "Pod a: Pending", "Pod z: Pending"},
		},
		"a Pod that no controller would create again is left alone": {
			running: []pod{running("alone", nobody())},
			want:    []string{"Pod alone: LeftAlone, it has no owner"},
		},
		"Pods that have ended or are being deleted need no restart": {
			running: []pod{running("done", rs).but(over), running("leaving", rs).but(ending), running("web-1", deployment("web")).but(ending)},
			want:    []string{},
		},
		"the replacements of a sibling's Pods are not replaced again": {
			running:  []pod{running("before", rs), running("after", rs)},
			siblings: []sibling{sees("app=web", "uid-before")},
			want:     []string{"Pod before: Pending"},
		},
		"a sibling that does not select a Pod says nothing about it": {
			running:  []pod{running("a", rs)},
			siblings: []sibling{sees("app=other")},
			want:     []string{"Pod a: Pending"},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			same(t, summary(plan(test.running, test.siblings, noon)), test.want)
		})
	}
}

func TestPlanNamesWhatItWillFindAgain(t *testing.T) {
	t.Parallel()
	got := plan([]pod{running("a", bareSet("rs")), running("web-1", deployment("web"))}, nil, noon.Add(300*time.Millisecond))
	want := []v1.RestartedWorkload{
		{Kind: kindDeployment, Name: "web", UID: "uid-web", Action: v1.ActionPending, Time: metav1.NewTime(noon)},
		{Kind: kindPod, Name: "a", UID: "uid-a", Owner: "ReplicaSet/rs", Action: v1.ActionPending, Time: metav1.NewTime(noon)},
	}
	same(t, got, want)
}

func TestOriginOf(t *testing.T) {
	t.Parallel()
	by := func(version, kind string) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "x", UID: "1"}
	}
	for story, test := range map[string]struct {
		controller *metav1.OwnerReference
		set        parent
		want       treatment
		name       string
	}{
		"no controller":                          {nil, parent{}, treatLeave, "/"},
		"a Deployment, through its ReplicaSet":   {by("apps/v1", "ReplicaSet"), parent{exists: true, controller: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}, treatRoll, "Deployment/web"},
		"a StatefulSet":                          {by("apps/v1", "StatefulSet"), parent{}, treatRoll, "StatefulSet/x"},
		"a DaemonSet":                            {by("apps/v1", "DaemonSet"), parent{}, treatRoll, "DaemonSet/x"},
		"a ReplicaSet without an owner":          {by("apps/v1", "ReplicaSet"), parent{exists: true}, treatEvict, "ReplicaSet/x"},
		"a ReplicaSet of an unknown kind":        {by("apps/v1", "ReplicaSet"), parent{exists: true, controller: by("argoproj.io/v1alpha1", "Rollout")}, treatEvict, "ReplicaSet/x"},
		"a ReplicaSet that is gone":              {by("apps/v1", "ReplicaSet"), parent{}, treatLeave, "ReplicaSet/x"},
		"a ReplicationController":                {by("v1", "ReplicationController"), parent{}, treatEvict, "ReplicationController/x"},
		"a Job":                                  {by("batch/v1", "Job"), parent{}, treatLeave, "Job/x"},
		"a node, which runs a static Pod":        {by("v1", "Node"), parent{}, treatLeave, "Node/x"},
		"something unknown":                      {by("example.com/v1", "Fleet"), parent{}, treatEvict, "Fleet/x"},
		"something that is only called the same": {by("example.com/v1", "StatefulSet"), parent{}, treatEvict, "StatefulSet/x"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got := originOf(test.controller, test.set)
			if got.treatment != test.want || got.String() != test.name {
				t.Errorf("%s has the treatment %s, want %s with %s", got, got.treatment, test.name, test.want)
			}
			if (got.why != "") != (got.treatment == treatLeave) {
				t.Errorf("a Pod is left alone with a reason, and only then: %s, %q", got.treatment, got.why)
			}
		})
	}
}
