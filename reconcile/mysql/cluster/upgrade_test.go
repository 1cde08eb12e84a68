package cluster

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// upgrading is a StatefulSet that changes from one image to another.
type upgrading struct {
	rolling
	// image is what the spec asks for, has what the StatefulSet has.
	image, has string
	// members are the release series of members 0, 1 and so on. "-" does not answer. With "!" no client could log in as one account, with
	// "?" that is not known. One with "~" does not serve, and one with "#" is not in sync.
	members string
	// change is what else is not as it should be.
	change func(*v1.MySQLCluster, *observed)
}

// barred is the report of a mysqld with which no client can log in as one account.
func barred() *replication.Accounts {
	return &replication.Accounts{Named: []replication.Account{{User: "app", Host: "%", Plugin: "mysql_native_password"}}}
}

func (u upgrading) seen() (v1.MySQLCluster, observed) {
	cluster, seen := u.rolling.seen()
	cluster.Spec.Image = u.image
	seen.set.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: children.ContainerAgent, Image: agentImage}}
	seen.set.Spec.Template.Spec.Containers = []corev1.Container{{Name: children.ContainerMysqld, Image: u.has}}
	for ordinal, is := range strings.Fields(u.members) {
		name := children.NamesOf(cluster).Member(ordinal)
		member := replication.Member{Name: name, Ordinal: ordinal}
		if is != "-" {
			status := &replication.Status{Protocol: replication.Protocol, State: replication.StateReplicating, Version: strings.TrimRight(is, "!?~#") + ".4", LockedOut: &replication.Accounts{}}
			if name == u.record {
				status.State = replication.StateWriting
			}
			if strings.Contains(is, "!") {
				status.LockedOut = barred()
			}
			if strings.Contains(is, "?") {
				status.LockedOut = nil
			}
			if strings.Contains(is, "~") {
				status.State = replication.StateCatchingUp
			}
			member.Status = status
		}
		if name != u.record && !strings.Contains(is, "#") {
			cluster.Status.InSync = append(cluster.Status.InSync, name)
		}
		seen.members = append(seen.members, member)
	}
	if u.change != nil {
		u.change(&cluster, &seen)
	}
	return cluster, seen
}

// failing makes a member's mysqld end, and kubelet wait before it starts it again.
func failing(ordinal int, message string) func(*v1.MySQLCluster, *observed) {
	return func(_ *v1.MySQLCluster, seen *observed) {
		seen.pods[ordinal].Status.ContainerStatuses[0] = corev1.ContainerStatus{
			Name: children.ContainerMysqld, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}},
		}
	}
}

// lastVersion makes a version the one that the primary reported last.
func lastVersion(version string) func(*v1.MySQLCluster, *observed) {
	return func(cluster *v1.MySQLCluster, _ *observed) { cluster.Status.Version = version }
}

