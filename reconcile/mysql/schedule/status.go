package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The reasons of the Ready condition. Status, events and docs/backups.md use the same words.
const (
	reasonScheduled       = protocol.ReasonScheduled // the schedule waits for the next time
	reasonSuspended       = "Suspended"              // spec.suspend
	reasonClusterNotFound = protocol.ReasonClusterNotFound
	// reasonLastBackupFailed: the schedule continues, but its latest backup failed.
	reasonLastBackupFailed = "LastBackupFailed"

	reasonInvalidTime      = "InvalidTime"
	reasonInvalidTimeZone  = "InvalidTimeZone"
	reasonTimeNeverComes   = "TimeNeverComes"
	reasonInvalidRetention = "InvalidRetention"
	reasonClocksDiffer     = "ClocksDiffer" // the age of backups is unknown
)

// The reasons of other events.
const (
	reasonMissed    = "Missed"                // times passed without a backup
	reasonNameTaken = "NameTaken"             // another object has an instance's name
	reasonReplaced  = protocol.ReasonReplaced // the next backup replaces a backup
	reasonExpired   = "Expired"               // retention deletes a backup
	actionSchedule  = "Schedule"
	actionRetain    = "Retain"
	actionReconcile = "Reconcile"
)

// maxActive is how many active instances the status names: enough to see the problem when they accumulate.
const maxActive = 100

// statusOf returns the whole status after a pass.
func statusOf(seen observed, found decision, did passResult, refused *report.Problem) v1.MySQLBackupScheduleStatus {
	active := namesOf(seen.instances, instance.isActive)
	if did.made != "" {
		active = append(active, did.made)
	}
	status := v1.MySQLBackupScheduleStatus{
		ObservedGeneration: seen.schedule.Generation,
		Conditions:         slices.Clone(seen.schedule.Status.Conditions),
		LastScheduleTime:   momentOf(found.last),
		NextScheduleTime:   momentOf(found.next),
		Active:             active[:min(len(active), maxActive)],
		Missed:             int32(found.missed), //nolint:gosec // at most maxMissed
	}
	if !found.make.IsZero() && did.at.IsZero() {
		status.Missed++
	}
	if !did.at.IsZero() {
		status.LastScheduleTime, status.Missed = momentOf(did.at), 0
	}
	completed := newestFirst(seen.believed(), v1.BackupCompleted)
	status.Backups = int32(min(len(completed), 1<<30))
	if len(completed) > 0 {
		status.LastBackup, status.LastSuccessfulTime = completed[0].name, momentOf(completed[0].ended)
	}
	setConditions(&status, seen, refused)
	return status
}

// setConditions sets the conditions, with one reason for all. Problems that a user must fix come first.
func setConditions(status *v1.MySQLBackupScheduleStatus, seen observed, refused *report.Problem) {
	spec := seen.schedule.Spec
	stalled := seen.problem
	if stalled == nil {
		stalled = refused
	}
	if stalled == nil {
		stalled = retentionProblem(seen)
	}
	failed, isFailed := latestFailure(seen.believed())
	ready := metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse}
	reconciling := false
	switch {
	case stalled != nil:
		ready.Reason, ready.Message = stalled.Reason, stalled.Message
	case spec.Suspend:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, reasonSuspended, "spec.suspend: the schedule makes no backups; times that pass count as missed"
	case !seen.clusterFound:
		reconciling = true
		ready.Reason, ready.Message = reasonClusterNotFound, fmt.Sprintf("spec.cluster: MySQLCluster %q does not exist in namespace %q; create it, or name another cluster; until then there are no backups", spec.Cluster, seen.schedule.Namespace)
	case isFailed:
		ready.Reason, ready.Message = reasonLastBackupFailed, fmt.Sprintf("the latest backup, MySQLBackupInstance %s, failed: %s: %s", failed.name, failed.reason, failed.message)
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, reasonScheduled, fmt.Sprintf("backs up MySQLCluster %q at %q %s", spec.Cluster, spec.Time, zoneOf(spec))
	}
	conditions := report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration, Now: seen.now}
	conditions.Set(v1.ConditionReady, ready.Status, ready.Reason, ready.Message)
	conditions.SetIf(stalled != nil, v1.ConditionStalled, ready.Reason, ready.Message)
	conditions.SetIf(reconciling, v1.ConditionReconciling, ready.Reason, ready.Message)
}

