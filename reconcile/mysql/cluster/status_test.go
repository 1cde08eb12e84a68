package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func TestStatusTellsHowTheClusterIs(t *testing.T) {
	t.Parallel()
	errant := func(s *replication.Status) { s.State, s.Message = replication.StateErrant, "has 1 transactions" }
	broken := func(s *replication.Status) {
		s.State, s.Message = replication.StateBroken, "applying stopped: error 1062"
	}
	catchingUp := func(s *replication.Status) { s.State = replication.StateCatchingUp }
	promoting := func(s *replication.Status) { s.State = replication.StatePromoting }
	ready := v1.MySQLClusterStatus{Phase: v1.PhaseReady, InSync: []string{"db-0", "db-1"}, ObservedGeneration: 1}
	creating := v1.MySQLClusterStatus{Phase: v1.PhaseCreating}
	updating := v1.MySQLClusterStatus{Phase: v1.PhaseUpdating, InSync: []string{"db-0", "db-1"}, ObservedGeneration: 1}
	none := replication.Record{}
	tests := map[string]struct {
		scene *scene
		note  *replication.Note
		found *report.Problem
		phase v1.Phase
		// ready, durable and the third are "status reason" of the conditions.
		ready, stalled, reconciling, summary string
	}{
		"as it should be": {scene: healthy(t, 3), phase: v1.PhaseReady, ready: "True AllMembersReady", summary: "3/3"},
		"a single member": {scene: healthy(t, 1), phase: v1.PhaseReady, ready: "True AllMembersReady", summary: "1/1"},
		"a replica catches up": {
			scene: healthy(t, 2).before(ready).member(1, false, catchingUp), phase: v1.PhaseDegraded, ready: "False MembersNotReady", reconciling: "True MembersNotReady", summary: "1/2"},
		"a replica serves but kubelet has not seen it yet": {
			scene: healthy(t, 2).before(ready).member(1, false, func(*replication.Status) {}), phase: v1.PhaseDegraded, ready: "False MembersNotReady", reconciling: "True MembersNotReady", summary: "1/2"},
		"the primary restarts": {
			scene: healthy(t, 2).before(ready).member(0, false, promoting), phase: v1.PhaseFailed, ready: "False PrimaryUnavailable", reconciling: "True PrimaryUnavailable", summary: "1/2"},
		"the primary does not answer": {
			scene: healthy(t, 2).before(ready).silent(0), phase: v1.PhaseFailed, ready: "False PrimaryUnavailable", reconciling: "True PrimaryUnavailable", summary: "1/2"},
		"a new cluster whose replicas serve, and do not acknowledge yet": {
			scene: promising(healthy(t, 2).before(creating), 0), phase: v1.PhaseCreating, ready: "False ReplicasNotYetAcknowledging", reconciling: "True ReplicasNotYetAcknowledging", summary: "2/2"},
		"all serve again, and commits are not on enough of them yet": {
			scene: promising(healthy(t, 2).before(ready), 0), phase: v1.PhaseDegraded, ready: "False CommitsNotReplicated", reconciling: "True CommitsNotReplicated", summary: "2/2"},
		"scaled out, and the primary must still require more acknowledgements": {
			scene: promising(healthy(t, 5).before(updating), 1), phase: v1.PhaseUpdating, ready: "False CommitsNotReplicated", reconciling: "True CommitsNotReplicated", summary: "5/5"},
		"an errant replica": {
			scene: healthy(t, 2).before(ready).member(1, false, errant), phase: v1.PhaseDegraded, ready: "False ErrantMember", stalled: "True ErrantMember", summary: "1/2"},
		"a replica that stopped": {
			scene: healthy(t, 2).before(ready).member(1, false, broken), phase: v1.PhaseDegraded, ready: "False ReplicationBroken", stalled: "True ReplicationBroken", summary: "1/2"},
		"retained data that cannot be judged": {
			scene: func() *scene { s := healthy(t, 2).member(0, false, promoting); s.record = none; return s }(),
			note:  &replication.Note{Reason: replication.ReasonAdoptionBlocked, Message: "went apart", Blocked: true},
			phase: v1.PhaseWaiting, ready: "False AdoptionBlocked", stalled: "True AdoptionBlocked", summary: "1/2"},
		"a foreign Service in the way": {
			scene: healthy(t, 2).before(ready), found: &report.Problem{Reason: report.ReasonForeignObject, Message: "services shop/db exists", Stalled: true},
			phase: v1.PhaseDegraded, ready: "False ForeignObject", stalled: "True ForeignObject", summary: "2/2"},
		"the root password is not in force": {
			scene: healthy(t, 2).before(ready).member(0, true, func(s *replication.Status) { s.RootError = "mysqld refuses it" }),
			phase: v1.PhaseDegraded, ready: "False RootPasswordNotInForce", stalled: "True RootPasswordNotInForce", summary: "2/2"},
		"a full volume, on which commits hang": {
			scene: healthy(t, 2).before(ready).member(0, true, disk(replication.DiskFull)), phase: v1.PhaseDegraded, ready: "False DiskFull", stalled: "True DiskFull", summary: "2/2"},
		"a full volume, on which mysqld does not start": {
			scene: healthy(t, 2).before(ready).member(0, false, func(s *replication.Status) { disk(replication.DiskFull)(s); s.State = replication.StateStarting }),
			phase: v1.PhaseFailed, ready: "False DiskFull", stalled: "True DiskFull", summary: "1/2"},
		"a volume that fills up": {
			scene: healthy(t, 2).before(ready).member(0, true, disk(replication.DiskPressure)), phase: v1.PhaseReady, ready: "True AllMembersReady", summary: "2/2"},
		"a new cluster's first moments": {
			scene: func() *scene {
				s := healthy(t, 2).before(creating).silent(0).silent(1)
				s.record = none
				return s
			}(),
			note:  &replication.Note{Reason: replication.ReasonWaitingForMembers, Message: "the operator waits for the first member to start"},
			phase: v1.PhaseCreating, ready: "False WaitingForMembers", reconciling: "True WaitingForMembers", summary: "0/2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := test.scene.report(test.note, test.found).status()
			got := []string{string(status.Phase), conditionOf(t, status, v1.ConditionReady), conditionOf(t, status, v1.ConditionStalled), conditionOf(t, status, v1.ConditionReconciling), status.ReadySummary}
			want := []string{string(test.phase), test.ready, absentOr(test.stalled), absentOr(test.reconciling), test.summary}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("phase, ready, stalled, reconciling, summary (-want +got):\n%s", diff)
			}
			for _, condition := range status.Conditions {
				if condition.Message == "" || condition.ObservedGeneration != 1 {
					t.Errorf("condition %s says nothing, or of no generation: %+v", condition.Type, condition)
				}
			}
		})
	}
}

