package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// Phase is the state of a Job.
type Phase string

// The phases of a Job. A Job is Pending again when an attempt has failed and the next one has not begun.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// State is what a Job and its Pods report.
type State struct {
	Phase Phase
	// Reason is one of the constants or empty; Message is for users. While Pending they give what the Pod waits for or, with Attempts, why
	// the last attempt failed. When Failed, they give why.
	Reason, Message string
	// Outcome is the program's final report; nil if there is none. A Job may have Succeeded without a readable one.
	Outcome *protocol.Outcome
	// Attempts is how many Pods have run.
	Attempts int32
	// Pod is the latest Pod. PodIP is its address while it runs.
	Pod, PodIP string
	// Waiting is why the latest Pod does not start, in Kubernetes' words; empty when it has started.
	Waiting string
	// Lingers means that the program has ended and its Job does not end with it: another container of the Pod, which an admission webhook
	// added, is still running or has failed. The Job must be deleted.
	Lingers bool
	// Refused means, if it lingers, that a retry cannot succeed.
	Refused bool
}

// Observe reads the state of a transfer. program is the name of the container that counts (CommandBackup, CommandRestore, CommandDelete);
// other containers are not the operator's. pods are the Pods of the Job, in any order. A Pod whose program has succeeded counts at once,
// before the Job reports it, even if the Job then fails because of its deadline: completed work is complete. Observe does not check whether
// a failed Job has Pods that still run: Kubernetes reports Failed only after they have ended.
func Observe(program string, job *batchv1.Job, pods []corev1.Pod) State {
	attempts := sorted(pods)
	state := State{Phase: Pending, Attempts: countAttempts(program, job, attempts)}
	if len(attempts) == 0 {
		state.Message = "Kubernetes has not created the Pod yet"
	} else {
		observePod(program, attempts[len(attempts)-1], &state)
	}
	for _, pod := range attempts {
		if hasSucceeded(program, pod) {
			state.Pod = pod.Name
			observeSuccess(program, pod, &state)
			state.Lingers = lingers(program, pod) && jobCondition(job, batchv1.JobComplete) == nil && jobCondition(job, batchv1.JobFailed) == nil
			return state
		}
	}
	if condition := jobCondition(job, batchv1.JobComplete); condition != nil {
		return State{Phase: Succeeded, Attempts: max(1, state.Attempts), Message: "its Pod is gone, and its report with it"}
	}
	if condition := jobCondition(job, batchv1.JobFailed); condition != nil {
		return failed(*condition, state)
	}
	return state
}

