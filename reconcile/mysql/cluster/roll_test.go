package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// rolling is a StatefulSet that changes from one revision to another.
type rolling struct {
	// record is the primary on record, route the member that clients reach without one.
	record, route string
	// pods are the revisions of members 0, 1 and so on; "-" has no Pod, and "x" has the update revision and does not start.
	pods      string
	partition int
	// revisions are the current and the update revision; unseen reports that the controller has not seen the last change of the
	// StatefulSet.
	revisions string
	unseen    bool
	allows    string
}

func (r rolling) seen() (v1.MySQLCluster, observed) {
	revisions := strings.Fields(r.pods)
	cluster := aCluster(int32(len(revisions)), func(c *v1.MySQLCluster) { c.Status.Primary = r.record })
	if r.allows != "" {
		cluster.Annotations = map[string]string{AnnotationRestartPrimary: r.allows}
	}
	seen := observed{route: r.record + r.route}
	scale := int32(len(revisions))
	seen.set = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &scale, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: number(r.partition)},
	}}}
	seen.set.Generation, seen.set.Status.ObservedGeneration = 4, 4
	if r.unseen {
		seen.set.Status.ObservedGeneration = 3
	}
	seen.set.Status.CurrentRevision, seen.set.Status.UpdateRevision, _ = strings.Cut(r.revisions, " ")
	for ordinal, revision := range revisions {
		if revision != "-" {
			pod := readyPod(children.NamesOf(cluster).Member(ordinal))
			if revision == "x" {
				revision = seen.set.Status.UpdateRevision
				pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
			}
			pod.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}
			seen.pods = append(seen.pods, pod)
		}
	}
	return cluster, seen
}

// TestMembersAreUpdating: while they are, Kubernetes may restart the primary for it.
func TestMembersAreUpdating(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		is   rolling
		want bool
	}{
		"all have the latest update":                  {rolling{record: "db-0", pods: "a a a", revisions: "a a"}, false},
		"one has lost its Pod":                        {rolling{record: "db-0", pods: "- a a", revisions: "a a"}, false},
		"an update reaches one after the other":       {rolling{record: "db-0", pods: "a a b", revisions: "a b"}, true},
		"it restarts the last one":                    {rolling{record: "db-0", pods: "- b b", revisions: "a b"}, true},
		"it is held back":                             {rolling{record: "db-1", pods: "a a b", revisions: "a b", partition: 2}, true},
		"it is taken back, and members still have it": {rolling{record: "db-0", pods: "b b b", revisions: "a a"}, true},
		"all have it, and not all are ready":          {rolling{record: "db-0", pods: "x b b", revisions: "a b"}, true},
		"the controller has not seen it yet":          {rolling{record: "db-0", pods: "a a a", revisions: "a a", unseen: true}, true},
	} {
		if got := view(test.is.seen()).IsUpdating; got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if cluster, seen := (rolling{}).seen(); !view(cluster, observed{pods: seen.pods}).IsUpdating {
		t.Error("without a StatefulSet, the operator cannot know")
	}
}