func absentOr(condition string) string {
	if condition == "" {
		return "absent"
	}
	return condition
}

func TestStatusTellsHowDurableCommitsAre(t *testing.T) {
	t.Parallel()
	wants := func(when v1.WhenReplicasLost, s *scene) *scene {
		s.cluster.Spec.Durability.WhenReplicasLost = when
		return s
	}
	blocking := func(s *scene) *scene { return wants(v1.Block, s) }
	short := func(s *replication.Status) { s.AcksShortSeconds = 4 }
	ready := v1.MySQLClusterStatus{Phase: v1.PhaseReady, InSync: []string{"db-0", "db-1"}}
	whole := v1.MySQLClusterStatus{Phase: v1.PhaseReady, InSync: []string{"db-0", "db-1"}, LeastAcks: 1}
	tests := map[string]struct {
		scene *scene
		want  string
	}{
		"as promised":                              {healthy(t, 3), "True CommitsReplicated"},
		"a cluster of one member":                  {healthy(t, 1), "True SingleMember"},
		"a new cluster's replicas join":            {promising(healthy(t, 2).before(v1.MySQLClusterStatus{Phase: v1.PhaseCreating}).silent(1), 0), "False ReplicasNotYetAcknowledging"},
		"degraded":                                 {promising(healthy(t, 2).before(ready).silent(1), 0), "False CommitsNotReplicated"},
		"half of what the size asks for":           {promising(healthy(t, 5).before(ready), 1), "False CommitsNotReplicated"},
		"commits wait, as the user wants":          {blocking(healthy(t, 2).before(ready).silent(1)).member(0, true, short), "False CommitsBlocked"},
		"commits of three members wait by default": {wants("", healthy(t, 3).before(whole).silent(1).silent(2)).member(0, true, short), "False CommitsBlocked"},
		"also if the last member leads alone":      {promising(wants("", healthy(t, 3).before(whole).silent(1).silent(2)), 0).member(0, true, short), "False CommitsBlocked"},
		"also while three members grow to five":    {promising(wants("", healthy(t, 5).before(whole).silent(1).silent(2).silent(3).silent(4)), 0).member(0, true, short), "False CommitsBlocked"},
		"not before all members were in sync":      {wants("", healthy(t, 3).before(ready).silent(1).silent(2)).member(0, true, short), "True CommitsReplicated"},
		"those of two do not":                      {wants("", healthy(t, 2).before(ready).silent(1)).member(0, true, short), "True CommitsReplicated"},
		"nor those of three if the user says so":   {wants(v1.Continue, healthy(t, 3).before(ready).silent(1).silent(2)).member(0, true, short), "True CommitsReplicated"},
		"a pause within the grace period":          {healthy(t, 2).before(ready).silent(1).member(0, true, short), "True CommitsReplicated"},
		"blocked would not say so when all is":     {blocking(healthy(t, 2)), "True CommitsReplicated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := conditionOf(t, test.scene.report(nil, nil).status(), conditionDurable); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestStatusTellsOfSettingsThatAreHeldBack, after anything that is worse.
func TestStatusTellsOfSettingsThatAreHeldBack(t *testing.T) {
	t.Parallel()
	ready := v1.MySQLClusterStatus{Phase: v1.PhaseReady, InSync: []string{"db-0", "db-1"}, ObservedGeneration: 1}
	full := func(s *replication.Status) { s.Disk.Level = replication.DiskFull }
	for name, test := range map[string]struct {
		scene *scene
		note  *replication.Note
		want  string
	}{
		"all is well":                       {scene: healthy(t, 2).before(ready), want: reasonSettings},
		"a volume is full":                  {scene: healthy(t, 2).before(ready).member(0, true, full), want: reasonDiskFull},
		"no client can write":               {scene: healthy(t, 2).before(ready).silent(0), want: reasonPrimaryUnavailable},
		"a replica does not answer":         {scene: healthy(t, 2).before(ready).silent(1), want: reasonSettings},
		"the decision waits, and passes":    {scene: healthy(t, 2).before(ready).silent(1), note: &replication.Note{Reason: replication.ReasonScalingIn, Message: "waits"}, want: reasonSettings},
		"the decision waits for a user too": {scene: healthy(t, 2).before(ready), note: &replication.Note{Reason: replication.ReasonAdoptionBlocked, Message: "went apart", Blocked: true}, want: string(replication.ReasonAdoptionBlocked)},
	} {
		told := test.scene.report(test.note, nil)
		told.children = applyResult{unsettled: true, held: notTaken("no")}
		if got := conditionOf(t, told.status(), v1.ConditionReady); got != "False "+test.want {
			t.Errorf("%s: Ready is %q, want %s", name, got, test.want)
		}
	}
}

// The record of truth is written with the rest of the status: no text of another program may make the API server refuse it.
func TestStatusIsBoundedWhateverMembersSay(t *testing.T) {
	t.Parallel()
	s := healthy(t, 9)
	var fragments strings.Builder
	for number := range 20000 {
		fmt.Fprintf(&fragments, ":%d", 1+2*number)
	}
	for ordinal := range 9 {
		s.member(ordinal, true, func(status *replication.Status) {
			status.Executed = gtids(t, serverUUID+fragments.String())
			if ordinal > 0 {
				status.State, status.Message = replication.StateErrant, strings.Repeat("密", 100000)
			}
		})
	}
	status := s.report(&replication.Note{Reason: replication.ReasonAdoptionBlocked, Message: strings.Repeat("密", 100000), Blocked: true}, nil).status()
	document, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if limit := 512 << 10; len(document) > limit {
		t.Errorf("the status has %d bytes, want no more than %d", len(document), limit)
	}
	for _, condition := range status.Conditions {
		if len(condition.Message) > 32768 || !utf8.ValidString(condition.Message) {
			t.Errorf("the API server refuses condition %s, or keeps another text: %d bytes", condition.Type, len(condition.Message))
		}
	}
	if got := status.Members[1]; !utf8.ValidString(got.Message) || !strings.HasPrefix(got.GTIDExecuted, serverUUID+":1:3:5") {
		t.Errorf("a member says %.60q and has %.60q", got.Message, got.GTIDExecuted)
	}
}

// A pass that saw the same as the one before has the same status, word for word, sends no event, and so writes nothing.
func TestStatusComesToRest(t *testing.T) {
	t.Parallel()
	changed := aCluster(2)
	changed.Status.Phase, changed.Status.InSync, changed.Status.ObservedGeneration = v1.PhaseReady, []string{"db-0", "db-1"}, 0
	scenes := map[string]*scene{
		"as it should be":                    healthy(t, 3),
		"the primary is away":                healthy(t, 2).silent(0),
		"a replica is away":                  healthy(t, 2).silent(1),
		"all members are away":               healthy(t, 3).silent(0).silent(1).silent(2),
		"errant":                             healthy(t, 2).member(1, false, func(s *replication.Status) { s.State = replication.StateErrant }),
		"a replica is away after the change": healthy(t, 2).silent(1).before(changed.Status),
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := scene.report(nil, nil).status()
			if diff := cmp.Diff(first, scene.report(nil, nil).status(), ignoreTimes()); diff != "" {
				t.Errorf("the same pass says something else:\n%s", diff)
			}
			scene.before(first)
			for _, member := range scene.seen.members {
				if member.Status != nil { // what changes all the time
					member.Status.Executed = gtids(t, serverUUID+":1-99")
				}
			}
			second := scene.report(nil, nil).status()
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the next pass says something else:\n%s", diff)
			}
			if told := eventsOf(first, second); len(told) > 0 {
				t.Errorf("events %v although nothing happened", told)
			}
		})
	}
}

