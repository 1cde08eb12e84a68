package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// restoredStatus is what a restore reports that took a minute.
func restoredStatus() v1.RestoreStatus {
	ended := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	began := metav1.NewTime(ended.Add(-time.Minute))
	return v1.RestoreStatus{Phase: v1.RestoreCompleted, Backup: "nightly", URL: "s3://bucket/shop/old/nightly", StartTime: &began, CompletionTime: &ended}
}

func TestACompletedRestoreIsToldOnce(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) { c.Spec.FromBackup = "nightly" })
	step := restore.Step{Status: restoredStatus(), Problem: report.Problem{Reason: restore.ReasonCreatingMembers, Message: "backup nightly is restored; the operator is creating the members"}}
	status := restoreStatus(cluster, step)
	if status.Phase != v1.PhaseRestoring || status.Primary != "" || *status.Restore != step.Status {
		t.Errorf("the status says %+v", status)
	}
	events := eventsOf(cluster.Status, status)
	if len(events) != 2 || events[1].Reason != "RestoreCompleted" || events[1].Note != "backup nightly is restored; this took 1m0s" {
		t.Errorf("told: %+v", events)
	}
	if again := eventsOf(status, restoreStatus(cluster, step)); len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
}

// TestAnAdoptedVolumeIsNoRestore: nothing was restored, so the only event is the warning.
func TestAnAdoptedVolumeIsNoRestore(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) { c.Spec.FromBackup = "nightly" })
	adopted := restoredStatus()
	adopted.Adopted = true
	status := restoreStatus(cluster, restore.Step{Status: adopted, Problem: report.Problem{Reason: protocol.ReasonRestoreAdopted, Message: "nothing was restored"}})
	events := eventsOf(cluster.Status, status)
	if len(events) != 1 || events[0].Type != "Warning" || events[0].Reason != "RestoreAdopted" || events[0].Note != "nothing was restored" {
		t.Errorf("told: %+v", events)
	}
}

// The operator waits for the first member if its volume was created for a restore, even if the volume is new: another member's data is not
// the restored data.
func TestTheFirstMemberOfARestoreIsHeardFirst(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) {
		at := metav1.NewTime(time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC))
		c.Spec.FromBackup = "nightly"
		c.Status.Restore = &v1.RestoreStatus{Phase: v1.RestoreCompleted, Backup: "nightly", URL: "s3://bucket/shop/old/nightly", StartTime: &at, Attempts: 1}
	})
	n := children.NamesOf(cluster)
	seen := observed{}
	for ordinal := range 2 {
		seen.volumes = append(seen.volumes, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Claim(ordinal), CreationTimestamp: metav1.NewTime(cluster.CreationTimestamp.Add(time.Second))}})
	}
	seen.members = membersOf(n, cluster, seen)
	seen.members[1].Status = &replication.Status{State: replication.StateWaiting, Origin: replication.OriginMember, Received: gtids(t, serverUUID+":1-10")}
	if decision := replication.Decide(view(cluster, seen)); decision.Record.Primary != "" || decision.Note == nil || decision.Note.Reason != replication.ReasonWaitingForMembers {
		t.Errorf("decided %+v", decision)
	}
}
