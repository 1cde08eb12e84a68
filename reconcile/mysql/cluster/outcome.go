package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// eventRestored is the event of a restore that is complete.
const eventRestored = "RestoreCompleted"

// blocked returns the status of a cluster that cannot continue: everything known stays, except for the reason.
func blocked(cluster v1.MySQLCluster, found report.Problem) v1.MySQLClusterStatus {
	status := previousStatus(cluster)
	status.Phase = v1.PhaseWaiting
	if len(cluster.Status.InSync) > 0 {
		status.Phase = v1.PhaseDegraded
	}
	conditionsOf(&status).Problem(found)
	if len(cluster.Status.InSync) > 0 {
		conditionsOf(&status).Set(conditionFailoverReady, metav1.ConditionFalse, found.Reason, "the operator does not look at the members: "+found.Message)
	}
	return status
}

// paused returns the status of a paused cluster.
func paused(cluster v1.MySQLCluster) v1.MySQLClusterStatus {
	status := previousStatus(cluster)
	status.Phase = v1.PhasePaused
	conditions := conditionsOf(&status)
	conditions.Set(v1.ConditionReady, metav1.ConditionUnknown, reasonPaused, "spec.paused is true: the operator neither looks at the members nor changes anything")
	conditions.Remove(v1.ConditionReconciling, v1.ConditionStalled)
	conditions.Set(conditionFailoverReady, metav1.ConditionFalse, reasonPaused, "spec.paused is true: no replica takes over")
	return status
}

// outcome returns what the engine should write, the events that it should send, and when it should look again.
func outcome(cluster v1.MySQLCluster, status v1.MySQLClusterStatus, next time.Duration) reconcile.Outcome {
	return reconcile.Outcome{Status: status, Events: eventsOf(cluster.Status, status), RequeueAfter: next}
}

// eventsOf turns changes of the status into events. Without a change there is no event.
func eventsOf(before, after v1.MySQLClusterStatus) []reconcile.Event {
	warnings := []string{protocol.ReasonRestoreAdopted, reasonPrimaryUnavailable, string(replication.ReasonReplacingPrimary), string(replication.ReasonPrimaryDown), reasonCommitsBlocked, reasonCommitsHang}
	events := report.Events(report.ActionReconcile, before.Conditions, after.Conditions, warnings...)
	// These two reasons have conditions of their own, whose events report them from the beginning.
	events = slices.DeleteFunc(events, func(event reconcile.Event) bool {
		return event.Reason == reasonPrimaryFirst || event.Reason == reasonUpgradeBlocked
	})
	return slices.Concat(events, recordEvents(before, after), takeoverEvents(before, after), rotationEvents(before, after), warningEvents(before, after), tableEvents(before, after))
}

// actionRecord is the action of events about the record.
const actionRecord = "ChangeRecord"

func recordEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	var events []reconcile.Event
	say := func(kind, reason, note string) {
		events = append(events, reconcile.Event{Type: kind, Reason: reason, Action: actionRecord, Note: note})
	}
	if restore.IsCompleted(after) && !restore.IsCompleted(before) && !after.Restore.Adopted {
		say(reconcile.Normal, eventRestored, restoredNote(*after.Restore))
	}
	if after.Primary != before.Primary && after.Primary != "" {
		say(reconcile.Normal, "PrimaryAppointed", fmt.Sprintf("%s is the primary of epoch %d", after.Primary, after.Epoch))
	}
	if !slices.Equal(before.InSync, after.InSync) && len(after.InSync) > 0 {
		say(reconcile.Normal, "InSyncChanged", "members that may acknowledge commits: "+strings.Join(after.InSync, ", "))
	}
	switch {
	case after.RequiredAcks > before.RequiredAcks:
		say(reconcile.Normal, reasonDurable, fmt.Sprintf("every acknowledged commit is on at least %d members in addition to the primary", after.RequiredAcks))
	case after.RequiredAcks < before.RequiredAcks:
		say(reconcile.Warning, reasonDegraded, fmt.Sprintf("from now on, acknowledged commits are certain to be on only %d members in addition to the primary", after.RequiredAcks))
	}
	return events
}

func restoredNote(restored v1.RestoreStatus) string {
	what := "backup " + restored.Backup
	if restored.Backup == "" {
		what = "the backup at " + restored.URL
	}
	if restored.StartTime == nil || restored.CompletionTime == nil {
		return what + " is restored"
	}
	return fmt.Sprintf("%s is restored; this took %s", what, restored.CompletionTime.Sub(restored.StartTime.Time))
}
