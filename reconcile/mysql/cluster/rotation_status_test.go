package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// reachable returns a healthy cluster whose agents have addresses, and use these certificates.
func reachable(t *testing.T, uses ...string) *scene {
	t.Helper()
	s := healthy(t, len(uses))
	for ordinal, one := range uses {
		s.seen.pods[ordinal].Status.PodIP = "192.0.2.1"
		s.member(ordinal, true, func(status *replication.Status) { status.TLS = one })
	}
	s.cluster.Status.Primary = "db-0"
	return s
}

func TestWhatAllMembersUse(t *testing.T) {
	t.Parallel()
	down := reachable(t, "new", "old")
	down.seen.pods[1].Status.InitContainerStatuses, down.seen.pods[1].Status.ContainerStatuses = nil, nil
	starting := reachable(t, "new", "old")
	starting.seen.pods[1].Status = corev1.PodStatus{}
	crashed := reachable(t, "new", "old").silent(1)
	crashed.seen.pods[1].Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	looping := reachable(t, "new", "")
	looping.seen.pods[1].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	if runs(looping.seen.pods[1], children.ContainerMysqld) || !runs(looping.seen.pods[1], children.ContainerAgent) {
		t.Fatalf("in the Pod run %+v", looping.seen.pods[1].Status)
	}
	for name, test := range map[string]struct {
		scene *scene
		want  string
	}{
		"all equal":                         {reachable(t, "new", "new", "new"), "new"},
		"one has not read it yet":           {reachable(t, "new", "old"), ""},
		"one is of a release without it":    {reachable(t, "new", ""), ""},
		"one runs and does not answer":      {reachable(t, "new", "new").silent(1), ""},
		"one is down: it reads what is new": {down, "new"},
		"one has no address yet":            {starting, "new"},
		"mysqld runs, its agent crashed":    {crashed, ""},
		"mysqld crashes, its agent runs":    {looping, "new"},
	} {
		if got := usesOf(test.scene.seen); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	waits := certificateState{digest: "new", awaited: true}
	if !waits.isStepDue("new") || waits.isStepDue("") || waits.isStepDue("old") || (certificateState{digest: "new"}).isStepDue("new") {
		t.Error("a step is due at the wrong time")
	}
}

// TestNothingIsDecidedOnTheSilenceOfMembersThatCannotKnow: after the CA's key was lost, members refuse the operator until kubelet has
// updated their Secret.
func TestNothingIsDecidedOnTheSilenceOfMembersThatCannotKnow(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	fresh := reachable(t, "", "").silent(0)
	fresh.cluster.Status.Primary = ""
	for name, test := range map[string]struct {
		scene *scene
		lost  time.Time
		waits string
	}{
		"no key was lost":             {reachable(t, "", "").silent(1), time.Time{}, ""},
		"no member has the new CA":    {reachable(t, "", "").silent(0).silent(1), at.Add(-time.Minute), "db-0"},
		"one member does not have it": {reachable(t, "", "").silent(1), at.Add(-time.Minute), "db-1"},
		"all members have it":         {reachable(t, "", ""), at.Add(-time.Minute), ""},
		"it is another reason":        {reachable(t, "", "").silent(1), at.Add(-lostPatience - time.Second), ""},
		"there were no members":       {fresh, at.Add(-time.Minute), ""},
	} {
		test.scene.seen.now = at
		found := certificateState{lost: test.lost}.waitForTrust(test.scene.cluster, test.scene.seen)
		if (found == nil) != (test.waits == "") || found != nil && (!strings.Contains(found.Message, test.waits) || found.Stalled) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLossIsCountedByOneClock: an operator whose clock is an hour ahead created the new CA. The next operator does not wait longer for
// members because of that.
func TestLossIsCountedByOneClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ahead, another := certificateState{lost: at.Add(time.Hour), bundle: []byte("new and old")}, certificateState{lost: at.Add(-time.Hour), bundle: []byte("former and old")}
	silent := reachable(t, "", "").silent(1)
	known := certificateState{}
	for after, waits := range []bool{true, true, true, true, false, false} {
		silent.seen.now = at.Add(time.Duration(after) * time.Minute)
		found := ahead
		found.lost = found.lostSince(known, silent.seen.now)
		if got := found.waitForTrust(silent.cluster, silent.seen) != nil; got != waits {
			t.Errorf("after %d minutes it waits: %t, want %t", after, got, waits)
		}
		known = found
	}
	for name, test := range map[string]struct {
		found, known certificateState
		want         time.Time
	}{
		"another was lost before":     {ahead, another, at},
		"the clocks agree":            {certificateState{lost: at.Add(-time.Minute)}, certificateState{}, at.Add(-time.Minute)},
		"nothing is lost":             {certificateState{}, another, time.Time{}},
		"this operator has seen none": {ahead, certificateState{}, at},
	} {
		if got := test.found.lostSince(test.known, at); !got.Equal(test.want) {
			t.Errorf("%s: since %s, want %s", name, got, test.want)
		}
	}
}

// TestOperatorGoesOnWithACertificateOfBefore: an operator that runs while the key is lost still has the certificates that it signed with
// it.
func TestOperatorGoesOnWithACertificateOfBefore(t *testing.T) {
	t.Parallel()
	n, at := children.Names{Namespace: "shop", Cluster: "db"}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	old, _ := signed(t, n, at)
	next, _ := signed(t, n, at)
	former, err := agent.NewOperatorTLS(agent.Authorities{old}, "", at)
	if err != nil {
		t.Fatal(err)
	}
	bundle := agent.Authorities{next, {Certificate: old.Certificate, Leaf: old.Leaf}}
	for name, test := range map[string]struct {
		trusted agent.Authorities
		lost    time.Time
		after   time.Duration
		want    int
	}{
		"it lasts":                    {bundle, at, time.Minute, 2},
		"it ends soon":                {bundle, at, agent.OperatorLife * 2 / 3, 1},
		"its CA is not trusted":       {agent.Authorities{next}, at, time.Minute, 1},
		"nothing was lost":            {bundle, time.Time{}, time.Minute, 1},
		"there is a newer one anyway": {agent.Authorities{next, old}, at, time.Minute, 2},
	} {
		now := at.Add(test.after)
		security, err := agent.NewOperatorTLS(test.trusted, "", now)
		if err != nil {
			t.Fatal(err)
		}
		certificateState{security: security, bundle: test.trusted.Bundle(), lost: test.lost}.keepOldCertificates(former, now)
		if got := len(security.Client().Certificates); got != test.want {
			t.Errorf("%s: it has %d certificates, want %d", name, got, test.want)
		}
	}
}

func TestRotationIsTold(t *testing.T) {
	t.Parallel()
	n, until := children.Names{Namespace: "shop", Cluster: "db"}, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	status := v1.MySQLClusterStatus{}
	for _, test := range []struct {
		last  nextStep
		fault string
		told  string
		is    metav1.ConditionStatus
	}{
		{nextStep{}, "", "", ""},
		{nextStep{waits: waitForMembers}, "", "Normal WaitingForMembers", metav1.ConditionTrue},
		{nextStep{waits: waitForClients, until: until}, "", "Normal WaitingForClients db-ca-cert 2026-11-28T12:00:00Z", metav1.ConditionTrue},
		{nextStep{waits: waitForClients, until: until}, "", "", metav1.ConditionTrue},
		{nextStep{waits: waitForClients, until: until}, `annotation x="y" is no time`, `Normal WaitingForClients db-ca-cert x="y"`, metav1.ConditionTrue},
		{nextStep{waits: waitToForget, until: until}, "", "Normal ForgettingOldCA 2026-11-28T12:00:00Z", metav1.ConditionTrue},
		{nextStep{}, "", "Normal CertificateRotationCompleted", ""},
		{nextStep{}, `annotation x="y" is no time`, `Warning InvalidRequest x="y"`, metav1.ConditionFalse},
		{nextStep{}, "", "", ""},
	} {
		before := status
		before.Conditions = slices.Clone(status.Conditions)
		describeRotation(&status, rotationOf(n, test.last, rotationRequest{fault: test.fault}))
		events := rotationEvents(before, status)
		if len(events) > 1 || (len(events) == 1) != (test.told != "") {
			t.Errorf("%+v: events %+v, want %q", test.last, events, test.told)
		}
		for _, event := range events {
			for word := range strings.FieldsSeq(test.told) {
				if !strings.Contains(event.Type+" "+event.Reason+" "+event.Note, word) {
					t.Errorf("%+v does not say %s", event, word)
				}
			}
		}
		condition := meta.FindStatusCondition(status.Conditions, conditionRotation)
		if (condition == nil) != (test.is == "") || condition != nil && condition.Status != test.is {
			t.Errorf("%+v: the condition is %+v", test.last, condition)
		}
	}
}

// TestTrustMapHasNoKey: many users may read ConfigMaps.
func TestTrustMapHasNoKey(t *testing.T) {
	t.Parallel()
	authority, _ := signed(t, children.Names{Namespace: "shop", Cluster: "db"}, time.Now())
	made := children.TrustMap(children.Names{Namespace: "shop", Cluster: "db"}, agent.Authorities{authority}.Bundle())
	if *made.Name != "db-ca-cert" || made.Data[children.KeyAuthorities] != string(pki.Encode(authority.Leaf.Raw)) || len(made.Data) != 1 {
		t.Errorf("it is %s with %v", *made.Name, made.Data)
	}
}