func TestAnotherImageComesToThePrimaryWhenTheOthersHaveTriedIt(t *testing.T) {
	t.Parallel()
	// What the StatefulSet has, and what the spec asks for.
	const old, next = "mysql:8.4", "mysql:9.7"
	atRest := rolling{record: "db-0", pods: "a a a", revisions: "a a"}
	// An update that is held back from the primary, and has reached the others.
	tried := rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1}
	for name, test := range map[string]struct {
		is upgrading
		// bound is the partition for what the spec asks for, waits what that waits for, passes reports that the partition is lowered for
		// the current update.
		bound  int
		waits  string
		passes bool
		// blocked are words of the message to the user.
		blocked string
	}{
		"the same image": {upgrading{rolling: atRest, image: old, has: old, members: "8.4 8.4 8.4"}, 0, "", false, ""},
		"it begins":      {upgrading{rolling: atRest, image: next, has: old, members: "8.4 8.4 8.4"}, 1, "", false, ""},
		"a replica does not serve": {
			upgrading{rolling: atRest, image: next, has: old, members: "8.4 8.4~ 8.4"}, 0, "spec.image mysql:9.7 begins when all members serve and are in sync|waiting for db-1", false, "",
		},
		"replicas do not answer, or are not in sync": {upgrading{rolling: atRest, image: next, has: old, members: "8.4 - 8.4#"}, 0, "waiting for db-1, db-2", false, ""},
		"the primary does not answer":                {upgrading{rolling: atRest, image: next, has: old, members: "- 8.4 8.4"}, 0, "waiting for db-0", false, ""},
		"a member that will be removed need not be healthy": {
			upgrading{rolling: atRest, image: next, has: old, members: "8.4 8.4 -", change: func(c *v1.MySQLCluster, _ *observed) { *c.Spec.Replicas = 2 }}, 1, "", false, "",
		},
		"members are added first": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a", revisions: "a a"}, image: next, has: old, members: "8.4 8.4 -#", change: func(c *v1.MySQLCluster, _ *observed) { *c.Spec.Replicas = 3 }},
			0, "waiting for db-2", false, "",
		},
		"also to a single one": {
			upgrading{rolling: rolling{record: "db-0", pods: "a", revisions: "a a"}, image: next, has: old, members: "8.4 -#", change: func(c *v1.MySQLCluster, _ *observed) { *c.Spec.Replicas = 2 }},
			0, "waiting for db-1", false, "",
		},
		"a replica's mysqld ends, and another one may not": {
			upgrading{rolling: atRest, image: next, has: old, members: "8.4 8.4 -", change: failing(2, "killed")}, 1, "", false, "",
		},
		"the image that the primary had is gone": {
			upgrading{rolling: rolling{record: "db-0", pods: "x a a", revisions: "a a"}, image: next, has: old, members: "- 8.4~ 8.4~"}, 0, "", false, "",
		},
		"Kubernetes refuses the primary's Pod": {
			upgrading{rolling: rolling{record: "db-0", pods: "- a a", revisions: "a a"}, image: next, has: old, members: "- 8.4~ 8.4~", change: func(_ *v1.MySQLCluster, o *observed) {
				o.refused = &report.Problem{Reason: protocol.ReasonPodsNotCreated}
			}}, 0, "", false, "",
		},
		"agents of an earlier release join nothing": {
			upgrading{rolling: atRest, image: next, has: old, members: "8.4 8.4 8.4#", change: func(_ *v1.MySQLCluster, o *observed) { o.members[2].Status.Protocol = 0 }}, 1, "", false, "",
		},
		"one member": {upgrading{rolling: rolling{record: "db-0", pods: "a", revisions: "a a"}, image: next, has: old, members: "-"}, 0, "", false, ""},
		"no primary yet": {
			upgrading{rolling: rolling{route: "db-0", pods: "a a a", revisions: "a a"}, image: next, has: old, members: "- - -"}, 0, "", false, "",
		},
		"the primary is another one": {
			upgrading{rolling: rolling{record: "db-1", pods: "a a a", revisions: "a a", partition: 2}, image: next, has: old, members: "8.4 8.4 8.4"}, 2, "", false, "",
		},
		"the primary is another one, and a replica does not serve": {
			upgrading{rolling: rolling{record: "db-1", pods: "a a a", revisions: "a a", partition: 2}, image: next, has: old, members: "8.4~ 8.4 8.4"}, 2, "waiting for db-0", false, "",
		},
		"a change of settings is on its way": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: next, has: old, members: "8.4 8.4 8.4~"}, 1, "", false, "",
		},
		"a change of settings has reached the primary": {
			upgrading{rolling: rolling{record: "db-0", pods: "b b b", revisions: "a b"}, image: next, has: old, members: "- 8.4 8.4"}, 0, "spec.image mysql:9.7 begins when update b is over; waiting for db-0", false, "",
		},
		"a change of settings is just restarting the primary": {
			upgrading{rolling: rolling{record: "db-0", pods: "- b b", revisions: "a b"}, image: next, has: old, members: "- 8.4 8.4"}, 0, "waiting for db-0", false, "",
		},
		"the primary does not take the settings that it has": {
			upgrading{rolling: rolling{record: "db-0", pods: "b b b", revisions: "a b"}, image: next, has: old, members: "- 8.4~ 8.4~", change: failing(0, "[ERROR] no")}, 0, "", false, "",
		},
		"it is on its way":              {upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b", partition: 1}, image: next, has: next, members: "8.4 8.4 9.7!"}, 1, "", false, ""},
		"one does not serve with it":    {upgrading{rolling: tried, image: next, has: next, members: "8.4 9.7~! 9.7!"}, 1, "", false, ""},
		"the primary is away":           {upgrading{rolling: tried, image: next, has: next, members: "- 9.7 9.7"}, 1, "", false, ""},
		"it is of the same series":      {upgrading{rolling: tried, image: next, has: next, members: "9.7! 9.7! 9.7?"}, 1, "", true, ""},
		"it lets all accounts in":       {upgrading{rolling: tried, image: next, has: next, members: "8.4 9.7 9.7"}, 1, "", true, ""},
		"no client could log in before": {upgrading{rolling: tried, image: next, has: next, members: "8.4! 9.7! 9.7!"}, 1, "", true, ""},
		"one has not looked yet":        {upgrading{rolling: tried, image: next, has: next, members: "8.4 9.7? 9.7"}, 1, "", false, ""},
		"one has no version":            {upgrading{rolling: tried, image: next, has: next, members: "8.4 nine 9.7"}, 1, "", false, ""},
		"the controller has not seen what is written": {
			upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1, unseen: true}, image: next, has: next, members: "8.4 9.7 9.7"}, 1, "", false, "",
		},
		"an account could no longer log in": {
			upgrading{rolling: tried, image: next, has: next, members: "8.4 9.7! 9.7"}, 1, "", false,
			`update b is held back from the primary db-0|db-1 has MySQL 9.7|lets no client log in as "app"@"%" ("mysql_native_password")|no way back to MySQL 8.4|` +
				"to continue anyway: kubectl -n shop annotate mysqlcluster db cr.mysqloperator.grtl.github.com/restart-primary-for=b --overwrite",
		},
		"a user lets it continue": {
			upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1, allows: "b"}, image: next, has: next, members: "8.4 9.7! 9.7!"}, 1, "", false, "",
		},
		"the primary's image is gone meanwhile": {
			upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1}, image: next, has: next, members: "- 9.7~ 9.7~", change: failing(0, "[ERROR] MY-013171")},
			1, "", false, "the primary does not run with its current image and settings",
		},
		"the primary's mysqld ends again and again meanwhile": {
			upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1}, image: next, has: next, members: "- 9.7~ 9.7~", change: failing(0, "[ERROR] [MY-012574] no")},
			1, "", false, "the primary does not run with its current image and settings",
		},
		"the last replica is gone": {
			upgrading{rolling: rolling{record: "db-0", pods: "a", revisions: "a b", partition: 1}, image: next, has: next, members: "8.4"}, 1, "", false, "there is no replica",
		},
		"it is taken back":           {upgrading{rolling: tried, image: old, has: next, members: "8.4 9.7~ 9.7"}, 1, "", false, ""},
		"what was before comes back": {upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a a", partition: 1}, image: old, has: old, members: "8.4 - 9.7"}, 1, "", false, ""},
		"what was before is back":    {upgrading{rolling: rolling{record: "db-0", pods: "a a a", revisions: "a a", partition: 1}, image: old, has: old, members: "8.4 - 8.4"}, 1, "", true, ""},
		"it never began for the primary": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a a"}, image: old, has: old, members: "8.4 8.4 9.7~"}, 0, "", false, "",
		},
		"it continues":             {upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b"}, image: next, has: next, members: "8.4 9.7 9.7"}, 0, "", false, ""},
		"the primary restarts":     {upgrading{rolling: rolling{record: "db-0", pods: "- b b", revisions: "a b"}, image: next, has: next, members: "- 9.7~ 9.7~"}, 0, "", false, ""},
		"the name has another one": {upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "8.4 8.4 9.7~"}, 1, "", false, ""},
		"the name has another one, and Kubernetes has not reported the update": {
			upgrading{rolling: rolling{record: "db-0", pods: "a b", revisions: "a a", unseen: true}, image: old, has: old, members: "8.4 9.7~"}, 1, "", false, "",
		},
		"the name has another one, and the primary does not answer at present": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "- 8.4 9.7~", change: lastVersion("8.4.6")}, 1, "", false, "",
		},
		"the name has another one, and the primary has not reported its version": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "- 8.4 9.7~"}, 0, "", false, "",
		},
		"the name has another one, which may fix the primary": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "- 8.4 9.7~", change: func(c *v1.MySQLCluster, o *observed) {
				lastVersion("8.4.6")(c, o)
				failing(0, "[ERROR] no")(c, o)
			}}, 0, "", false, "",
		},
		"the name has another one, and the primary's mysqld has restarted": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "8.4 8.4 9.7~", change: func(_ *v1.MySQLCluster, o *observed) {
				o.members[0].Status.State = replication.StateWaiting
			}}, 1, "", false, "",
		},
		"the name has another one, and the primary's agent has restarted": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "8.4 8.4 9.7~", change: func(c *v1.MySQLCluster, o *observed) {
				lastVersion("8.4.6")(c, o)
				o.members[0].Status.State, o.members[0].Status.Version = replication.StateStarting, ""
			}}, 1, "", false, "",
		},
		"the name has another one, and the primary's agent does not run, so that the Pod is not ready": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "- 8.4 9.7~", change: func(c *v1.MySQLCluster, o *observed) {
				lastVersion("8.4.6")(c, o)
				o.pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
				o.pods[0].Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			}}, 1, "", false, "",
		},
		"the name has another one, a user allowed the update before, and the status is late": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a a", unseen: true, allows: "a"}, image: old, has: old, members: "8.4 8.4 9.7~"}, 1, "", false, "",
		},
		"the name has another one, and a change that reached the primary is taken back": {
			upgrading{rolling: rolling{record: "db-0", pods: "b b a", revisions: "a a"}, image: old, has: old, members: "8.4 8.4 9.7~"}, 1, "", false, "",
		},
		"the name has another one, and a user allowed it": {
			upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b", allows: "b"}, image: old, has: old, members: "8.4 8.4 9.7~"}, 0, "", false, "",
		},
		"the name has another patch release": {upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: old, has: old, members: "8.4 8.4 8.4~"}, 0, "", false, ""},
		"another primary, and an account could no longer log in": {
			upgrading{rolling: rolling{record: "db-1", pods: "a a b", revisions: "a b", partition: 2}, image: next, has: next, members: "8.4 8.4 9.7!"}, 2, "", false,
			`held back from the primary db-1|"app"@"%"|restart-primary-for=b`,
		},
		"another primary, and all accounts could": {
			upgrading{rolling: rolling{record: "db-1", pods: "a a b", revisions: "a b", partition: 2}, image: next, has: next, members: "8.4 8.4 9.7"}, 2, "", false, "",
		},
	} {
		now := rolloutOf(test.is.seen())
		opens, blocked := now.opening(), now.blocked()
		if opens.waits == "" && opens.bound != test.bound || now.passes() != test.passes {
			t.Errorf("%s: the bound is %d, want %d, and it passes: %t", name, opens.bound, test.bound, now.passes())
		}
		if (opens.waits == "") != (test.waits == "") || (blocked == "") != (test.blocked == "") || len(blocked) > 1024 {
			t.Errorf("%s: it waits for %q and is blocked by %q", name, opens.waits, blocked)
		}
		for words := range strings.SplitSeq(test.waits, "|") {
			if !strings.Contains(opens.waits, words) {
				t.Errorf("%s: %q does not say %q", name, opens.waits, words)
			}
		}
		for words := range strings.SplitSeq(test.blocked, "|") {
			if !strings.Contains(blocked, words) {
				t.Errorf("%s: %q does not say %q", name, blocked, words)
			}
		}
		if lowered, may := now.lowered(); may && lowered != 0 || may != (test.passes || now.isAllowed()) {
			t.Errorf("%s: the partition may be lowered to %d: %t", name, lowered, may)
		}
	}
}

