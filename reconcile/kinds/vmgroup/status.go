package vmgroup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// The reasons of the Ready condition, in addition to those of vcenter.Reason. Status, events and docs/vmgroup.md use the same words.
const (
	reasonRunning     = "Running"
	reasonProgressing = "Progressing"
	reasonDeleting    = "Deleting"
	reasonAnswers     = "Answers"

	reasonCredentialsMissing = "CredentialsMissing"
	reasonFolderOccupied     = "FolderOccupied"
	reasonMachineOccupied    = "MachineOccupied"
	reasonMachineBroken      = "MachineBroken"
	reasonVCenterChanged     = "VCenterChanged"
	// reasonMachinesLeft is a reason of events only: the group is gone.
	reasonMachinesLeft = "MachinesLeft"
)

// isTemporary reports whether a problem may pass without an action of a user.
func isTemporary(found report.Problem) bool {
	return slices.Contains([]string{string(vcenter.Unreachable), string(vcenter.TooManyAccounts), string(vcenter.HelperNotRunning), string(vcenter.Failed)}, found.Reason)
}

// isUnanswered reports whether the operator got no answer about machines from the vCenter.
func isUnanswered(found report.Problem) bool {
	return slices.Contains([]string{string(vcenter.Unreachable), string(vcenter.TooManyAccounts), string(vcenter.HelperNotRunning), string(vcenter.LoginRefused), string(vcenter.Untrusted), reasonCredentialsMissing, report.ReasonForbidden}, found.Reason)
}

// previousStatus returns the previous status, with the current generation and spec.replicas.
func previousStatus(group v1alpha1.VmGroup) v1alpha1.VmGroupStatus {
	status := group.Status
	status.ObservedGeneration, status.DesiredReplicas = group.Generation, group.Spec.Replicas
	status.Conditions = slices.Clone(group.Status.Conditions)
	return status
}

// statusAfterPass returns the status after a pass that the vCenter answered.
func statusAfterPass(group v1alpha1.VmGroup, seen observed, next decision) v1alpha1.VmGroupStatus {
	status := previousStatus(group)
	if !next.inWrongPlace() {
		status.VCenter = seen.host
		if running := next.running; seen.inventory.Folder != "" || group.Status.Folder == "" {
			// The operator does not know how many machines run in a folder that it cannot see.
			status.CurrentReplicas = &running
		}
		if seen.inventory.Folder != "" {
			// Before it has a folder, the group is in no place and may still get another.
			status.VCenterID, status.Folder = seen.inventory.VCenter, seen.inventory.Path
		}
	}
	conditions := conditionsOf(&status, seen.now)
	conditions.Set(v1alpha1.ConditionVCenterReachable, metav1.ConditionTrue, reasonAnswers, "vCenter "+seen.host+" answers")
	switch {
	case next.problem != nil:
		setProblem(&status, group, *next.problem, seen.now)
	case group.DeletionTimestamp != nil:
		setInProgress(&status, v1alpha1.PhaseDeleting, report.Problem{Reason: reasonDeleting, Message: describeDecision(next)}, seen.now)
	case !next.settled():
		setInProgress(&status, v1alpha1.PhasePending, report.Problem{Reason: reasonProgressing, Message: describeDecision(next)}, seen.now)
	default:
		status.Phase, status.LastMessage = v1alpha1.PhaseRunning, fmt.Sprintf("%s, each with %d CPU and %d GiB", count(next.running, "machine runs", "machines run"), group.Spec.CPU, group.Spec.Memory)
		conditions.Ready(reasonRunning, status.LastMessage)
	}
	return status
}

// statusWithProblem returns the status of a group with a problem whose machines the operator could not observe.
func statusWithProblem(group v1alpha1.VmGroup, found report.Problem, now time.Time) v1alpha1.VmGroupStatus {
	status := previousStatus(group)
	if isUnanswered(found) {
		conditionsOf(&status, now).Set(v1alpha1.ConditionVCenterReachable, metav1.ConditionFalse, found.Reason, found.Message)
	}
	setProblem(&status, group, found, now)
	return status
}

