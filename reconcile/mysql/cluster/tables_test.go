package cluster

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func someTables(names ...string) replication.Tables {
	found := replication.Tables{}
	for _, name := range names {
		found.Named = append(found.Named, replication.Table{Schema: "shop", Name: name, Engine: "MyISAM"})
	}
	return found
}

// TestTablesOfOtherEnginesAreTold follows what a cluster reports about its tables, one pass after the other.
func TestTablesOfOtherEnginesAreTold(t *testing.T) {
	t.Parallel()
	s := healthy(t, 2)
	next := func(what string, tables, incomplete string, events int) {
		t.Helper()
		before := s.cluster.Status
		after := s.report(nil, nil).status()
		told := slices.DeleteFunc(eventsOf(before, after), func(event reconcile.Event) bool { return event.Action != "LookAtTables" })
		for kind, want := range map[string]string{v1.ConditionNonTransactionalTables: tables, v1.ConditionIncompleteMembers: incomplete} {
			found := meta.FindStatusCondition(after.Conditions, kind)
			if (found != nil) != (want != "") || found != nil && !strings.Contains(found.Message, want) {
				t.Errorf("%s: %s is %+v, want it to say %q", what, kind, found, want)
			}
		}
		if len(told) != events {
			t.Errorf("%s: events %+v, want %d", what, told, events)
		}
		if !meta.IsStatusConditionTrue(after.Conditions, v1.ConditionReady) && s.seen.members[1].Status != nil && s.seen.members[0].Status != nil {
			t.Errorf("%s: the cluster is not Ready", what)
		}
		s.cluster.Status = after
	}
	primary := func(tables *replication.Tables) { s.seen.members[0].Status.OtherEngines = tables }
	replica := func(tables *replication.Tables) { s.seen.members[1].Status.TablesWithoutRows = tables }
	some, other, none := someTables("log"), someTables("log", "visits"), replication.Tables{}
	next("no member has looked", "", "", 0)
	s.seen.members[0].Status.TablesWithoutRows = &none
	primary(&none)
	next("there are none", "", "", 0)
	primary(&some)
	next("there is one", `"shop"."log" (MyISAM)`, "", 1)
	primary(&other)
	next("there are more", `"visits"`, "", 0)
	replica(&some)
	next("a replica came as a copy", `"visits"`, `db-1 is missing rows of "shop"."log" (MyISAM)`, 1)
	if lacks := s.cluster.Status.Members[1].LacksRowsOf; lacks != `"shop"."log" (MyISAM)` {
		t.Errorf("of the member it says %q", lacks)
	}
	heard := s.seen.members[1].Status
	s.silent(1)
	next("the replica restarts", `"visits"`, `db-1 is missing`, 0)
	s.seen.members[1].Status = heard
	s.seen.pods[1] = readyPod("db-1")
	primary(nil)
	next("the primary restarts, and has not looked again", `"visits"`, `db-1 is missing`, 0)
	primary(&none)
	next("the tables are InnoDB", "", `db-1 is missing`, 0)
	replica(nil)
	next("the replica was copied again, and has not looked yet", "", "db-1 is missing", 0)
	replica(&none)
	next("the replica has all rows", "", "", 0)
	s.silent(1)
	next("no member that answers is missing anything", "", "", 0)
}

// TestASettledClusterNoticesTables: a look at its members notices what there is to report, and nothing else.
func TestASettledClusterNoticesTables(t *testing.T) {
	t.Parallel()
	none, some := replication.Tables{}, someTables("log")
	told := map[replication.Told]bool{}
	for _, status := range []replication.Status{{}, {OtherEngines: &none}, {OtherEngines: &some}, {TablesWithoutRows: &none}, {TablesWithoutRows: &some}, {OtherEngines: &some, TablesWithoutRows: &some}} {
		told[status.Told()] = true
	}
	if len(told) != 6 {
		t.Errorf("some are told alike: %v", told)
	}
	again := someTables("log")
	if (replication.Status{OtherEngines: &some}).Told() != (replication.Status{OtherEngines: &again}).Told() {
		t.Error("another look that found the same sends an event")
	}
}

// TestEnginesOfACluster: the decision at the cluster's creation stays.
func TestEnginesOfACluster(t *testing.T) {
	t.Parallel()
	made := func(labels map[string]string) observed {
		set := &appsv1.StatefulSet{}
		set.Labels = labels
		return observed{set: set, volumes: []corev1.PersistentVolumeClaim{{}}}
	}
	restored := func(c *v1.MySQLCluster) { c.Status.Restore = &v1.RestoreStatus{Phase: v1.RestoreCompleted} }
	begun := func(c *v1.MySQLCluster) { c.Status.Primary, c.Status.InSync = "db-0", []string{"db-0"} }
	noted := func(c *v1.MySQLCluster) { c.Status.InnoDBOnly = true }
	for name, test := range map[string]struct {
		change func(*v1.MySQLCluster)
		seen   observed
		want   bool
	}{
		"a new one":                               {want: true},
		"one that was made so":                    {change: begun, seen: made(map[string]string{children.LabelEngines: children.EnginesInnoDB}), want: true},
		"one of an earlier release":               {change: begun, seen: made(nil)},
		"one that adopts volumes":                 {seen: observed{volumes: []corev1.PersistentVolumeClaim{{}}}},
		"one that starts from a backup":           {change: restored},
		"one whose StatefulSet a user deleted":    {change: noted, want: true},
		"one whose label a user removed":          {change: noted, seen: made(nil), want: true},
		"one that has written, without any child": {change: begun, seen: observed{}},
	} {
		change := test.change
		if change == nil {
			change = func(*v1.MySQLCluster) {}
		}
		if got := isInnoDBOnly(aCluster(2, change), test.seen); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestWhatWasDecidedAboutEnginesIsNoted: when the StatefulSet exists, and not before, because until then there may be existing data.
func TestWhatWasDecidedAboutEnginesIsNoted(t *testing.T) {
	t.Parallel()
	s := healthy(t, 1)
	s.cluster.Status = v1.MySQLClusterStatus{}
	s.seen.set, s.seen.volumes = nil, nil
	if s.report(nil, nil).status().InnoDBOnly {
		t.Error("it is noted before there is a StatefulSet")
	}
	s.seen.set = &appsv1.StatefulSet{}
	if s.report(nil, nil).status().InnoDBOnly {
		t.Error("it is noted of a cluster that was not made so")
	}
	s.seen.set.Labels = map[string]string{children.LabelEngines: children.EnginesInnoDB}
	s.cluster.Status = s.report(nil, nil).status()
	s.seen.set = nil
	if !s.report(nil, nil).status().InnoDBOnly {
		t.Error("it is forgotten with the StatefulSet")
	}
}

// TestAStartThatWaitsForSomethingElseSaysSo: mysqld answers, so "does not answer" would be no explanation.
func TestAStartThatWaitsForSomethingElseSaysSo(t *testing.T) {
	t.Parallel()
	const waits = replication.AnswersBut + " its tables cannot be looked at"
	for said, want := range map[string]string{waits: waits, "mysqld does not answer: connection refused": "mysqld does not answer yet"} {
		if got := steadyMessage(replication.Status{State: replication.StateStarting, Message: said}); got != want {
			t.Errorf("of %q it says %q", said, got)
		}
	}
}
