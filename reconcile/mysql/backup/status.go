package backup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// carried is the part of the status that stays as it is until something is known to be otherwise.
func carried(instance v1.MySQLBackupInstance) v1.MySQLBackupInstanceStatus {
	status := instance.Status
	status.ObservedGeneration = instance.Generation
	status.Conditions = slices.Clone(instance.Status.Conditions)
	if status.Phase == "" {
		status.Phase = v1.BackupScheduled
	}
	return status
}

// waiting is the status of a backup that waits for something. What has started stays so.
func waiting(instance v1.MySQLBackupInstance, seen sight, what problem) v1.MySQLBackupInstanceStatus {
	status := carried(instance)
	counted(&status, seen)
	if status.Location == nil {
		status.Cluster = seen.name
	}
	setProblem(&status, what, seen.now)
	return status
}

// begun is the status of a backup that lacks nothing: where its data goes is fixed before anything is made that could write there.
func begun(instance v1.MySQLBackupInstance, seen sight) v1.MySQLBackupInstanceStatus {
	status := carried(instance)
	location, at := seen.location, second(seen.now)
	status.Cluster, status.Location, status.StartTime = seen.name, &location, &at
	setProblem(&status, starting(), seen.now)
	return status
}

// followed is the status of a backup whose Pod is at work.
func followed(instance v1.MySQLBackupInstance, seen sight) v1.MySQLBackupInstanceStatus {
	status := carried(instance)
	counted(&status, seen)
	message := "its Pod is at work"
	samePod := instance.Status.Attempts == status.Attempts
	if condition := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); samePod && condition != nil && condition.Reason == transfer.ReasonCopying {
		message = condition.Message // it may not answer once
	}
	said := seen.progress
	if said != nil {
		message = doing(*said)
	}
	if seen.transfer.Message != "" { // it is told to end, and does not
		message = seen.transfer.Message
	}
	if said != nil {
		status.Source = cmp.Or(said.Source, status.Source)
		// Written when there is something new for people, and not with every byte.
		fresh, old := transfer.StatusProgress(*said), instance.Status.Progress
		if old == nil || old.Percent != fresh.Percent || !says(instance.Status, message) {
			status.Progress = &fresh
		}
	}
	setProblem(&status, problem{transfer.ReasonCopying, message, false}, seen.now)
	return status
}

// doing says in words what a Pod does.
func doing(said transfer.Progress) string {
	text := "its Pod is at work"
	if said.Source != "" {
		text = "copies " + said.Source
	}
	if said.Stage != "" {
		text += ": " + said.Stage
	}
	return text
}

func says(status v1.MySQLBackupInstanceStatus, message string) bool {
	condition := meta.FindStatusCondition(status.Conditions, v1.ConditionReady)
	return condition != nil && condition.Message == message
}

// counted notes how many Pods were at work, and that one has been.
func counted(status *v1.MySQLBackupInstanceStatus, seen sight) {
	status.Attempts = max(status.Attempts, seen.former+seen.transfer.Attempts)
	if status.Attempts > 0 || seen.transfer.Phase == transfer.Running {
		status.Phase = v1.BackupStarted
	}
}

// completed is the status of a backup that is complete, by what its Pod said.
func completed(instance v1.MySQLBackupInstance, seen sight) v1.MySQLBackupInstanceStatus {
	status := carried(instance)
	over(&status, seen, v1.BackupCompleted)
	said := seen.transfer.Outcome
	status.Source, status.ServerVersion, status.GTIDExecuted = cmp.Or(said.Source, status.Source), said.ServerVersion, said.GTIDExecuted
	status.Checksum, status.DataSize, status.Size, status.SizeSummary = said.Checksum, said.DataSize, said.Size, transfer.Size(said.Size)
	status.Stages = transfer.StatusStages(said.Spent)
	status.Progress = &v1.TransferProgress{Bytes: said.DataSize, TotalBytes: said.DataSize, Percent: 100, Summary: "100% of " + transfer.Size(said.DataSize)}
	message := fmt.Sprintf("%s copied from %s, stored as %s in %s", transfer.Size(said.DataSize), cmp.Or(status.Source, "the cluster"), status.SizeSummary, status.Duration)
	if said.GTIDsLeftOut {
		message += "; its GTID set is too long to be shown here, the backup's manifest has it"
	}
	clearProgress(&status)
	set(&status, metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: transfer.ReasonCompleted, Message: message}, seen.now)
	describeTables(&status, seen)
	return status
}