// sorted returns the Pods by creation time.
func sorted(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// countAttempts returns the larger of two counts. The Job's count includes Pods that are gone with their node. The existing Pods include
// those that the Job does not count because their node was drained.
func countAttempts(program string, job *batchv1.Job, pods []corev1.Pod) int32 {
	var started int32
	for _, pod := range pods {
		if hasStarted(program, pod) {
			started++
		}
	}
	counted := job.Status.Failed + job.Status.Succeeded
	if len(pods) > 0 && pods[len(pods)-1].Status.Phase == corev1.PodRunning {
		counted++
	}
	return max(counted, started)
}

// observePod reads a Pod that has not succeeded.
func observePod(program string, pod corev1.Pod, state *State) {
	state.Pod, state.Phase = pod.Name, Pending
	switch {
	case endOf(program, pod) != nil, pod.Status.Phase == corev1.PodFailed:
		observeFailure(program, pod, state)
	case isRunning(program, pod):
		state.Phase, state.PodIP, state.Reason, state.Message = Running, pod.Status.PodIP, "", ""
		if pod.DeletionTimestamp != nil {
			state.Message = fmt.Sprintf("Pod %s is being deleted, and must end before another one replaces it; if its node is gone, delete the node", pod.Name)
		}
	case pod.Status.Phase != corev1.PodSucceeded:
		observeWaiting(pod, state)
	}
}

func observeSuccess(program string, pod corev1.Pod, state *State) {
	state.Phase, state.PodIP, state.Reason, state.Message, state.Waiting, state.Refused = Succeeded, "", "", "", "", false
	end := endOf(program, pod)
	if end == nil {
		state.Message = "the Pod succeeded, but the states of its containers are unknown"
		return
	}
	outcome, ok := protocol.ReadOutcome(end.Message)
	if !ok {
		state.Message = "the Pod succeeded, but its termination message cannot be read: " + lastLine(end.Message)
		return
	}
	state.Outcome, state.Reason, state.Message = &outcome, outcome.Reason, outcome.Message
}

func observeFailure(program string, pod corev1.Pod, state *State) {
	state.Reason, state.Message = protocol.ReasonPodsFailed, failureOf(program, pod)
	end := endOf(program, pod)
	if end == nil {
		return
	}
	if lingers(program, pod) { // its Job waits for the other containers, and may never fail
		state.Phase, state.Lingers, state.Refused = Failed, true, end.ExitCode == protocol.ExitRefused
	}
	if outcome, ok := protocol.ReadOutcome(end.Message); ok {
		state.Outcome, state.Reason, state.Message = &outcome, outcome.Reason, outcome.Message
	}
}

// failureOf returns why a Pod failed, if the program has no report.
func failureOf(program string, pod corev1.Pod) string {
	if pod.Status.Reason != "" {
		return strings.TrimSuffix(fmt.Sprintf("Pod %s: %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message), ": ")
	}
	status := failedContainer(program, pod)
	if status == nil {
		return fmt.Sprintf("Pod %s failed without a reason; its node may be gone", pod.Name)
	}
	ended := status.State.Terminated
	switch {
	case ended.Reason == "OOMKilled":
		return fmt.Sprintf("Pod %s was ended because it used more memory than its limit of %s", pod.Name, memoryLimit)
	case ended.Signal != 0:
		return fmt.Sprintf("container %s of Pod %s was ended by signal %d", status.Name, pod.Name, ended.Signal)
	default:
		return strings.TrimSuffix(fmt.Sprintf("container %s of Pod %s ended with exit status %d: %s", status.Name, pod.Name, ended.ExitCode, lastLine(ended.Message)), ": ")
	}
}

// waits maps kubelet's reasons for a container that does not start, as far as users can fix them, to the operator's reasons.
func waits() map[string]string {
	return map[string]string{
		"ErrImagePull": protocol.ReasonImagePullFailed, "ImagePullBackOff": protocol.ReasonImagePullFailed, "InvalidImageName": protocol.ReasonImagePullFailed,
		"ErrImageNeverPull": protocol.ReasonImagePullFailed, "ImageInspectError": protocol.ReasonImagePullFailed, "RegistryUnavailable": protocol.ReasonImagePullFailed,
		"CreateContainerConfigError": "", "CreateContainerError": "", "RunContainerError": "",
	}
}

func observeWaiting(pod corev1.Pod, state *State) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			state.Reason, state.Waiting = unscheduled(condition.Message), condition.Message
			state.Message = fmt.Sprintf("Pod %s waits for a node: %s", pod.Name, condition.Message)
			return
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		if reason, known := waits()[waiting.Reason]; known {
			state.Reason, state.Waiting = reason, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
			state.Message = fmt.Sprintf("Pod %s cannot start: %s", pod.Name, state.Waiting)
			return
		}
	}
	state.Message = fmt.Sprintf("Pod %s is starting; if that takes long, kubectl describe pod %s shows what it waits for", pod.Name, pod.Name)
}

// unscheduled distinguishes claims from nodes by the scheduler's message: the scheduler has no reason for them.
func unscheduled(message string) string {
	switch {
	case strings.Contains(message, "persistentvolumeclaim") && strings.Contains(message, "not found"):
		return protocol.ReasonClaimNotFound
	case strings.Contains(message, "unbound immediate PersistentVolumeClaims"), strings.Contains(message, "didn't find available persistent volumes"):
		return protocol.ReasonVolumePending
	default:
		return protocol.ReasonUnschedulable
	}
}

// failed returns the state of a Job that Kubernetes has given up; state is that of its latest Pod.
func failed(condition batchv1.JobCondition, state State) State {
	state.Phase, state.PodIP, state.Lingers, state.Refused = Failed, "", false, false
	last := state.Message
	switch {
	case condition.Reason == batchv1.JobReasonDeadlineExceeded:
		state.Reason, state.Message = protocol.ReasonDeadlineExceeded, "it took longer than its deadline"
		if last != "" {
			state.Message += "; the last Pod: " + last
		}
	case state.Outcome == nil:
		state.Reason = protocol.ReasonPodsFailed
		state.Message = strings.TrimSuffix(fmt.Sprintf("%s: %s", condition.Message, last), ": ")
	}
	return state
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if condition := &job.Status.Conditions[i]; condition.Type == kind && condition.Status == corev1.ConditionTrue {
			return condition
		}
	}
	return nil
}

// lastLine returns the last line of a program without an outcome.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