// blockedUpgrade returns a cluster of three with a new release series that the replicas have and that would lock an account out.
func blockedUpgrade(t *testing.T) *scene {
	t.Helper()
	s := healthy(t, 3)
	_, seen := upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1}, has: s.cluster.Spec.Image}.seen()
	s.cluster.Status.Primary, s.cluster.Status.InSync = "db-0", s.record.InSync
	s.cluster.Status.Phase, s.cluster.Status.ObservedGeneration = v1.PhaseReady, s.cluster.Generation
	s.seen.set, s.seen.pods, s.seen.route = seen.set, seen.pods, "db-0"
	for ordinal, member := range s.seen.members {
		member.Status.Protocol, member.Status.LockedOut = replication.Protocol, &replication.Accounts{}
		if ordinal > 0 {
			member.Status.Version = "26.4.0"
			member.Status.LockedOut = barred()
		}
	}
	return s
}

func TestStatusTellsOfAnUpgradeThatIsBlocked(t *testing.T) {
	t.Parallel()
	const blocks = "UpgradeBlocked"
	for name, test := range map[string]struct {
		change                    func(*scene)
		ready, stalled, condition string
	}{
		"an account could not log in": {func(*scene) {}, "False " + blocks, "True " + blocks, "True " + blocks},
		"a user lets it continue": {func(s *scene) {
			s.cluster.Annotations = map[string]string{AnnotationRestartPrimary: "b"}
		}, "False MembersNotReady", "absent", "absent"},
		"all accounts could log in": {func(s *scene) {
			s.seen.members[1].Status.LockedOut, s.seen.members[2].Status.LockedOut = &replication.Accounts{}, &replication.Accounts{}
		}, "False MembersNotReady", "absent", "absent"},
		"a replica has not said":     {func(s *scene) { s.seen.members[2].Status.LockedOut = nil }, "False " + blocks, "True " + blocks, "True " + blocks},
		"a replica is on its way":    {func(s *scene) { s.silent(2) }, "False MembersNotReady", "absent", "absent"},
		"root's password is not set": {func(s *scene) { s.seen.members[0].Status.RootError = "policy" }, "False RootPasswordNotInForce", "True RootPasswordNotInForce", "True " + blocks},
		"it has reached all members": {func(s *scene) {
			s.seen.pods[0].Labels[appsv1.ControllerRevisionHashLabelKey], s.seen.set.Status.CurrentRevision = "b", "b"
		}, "True AllMembersReady", "absent", "absent"},
		"another image waits for a replica": {func(s *scene) {
			s.seen.set.Status.UpdateRevision, s.cluster.Spec.Image = "a", "mysql:26.4"
			for i := range s.seen.pods {
				s.seen.pods[i].Labels[appsv1.ControllerRevisionHashLabelKey] = "a"
			}
			s.cluster.Status.InSync = []string{"db-0", "db-1"}
		}, "False " + blocks, "absent", "True " + blocks},
	} {
		s := blockedUpgrade(t)
		test.change(s)
		status := s.report(nil, nil).status()
		got := []string{conditionOf(t, status, v1.ConditionReady), conditionOf(t, status, v1.ConditionStalled), conditionOf(t, status, conditionUpgrade)}
		if want := []string{test.ready, test.stalled, test.condition}; !slices.Equal(got, want) {
			t.Errorf("%s: Ready, Stalled and UpgradeBlocked are %q, want %q", name, got, want)
		}
		if told := conditionOf(t, status, conditionPrimaryFirst); told != "absent" {
			t.Errorf("%s: PrimaryWouldRestartFirst is %s", name, told)
		}
	}
}

