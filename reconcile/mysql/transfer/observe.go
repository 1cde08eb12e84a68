package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Phase is how far a Job is.
type Phase string

// The phases of a Job. Pending comes back when an attempt has failed and the next one has not begun.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// State is what a Job and its Pods tell.
type State struct {
	Phase Phase
	// Reason is one of the constants or empty, Message for people. While Pending they say what the Pod waits for or, with Attempts, why
	// the last attempt failed; when Failed, why.
	Reason, Message string
	// Outcome is what the program said last; nil where it did not or could not. A Job may have Succeeded without a readable one.
	Outcome *Outcome
	// Attempts is how many Pods were at work.
	Attempts int32
	// Pod is the latest Pod, PodIP its address while it runs.
	Pod, PodIP string
	// Waiting is why the latest Pod does not start, in Kubernetes' words; empty when it has.
	Waiting string
	// Lingers says that the program has ended and its Job does not end with it: another container of the Pod, which an admission webhook
	// added, runs on or has failed. The Job has to be deleted.
	Lingers bool
	// Refused says, where it lingers, that another attempt is of no use.
	Refused bool
}

// Observe reads how a transfer goes. The program is the name of the container that counts (CommandBackup, CommandRestore, CommandDelete);
// others are not ours. The Pods are those of the Job, in any order. A Pod whose program has succeeded counts at once, before the Job says
// so, and also if the Job then fails for its deadline: what is complete is complete. Whether a Job that fails has Pods that still stop is
// not awaited here: Kubernetes says Failed when they have ended.
func Observe(program string, job *batchv1.Job, pods []corev1.Pod) State {
	attempts := sorted(pods)
	state := State{Phase: Pending, Attempts: countAttempts(program, job, attempts)}
	if len(attempts) == 0 {
		state.Message = "the Pod has not been made yet"
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
		return State{Phase: Succeeded, Attempts: max(1, state.Attempts), Message: "its Pod is gone, and with it what it had to say"}
	}
	if condition := jobCondition(job, batchv1.JobFailed); condition != nil {
		return failed(*condition, state)
	}
	return state
}

// sorted puts the Pods in the order they were made.
func sorted(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// countAttempts takes the larger of what the Job counted, which outlives Pods that are gone with their node, and the Pods there are, which
// include those that the Job does not count because their node was drained.
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

// observePod tells of one Pod that has not succeeded.
func observePod(program string, pod corev1.Pod, state *State) {
	state.Pod, state.Phase = pod.Name, Pending
	switch {
	case endOf(program, pod) != nil, pod.Status.Phase == corev1.PodFailed:
		observeFailure(program, pod, state)
	case isRunning(program, pod):
		state.Phase, state.PodIP, state.Reason, state.Message = Running, pod.Status.PodIP, "", ""
		if pod.DeletionTimestamp != nil {
			state.Message = fmt.Sprintf("Pod %s is told to end; no other takes its place before it has: if its node is gone, delete the node", pod.Name)
		}
	case pod.Status.Phase != corev1.PodSucceeded:
		observeWaiting(pod, state)
	}
}

func observeSuccess(program string, pod corev1.Pod, state *State) {
	state.Phase, state.PodIP, state.Reason, state.Message, state.Waiting, state.Refused = Succeeded, "", "", "", "", false
	end := endOf(program, pod)
	if end == nil {
		state.Message = "the Pod succeeded, but its containers' states are not known"
		return
	}
	outcome, ok := ReadOutcome(end.Message)
	if !ok {
		state.Message = "the Pod succeeded, but its termination message cannot be read: " + lastLine(end.Message)
		return
	}
	state.Outcome, state.Reason, state.Message = &outcome, outcome.Reason, outcome.Message
}

func observeFailure(program string, pod corev1.Pod, state *State) {
	state.Reason, state.Message = ReasonPodsFailed, failureOf(program, pod)
	end := endOf(program, pod)
	if end == nil {
		return
	}
	if lingers(program, pod) { // its Job waits for the other containers, and may never fail
		state.Phase, state.Lingers, state.Refused = Failed, true, end.ExitCode == ExitRefused
	}
	if outcome, ok := ReadOutcome(end.Message); ok {
		state.Outcome, state.Reason, state.Message = &outcome, outcome.Reason, outcome.Message
	}
}

// failureOf says why a Pod failed whose program did not.
func failureOf(program string, pod corev1.Pod) string {
	if pod.Status.Reason != "" {
		return strings.TrimSuffix(fmt.Sprintf("Pod %s: %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message), ": ")
	}
	status := failedContainer(program, pod)
	if status == nil {
		return fmt.Sprintf("Pod %s failed and does not say why; its node may be gone", pod.Name)
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

// waits are kubelet's words for what keeps a container from starting that people can do something about, each with ours.
func waits() map[string]string {
	return map[string]string{
		"ErrImagePull": ReasonImagePullFailed, "ImagePullBackOff": ReasonImagePullFailed, "InvalidImageName": ReasonImagePullFailed,
		"ErrImageNeverPull": ReasonImagePullFailed, "ImageInspectError": ReasonImagePullFailed, "RegistryUnavailable": ReasonImagePullFailed,
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
	state.Message = fmt.Sprintf("Pod %s is being started; if that lasts, kubectl describe pod %s tells what it waits for", pod.Name, pod.Name)
}

// unscheduled tells claims apart from nodes by the scheduler's text: it has no other word for them.
func unscheduled(message string) string {
	switch {
	case strings.Contains(message, "persistentvolumeclaim") && strings.Contains(message, "not found"):
		return ReasonClaimNotFound
	case strings.Contains(message, "unbound immediate PersistentVolumeClaims"), strings.Contains(message, "didn't find available persistent volumes"):
		return ReasonVolumePending
	default:
		return ReasonUnschedulable
	}
}

// failed is a Job that Kubernetes has given up; the state is that of its latest Pod.
func failed(condition batchv1.JobCondition, state State) State {
	state.Phase, state.PodIP, state.Lingers, state.Refused = Failed, "", false, false
	last := state.Message
	switch {
	case condition.Reason == batchv1.JobReasonDeadlineExceeded:
		state.Reason, state.Message = ReasonDeadlineExceeded, "it took longer than its deadline"
		if last != "" {
			state.Message += "; the last Pod: " + last
		}
	case state.Outcome == nil:
		state.Reason = ReasonPodsFailed
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

// lastLine is what a program without an outcome said last.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
