package configmonitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// The reasons of the Ready condition. Status, events and docs/configmonitor.md use the same words.
const (
	reasonWatching   = "Watching"
	reasonRestarting = "Restarting"
	// reasonPodsLeftAlone: the last restart left some Pods alone. The workloads' messages say why.
	reasonPodsLeftAlone = "PodsLeftAlone"

	reasonConfigMapNotFound = "ConfigMapNotFound"
	reasonRestartStuck      = "RestartStuck"
	reasonTooManyPods       = "TooManyPods"
)

// The reasons of events that report the end of a restart.
const (
	reasonRestarted        = "Restarted"
	reasonNothingToRestart = "NothingToRestart"
	actionRestart          = "Restart"
)

// reasonDataChanged is the reason of a restart.
const reasonDataChanged = "DataChanged"

// previousStatus returns the previous status, for the current generation.
func previousStatus(monitor v1.ConfigMonitor) v1.ConfigMonitorStatus {
	status := monitor.Status
	status.ObservedGeneration = monitor.Generation
	status.Conditions = slices.Clone(monitor.Status.Conditions)
	if restart := monitor.Status.LastRestart; restart != nil {
		copied := *restart
		copied.Workloads = slices.Clone(restart.Workloads)
		status.LastRestart = &copied
	}
	return status
}

// statusAdopted returns the status of a monitor that sees its ConfigMap for the first time: it assumes that the Pods run with the current
// data. It abandons a restart in progress for another ConfigMap.
func statusAdopted(monitor v1.ConfigMonitor, found config, now time.Time) v1.ConfigMonitorStatus {
	status := previousStatus(monitor)
	status.ObservedConfigMap, status.ObservedHash = found.name, found.hash
	if isUnderWay(status.LastRestart) {
		for i, entry := range status.LastRestart.Workloads {
			if !isDone(entry) {
				status.LastRestart.Workloads[i] = withAction(entry, v1.ActionAbandoned, "", now)
			}
		}
		completed := second(now)
		status.LastRestart.CompletionTime = &completed
	}
	setReady(&status, now)
	return status
}

// statusPlanned returns the status of a monitor that has planned a restart and done nothing else.
func statusPlanned(monitor v1.ConfigMonitor, found config, workloads []v1.RestartedWorkload, now time.Time) v1.ConfigMonitorStatus {
	status := previousStatus(monitor)
	status.LastRestart = &v1.Restart{
		Time: second(now), Reason: reasonDataChanged, Generation: monitor.Generation,
		Hash: found.hash, ConfigMapResourceVersion: found.version, Workloads: workloads,
	}
	completeIfDone(&status, now)
	setReady(&status, now)
	return status
}

// statusRestarting returns the status of a monitor whose restart in progress has these workloads.
func statusRestarting(monitor v1.ConfigMonitor, workloads []v1.RestartedWorkload, now time.Time) v1.ConfigMonitorStatus {
	status := previousStatus(monitor)
	status.LastRestart.Workloads = workloads
	completeIfDone(&status, now)
	setReady(&status, now)
	return status
}

// completeIfDone ends the restart if every workload is done. Only this records that the Pods match the data.
func completeIfDone(status *v1.ConfigMonitorStatus, now time.Time) {
	restart := status.LastRestart
	if slices.ContainsFunc(restart.Workloads, func(entry v1.RestartedWorkload) bool { return !isDone(entry) }) {
		return
	}
	completed := second(now)
	restart.CompletionTime = &completed
	status.ObservedHash = restart.Hash
}

// statusAtRest returns the status of a monitor that has nothing to do.
func statusAtRest(monitor v1.ConfigMonitor, now time.Time) v1.ConfigMonitorStatus {
	status := previousStatus(monitor)
	setReady(&status, now)
	return status
}

// setReady sets the conditions of a monitor without a problem, from the rest of its status.
func setReady(status *v1.ConfigMonitorStatus, now time.Time) {
	conditions := conditionsOf(status, now)
	if isUnderWay(status.LastRestart) {
		message := fmt.Sprintf("the data of ConfigMap %q changed: %s", status.ObservedConfigMap, remaining(status.LastRestart.Workloads))
		conditions.Problem(report.Problem{Reason: reasonRestarting, Message: message})
		return
	}
	reason, message := reasonWatching, fmt.Sprintf("watches ConfigMap %q", status.ObservedConfigMap)
	if left := leftAlone(status.LastRestart); left != "" {
		reason = reasonPodsLeftAlone
		message += "; the last restart left alone: " + left
	}
	conditions.Ready(reason, message)
}

