package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
)

// sight is what a client sees of a cluster at one moment.
type sight struct {
	members int
	cluster v1.MySQLCluster
	set     *appsv1.StatefulSet
	pods    map[string]corev1.Pod
	claims  map[string]corev1.PersistentVolumeClaim
}

// stage is one step on the way from apply to Ready.
type stage struct {
	name string
	// seen reports whether a client sees that the stage is complete. It is nil for stages inside members, which only their agents know.
	seen func(sight) bool
	// told finds the moment in the agents' logs.
	told func(lives []life) time.Time
}

// The stages that figures are made of.
const (
	stageReady   = "Ready"
	stageDurable = "acknowledgements in force"
)

// stages are the steps in the order they are expected in.
func stages() []stage {
	return []stage{
		{name: "objects made", seen: func(s sight) bool { return s.set != nil }},
		{name: "pods made", seen: func(s sight) bool { return len(s.pods) == s.members }},
		{name: "volumes bound", seen: volumesBound},
		{name: "pods scheduled", seen: everyPod(func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" })},
		{name: "prepare through", seen: everyPod(initialised("prepare"))},
		{name: "initialize through", seen: everyPod(initialised("initialize"))},
		{name: "mysqld started", seen: everyPod(started("mysqld"))},
		{name: "first mysqld answers", told: func(lives []life) time.Time { return earliest(lives, replication.StateWaiting) }},
		{name: "primary appointed", seen: func(s sight) bool { return s.cluster.Status.Primary != "" }},
		{name: "first replica asks for a copy (CLONE)", told: func(lives []life) time.Time { return earliest(lives, replication.StateCloning) }},
		{name: "primary takes writes", told: func(lives []life) time.Time { return earliest(lives, replication.StateWriting) }},
		{name: "first copy is there", told: func(lives []life) time.Time { return earliest(lives, replication.StateCatchingUp) }},
		{name: "last copy is there", told: func(lives []life) time.Time { return latest(lives, replication.StateCatchingUp) }},
		{name: "replicas replicate", told: func(lives []life) time.Time { return latest(lives, replication.StateReplicating) }},
		{name: "pods ready", seen: everyPod(isReady)},
		{name: stageReady, seen: func(s sight) bool {
			return current(s) && meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1.ConditionReady)
		}},
		{name: stageDurable, seen: durable},
	}
}

func current(s sight) bool { return s.cluster.Status.ObservedGeneration == s.cluster.Generation }

// durable: as many acknowledgements are promised as the size allows, and every member may give them.
func durable(s sight) bool {
	status := s.cluster.Status
	return current(s) && len(status.InSync) == s.members && int(status.RequiredAcks) == replication.FullAcks(s.members)
}

func volumesBound(s sight) bool {
	bound := 0
	for _, claim := range s.claims {
		if claim.Status.Phase == corev1.ClaimBound {
			bound++
		}
	}
	return bound == s.members
}

func everyPod(is func(corev1.Pod) bool) func(sight) bool {
	return func(s sight) bool {
		for _, pod := range s.pods {
			if !is(pod) {
				return false
			}
		}
		return len(s.pods) == s.members
	}
}

func initialised(container string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool {
		for _, status := range pod.Status.InitContainerStatuses {
			if status.Name == container {
				return status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
			}
		}
		return false
	}
}

func started(container string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool {
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == container {
				return status.State.Running != nil
			}
		}
		return false
	}
}

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// life is when a member first came to each state, by its agent's own log.
type life map[replication.State]time.Time

// parseLife reads an agent's log: one JSON object a line, of which those with a state matter.
func parseLife(log string) life {
	found := life{}
	for line := range strings.Lines(log) {
		var entry struct {
			Time  time.Time         `json:"time"`
			State replication.State `json:"state"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.State == "" {
			continue // what the Go runtime or a library wrote
		}
		if _, before := found[entry.State]; !before {
			found[entry.State] = entry.Time
		}
	}
	return found
}

// earliest and latest find when the first, or the last, of the members that ever came to the state did. The zero time: none did.
func earliest(lives []life, state replication.State) time.Time {
	return pick(lives, state, time.Time.Before)
}

func latest(lives []life, state replication.State) time.Time {
	return pick(lives, state, time.Time.After)
}

func pick(lives []life, state replication.State, better func(time.Time, time.Time) bool) time.Time {
	var chosen time.Time
	for _, one := range lives {
		if at, reached := one[state]; reached && (chosen.IsZero() || better(at, chosen)) {
			chosen = at
		}
	}
	return chosen
}

// timeline is how long after apply each stage was through. A stage that was not noticed is not in it.
type timeline map[string]time.Duration

// look notes the stages that the sight shows to be through and that were not before.
func (t timeline) look(s sight, since time.Duration) {
	for _, one := range stages() {
		if _, before := t[one.name]; !before && one.seen != nil && one.seen(s) {
			t[one.name] = since
		}
	}
}

// listen notes the stages that agents tell of.
func (t timeline) listen(lives []life, applied time.Time) {
	for _, one := range stages() {
		if one.told == nil {
			continue
		}
		if at := one.told(lives); !at.IsZero() {
			t[one.name] = at.Sub(applied)
		}
	}
}

// done reports whether the last stages were seen: the cluster is Ready, and acknowledgements are in force.
func (t timeline) done() bool {
	_, ready := t[stageReady]
	_, isDurable := t[stageDurable]
	return ready && isDurable
}

// missing names what was not seen yet.
func (t timeline) missing() string {
	var names []string
	for _, one := range stages() {
		if _, reached := t[one.name]; !reached && one.seen != nil {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, ", ")
}

func momentsOf(rounds []timeline, name string) []float64 {
	var durations []time.Duration
	for _, round := range rounds {
		if at, reached := round[name]; reached {
			durations = append(durations, at)
		}
	}
	return figure.Seconds(durations)
}

// tableOf shows each stage's moment, how long after the stage before it that was, and every round.
func tableOf(rounds []timeline) [][]string {
	rows := [][]string{{"stage", "at", "after the one before"}}
	for number := range rounds {
		rows[0] = append(rows[0], fmt.Sprintf("round %d", number+1))
	}
	before := 0.0
	for _, one := range stages() {
		moments := momentsOf(rounds, one.name)
		if len(moments) == 0 {
			rows = append(rows, []string{one.name, "not noticed"})
			continue
		}
		at := figure.Percentile(moments, 50)
		cells := make([]string, 0, len(rounds))
		for _, round := range rounds {
			cells = append(cells, cell(round, one.name))
		}
		rows, before = append(rows, append([]string{one.name, fmt.Sprintf("%.1f", at), fmt.Sprintf("%+.1f", at-before)}, cells...)), at
	}
	return rows
}

func cell(round timeline, name string) string {
	at, reached := round[name]
	if !reached {
		return "-"
	}
	return fmt.Sprintf("%.1f", at.Seconds())
}