// TestAnUpgradeThatIsBlockedIsToldOnce, also if a replica is away for a moment.
func TestAnUpgradeThatIsBlockedIsToldOnce(t *testing.T) {
	t.Parallel()
	s := blockedUpgrade(t)
	next := func() (reasons []string) {
		before := s.cluster.Status
		s.cluster.Status = s.report(nil, nil).status()
		for _, event := range eventsOf(before, s.cluster.Status) {
			reasons = append(reasons, event.Type+" "+event.Reason)
		}
		return reasons
	}
	if told := next(); !slices.Contains(told, "Warning UpgradeBlocked") {
		t.Errorf("the events are %v", told)
	}
	heard := s.seen.members[2].Status
	s.seen.members[2].Status = nil
	_ = next()
	if !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, conditionUpgrade) {
		t.Error("the condition is gone for a moment")
	}
	s.seen.members[2].Status = heard
	if told := next(); slices.Contains(told, "Warning UpgradeBlocked") {
		t.Errorf("the repeated events are %v", told)
	}
}

// TestABlockedUpgradeNeedsNoFullPass: it may last for weeks. It continues when the accounts are fixed.
func TestABlockedUpgradeNeedsNoFullPass(t *testing.T) {
	t.Parallel()
	_, found := atRest(t)
	blocked := blockedUpgrade(t)
	found.seen.set, found.seen.pods, found.seen.route = blocked.seen.set, blocked.seen.pods, "db-0"
	for ordinal, member := range found.seen.members {
		member.Status.Version, member.Status.LockedOut = blocked.seen.members[ordinal].Status.Version, blocked.seen.members[ordinal].Status.LockedOut
	}
	found.cluster.Status = found.status()
	status := found.status()
	if got := conditionOf(t, status, v1.ConditionReady); got != "False UpgradeBlocked" {
		t.Fatalf("Ready is %s", got)
	}
	settled := found.settle("7", status, clusterMemory{})
	if settled == nil {
		t.Fatal("every look is a full pass")
	}
	if !settled.stillHolds(found.seen.members) {
		t.Error("a look is not enough while nothing changes")
	}
	before := rolloutOf(found.cluster, found.seen).asked()
	found.seen.members[1].Status.LockedOut, found.seen.members[2].Status.LockedOut = &replication.Accounts{}, &replication.Accounts{}
	if settled.stillHolds(found.seen.members) || rolloutOf(found.cluster, found.seen).asked() == before {
		t.Error("the operator does not notice that the accounts are fixed")
	}
}