// failed is the status of a backup that is over without one. How far it had come stays to be seen.
func failed(instance v1.MySQLBackupInstance, seen sight, why problem) v1.MySQLBackupInstanceStatus {
	status := carried(instance)
	over(&status, seen, v1.BackupFailed)
	if status.Location == nil {
		status.Cluster = seen.name
	}
	if said := seen.transfer.Outcome; said != nil {
		status.Source = cmp.Or(said.Source, status.Source)
	}
	if last := instance.Status.Progress; last != nil {
		stopped := transfer.StatusProgress(transfer.Progress{Bytes: last.Bytes, TotalBytes: last.TotalBytes})
		status.Progress = &stopped
	}
	setProblem(&status, problem{why.reason, why.message, true}, seen.now)
	return status
}

func over(status *v1.MySQLBackupInstanceStatus, seen sight, phase v1.BackupPhase) {
	at := second(seen.now)
	status.Attempts = max(status.Attempts, seen.former+seen.transfer.Attempts)
	status.Phase, status.CompletionTime = phase, &at
	if status.StartTime != nil {
		status.Duration = duration(at.Sub(status.StartTime.Time))
	}
}

// duration writes a time span for people: 1m12s.
func duration(span time.Duration) string { return max(0, span).Round(time.Second).String() }

// second is a time as the API keeps it.
func second(at time.Time) metav1.Time {
	return metav1.NewTime(at.UTC().Truncate(time.Second))
}

// setProblem says in the conditions what a backup waits for, and whether that passes by itself.
func setProblem(status *v1.MySQLBackupInstanceStatus, found problem, now time.Time) {
	kind, other := v1.ConditionReconciling, v1.ConditionStalled
	if found.stalled {
		kind, other = other, kind
	}
	// What stays keeps the time since when it is so.
	meta.RemoveStatusCondition(&status.Conditions, other)
	set(status, metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: found.reason, Message: found.message}, now)
	set(status, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: found.reason, Message: found.message}, now)
}

// clearProgress removes the conditions that are present only while they apply.
func clearProgress(status *v1.MySQLBackupInstanceStatus) {
	meta.RemoveStatusCondition(&status.Conditions, v1.ConditionReconciling)
	meta.RemoveStatusCondition(&status.Conditions, v1.ConditionStalled)
}

func set(status *v1.MySQLBackupInstanceStatus, condition metav1.Condition, now time.Time) {
	condition.ObservedGeneration = status.ObservedGeneration
	condition.LastTransitionTime = metav1.NewTime(now)
	reconcile.SetCondition(&status.Conditions, condition)
}

// outcome is what the engine shall write, tell and do next.
func outcome(instance v1.MySQLBackupInstance, status v1.MySQLBackupInstanceStatus, next time.Duration) reconcile.Outcome {
	return reconcile.Outcome{Status: status, Events: tell(instance.Status, status), Again: next}
}

// tell turns what changed into events: nothing changed, nothing told.
func tell(before, after v1.MySQLBackupInstanceStatus) []reconcile.Event {
	was := meta.FindStatusCondition(before.Conditions, v1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, v1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status && before.Phase == after.Phase {
		return tellTables(before, after)
	}
	kind := reconcile.Normal
	if meta.IsStatusConditionTrue(after.Conditions, v1.ConditionStalled) {
		kind = reconcile.Warning
	}
	return append([]reconcile.Event{{Type: kind, Reason: is.Reason, Action: "Backup", Note: is.Message}}, tellTables(before, after)...)
}