// believed returns the instances with plausible end times: an end in the future would hide all other instances until then.
func (l observed) believed() []instance {
	all := slices.Clone(l.instances)
	for i, one := range all {
		all[i].ended = transfer.PlausibleEnd(one.ended, one.made, l.now)
	}
	return all
}

// latestFailure returns the instance that ended last if it failed by itself. A replaced instance does not count, because the schedule
// requires that.
func latestFailure(all []instance) (instance, bool) {
	failed := slices.DeleteFunc(newestFirst(all, v1.BackupFailed), func(one instance) bool { return one.replaced })
	if len(failed) == 0 {
		return instance{}, false
	}
	completed := newestFirst(all, v1.BackupCompleted)
	return failed[0], len(completed) == 0 || failed[0].ended.After(completed[0].ended)
}

func zoneOf(spec v1.MySQLBackupScheduleSpec) string {
	if spec.TimeZone == "" {
		return "UTC"
	}
	return spec.TimeZone
}

// momentOf truncates a time to the precision of the API.
func momentOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	moment := metav1.NewTime(at.UTC().Truncate(time.Second))
	return &moment
}

// eventsOf returns the events for what happened; none if nothing did.
func eventsOf(seen observed, found decision, did passResult, after v1.MySQLBackupScheduleStatus) []reconcile.Event {
	events := []reconcile.Event{}
	say := func(kind, reason, action, note string) {
		events = append(events, reconcile.Event{Type: kind, Reason: reason, Action: action, Note: note})
	}
	if len(did.ended) > 0 {
		say(reconcile.Normal, reasonReplaced, actionSchedule, "the next backup replaces: "+strings.Join(did.ended, ", "))
	}
	switch {
	case did.taken != "":
		say(reconcile.Warning, reasonNameTaken, actionSchedule, fmt.Sprintf("MySQLBackupInstance %s exists and does not belong to this schedule, so there is no backup for this time; delete it, and do not use such names for other instances", did.taken))
	case did.made != "":
		say(reconcile.Normal, reasonScheduled, actionSchedule, "created MySQLBackupInstance "+did.made)
	}
	if note := missed(seen, found, did, after); note != "" {
		say(reconcile.Warning, reasonMissed, actionSchedule, note)
	}
	if len(did.expired) > 0 {
		say(reconcile.Normal, reasonExpired, actionRetain, "spec.retention: deleting with their data: "+strings.Join(did.expired, ", "))
	}
	was := meta.FindStatusCondition(seen.schedule.Status.Conditions, v1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, v1.ConditionReady)
	if is != nil && (was == nil || was.Reason != is.Reason || was.Message != is.Message) {
		kind := reconcile.Normal
		if is.Status == metav1.ConditionFalse {
			kind = reconcile.Warning
		}
		say(kind, is.Reason, actionReconcile, is.Message)
	}
	return events
}

// missed returns the event note for times that passed without a backup, once for each pass that finds more of them. A missing cluster and a
// rejected instance are in the Ready condition, and need no event at every time.
func missed(seen observed, found decision, did passResult, after v1.MySQLBackupScheduleStatus) string {
	if !did.at.IsZero() {
		if found.missed == 0 {
			return ""
		}
		return fmt.Sprintf("%s passed without a backup; the schedule makes a backup only for the latest one, %s", times(found.missed), said(did.at))
	}
	before := seen.schedule.Status
	// Beyond maxMissed, only the next time shows that another one has passed.
	another := after.Missed > before.Missed || after.Missed == maxMissed && !timeOf(after.NextScheduleTime).Equal(timeOf(before.NextScheduleTime))
	if !another {
		return ""
	}
	switch found.hold {
	case holdUnderWay:
		active := namesOf(seen.instances, instance.isActive)
		return fmt.Sprintf("no backup for %s, because %s is still in progress and spec.concurrencyPolicy is Forbid; the schedule makes it when that one is over", said(found.due), active[0])
	case holdTooLate:
		return fmt.Sprintf("no backup for %s, which passed more than spec.startingDeadlineSeconds ago", said(found.due))
	case holdNothing, holdSuspended, holdProblem, holdNoCluster:
	}
	return ""
}

func times(count int) string {
	switch {
	case count == 1:
		return "one time"
	case count >= maxMissed-1:
		return fmt.Sprintf("%d times or more", count)
	}
	return fmt.Sprintf("%d times", count)
}

func said(at time.Time) string {
	return at.UTC().Format(time.RFC3339)
}