func TestNoUpdateRestartsThePrimaryBeforeItsReplicas(t *testing.T) {
	t.Parallel()
	type outcome struct {
		// bound is the partition, lowered what it may be instead as long as the template stays as it is; -1 for nothing else.
		bound, lowered int
		// held are the members that wait for a user, told are words of the message.
		held, told string
	}
	for name, test := range map[string]struct {
		is   rolling
		want outcome
	}{
		"no primary yet": {rolling{route: "db-0", pods: "a a", revisions: "a a"}, outcome{0, -1, "", ""}},
		"another member became the primary in the middle of an update that it has: below a partition it would come back older": {
			rolling{record: "db-1", pods: "a b b", revisions: "a b", partition: 1}, outcome{2, 0, "", ""},
		},
		"member 0 is the primary: it comes last anyway": {
			rolling{record: "db-0", pods: "a a b", revisions: "a b"}, outcome{0, -1, "", ""},
		},
		"member 0 is the primary, and a user allows what needs no permission": {
			rolling{record: "db-0", pods: "a a b", revisions: "a b", allows: "b"}, outcome{0, -1, "", ""},
		},
		"another primary, and nothing to do": {rolling{record: "db-1", pods: "a a a", partition: 2, revisions: "a a"}, outcome{2, -1, "", ""}},
		"an update: the replica above is on its way": {
			rolling{record: "db-1", pods: "a a -", partition: 2, revisions: "a b"},
			outcome{2, -1, "db-1 db-0", "held back from db-1, db-0|before the replicas below it|restart only db-2|to continue with db-1: kubectl -n shop annotate mysqlcluster db cr.mysqloperator.grtl.github.com/restart-primary-for=b --overwrite"},
		},
		"an update that no replica tries": {
			rolling{record: "db-1", pods: "a a", partition: 2, revisions: "a b"}, outcome{2, -1, "db-1 db-0", "no replica restarts before it"},
		},
		"an earlier operator has begun it with the highest member": {
			rolling{record: "db-2", pods: "a a a", partition: 0, revisions: "a b"}, outcome{3, -1, "db-2 db-1 db-0", "db-2"},
		},
		"the controller has not seen it yet": {rolling{record: "db-1", pods: "a a a", partition: 2, revisions: "a a", unseen: true}, outcome{2, -1, "", ""}},
		"it is allowed":                      {rolling{record: "db-1", pods: "a a b", partition: 2, revisions: "a b", allows: "b"}, outcome{2, 0, "", ""}},
		"it is allowed, and the controller has not seen the partition": {
			rolling{record: "db-1", pods: "a a b", partition: 0, revisions: "a b", unseen: true, allows: "b"}, outcome{2, 0, "", ""},
		},
		"it is allowed, and the primary is restarting": {rolling{record: "db-1", pods: "a - b", partition: 0, revisions: "a b", allows: "b"}, outcome{2, 0, "", ""}},
		"it is allowed, and the last one is not ready": {rolling{record: "db-1", pods: "b b b", partition: 0, revisions: "a b", allows: "b"}, outcome{2, 0, "", ""}},
		"it is allowed, and over":                      {rolling{record: "db-1", pods: "b b b", partition: 0, revisions: "b b", allows: "b"}, outcome{2, -1, "", ""}},
		"a later one is not allowed by it": {
			rolling{record: "db-1", pods: "b b b", partition: 2, revisions: "b c", allows: "b"}, outcome{2, -1, "db-1 db-0", `restart-primary-for="b" is not for this update`},
		},
		"a later one, which the controller has not seen": {
			rolling{record: "db-1", pods: "b b b", partition: 2, revisions: "a b", unseen: true, allows: "b"}, outcome{2, -1, "", ""},
		},
		"what was allowed does not work, and is taken back": {
			rolling{record: "db-1", pods: "a b", partition: 2, revisions: "a a", allows: "b"}, outcome{2, -1, "db-1", "held back from db-1:"},
		},
		"running members are adopted: clients reach one of them": {
			rolling{route: "db-1", pods: "a a a", revisions: "a b"}, outcome{2, -1, "db-1 db-0", "db-1"},
		},
		"running members are adopted, and no Service selects them": {
			rolling{route: "db-0", pods: "a a a", partition: 3, revisions: "a b"}, outcome{3, -1, "db-2 db-1 db-0", "does not know yet which of them takes writes"},
		},
		"a member has neither the current nor the update revision": {
			rolling{record: "db-1", pods: "a b c", partition: 2, revisions: "a c", allows: "b"},
			outcome{2, -1, "db-1 db-0", "if db-1 lost its Pod, Kubernetes would create the Pod again from the older revision a|continue soon"},
		},
		"running members are adopted, and no Service selects any member": {
			rolling{route: "db-0", pods: "a a b", partition: 3, revisions: "a b"}, outcome{3, -1, "db-1 db-0", "held back from db-1, db-0"},
		},
		"a name that is no member's": {rolling{route: "elsewhere", pods: "a a", revisions: "a b"}, outcome{0, -1, "", ""}},
		"a long value of a user is quoted in part": {
			rolling{record: "db-1", pods: "a a", partition: 2, revisions: "a b", allows: strings.Repeat("b", 1000)}, outcome{2, -1, "db-1 db-0", `b…" is not for this update`},
		},
	} {
		now := rolloutOf(test.is.seen())
		got := outcome{bound: now.bound(), lowered: -1, held: strings.ReplaceAll(now.members(now.held()), ",", ""), told: test.want.told}
		if lowered, may := now.lowered(); may {
			got.lowered = lowered
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		message := now.message()
		if (message == "") != (test.want.held == "") || len(message) > 1024 {
			t.Errorf("%s: it says %q", name, message)
		}
		for words := range strings.SplitSeq(test.want.told, "|") {
			if !strings.Contains(message, words) {
				t.Errorf("%s: %q does not say %q", name, message, words)
			}
		}
	}
}

// held returns a cluster of three whose second member is the primary, with an update that has reached these Pods.
func held(t *testing.T, pods string) *scene {
	t.Helper()
	s := healthy(t, 3)
	cluster, seen := rolling{record: "db-1", pods: pods, partition: 2, revisions: "a b"}.seen()
	s.record.Primary, s.cluster.Status.Primary = "db-1", "db-1"
	s.cluster.Status.Phase, s.cluster.Status.ObservedGeneration, s.cluster.Annotations = v1.PhaseReady, s.cluster.Generation, cluster.Annotations
	s.seen.set, s.seen.pods, s.seen.route = seen.set, seen.pods, seen.route
	zero, one := s.seen.members[0].Status, s.seen.members[1].Status
	*zero, *one = *one, *zero
	return s
}

func TestStatusTellsWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	const waits = "PrimaryWouldRestartFirst"
	silenced := func(s *scene) { s.silent(2) }
	refused := func(s *scene) { s.seen.members[1].Status.RootError = "policy" }
	promisingLess := func(s *scene) { promising(s, 0) }
	allowed := func(s *scene) { s.cluster.Annotations = map[string]string{AnnotationRestartPrimary: "b"} }
	over := func(s *scene) { s.seen.set.Status.CurrentRevision = "b" }
	takenBack := func(s *scene) { s.seen.set.Status.UpdateRevision = "a" }
	unheard := func(s *scene) { s.seen.set.Status.ObservedGeneration = 3 }
	ofBefore := &replication.Note{Reason: replication.ReasonAgentRelease}
	for name, test := range map[string]struct {
		pods                             string
		change                           func(*scene)
		note                             *replication.Note
		ready, stalled, condition, phase string
	}{
		"it has reached the others":        {"a a b", func(*scene) {}, nil, "False " + waits, "True " + waits, "True " + waits, "Degraded"},
		"it has yet to reach one":          {"a a a", func(*scene) {}, nil, "False MembersNotReady", "absent", "True " + waits, "Degraded"},
		"one does not come up with it":     {"a a b", silenced, nil, "False MembersNotReady", "absent", "True " + waits, "Degraded"},
		"root's password is not set":       {"a a b", refused, nil, "False RootPasswordNotInForce", "True RootPasswordNotInForce", "True " + waits, "Degraded"},
		"commits have too few copies":      {"a a b", promisingLess, nil, "False CommitsNotReplicated", "absent", "True " + waits, "Degraded"},
		"it would bring new agents":        {"a a b", promisingLess, ofBefore, "False " + waits, "True " + waits, "True " + waits, "Degraded"},
		"one has its agent, and is out":    {"a a b", silenced, ofBefore, "False AgentOfAnotherRelease", "absent", "True " + waits, "Degraded"},
		"a user lets it continue":          {"a a b", allowed, nil, "False MembersNotReady", "absent", "absent", "Degraded"},
		"it has reached all members":       {"b b b", over, nil, "True AllMembersReady", "absent", "absent", "Ready"},
		"the controller has not seen it":   {"a a a", unheard, nil, "False MembersNotReady", "absent", "absent", "Degraded"},
		"it is taken back, and one has it": {"a a b", takenBack, nil, "False MembersNotReady", "absent", "absent", "Degraded"},
	} {
		s := held(t, test.pods)
		test.change(s)
		status := s.report(test.note, nil).status()
		got := []string{
			conditionOf(t, status, v1.ConditionReady), conditionOf(t, status, v1.ConditionStalled), conditionOf(t, status, conditionPrimaryFirst), string(status.Phase),
		}
		if diff := cmp.Diff([]string{test.ready, test.stalled, test.condition, test.phase}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAHeldBackUpdateIsReportedOnce: when it begins. It is not reported again when nothing else is left to wait for, nor while the
// StatefulSet is written.
func TestAHeldBackUpdateIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := held(t, "a a a")
	next := func(applied applyResult) []string {
		before := s.cluster.Status
		told := s.report(nil, nil)
		told.children = applied
		s.cluster.Status = told.status()
		reasons := []string{}
		for _, event := range eventsOf(before, s.cluster.Status) {
			reasons = append(reasons, event.Type+" "+event.Reason)
		}
		return reasons
	}
	if told := next(applyResult{}); !slices.Contains(told, "Warning PrimaryWouldRestartFirst") {
		t.Errorf("the events are %v", told)
	}
	s.seen.pods[2].Labels[appsv1.ControllerRevisionHashLabelKey] = "b"
	for range 2 {
		if told := next(applyResult{}); len(told) != 0 {
			t.Errorf("the repeated events are %v", told)
		}
	}
	next(applyResult{rolled: true, unsettled: true})
	if !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, conditionPrimaryFirst) {
		t.Error("the condition is gone for a moment")
	}
	if got := conditionOf(t, s.cluster.Status, v1.ConditionReady); got != "False MembersNotReady" {
		t.Errorf("the StatefulSet was just written, and Ready is %s", got)
	}
	if told := next(applyResult{}); slices.Contains(told, "Warning PrimaryWouldRestartFirst") {
		t.Errorf("the repeated events are %v", told)
	}
}

// TestAHeldBackUpdateNeedsNoFullPass: it may last for weeks.
func TestAHeldBackUpdateNeedsNoFullPass(t *testing.T) {
	t.Parallel()
	_, found := atRest(t)
	seen := held(t, "a a b").seen
	found.seen.set, found.seen.pods = seen.set, seen.pods
	found.seen.route, found.seen.set.Status.CurrentRevision = "db-1", "a"
	found.cluster.Status = found.status()
	status := found.status()
	if got := conditionOf(t, status, v1.ConditionReady); got != "False PrimaryWouldRestartFirst" {
		t.Fatalf("Ready is %s", got)
	}
	if found.settle("7", status, clusterMemory{}) == nil {
		t.Error("every look is a full pass")
	}
	ofBefore := found
	ofBefore.decision.Note = &replication.Note{Reason: replication.ReasonAgentRelease, Message: "agents of an earlier release"}
	settled := ofBefore.settle("7", status, clusterMemory{})
	if settled == nil {
		t.Fatal("with agents of an earlier release every look is a full pass")
	}
	another := ofBefore.decision
	another.Note = &replication.Note{Reason: replication.ReasonAgentRelease, Message: "another"}
	if !settled.nothingToDo(found.seen.members, ofBefore.decision) || settled.nothingToDo(found.seen.members, another) || settled.nothingToDo(found.seen.members, found.decision) {
		t.Error("it looks at the members, and another decision goes unseen")
	}
	if ahead := found.prospect(status); ahead.requeueAfter() != calmEvery {
		t.Errorf("the next look is after %s", ahead.requeueAfter())
	}
}

// TestThePartitionIsSentOnlyWhereItMatters: clusters whose primary is member 0 keep their StatefulSet.
func TestThePartitionIsSentOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	cluster := aCluster(3)
	render := func(partition *int32) appsv1.StatefulSetUpdateStrategy {
		spec := children.StatefulSetInput{AgentImage: agentImage, Scale: 3, ClaimSize: children.WantedStorage(cluster), Partition: partition}
		return as[appsv1.StatefulSet](t, children.StatefulSet(children.NamesOf(cluster), cluster, spec)).Spec.UpdateStrategy
	}
	if got := render(nil).RollingUpdate; got != nil {
		t.Errorf("it sends %+v", got)
	}
	for _, partition := range []int{0, 2} {
		if got := render(number(partition)).RollingUpdate; got == nil || got.Partition == nil || int(*got.Partition) != partition {
			t.Errorf("it sends %+v, want partition %d", got, partition)
		}
	}
}

