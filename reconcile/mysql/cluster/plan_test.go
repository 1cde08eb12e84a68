package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// settledInput is a cluster of two that has nothing to do.
func settledInput(t *testing.T) planInput {
	t.Helper()
	s := healthy(t, 2)
	s.record.Revision = 3
	s.cluster.Status = v1.MySQLClusterStatus{Primary: "db-0", Epoch: 1, Revision: 3, InSync: s.record.InSync, RequiredAcks: 1}
	s.seen.route = "db-0"
	decision := replication.Decision{Record: s.record, Scale: 2, Assignments: map[string]replication.Assignment{}}
	for i, role := range []replication.Role{replication.RolePrimary, replication.RoleReplica} {
		pod := &s.seen.pods[i]
		follows := replication.Assignment{Record: s.record, Role: role, InSync: true}
		decision.Assignments[pod.Name] = follows
		s.seen.members[i].Status.Assignment = &follows
		pod.Labels = map[string]string{children.LabelRole: []string{children.RolePrimary, children.RoleReplica}[i]}
		volume := corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		volume.Name = "data-" + pod.Name
		volume.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		s.seen.volumes = append(s.seen.volumes, volume)
	}
	return planInput{cluster: s.cluster, seen: s.seen, decision: decision, areMade: true}
}

// disturbed changes everything that depends on the record, or is told to members.
func disturbed(in *planInput) {
	in.cluster.Spec.Storage = resource.MustParse("2Gi")
	in.seen.members[1].Status.Assignment = nil
	in.decision.Matching = &replication.Matching{Primary: "db-0"}
	in.seen.pods[1].Labels = nil
}