// setProblem sets the phase and conditions of a group with a problem.
func setProblem(status *v1alpha1.VmGroupStatus, group v1alpha1.VmGroup, found report.Problem, now time.Time) {
	status.Phase = v1alpha1.PhaseError
	if group.DeletionTimestamp != nil {
		status.Phase = v1alpha1.PhaseDeleting
		found.Message += releaseHint(group, "the vCenter")
	}
	status.LastMessage = found.Message
	found.Stalled = !isTemporary(found)
	conditionsOf(status, now).Problem(found)
}

// releaseHint returns how to release a group that is being deleted if something is gone for good.
func releaseHint(group v1alpha1.VmGroup, what string) string {
	return fmt.Sprintf("; if %s is gone for good, this command releases the VmGroup and leaves its machines: kubectl -n %s annotate vmgroup %s %s=true", what, group.Namespace, group.Name, v1alpha1.AnnotationAbandon)
}

// setInProgress sets the phase and conditions of a group in progress.
func setInProgress(status *v1alpha1.VmGroupStatus, phase v1alpha1.Phase, what report.Problem, now time.Time) {
	status.Phase, status.LastMessage = phase, what.Message
	conditionsOf(status, now).Problem(what)
}

func conditionsOf(status *v1alpha1.VmGroupStatus, now time.Time) report.Conditions {
	return report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration, Now: now}
}

// describeDecision describes what a plan does or waits for.
func describeDecision(next decision) string {
	if len(next.steps) == 0 && len(next.waitReasons) == 0 {
		return "checking whether the machines are gone"
	}
	if len(next.steps) == 0 {
		return "waiting: " + next.waitReasons[0]
	}
	verb, machines := next.steps[0].verb, []string{}
	for _, one := range next.steps {
		if one.verb == verb {
			machines = append(machines, one.machine)
		}
	}
	return describeOrder(verb, machines)
}

// describeOrder describes an order for machines.
func describeOrder(verb vcenter.Verb, machines []string) string {
	switch verb {
	case vcenter.CreateFolder:
		return "creating the group's folder"
	case vcenter.DeleteFolder:
		return "deleting the group's folder"
	case vcenter.Clone:
		return "cloning " + some(machines)
	case vcenter.Start:
		return "powering on " + some(machines)
	case vcenter.Shutdown:
		return "shutting down " + some(machines)
	case vcenter.Stop:
		return "powering off " + some(machines)
	case vcenter.Resize:
		return "changing CPUs and memory of " + some(machines)
	case vcenter.Grow:
		return "adding CPUs and memory to " + some(machines)
	case vcenter.Destroy:
		return "deleting " + some(machines)
	}
	return string(verb)
}

// maxNamed is how many names one message has.
const maxNamed = 5

func some(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func count(number int32, one, several string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, several)
}

// abandoned describes what stays when a group is released without its machines.
func abandoned(group v1alpha1.VmGroup) string {
	if group.Status.Folder == "" {
		return "released without asking a vCenter, as the annotation requests; the operator knows of nothing that is left there"
	}
	return fmt.Sprintf("released without asking the vCenter, as the annotation requests: folder %s in %s, with its machines, is left; delete it there", group.Status.Folder, group.Status.VCenter)
}

// eventsFor returns the event for a change of the Ready condition.
func eventsFor(before, after v1alpha1.VmGroupStatus) []reconcile.Event {
	is := report.Changed(before.Conditions, after.Conditions)
	if is == nil || is.Reason == reasonProgressing || is.Reason == reasonDeleting {
		return nil
	}
	kind := reconcile.Warning
	if is.Status == metav1.ConditionTrue {
		kind = reconcile.Normal
	}
	return []reconcile.Event{{Type: kind, Reason: is.Reason, Action: "Reconcile", Note: is.Message}}
}
