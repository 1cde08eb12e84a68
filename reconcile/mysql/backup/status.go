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
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// previousStatus returns the previous status as the basis of the new one. Its fields stay until an observation changes them.
func previousStatus(instance v1.MySQLBackupInstance) v1.MySQLBackupInstanceStatus {
	status := instance.Status
	status.ObservedGeneration = instance.Generation
	status.Conditions = slices.Clone(instance.Status.Conditions)
	if status.Phase == "" {
		status.Phase = v1.BackupScheduled
	}
	return status
}

// waiting returns the status of a backup that waits for something. A backup that has started stays Started.
func waiting(instance v1.MySQLBackupInstance, seen observed, what report.Problem) v1.MySQLBackupInstanceStatus {
	status := previousStatus(instance)
	counted(&status, seen)
	if status.Location == nil {
		status.Cluster = seen.name
	}
	conditionsOf(&status, seen.now).Problem(what)
	return status
}

// begun returns the status of a backup for which nothing is missing. It fixes the location before the operator creates anything that could
// write there.
func begun(instance v1.MySQLBackupInstance, seen observed) v1.MySQLBackupInstanceStatus {
	status := previousStatus(instance)
	location, at := seen.location, second(seen.now)
	status.Cluster, status.Location, status.StartTime = seen.name, &location, &at
	conditionsOf(&status, seen.now).Problem(starting())
	return status
}

// followed returns the status of a backup whose Pod is running.
func followed(instance v1.MySQLBackupInstance, seen observed) v1.MySQLBackupInstanceStatus {
	status := previousStatus(instance)
	counted(&status, seen)
	message := "its Pod is running"
	samePod := instance.Status.Attempts == status.Attempts
	if condition := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); samePod && condition != nil && condition.Reason == protocol.ReasonCopying {
		message = condition.Message // one request to the Pod may fail
	}
	said := seen.progress
	if said != nil {
		message = doing(*said)
	}
	if seen.transfer.Message != "" { // the Pod must end, and has not ended
		message = seen.transfer.Message
	}
	if said != nil {
		status.Source = cmp.Or(said.Source, status.Source)
		// Write the status only if users see something new, not for every byte.
		fresh, old := transfer.StatusProgress(*said), instance.Status.Progress
		if old == nil || old.Percent != fresh.Percent || !says(instance.Status, message) {
			status.Progress = &fresh
		}
	}
	conditionsOf(&status, seen.now).Problem(report.Problem{Reason: protocol.ReasonCopying, Message: message})
	return status
}

// doing describes what a Pod does.
func doing(said protocol.Progress) string {
	text := "its Pod is running"
	if said.Source != "" {
		text = "copying from " + said.Source
	}
	if said.Stage != "" {
		text += ": " + said.Stage
	}
	return text
}

func says(status v1.MySQLBackupInstanceStatus, message string) bool {
	condition := meta.FindStatusCondition(status.Conditions, v1.ConditionReady)
	return condition != nil && condition.Message == report.Brief(message, report.LongestMessage)
}

// counted records how many Pods have run, and that the backup has started if one has.
func counted(status *v1.MySQLBackupInstanceStatus, seen observed) {
	status.Attempts = max(status.Attempts, seen.former+seen.transfer.Attempts)
	if status.Attempts > 0 || seen.transfer.Phase == transfer.Running {
		status.Phase = v1.BackupStarted
	}
}

// completed returns the status of a completed backup, from what its Pod reported.
func completed(instance v1.MySQLBackupInstance, seen observed) v1.MySQLBackupInstanceStatus {
	status := previousStatus(instance)
	over(&status, seen, v1.BackupCompleted)
	said := seen.transfer.Outcome
	status.Source, status.ServerVersion, status.GTIDExecuted = cmp.Or(said.Source, status.Source), said.ServerVersion, said.GTIDExecuted
	status.Checksum, status.DataSize, status.Size, status.SizeSummary = said.Checksum, said.DataSize, said.Size, protocol.Size(said.Size)
	status.Stages = transfer.StatusStages(said.Spent)
	status.Progress = &v1.TransferProgress{Bytes: said.DataSize, TotalBytes: said.DataSize, Percent: 100, Summary: "100% of " + protocol.Size(said.DataSize)}
	message := fmt.Sprintf("%s copied from %s, stored as %s in %s", protocol.Size(said.DataSize), cmp.Or(status.Source, "the cluster"), status.SizeSummary, status.Duration)
	if said.GTIDsLeftOut {
		message += "; the GTID set is too long for the status, the backup's manifest contains it"
	}
	conditionsOf(&status, seen.now).Ready(protocol.ReasonCompleted, message)
	describeTables(&status, seen)
	return status
}

// failed returns the status of a failed backup. It keeps the progress that the backup had made.
func failed(instance v1.MySQLBackupInstance, seen observed, why report.Problem) v1.MySQLBackupInstanceStatus {
	status := previousStatus(instance)
	over(&status, seen, v1.BackupFailed)
	if status.Location == nil {
		status.Cluster = seen.name
	}
	if said := seen.transfer.Outcome; said != nil {
		status.Source = cmp.Or(said.Source, status.Source)
	}
	if last := instance.Status.Progress; last != nil {
		stopped := transfer.StatusProgress(protocol.Progress{Bytes: last.Bytes, TotalBytes: last.TotalBytes})
		status.Progress = &stopped
	}
	conditionsOf(&status, seen.now).Problem(report.Problem{Reason: why.Reason, Message: why.Message, Stalled: true})
	return status
}

func over(status *v1.MySQLBackupInstanceStatus, seen observed, phase v1.BackupPhase) {
	at := second(seen.now)
	status.Attempts = max(status.Attempts, seen.former+seen.transfer.Attempts)
	status.Phase, status.CompletionTime = phase, &at
	if status.StartTime != nil {
		status.Duration = duration(at.Sub(status.StartTime.Time))
	}
}

// duration formats a time span for users: 1m12s.
func duration(span time.Duration) string { return max(0, span).Round(time.Second).String() }

// second truncates a time to the precision of the API.
func second(at time.Time) metav1.Time {
	return metav1.NewTime(at.UTC().Truncate(time.Second))
}

func conditionsOf(status *v1.MySQLBackupInstanceStatus, now time.Time) report.Conditions {
	return report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration, Now: now}
}

// outcome returns what the engine must do next: write the status, send events, requeue.
func outcome(instance v1.MySQLBackupInstance, status v1.MySQLBackupInstanceStatus, next time.Duration) reconcile.Outcome {
	return reconcile.Outcome{Status: status, Events: eventsOf(instance.Status, status), RequeueAfter: next}
}

// eventsOf returns the events for a change of status; none if nothing changed.
func eventsOf(before, after v1.MySQLBackupInstanceStatus) []reconcile.Event {
	was, is := before.Conditions, after.Conditions
	if before.Phase != after.Phase {
		was = nil // a backup that ends with the reason that it waited with
	}
	return slices.Concat(report.Events("Backup", was, is), tellTables(before, after))
}