// TestTheStatefulSetHoldsThePrimary: what is decided is what is planned, and the partition is lowered only after a live read.
func TestTheStatefulSetHoldsThePrimary(t *testing.T) {
	t.Parallel()
	const old, next = "mysql:8.4", "mysql:9.7"
	stuck := rolling{record: "db-0", pods: "x b b", revisions: "a b", partition: 1}
	for name, test := range map[string]struct {
		is upgrading
		// live is the image in the spec that the API server has.
		live string
		// partition is -1 if none is sent.
		partition int
		doubtful  bool
	}{
		"it begins with a brake": {upgrading{rolling: rolling{record: "db-0", pods: "a a a", revisions: "a a"}, image: next, has: old, members: "8.4 8.4 8.4"}, next, 1, false},
		"it should fix the primary": {
			upgrading{rolling: stuck, image: next, has: "mysql:9.6", members: "- 9.6~ 9.6~"}, next, -1, false,
		},
		"it should fix the primary, and a user has another one in mind": {
			upgrading{rolling: stuck, image: next, has: "mysql:9.6", members: "- 9.6~ 9.6~"}, "mysql:9.8", 1, true,
		},
		"it passes, and another change comes with it": {
			upgrading{rolling: rolling{record: "db-0", pods: "a b b", revisions: "a b", partition: 1}, image: next, has: next, members: "8.4 9.7 9.7"}, next, 1, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 1)
			cluster, seen := test.is.seen()
			s.live.Store("mysqlclusters/db0", aCluster(3, func(c *v1.MySQLCluster) {
				c.APIVersion, c.Kind, c.UID = "cr.mysqloperator.grtl.github.com/v1", "MySQLCluster", "uid0"
				c.Status.Primary, c.Spec.Image = "db-0", test.live
				if test.live != cluster.Spec.Image {
					c.Generation++
				}
			}))
			plan, err := s.planRoll(t.Context(), s.client(t, "db0"), cluster, seen, func(*int32) (bool, error) { return false, nil })
			if err != nil {
				t.Fatal(err)
			}
			got := -1
			if plan.partition != nil {
				got = int(*plan.partition)
			}
			if got != test.partition || plan.doubtful != test.doubtful || plan.waits {
				t.Errorf("partition %d, doubtful %t, waits %t", got, plan.doubtful, plan.waits)
			}
		})
	}
}
