package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// pair is a cluster of two of which everything is through; each story takes something back.
func pair(changes ...func(*sight)) sight {
	s := sight{members: 2, set: &appsv1.StatefulSet{}, pods: map[string]corev1.Pod{}, claims: map[string]corev1.PersistentVolumeClaim{}}
	for _, name := range []string{"c-0", "c-1"} {
		s.claims[name] = corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		s.pods[name] = corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{ended("prepare", 0), ended("initialize", 0)},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "mysqld", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
	}
	s.cluster.Generation = 1
	s.cluster.Status = v1.MySQLClusterStatus{
		ObservedGeneration: 1, Primary: "c-0", InSync: []string{"c-0", "c-1"}, RequiredAcks: 1,
		Conditions: []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue}},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func ended(name string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func second(change func(*corev1.Pod)) func(*sight) {
	return func(s *sight) {
		pod := s.pods["c-1"]
		change(&pod)
		s.pods["c-1"] = pod
	}
}

func TestTimelineLook(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		sight   sight
		missing string
	}{
		"everything is through": {pair(), ""},
		"nothing is there yet":  {sight{members: 2}, "objects made, pods made, volumes bound, pods scheduled, prepare through, initialize through, mysqld started, primary appointed, pods ready, Ready, acknowledgements in force"},
		"the second pod is not there: nothing that all pods must reach is": {
			pair(func(s *sight) { delete(s.pods, "c-1") }), "pods made, pods scheduled, prepare through, initialize through, mysqld started, pods ready",
		},
		"the second volume waits": {pair(func(s *sight) { s.claims["c-1"] = corev1.PersistentVolumeClaim{} }), "volumes bound"},
		"the second pod initialises": {
			pair(second(func(pod *corev1.Pod) {
				pod.Status = corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("prepare", 0)}}
			})), "initialize through, mysqld started, pods ready",
		},
		"a preparation that failed is not through": {
			pair(second(func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("prepare", 1), ended("initialize", 0)}
			})), "prepare through",
		},
		"Ready of the spec before does not count": {pair(func(s *sight) { s.cluster.Generation = 2 }), "Ready, acknowledgements in force"},
		"Ready before commits are replicated": {
			pair(func(s *sight) { s.cluster.Status.InSync, s.cluster.Status.RequiredAcks = []string{"c-0"}, 0 }), "acknowledgements in force",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			round := timeline{}
			round.look(story.sight, time.Second)
			if diff := cmp.Diff(story.missing, round.missing()); diff != "" {
				t.Error(diff)
			}
			wantDone := !strings.Contains(story.missing, stageReady) && !strings.Contains(story.missing, stageDurable)
			if round.done() != wantDone {
				t.Errorf("done: got %v, want %v", round.done(), wantDone)
			}
		})
	}
}

func TestTimelineKeepsTheFirstMoment(t *testing.T) {
	t.Parallel()
	round := timeline{}
	round.look(pair(func(s *sight) { s.cluster.Status.Conditions = nil }), time.Second)
	round.look(pair(), 2*time.Second)
	round.look(pair(), 3*time.Second)
	if round["objects made"] != time.Second || round[stageReady] != 2*time.Second {
		t.Errorf("got %v", round)
	}
}

func TestTimelineListen(t *testing.T) {
	t.Parallel()
	applied := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	primary := parseLife(`{"level":"info","time":"2026-01-01T12:00:05Z","msg":"member changes","state":"Waiting"}
{"level":"info","time":"2026-01-01T12:00:06Z","msg":"member changes","state":"Promoting"}
{"level":"info","time":"2026-01-01T12:00:07.5Z","msg":"member changes","state":"Writing"}
`)
	replica := parseLife(`panic: what a library prints is no entry
{"level":"info","time":"2026-01-01T12:00:06Z","msg":"member changes","state":"Waiting"}
{"level":"info","time":"2026-01-01T12:00:08Z","msg":"member changes","state":"Cloning"}
{"level":"info","time":"2026-01-01T12:00:09Z","msg":"mysqld does not answer"}
{"level":"info","time":"2026-01-01T12:00:11Z","msg":"member changes","state":"CatchingUp"}
{"level":"info","time":"2026-01-01T12:00:12Z","msg":"member changes","state":"Replicating"}
{"level":"info","time":"2026-01-01T12:00:40Z","msg":"member changes","state":"CatchingUp"}
`)
	round := timeline{}
	round.listen([]life{primary, replica}, applied)
	want := timeline{
		"first mysqld answers": 5 * time.Second, "primary takes writes": 7500 * time.Millisecond, "first replica asks for a copy (CLONE)": 8 * time.Second,
		"first copy is there": 11 * time.Second,
		"last copy is there":  11 * time.Second, "replicas replicate": 12 * time.Second,
	}
	if diff := cmp.Diff(want, round); diff != "" {
		t.Error(diff)
	}
}

func TestTableOf(t *testing.T) {
	t.Parallel()
	rows := tableOf([]timeline{
		{"objects made": 100 * time.Millisecond, stageReady: 12 * time.Second},
		{"objects made": 300 * time.Millisecond, stageReady: 14 * time.Second, "pods made": time.Second},
	})
	found := map[string][]string{}
	for _, row := range rows {
		found[row[0]] = row[1:]
	}
	for stage, want := range map[string][]string{
		"stage":              {"at", "after the one before", "round 1", "round 2"},
		"objects made":       {"0.1", "+0.1", "0.1", "0.3"},
		"pods made":          {"1.0", "+0.9", "-", "1.0"},
		stageReady:           {"12.0", "+11.0", "12.0", "14.0"},
		"primary appointed":  {"not noticed"},
		"last copy is there": {"not noticed"},
		stageDurable:         {"not noticed"},
	} {
		if diff := cmp.Diff(want, found[stage]); diff != "" {
			t.Errorf("%s: %s", stage, diff)
		}
	}
}