func TestPlansTellWhatAPassDoesAndWhy(t *testing.T) {
	t.Parallel()
	const compare = ": not known yet to be as the spec asks"
	applied := func(writes, reads, members string) []string {
		return []string{
			"apply ServiceAccount/db" + compare, "apply ConfigMap/db-config" + compare, "apply Service/db-pods" + compare,
			"apply Service/db: writes must reach " + writes, "apply Service/db-read: reads must reach " + reads,
			"apply PodDisruptionBudget/db" + compare, "apply StatefulSet/db: " + members, "publish ConfigMap/db-ca-cert: clients read the CAs from it",
		}
	}
	const foreign = ": a new member must not get another owner's volume"
	for story, test := range map[string]struct {
		change func(*planInput)
		want   []string
	}{
		"nothing to do": {func(*planInput) {}, nil},
		"a new cluster": {func(in *planInput) {
			in.cluster.Status, in.seen, in.areMade = v1.MySQLClusterStatus{}, observed{route: "db-0"}, false
			in.decision = replication.Decision{Scale: 2, ReadFromPrimary: true}
		}, append([]string{"check PersistentVolumeClaim/data-db-0" + foreign, "check PersistentVolumeClaim/data-db-1" + foreign},
			applied("db-0", "db-0, because no replica serves", "2 members, now 0")...)},
		"a child changed": {func(in *planInput) { in.areMade = false }, applied("db-0", "replicas", "2 members, now 2")},
		"scaled out": {func(in *planInput) { in.areMade, in.decision.Scale = false, 3 },
			append([]string{"check PersistentVolumeClaim/data-db-2" + foreign}, applied("db-0", "replicas", "3 members, now 2")...)},
		"the record changes: nothing that depends on it": {func(in *planInput) {
			disturbed(in)
			in.decision.Record = replication.Record{Epoch: 1, Revision: 4, Primary: "db-0", InSync: []string{"db-0"}}
		}, []string{"record MySQLCluster/db: revision 4: in sync [db-0], 0 acknowledgements required; before: [db-0 db-1], 1"}},
		"another record, after the children": {func(in *planInput) {
			disturbed(in)
			in.areMade, in.decision.Record.Revision, in.decision.Record.InSync = false, 4, []string{"db-0"}
		}, append(applied("db-0", "replicas", "2 members, now 2"), "record MySQLCluster/db: revision 4: in sync [db-0], 1 acknowledgements required; before: [db-0 db-1], 1")},
		"a primary is replaced: the record comes before the children": {func(in *planInput) {
			disturbed(in)
			in.areMade, in.decision.Record.Primary, in.decision.Record.FormerPrimary, in.decision.Record.Epoch = false, "", "db-0", 2
		}, []string{"record MySQLCluster/db: another member takes over from db-0 in epoch 2"}},
		"a member takes over: so does that record": {func(in *planInput) {
			in.cluster.Status.Primary, in.cluster.Status.FormerPrimary = "", "db-0"
			in.areMade, in.decision.Record.Primary = false, "db-1"
		}, []string{"record MySQLCluster/db: db-1 becomes the primary of epoch 1"}},
		"assignments come before the children": {func(in *planInput) {
			disturbed(in)
			in.areMade = false
		}, slices.Concat([]string{"assign Pod/db-1: Replica of revision 3, because it follows nothing"}, applied("db-0", "replicas", "2 members, now 2"), []string{
			"expand PersistentVolumeClaim/data-db-0: from 1Gi to 2Gi, as spec.storage asks",
			"expand PersistentVolumeClaim/data-db-1: from 1Gi to 2Gi, as spec.storage asks",
			"match transactions on Pod/db-0: replicas wrote 0 that change no row",
			"label Pod/db-1: from no role to replica",
		})},
		"the record is written": {disturbed, []string{
			"assign Pod/db-1: Replica of revision 3, because it follows nothing",
			"expand PersistentVolumeClaim/data-db-0: from 1Gi to 2Gi, as spec.storage asks",
			"expand PersistentVolumeClaim/data-db-1: from 1Gi to 2Gi, as spec.storage asks",
			"match transactions on Pod/db-0: replicas wrote 0 that change no row",
			"label Pod/db-1: from no role to replica",
		}},
		"a replica follows an older record": {func(in *planInput) {
			in.seen.members[1].Status.Assignment.Record.Revision = 2
		}, []string{"assign Pod/db-1: Replica of revision 3, because it follows another assignment, of revision 2"}},
		"a member that does not answer is told nothing": {func(in *planInput) { in.seen.members[1].Status = nil }, nil},
		"storage raised, a volume of no member stays": {func(in *planInput) {
			in.cluster.Spec.Storage = resource.MustParse("2Gi")
			in.seen.volumes[1].Name = "data-db-7"
		}, []string{"expand PersistentVolumeClaim/data-db-0: from 1Gi to 2Gi, as spec.storage asks"}},
		"a volume that is larger than spec.storage stays": {func(in *planInput) {
			in.seen.volumes[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}, nil},
		"a Pod with another role": {func(in *planInput) {
			in.seen.pods[1].Labels[children.LabelRole] = children.RolePrimary
		}, []string{"label Pod/db-1: from primary to former-primary"}},
		"a former primary that has accepted that": {func(in *planInput) {
			in.seen.pods[1].Labels[children.LabelRole] = children.RoleFormerPrimary
			in.seen.members[1].Status.Held, in.seen.members[1].Status.HeldRole = in.decision.Record, replication.RoleReplica
		}, []string{"label Pod/db-1: from former-primary to replica"}},
		"a former primary that lets readers in again before the read Service leads to it": {func(in *planInput) {
			in.seen.pods[1].Labels[children.LabelRole] = children.RoleFormerPrimary
			in.seen.members[1].Status.Held, in.seen.members[1].Status.HeldRole = in.decision.Record, replication.RoleReplica
			in.areMade = false
		}, []string{
			"label Pod/db-1: from former-primary to replica",
			"apply ServiceAccount/db: not known yet to be as the spec asks",
			"apply ConfigMap/db-config: not known yet to be as the spec asks",
			"apply Service/db-pods: not known yet to be as the spec asks",
			"apply Service/db: writes must reach db-0",
			"apply Service/db-read: reads must reach replicas",
			"apply PodDisruptionBudget/db: not known yet to be as the spec asks",
			"apply StatefulSet/db: 2 members, now 2",
			"publish ConfigMap/db-ca-cert: clients read the CAs from it",
		}},
		"a former primary that still refuses clients": {func(in *planInput) {
			in.seen.pods[1].Labels[children.LabelRole] = children.RoleFormerPrimary
			in.seen.members[1].Status.Held, in.seen.members[1].Status.HeldRole = in.decision.Record, replication.RoleReplica
			in.seen.members[1].Status.RefusesClients = true
		}, nil},
		"a replica that refuses clients": {func(in *planInput) { in.seen.members[1].Status.RefusesClients = true }, []string{"label Pod/db-1: from replica to former-primary"}},
		"a former primary that does not answer": {func(in *planInput) {
			in.seen.pods[1].Labels[children.LabelRole] = children.RoleFormerPrimary
			in.seen.members[1].Status = nil
		}, nil},
		"hollow transactions": {func(in *planInput) {
			in.decision.Matching = &replication.Matching{Primary: "db-0", GTIDs: gtids(t, "4e11fa47-71ca-11e1-9e33-c80aa9429562:1-2")}
		}, []string{"match transactions on Pod/db-0: replicas wrote 2 that change no row"}},
	} {
		in := settledInput(t)
		test.change(&in)
		var got []string
		for _, next := range planOf(in) {
			got = append(got, next.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", story, diff)
		}
	}
}

// TestAReplicaOfAnotherSeriesIsReadyAfterThePrimaryIsHeld: Kubernetes restarts the primary when the last replica is ready. If a pass could
// not change the StatefulSet, it sends the replica no assignment.
func TestAReplicaOfAnotherSeriesIsReadyAfterThePrimaryIsHeld(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		members string
		want    map[string]bool
	}{
		"another series":                       {"8.4 8.4 9.7~", map[string]bool{"db-0": false, "db-1": false, "db-2": true}},
		"another patch release":                {"8.4 8.4 8.4~", map[string]bool{"db-0": false, "db-1": false, "db-2": false}},
		"the replica's mysqld does not answer": {"8.4 8.4 starts~", map[string]bool{"db-0": false, "db-1": false}},
	} {
		cluster, seen := upgrading{rolling: rolling{record: "db-0", pods: "a a b", revisions: "a b"}, image: "mysql:lts", has: "mysql:lts", members: test.members}.seen()
		if strings.Contains(test.members, "starts") {
			seen.members[2].Status.State, seen.members[2].Status.Version = replication.StateStarting, ""
		}
		decision := replication.Decision{Record: recordOf(cluster.Status), Scale: 3, Assignments: map[string]replication.Assignment{"db-0": {}, "db-1": {}, "db-2": {}}}
		got, holds, applies := map[string]bool{}, false, false
		for _, next := range planOf(planInput{cluster: cluster, seen: seen, decision: decision}) {
			if next.verb == verbAssign {
				got[next.name] = next.afterHold
			}
			holds = holds || next.verb == verbHold
			applies = applies || next.verb == verbApply && next.kind == "StatefulSet"
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: the assignments that wait for the StatefulSet (-want +got):\n%s", story, diff)
		}
		if holds != test.want["db-2"] || applies == holds {
			t.Errorf("%s: the plan holds the primary: %t, and applies all of the StatefulSet: %t", story, holds, applies)
		}
	}
}

// TestANetworkPolicyIsKeptOrOpened: one that was made for spec.network must not stay as it was when the field is removed.
func TestANetworkPolicyIsKeptOrOpened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ isWanted, exists, want bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		in := settledInput(t)
		in.areMade, in.hasPolicy = false, test.exists
		if test.isWanted {
			in.cluster.Spec.Network = &v1.Network{}
		}
		got := false
		for _, next := range planOf(in) {
			got = got || next.kind == "NetworkPolicy"
		}
		if got != test.want {
			t.Errorf("%+v: it is applied: %v", test, got)
		}
	}
}

// TestLogsPrintActionsAsTexts: the log's encoder prints values as JSON does.
func TestLogsPrintActionsAsTexts(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal([]action{{verb: verbLabel, kind: "Pod", name: "db-1", reason: "why"}})
	if want := `["label Pod/db-1: why"]`; err != nil || string(got) != want {
		t.Errorf("printed %s (%v), want %s", got, err, want)
	}
}
