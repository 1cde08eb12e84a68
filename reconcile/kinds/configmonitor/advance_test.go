package configmonitor

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// at is what a pass observed at this time after noon, with these Pods.
func at(after time.Duration, pods ...pod) observed {
	return observed{now: noon.Add(after), hash: newHash, pods: pods, rollouts: map[types.UID]rollout{}}
}

func (l observed) with(name string, found rollout) observed {
	l.rollouts[types.UID("uid-"+name)] = found
	return l
}

func TestAdvanceOfARolledWorkload(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		before v1.Action
		seen   observed
		want   string
	}{
		"it is still to be restarted":                    {v1.ActionPending, at(0).with("web", rollout{stamp: oldHash, done: true}), "Pending"},
		"it was stamped before the operator recorded it": {v1.ActionPending, at(0).with("web", rollout{stamp: newHash}), "Pending"},
		"it replaces its Pods":                           {v1.ActionRolling, at(0).with("web", rollout{stamp: newHash, progressMessage: "1 of 3 Pods replaced"}), "Rolling, 1 of 3 Pods replaced"},
		"it has replaced them":                           {v1.ActionRolling, at(0).with("web", rollout{stamp: newHash, done: true}), "Rolled"},
		"it is stamped for other data":                   {v1.ActionRolling, at(0).with("web", rollout{stamp: "newer", done: true}), "Rolling, its Pod template now has the annotation for other data: another client rolled it back, or restarts it for newer data"},
		"another client removes the stamp":               {v1.ActionRolling, at(0).with("web", rollout{done: true}), "LeftAlone, another client removes the annotation from its Pod template: restart it with the tool that manages it"},
		"it does not replace Pods by itself":             {v1.ActionPending, at(0).with("web", rollout{notRolledReason: "not me"}), "LeftAlone, not me"},
		"it was deleted before its turn":                 {v1.ActionPending, at(0), "Gone"},
		"it was deleted while it replaced its Pods":      {v1.ActionRolling, at(0), "Gone"},
		"it was done":                                    {v1.ActionRolled, at(0), "Rolled"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got := advance([]v1.RestartedWorkload{entry(kindDeployment, "web", test.before)}, test.seen)
			same(t, summary(got), []string{"Deployment web: " + test.want})
		})
	}
}

// TestAdvanceOfEvictedPods advances the Pods a and b of a ReplicaSet, which the Pods n1 and n2 replace.
func TestAdvanceOfEvictedPods(t *testing.T) {
	t.Parallel()
	rs := bareSet("rs")
	a, b, n1, n2 := running("a", rs), running("b", rs), running("n1", rs), running("n2", rs)
	for story, test := range map[string]struct {
		a, b v1.Action
		seen observed
		want []string
	}{
		"both wait for their turn": {
			v1.ActionPending, v1.ActionPending, at(0, a, b),
			[]string{"Pod a: Pending", "Pod b: Pending"},
		},
		"one was evicted before the operator recorded it": {
			v1.ActionPending, v1.ActionPending, at(0, a.but(ending), b),
			[]string{"Pod a: Evicting, is terminating", "Pod b: Pending, waits until the other Pods of ReplicaSet/rs are ready"},
		},
		"one was evicted and is gone before the operator recorded it": {
			v1.ActionPending, v1.ActionPending, at(0, b),
			[]string{"Pod a: Evicting", "Pod b: Pending"},
		},
		"nothing has taken the place yet": {
			v1.ActionEvicting, v1.ActionPending, at(10*time.Second, b),
			[]string{"Pod a: Evicting, waits until ReplicaSet/rs creates a Pod in its place", "Pod b: Pending"},
		},
		"the replacement is not ready": {
			v1.ActionEvicting, v1.ActionPending, at(10*time.Second, b, n1.but(unready)),
			[]string{"Pod a: Evicting, waits until the Pods of ReplicaSet/rs that replace it are ready", "Pod b: Pending"},
		},
		"the replacement is not ready for very long": {
			v1.ActionEvicting, v1.ActionPending, at(time.Hour, b, n1.but(unready)),
			[]string{"Pod a: Evicting, waits until the Pods of ReplicaSet/rs that replace it are ready", "Pod b: Pending"},
		},
		"the replacement is ready": {
			v1.ActionEvicting, v1.ActionPending, at(10*time.Second, b, n1),
			[]string{"Pod a: Replaced", "Pod b: Pending"},
		},
		"the ReplicaSet was scaled in: no replacement comes": {
			v1.ActionEvicting, v1.ActionPending, at(2*time.Minute, b),
			[]string{"Pod a: Replaced", "Pod b: Pending"},
		},
		"the next one": {
			v1.ActionReplaced, v1.ActionEvicting, at(time.Minute, n1, n2),
			[]string{"Pod a: Replaced", "Pod b: Replaced"},
		},
		"it ended by itself": {
			v1.ActionReplaced, v1.ActionPending, at(time.Minute, b.but(over), n1),
			[]string{"Pod a: Replaced", "Pod b: Evicting"},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got := advance([]v1.RestartedWorkload{podEntry("a", test.a), podEntry("b", test.b)}, test.seen)
			same(t, summary(got), test.want)
		})
	}
}

func TestAdvanceNotesWhenSomethingChanged(t *testing.T) {
	t.Parallel()
	before := []v1.RestartedWorkload{entry(kindDeployment, "web", v1.ActionRolling)}
	still := advance(before, at(time.Minute).with("web", rollout{stamp: newHash, progressMessage: "2 of 3 Pods replaced"}))
	if !still[0].Time.Time.Equal(noon) {
		t.Errorf("the time is that of the action, not of the message: %s", still[0].Time)
	}
	rolled := advance(before, at(time.Minute).with("web", rollout{stamp: newHash, done: true}))
	if !rolled[0].Time.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("the time of the new action is %s", rolled[0].Time)
	}
	if before[0].Action != v1.ActionRolling {
		t.Error("what was passed in was changed")
	}
}