func conditionsOf(status *v1.ConfigMonitorStatus, now time.Time) report.Conditions {
	return report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration, Now: now}
}

func notFound(monitor v1.ConfigMonitor) report.Problem {
	return report.Problem{Reason: reasonConfigMapNotFound, Message: fmt.Sprintf("spec.configMap: ConfigMap %q does not exist in namespace %q; the operator restarts nothing until it exists: create it, or name another ConfigMap", monitor.Spec.ConfigMapName(), monitor.Namespace), Stalled: true}
}

func tooManyPods(count int) report.Problem {
	return report.Problem{Reason: reasonTooManyPods, Message: fmt.Sprintf("spec.podSelector selects %d workloads, more than the %d that one restart can record: use more labels, or run the Pods by Deployments", count, maxWorkloads), Stalled: true}
}

func stuckAt(entry v1.RestartedWorkload) report.Problem {
	return report.Problem{Reason: reasonRestartStuck, Message: fmt.Sprintf("the restart makes no progress: %s", describe(entry)), Stalled: true}
}

// remaining describes how far a restart is, and its current step.
func remaining(workloads []v1.RestartedWorkload) string {
	open := slices.DeleteFunc(slices.Clone(workloads), isDone)
	at := slices.IndexFunc(open, func(entry v1.RestartedWorkload) bool { return entry.Action != v1.ActionPending || entry.Message != "" })
	if len(open) == 0 {
		return "done"
	}
	return fmt.Sprintf("%d of %d workloads to restart, now %s", len(open), len(workloads), describe(open[max(at, 0)]))
}

func describe(entry v1.RestartedWorkload) string {
	said := fmt.Sprintf("%s %s: %s", entry.Kind, entry.Name, entry.Action)
	if entry.Message != "" {
		said += ", " + entry.Message
	}
	return said
}

// maxNamed is how many workloads one message names.
const maxNamed = 5

func leftAlone(restart *v1.Restart) string {
	return named(restart, func(entry v1.RestartedWorkload) bool { return entry.Action == v1.ActionLeftAlone })
}

func restarted(restart *v1.Restart) string {
	return named(restart, func(entry v1.RestartedWorkload) bool {
		return entry.Action == v1.ActionRolled || entry.Action == v1.ActionReplaced
	})
}

// named lists the workloads of a restart that sort selects.
func named(restart *v1.Restart, sort func(v1.RestartedWorkload) bool) string {
	if restart == nil {
		return ""
	}
	names := []string{}
	for _, entry := range restart.Workloads {
		if !sort(entry) {
			continue
		}
		name := entry.Kind + " " + entry.Name
		if entry.Message != "" {
			name += " (" + entry.Message + ")"
		}
		names = append(names, name)
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// eventsFor returns the events for what changed between two statuses.
func eventsFor(before, after v1.ConfigMonitorStatus) []reconcile.Event {
	if hasCompleted(before.LastRestart, after) {
		return eventsForRestart(after)
	}
	return report.Events(report.ActionReconcile, before.Conditions, after.Conditions)
}

// hasCompleted reports whether a restart completed between the two statuses. An abandoned restart does not complete.
func hasCompleted(before *v1.Restart, after v1.ConfigMonitorStatus) bool {
	restart := after.LastRestart
	if restart == nil || isUnderWay(restart) || restart.Hash != after.ObservedHash {
		return false
	}
	return before == nil || isUnderWay(before) || before.Hash != restart.Hash || !before.CompletionTime.Equal(restart.CompletionTime)
}

func eventsForRestart(after v1.ConfigMonitorStatus) []reconcile.Event {
	because := fmt.Sprintf("the data of ConfigMap %q changed", after.ObservedConfigMap)
	told := reconcile.Event{Type: reconcile.Normal, Reason: reasonNothingToRestart, Action: actionRestart, Note: because + "; nothing was restarted"}
	if what := restarted(after.LastRestart); what != "" {
		told.Reason, told.Note = reasonRestarted, because+"; restarted: "+what
	}
	events := []reconcile.Event{told}
	if left := leftAlone(after.LastRestart); left != "" {
		events = append(events, reconcile.Event{Type: reconcile.Warning, Reason: reasonPodsLeftAlone, Action: actionRestart, Note: because + "; left alone: " + left})
	}
	return events
}