// TestThePartitionIsLoweredOnlyOnALiveLook: what a cache says about the primary, or about what a user allowed, may be outdated.
func TestThePartitionIsLoweredOnlyOnALiveLook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// is is what the pass has seen, live the primary that the API server has, and allows the update that it has as allowed.
		is           rolling
		live, allows string
		want         int
		doubtful     bool
		// waits reports that the StatefulSet stays as it is, although another one is wanted.
		waits bool
		// stays reports that no other template is applied with it.
		stays bool
	}{
		"what is allowed, as another template has to wait":  {is: rolling{record: "db-1", pods: "a b b", partition: 2, revisions: "a b", allows: "b"}, live: "db-1", allows: "b", want: 0, stays: true},
		"a new primary, as another template has to wait":    {is: rolling{record: "db-1", pods: "a a b", partition: 0, revisions: "a b"}, want: 2, stays: true},
		"it is under way, and another template has to wait": {is: rolling{record: "db-1", pods: "a b b", partition: 0, revisions: "a b", allows: "b"}, want: 0, stays: true},
		"the primary is member 0 by now":                    {rolling{record: "db-0", pods: "a a a", partition: 2, revisions: "a b"}, "db-0", "", -1, false, false, false},
		"it was member 0, and is not any more":              {rolling{record: "db-0", pods: "a a a", partition: 2, revisions: "a b"}, "db-1", "", 2, true, false, false},
		"it was the third one, and is the second":           {rolling{record: "db-1", pods: "a a a", partition: 3, revisions: "a b"}, "db-1", "", 2, false, false, false},
		"it is the third one again":                         {rolling{record: "db-1", pods: "a a a", partition: 3, revisions: "a b"}, "db-2", "", 3, true, false, false},
		"what was allowed is not any more":                  {rolling{record: "db-0", pods: "a a a", partition: 2, revisions: "a b", allows: "b"}, "db-0", "", 2, true, false, false},
		"what is allowed comes with another template":       {rolling{record: "db-1", pods: "a a a", partition: 2, revisions: "a b", allows: "b"}, "", "", 2, false, false, false},
		"another template, and what is allowed is under way": {
			rolling{record: "db-1", pods: "a b b", partition: 0, revisions: "a b", allows: "b"}, "", "", -1, false, true, false,
		},
		"another template, and a member is just restarting": {
			rolling{record: "db-1", pods: "- b b", partition: 0, revisions: "a b", allows: "b"}, "", "", -1, false, true, false,
		},
		"another template, and members are missing for another reason": {
			rolling{record: "db-1", pods: "- - b", partition: 0, revisions: "a b", allows: "b"}, "", "", 2, false, false, false,
		},
		"another template fixes what does not start": {
			rolling{record: "db-1", pods: "x b b", partition: 0, revisions: "a b", allows: "b"}, "", "", 2, false, false, false,
		},
		"another template, and the leave is taken away": {rolling{record: "db-1", pods: "a b b", partition: 0, revisions: "a b"}, "", "", 2, false, false, false},
		"it goes up without a look":                     {rolling{record: "db-2", pods: "a a a", partition: 0, revisions: "a b"}, "", "", 3, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 1)
			cluster, seen := test.is.seen()
			if test.live != "" {
				live := aCluster(3, func(c *v1.MySQLCluster) {
					c.APIVersion, c.Kind, c.UID = "cr.mysqloperator.grtl.github.com/v1", "MySQLCluster", "uid0"
					c.Status.Primary, c.Annotations = test.live, map[string]string{AnnotationRestartPrimary: test.allows}
				})
				s.live.Store("mysqlclusters/db0", live)
			}
			plan, err := s.planRoll(t.Context(), s.client(t, "db0"), cluster, seen, func(*int32) (bool, error) { return test.stays, nil })
			if err != nil {
				t.Fatal(err)
			}
			got := plan.partition
			if got == nil {
				got = number(-1)
			}
			if int(*got) != test.want || plan.doubtful != test.doubtful || plan.waits != test.waits {
				t.Errorf("partition %d, doubtful %t, waits %t", *got, plan.doubtful, plan.waits)
			}
		})
	}
}