func TestWhatIsNext(t *testing.T) {
	t.Parallel()
	rs, other := bareSet("rs"), bareSet("other")
	a, b, n := running("a", rs), running("b", rs), running("n", rs)
	o := running("o", other)
	ofOther := entry(kindPod, "o", v1.ActionPending)
	ofOther.Owner = "ReplicaSet/other"
	for story, test := range map[string]struct {
		workloads []v1.RestartedWorkload
		seen      observed
		roll      []string
		evict     []string
	}{
		"all templates are stamped at once": {
			[]v1.RestartedWorkload{entry(kindDeployment, "web", v1.ActionPending), entry(kindDaemonSet, "log", v1.ActionPending), entry(kindStatefulSet, "db", v1.ActionRolling)},
			at(0), []string{"web", "log"}, []string{},
		},
		"one Pod of an owner": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionPending), podEntry("b", v1.ActionPending)},
			at(0, a, b), []string{}, []string{"a"},
		},
		"one of each owner, of which one will be taken": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionPending), podEntry("b", v1.ActionPending), ofOther},
			at(0, a, b, o), []string{}, []string{"a", "o"},
		},
		"none while another is being replaced": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionEvicting), podEntry("b", v1.ActionPending), ofOther},
			at(0, b, o), []string{}, []string{},
		},
		"one that does not serve goes first": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionPending), podEntry("b", v1.ActionPending)},
			at(0, a, b.but(unready)), []string{}, []string{"b"},
		},
		"none that serves while the others do not": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionReplaced), podEntry("b", v1.ActionPending)},
			at(0, b, n.but(unready)), []string{}, []string{},
		},
		"none that serves while another is leaving": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionPending)},
			at(0, a, b.but(ending)), []string{}, []string{},
		},
		"after bad data none serves, and the operator waits for none": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionPending), podEntry("b", v1.ActionPending)},
			at(0, a.but(unready), b.but(unready)), []string{}, []string{"a"},
		},
		"nothing when all is done": {
			[]v1.RestartedWorkload{podEntry("a", v1.ActionReplaced), entry(kindDeployment, "web", v1.ActionRolled), entry(kindPod, "x", v1.ActionLeftAlone)},
			at(0, n), []string{}, []string{},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			same(t, namesAt(test.workloads, toRoll(test.workloads)), test.roll)
			same(t, namesAt(test.workloads, toEvict(test.workloads, test.seen)), test.evict)
		})
	}
}

func namesAt(workloads []v1.RestartedWorkload, indices []int) []string {
	names := []string{}
	for _, i := range indices {
		names = append(names, workloads[i].Name)
	}
	return names
}

func TestStuck(t *testing.T) {
	t.Parallel()
	waiting := podEntry("b", v1.ActionPending)
	waiting.Message = "waits because of a budget"
	for story, test := range map[string]struct {
		workloads []v1.RestartedWorkload
		seen      observed
		want      string
	}{
		"it makes progress":                            {[]v1.RestartedWorkload{podEntry("a", v1.ActionEvicting), waiting}, at(time.Minute), ""},
		"nothing makes progress":                       {[]v1.RestartedWorkload{podEntry("a", v1.ActionPending), waiting}, at(11 * time.Minute), "b"},
		"a workload reports that it makes no progress": {[]v1.RestartedWorkload{podEntry("a", v1.ActionPending), entry(kindDeployment, "web", v1.ActionRolling)}, at(0).with("web", rollout{stuck: true}), "web"},
		"all is done, long ago":                        {[]v1.RestartedWorkload{podEntry("a", v1.ActionReplaced)}, at(time.Hour), ""},
		"a long queue makes progress":                  {[]v1.RestartedWorkload{withAction(podEntry("a", v1.ActionPending), v1.ActionReplaced, "", noon.Add(55*time.Minute)), waiting}, at(time.Hour), ""},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got, is := stuck(test.workloads, test.seen)
			if is != (test.want != "") || got.Name != test.want {
				t.Errorf("stuck at %q, want %q", got.Name, test.want)
			}
		})
	}
}

// TestLooksAreSpacedOut: a restart of many workloads sends requests no more often than one of a few.
func TestLooksAreSpacedOut(t *testing.T) {
	t.Parallel()
	many := func(count int, kind string, action v1.Action) []v1.RestartedWorkload {
		return slices.Repeat([]v1.RestartedWorkload{{Kind: kind, Action: action}}, count)
	}
	for name, test := range map[string]struct {
		workloads []v1.RestartedWorkload
		want      time.Duration
	}{
		"a few":                    {many(3, kindStatefulSet, v1.ActionPending), 120 * time.Millisecond},
		"a thousand":               {many(1000, "Deployment", v1.ActionRolling), 40 * time.Second},
		"a thousand that are done": {append(many(1000, "Deployment", v1.ActionRolled), many(10, "Deployment", v1.ActionRolling)...), 400 * time.Millisecond},
		"Pods, which are listed":   {many(1000, kindPod, v1.ActionPending), 0},
	} {
		if got := readsDuration(&v1.Restart{Workloads: test.workloads}); got != test.want {
			t.Errorf("%s: the looks take %s, want %s", name, got, test.want)
		}
	}
	same(t, readsDuration(nil), time.Duration(0))
}