func ignoreTimes() cmp.Option {
	return cmp.Comparer(func(a, b metav1.Time) bool { return true })
}

func TestMembersAreBroughtUpToDateTogetherWithWhatPeopleWaitFor(t *testing.T) {
	t.Parallel()
	s := healthy(t, 2)
	s.before(s.report(nil, nil).status())
	s.member(1, false, func(status *replication.Status) {
		status.State, status.Executed = replication.StateCatchingUp, gtids(t, serverUUID+":1-99")
	})
	status := s.report(nil, nil).status()
	if got := status.Members[1].GTIDExecuted; got != serverUUID+":1-99" {
		t.Errorf("the state changed and the transactions are outdated: %s", got)
	}
	if got := status.Members[1].Message; strings.Contains(got, "error") {
		t.Errorf("the message changes with every attempt: %q", got)
	}
}

func TestTellSpeaksOfWhatHappened(t *testing.T) {
	t.Parallel()
	condition := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1.ConditionReady, Status: status, Reason: reason, Message: "so it is"}}
	}
	base := v1.MySQLClusterStatus{Primary: "db-0", Epoch: 1, InSync: []string{"db-0", "db-1"}, RequiredAcks: 1, Conditions: condition("True", reasonAllMembersReady)}
	with := func(change func(*v1.MySQLClusterStatus)) v1.MySQLClusterStatus {
		status := base
		status.Conditions = slices.Clone(base.Conditions)
		change(&status)
		return status
	}
	tests := map[string]struct {
		after v1.MySQLClusterStatus
		want  []string
	}{
		"nothing":                  {base, nil},
		"only the message changes": {with(func(s *v1.MySQLClusterStatus) { s.Conditions[0].Message = "in other words" }), nil},
		"the primary is away": {with(func(s *v1.MySQLClusterStatus) { s.Conditions = condition("False", reasonPrimaryUnavailable) }),
			[]string{"Warning PrimaryUnavailable"}},
		"a member catches up": {with(func(s *v1.MySQLClusterStatus) { s.Conditions = condition("False", reasonMembersNotReady) }), []string{"Normal MembersNotReady"}},
		"a new primary":       {with(func(s *v1.MySQLClusterStatus) { s.Primary, s.Epoch = "db-1", 2 }), []string{"Normal PrimaryAppointed"}},
		"degraded":            {with(func(s *v1.MySQLClusterStatus) { s.RequiredAcks = 0 }), []string{"Warning CommitsNotReplicated"}},
		"a member joins, more is promised": {with(func(s *v1.MySQLClusterStatus) { s.InSync, s.RequiredAcks = []string{"db-0", "db-1", "db-2"}, 2 }),
			[]string{"Normal InSyncChanged", "Normal CommitsReplicated"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, event := range eventsOf(base, test.after) {
				got = append(got, event.Type+" "+event.Reason)
				if event.Note == "" || event.Action == "" {
					t.Errorf("the event says nothing: %+v", event)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockedAndPausedKeepWhatIsKnown(t *testing.T) {
	t.Parallel()
	s := healthy(t, 2)
	known := s.report(nil, nil).status()
	s.before(known)
	for name, status := range map[string]v1.MySQLClusterStatus{"blocked": blocked(s.cluster, report.Problem{Reason: reasonSecretNotFound, Message: "no Secret", Stalled: true}), "paused": paused(s.cluster)} {
		if !recordOf(status).Equal(s.record) || len(status.Members) != 2 {
			t.Errorf("%s: the record was lost: %+v", name, status)
		}
		if got := conditionOf(t, status, v1.ConditionReady); strings.HasPrefix(got, "True") {
			t.Errorf("%s: it says Ready", name)
		}
		if got := conditionOf(t, status, conditionFailoverReady); !strings.HasPrefix(got, "False") {
			t.Errorf("%s: FailoverReady is %s", name, got)
		}
	}
	if conditionOf(t, paused(s.cluster), v1.ConditionStalled) != "absent" {
		t.Error("a pause that a user asked for is called stalled")
	}
}

func TestViewReadsTheRecordAndTheSpec(t *testing.T) {
	t.Parallel()
	s := healthy(t, 3)
	s.before(s.report(nil, nil).status())
	got := view(s.cluster, s.seen)
	if !got.Record.Equal(s.record) || got.Replicas != 3 || got.Scale != 3 || got.Port != 3306 || !got.Durability.Continue || got.Durability.Grace != 10*time.Second {
		t.Errorf("got %+v", got)
	}
	s.cluster.Spec.Durability, s.cluster.Spec.Replicas, s.seen.set = v1.Durability{WhenReplicasLost: v1.Block}, nil, nil
	bare := view(s.cluster, s.seen)
	if bare.Durability.Continue || bare.Durability.Grace < time.Second || bare.Replicas != children.DefaultReplicas || bare.Scale != 0 {
		t.Errorf("got %+v", bare)
	}
}

func TestMembersOfEverythingThatIsWasOrShallBe(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2)
	n := children.NamesOf(cluster)
	seen := healthy(t, 1).seen
	for ordinal, made := range map[int]int64{0: 1500, 1: 1000, 3: 500} {
		volume := claim("Bound", nil).volumes[0]
		volume.Name, volume.CreationTimestamp = n.Claim(ordinal), metav1.NewTime(time.Unix(made, 0))
		seen.volumes = append(seen.volumes, volume)
	}
	type row struct {
		Name       string
		Pod, Older bool
	}
	var got []row
	for _, member := range membersOf(n, cluster, seen) {
		got = append(got, row{member.Name, member.Pod, member.OlderData})
	}
	want := []row{{"db-0", true, false}, {"db-1", false, false}, {"db-3", false, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAddressOfAPodThatEndedIsNotUsed: another Pod may have it by now.
func TestAddressOfAPodThatEndedIsNotUsed(t *testing.T) {
	t.Parallel()
	for phase, want := range map[corev1.PodPhase]string{corev1.PodPending: "10.0.0.1", corev1.PodRunning: "10.0.0.1", corev1.PodFailed: "", corev1.PodSucceeded: ""} {
		seen := healthy(t, 1).seen
		seen.pods[0].Status.Phase, seen.pods[0].Status.PodIP = phase, "10.0.0.1"
		if got := membersOf(children.NamesOf(aCluster(1)), aCluster(1), seen)[0].Address; got != want {
			t.Errorf("a Pod that is %s: %q, want %q", phase, got, want)
		}
	}
}

func TestProblemsOfErrorsThatNameTheirRemedy(t *testing.T) {
	t.Parallel()
	foreign := &reconcile.ForeignError{Resource: children.Services(), Namespace: "shop", Name: "db"}
	former := &reconcile.ForeignError{Resource: children.Services(), Namespace: "shop", Name: "db", Predecessor: true}
	if got := report.FromError(foreign); got == nil || got.Reason != report.ReasonForeignObject || !got.Stalled {
		t.Errorf("a foreign object: %+v", got)
	}
	if got := report.FromError(former); got == nil || got.Reason != report.ReasonPredecessor || got.Stalled {
		t.Errorf("what a deleted predecessor left: %+v", got)
	}
	if got := report.FromError(errRecordMoved); got != nil {
		t.Errorf("a matter of the operator's own: %+v", got)
	}
	if got := report.FromError(nil); got != nil {
		t.Errorf("no error: %+v", got)
	}
}

// The record of truth is written together with the members' reports: none of these may make it too large to be written.
func TestWhatMembersSayIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 900_000)
	forged := func(s *replication.Status) { s.Version, s.State, s.Message = long, replication.State(long), long }
	status := healthy(t, 2).member(0, true, forged).member(1, true, forged).report(nil, nil).status()
	content, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 64<<10 {
		t.Errorf("the status has %d bytes", len(content))
	}
}

// TestDurableTellsWhetherCommitsAreOnDisks of the replicas, if the user wants that.
func TestDurableTellsWhetherCommitsAreOnDisks(t *testing.T) {
	t.Parallel()
	syncs := func(s *replication.Status) { s.SyncsRelayLog = true }
	powered := func() *scene {
		s := healthy(t, 3)
		s.cluster.Spec.Durability.Survives = v1.SurvivesPower
		return s
	}
	for name, test := range map[string]struct {
		scene *scene
		want  string
	}{
		"the user asks for nothing":       {healthy(t, 3).member(1, true, syncs), "on at least 1 of the others"},
		"one has not restarted yet":       {powered().member(1, true, syncs), "but may not be on the disks of db-2 yet"},
		"both flush":                      {powered().member(1, true, syncs).member(2, true, syncs), "on at least 1 of the others, on their disks"},
		"what one does not say is not so": {powered().member(1, true, syncs).silent(2), "but may not be on the disks of db-2 yet"},
	} {
		status := test.scene.report(nil, nil).status()
		got := meta.FindStatusCondition(status.Conditions, conditionDurable)
		if got == nil || !strings.Contains(got.Message, test.want) || name == "the user asks for nothing" && strings.Contains(got.Message, "disk") {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}