// TestAMemberThatIsHeldBackShowsTheMistakeOfBefore: the spec is correct by now, and only the command is left to run.
func TestAMemberThatIsHeldBackShowsTheMistakeOfBefore(t *testing.T) {
	t.Parallel()
	s := held(t, "a b b")
	s.seen.set.Status.UpdateRevision = "c"
	s.seen.pods[2].Labels[appsv1.ControllerRevisionHashLabelKey] = "c"
	s.silent(1)
	s.seen.pods[1].Status.ContainerStatuses = nil
	s.seen.pods[1].Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: children.ContainerInitialize, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "[ERROR] unknown variable 'x=1'."}},
	}}
	ready := meta.FindStatusCondition(s.report(nil, nil).status().Conditions, v1.ConditionReady)
	for _, words := range []string{"unknown variable", "that Pod does not have the update yet", AnnotationRestartPrimary + "=c"} {
		if !strings.Contains(ready.Message, words) {
			t.Errorf("%s: %q does not say %q", ready.Reason, ready.Message, words)
		}
	}
}

// TestTheNextUpdateWaitsForOneThatIsUnderWay, and the message has the command that ends the wait.
func TestTheNextUpdateWaitsForOneThatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := held(t, "a b b")
	s.cluster.Annotations = map[string]string{AnnotationRestartPrimary: "b"}
	told := s.report(nil, nil)
	told.children = applyResult{unsettled: true, waits: true}
	found := meta.FindStatusCondition(told.status().Conditions, conditionPrimaryFirst)
	if found == nil || !strings.Contains(found.Message, "when update b has reached db-0") || !strings.Contains(found.Message, AnnotationRestartPrimary+"-") {
		t.Errorf("the condition is %+v", found)
	}
}
