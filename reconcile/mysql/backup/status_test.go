package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func said(progress protocol.Progress) func(*observed) {
	return func(seen *observed) {
		working(transfer.State{Phase: transfer.Running, Attempts: 1})(seen)
		seen.progress = &progress
	}
}

// TestALife goes through a backup's statuses, with the events of each.
func TestALife(t *testing.T) {
	t.Parallel()
	instance := fresh()
	var events []string
	next := func(status v1.MySQLBackupInstanceStatus) {
		for _, event := range eventsOf(instance.Status, status) {
			events = append(events, event.Type+" "+event.Reason)
		}
		instance.Status = status
	}
	next(waiting(instance, calm(), report.Problem{Reason: protocol.ReasonClusterNotFound, Message: "nothing there"}))
	next(begun(instance, calm()))
	next(waiting(instance, calm(), starting()))
	next(followed(instance, calm(working(transfer.State{Phase: transfer.Running, Attempts: 1}))))
	next(followed(instance, calm(said(protocol.Progress{Stage: "reading", Source: "db-1", Bytes: 1 << 30, TotalBytes: 3 << 30, BytesPerSecond: 200 << 20}))))
	next(followed(instance, calm(said(protocol.Progress{Stage: "finishing", Source: "db-1", Bytes: 3 << 30, TotalBytes: 3 << 30}))))
	done := calm(working(succeeded(nil)))
	done.now = after(2*time.Minute + 12*time.Second + 400*time.Millisecond)
	next(completed(instance, done))

	started, ended := metav1.NewTime(after(time.Minute)), metav1.NewTime(after(2*time.Minute+12*time.Second))
	want := v1.MySQLBackupInstanceStatus{
		ObservedGeneration: 1, Phase: v1.BackupCompleted, Cluster: "db", Source: "db-1", StartTime: &started, CompletionTime: &ended, Duration: "1m12s",
		Location: &v1.BackupLocation{URL: "file:///shop/db/nightly-1", Claim: "db-backups"}, Attempts: 1,
		Progress: &v1.TransferProgress{Bytes: 3 << 30, TotalBytes: 3 << 30, Percent: 100, Summary: "100% of 3Gi"},
		Stages:   &v1.BackupStages{Wait: "0.3s", Copy: "40.0s", Rest: "0.0s", Upload: "10.2s", Finish: "0.0s"},
		DataSize: 3 << 30, Size: 1 << 30, SizeSummary: "1Gi", GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", ServerVersion: "9.7.4", Checksum: "sha256:abc",
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "True", Reason: protocol.ReasonCompleted, ObservedGeneration: 1, LastTransitionTime: ended,
			Message: "3Gi copied from db-1, stored as 1Gi in 1m12s",
		}},
	}
	if diff := cmp.Diff(want, instance.Status); diff != "" {
		t.Errorf("the status differs (-want +got):\n%s", diff)
	}
	told := []string{"Normal ClusterNotFound", "Normal Scheduled", "Normal Copying", "Normal Completed"}
	if diff := cmp.Diff(told, events); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
}

// TestAFailureStaysToBeSeen: the status keeps the progress of a failed backup, and is Stalled.
func TestAFailureStaysToBeSeen(t *testing.T) {
	t.Parallel()
	instance := fresh(begins)
	instance.Status = followed(instance, calm(said(protocol.Progress{Stage: "reading", Source: "db-1", Bytes: 1 << 30, TotalBytes: 4 << 30, BytesPerSecond: 200 << 20})))
	status := failed(instance, calm(working(transfer.State{Phase: transfer.Failed, Attempts: 7})), report.Problem{Reason: protocol.ReasonDestinationFull, Message: "no space", Stalled: true})
	if status.Phase != v1.BackupFailed || status.Attempts != 7 || status.Source != "db-1" || status.Progress.Summary != "25% of 4Gi" || status.Progress.BytesPerSecond != 0 || status.CompletionTime == nil {
		t.Errorf("unexpected status: %+v", status)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, "Stalled") || meta.FindStatusCondition(status.Conditions, "Reconciling") != nil {
		t.Errorf("unexpected conditions: %+v", status.Conditions)
	}
	want := []reconcile.Event{{Type: reconcile.Warning, Reason: protocol.ReasonDestinationFull, Action: "Backup", Note: "no space"}}
	if diff := cmp.Diff(want, eventsOf(instance.Status, status)); diff != "" {
		t.Error(diff)
	}
}

// TestProgressIsWrittenWhenThereIsNews: the status stays as long as neither the percentage nor the stage changes.
func TestProgressIsWrittenWhenThereIsNews(t *testing.T) {
	t.Parallel()
	at := func(instance v1.MySQLBackupInstance, stage string, bytes int64) v1.MySQLBackupInstanceStatus {
		return followed(instance, calm(said(protocol.Progress{Stage: stage, Source: "db-1", Bytes: bytes, TotalBytes: 1000000, BytesPerSecond: bytes / 7})))
	}
	instance := fresh(begins)
	instance.Status = at(instance, "reading", 421000)
	if diff := cmp.Diff(instance.Status, at(instance, "reading", 429999)); diff != "" {
		t.Errorf("the same percentage changes the status:\n%s", diff)
	}
	for name, status := range map[string]v1.MySQLBackupInstanceStatus{
		"a percent": at(instance, "reading", 430000),
		"a stage":   at(instance, "finishing", 429999),
	} {
		if cmp.Equal(instance.Status, status) {
			t.Errorf("%s more does not change the status", name)
		}
	}
	silent := followed(instance, calm(working(transfer.State{Phase: transfer.Running, Attempts: 1})))
	if diff := cmp.Diff(instance.Status, silent); diff != "" {
		t.Errorf("a Pod that does not answer changes the status:\n%s", diff)
	}
}

func TestAPodThatDoesNotEndSaysSo(t *testing.T) {
	t.Parallel()
	status := followed(fresh(begins), calm(working(transfer.State{Phase: transfer.Running, Message: "Pod x is being deleted"})))
	if !says(status, "Pod x is being deleted") {
		t.Errorf("the conditions are %+v", status.Conditions)
	}
}

// TestWhatHasStartedStaysSo: a Pod that ran makes a backup Started, even if no pass observed it running and the next Pod waits.
func TestWhatHasStartedStaysSo(t *testing.T) {
	t.Parallel()
	instance := fresh(begins)
	for name, test := range map[string]struct {
		state transfer.State
		want  v1.BackupPhase
	}{
		"its first Pod waits":                 {transfer.State{Phase: transfer.Pending}, v1.BackupScheduled},
		"its first Pod runs":                  {transfer.State{Phase: transfer.Running}, v1.BackupStarted},
		"its first Pod failed at once":        {transfer.State{Phase: transfer.Pending, Attempts: 1}, v1.BackupStarted},
		"its Job was created again afterward": {transfer.State{}, v1.BackupStarted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := instance
			if test.state == (transfer.State{}) {
				before.Status.Phase, before.Status.Attempts = v1.BackupStarted, 1
			}
			status := waiting(before, calm(working(test.state)), report.Problem{Reason: protocol.ReasonScheduled, Message: "waits"})
			if status.Phase != test.want || status.Attempts < before.Status.Attempts {
				t.Errorf("it is %s after %d attempts, want %s", status.Phase, status.Attempts, test.want)
			}
		})
	}
}
