package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const serverA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func set(t *testing.T, text string) replication.GTIDSet {
	t.Helper()
	parsed, err := replication.ParseGTIDSet(strings.ReplaceAll(text, "A", serverA))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestTheConditionSaysHowToForceAPrimary: with the whole command, however long the rest is, and before what Kubernetes reports about Pods.
func TestTheConditionSaysHowToForceAPrimary(t *testing.T) {
	t.Parallel()
	s := healthy(t, 3)
	s.seen.pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: strings.Repeat("no node ", 2000)}}
	for name, test := range map[string]struct {
		note replication.Note
		says []string
	}{
		"a user can": {
			replication.Note{Message: "db-0 is down", Force: "db-2.1.7"}, []string{"db-0 is down. If the data", "annotate mysqlcluster db " + AnnotationForcePrimary + "=db-2.1.7 --overwrite"}},
		"the rest is long": {
			replication.Note{Message: strings.Repeat("db-0 is down ", 1000), Force: "db-2.1.7"}, []string{"db-0 is down", AnnotationForcePrimary + "=db-2.1.7 --overwrite"}},
		"what Kubernetes says is long": {
			replication.Note{Message: "db-0 is down", Request: "db-0.1.7"}, []string{"db-0 is down; ", AnnotationReplacePrimary + "=db-0.1.7 --overwrite"}},
		"a user has named another one": {
			replication.Note{Message: "db-0 is down", Refusal: "a user asks for db-1: db-1 does not answer", Force: "db-2.1.7"},
			[]string{"db-0 is down; a user asks for db-1: db-1 does not answer. If", "=db-2.1.7 --overwrite"}},
		"a user must wait": {
			replication.Note{Message: "db-0 is down", Refusal: "a user asks for db-1: for 30 seconds"}, []string{"db-0 is down; a user asks for db-1: for 30 seconds"}},
	} {
		test.note.Reason = replication.ReasonPrimaryDown
		found := s.report(&test.note, nil)
		problem := found.note()
		for _, part := range test.says {
			if !strings.Contains(problem.Message, part) || len(problem.Message) > report.LongestMessage {
				t.Errorf("%s: the message has %d bytes and does not say %q: %s", name, len(problem.Message), part, problem.Message)
			}
		}
		if found.urgent(problem) == nil {
			t.Errorf("%s: another problem may hide it", name)
		}
	}
}

// TestATakeoverSaysWhatAForcedPrimaryLacks: what it had, and what others had that do not answer, or whose volume is new.
func TestATakeoverSaysWhatAForcedPrimaryLacks(t *testing.T) {
	t.Parallel()
	s, at := healthy(t, 3), v1.NewMicroTime(time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC))
	begun := v1.Takeover{Epoch: 2, From: "db-0", StartTime: at}
	s.before(v1.MySQLClusterStatus{FormerPrimary: "db-0", Epoch: 2, Revision: 2, Takeovers: []v1.Takeover{begun}})
	s.record = replication.Record{Epoch: 2, Revision: 3, Primary: "db-2", ForcedEpoch: 2}
	s.seen.members[0].Status, s.seen.members[0].Had = nil, set(t, "A:1-12")
	s.seen.members[1].Status.Origin = replication.OriginFresh
	s.seen.members[2].Status.Received = set(t, "A:1-10")
	chosen := s.report(nil, nil).status()
	if one := chosen.Takeovers[0]; one.Kept != serverA+":1-10" || one.Lost != serverA+":11-12" || chosen.ForcedEpoch != 2 {
		t.Errorf("the forced epoch is %d, the takeover %+v", chosen.ForcedEpoch, one)
	}
	done := chosen
	done.Takeovers = []v1.Takeover{chosen.Takeovers[0]}
	done.Takeovers[0].CompletionTime = &at
	events := takeoverEvents(chosen, done)
	if len(events) != 1 || events[0].Type != reconcile.Warning || events[0].Reason != "TakeoverForced" ||
		!strings.Contains(events[0].Note, "It has "+serverA+":1-10; all other commits may be lost, among them "+serverA+":11-12") {
		t.Errorf("the events are %+v", events)
	}
	const longestNote = 1024
	long := strings.Repeat(serverA+":1-10,", 100)
	done.Takeovers[0].Kept, done.Takeovers[0].Lost = long, long
	if note := takeoverEvents(chosen, done)[0].Note; len(note) > longestNote {
		t.Errorf("the event has %d bytes", len(note))
	}
}

// TestTheOperatorRemembersWhatMembersHad until they report again with data. It forgets members that are gone, and another cluster's.
func TestTheOperatorRemembersWhatMembersHad(t *testing.T) {
	t.Parallel()
	m, key := newMemory(), types.NamespacedName{Namespace: "shop", Name: "db"}
	reports := func(origin replication.Origin, has string) replication.Member {
		status := &replication.Status{State: replication.StateReplicating, Origin: origin, ServerUUID: serverA, Received: set(t, has), Hollow: set(t, "A:5")}
		return replication.Member{Name: "db-0", Status: status}
	}
	starting := replication.Member{Name: "db-0", Status: &replication.Status{State: replication.StateStarting}}
	for _, step := range []struct {
		story  string
		uid    types.UID
		member replication.Member
		want   string
	}{
		{"nothing is known", "one", replication.Member{Name: "db-0"}, ""},
		{"it reports", "one", reports(replication.OriginMember, "A:1-5"), ""},
		{"it does not answer", "one", replication.Member{Name: "db-0"}, "A:1-4"},
		{"it starts", "one", starting, "A:1-4"},
		{"its volume is new", "one", reports(replication.OriginFresh, ""), "A:1-4"},
		{"it still does not answer", "one", replication.Member{Name: "db-0"}, "A:1-4"},
		{"it has other data", "one", reports(replication.OriginMember, "A:1-2"), ""},
		{"that counts", "one", replication.Member{Name: "db-0"}, "A:1-2"},
		{"another cluster has the same name", "two", replication.Member{Name: "db-0"}, ""},
	} {
		members := []replication.Member{step.member}
		m.noteReported(key, step.uid, members)
		if got, want := members[0].Had.String(), set(t, step.want).String(); got != want {
			t.Errorf("%s: it had %q, want %q", step.story, got, want)
		}
	}
	m.noteReported(key, "two", []replication.Member{reports(replication.OriginMember, "A:1-2")})
	m.noteReported(key, "two", nil)
	if left := m.had[key].sets; len(left) > 0 {
		t.Errorf("it remembers members that are gone: %v", left)
	}
}
