package backup

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
}

// Observe reads how a transfer goes. The Pods are those of the Job, in any order. A Pod that has succeeded counts at once, before
// the Job says so, and also if the Job then fails for its deadline: what is complete is complete. Whether a Job that fails has Pods that still
// stop is not awaited here: Kubernetes says Failed when they have ended.
func Observe(job *batchv1.Job, pods []corev1.Pod) State {
	attempts := sorted(pods)
	state := State{Phase: Pending, Attempts: countAttempts(job, attempts)}
	if len(attempts) == 0 {
		state.Message = "the Pod has not been made yet"
	} else {
		observePod(attempts[len(attempts)-1], &state)
	}
	for _, pod := range attempts {
		if hasSucceeded(pod) {
			state.Pod = pod.Name
			observeSuccess(pod, &state)
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

// hasSucceeded says that a Pod's program has ended well. Its kubelet says so of the container about a second before it says so of the Pod, of which
// it first clears away the rest.
func hasSucceeded(pod corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return pod.Status.Phase == corev1.PodSucceeded
	}
	status := containerStatus(pod)
	return status != nil && status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
}

// sorted puts the Pods in the order they were made.
func sorted(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// countAttempts takes the larger of what the Job counted, which outlives Pods that are gone with their node, and the Pods there are, which
// include those that the Job does not count because their node was drained.
func countAttempts(job *batchv1.Job, pods []corev1.Pod) int32 {
	var started int32
	for _, pod := range pods {
		if hasStarted(pod) {
			started++
		}
	}
	counted := job.Status.Failed + job.Status.Succeeded
	if len(pods) > 0 && pods[len(pods)-1].Status.Phase == corev1.PodRunning {
		counted++
	}
	return max(counted, started)
}

func hasStarted(pod corev1.Pod) bool {
	status := containerStatus(pod)
	return status != nil && (status.State.Running != nil || status.State.Terminated != nil)
}

// observePod tells of one Pod.
func observePod(pod corev1.Pod, state *State) {
	state.Pod, state.Phase = pod.Name, Pending
	switch pod.Status.Phase {
	case corev1.PodSucceeded: // hasSucceeded
	case corev1.PodFailed:
		observeFailure(pod, state)
	case corev1.PodRunning:
		state.Phase, state.PodIP, state.Reason, state.Message = Running, pod.Status.PodIP, "", ""
		if pod.DeletionTimestamp != nil {
			state.Message = fmt.Sprintf("Pod %s is told to end; no other takes its place before it has: if its node is gone, delete the node", pod.Name)
		}
	case corev1.PodPending, corev1.PodUnknown:
		observeWaiting(pod, state)
	}
}

func observeSuccess(pod corev1.Pod, state *State) {
	state.Phase, state.PodIP, state.Reason, state.Message, state.Waiting = Succeeded, "", "", "", ""
	status := containerStatus(pod)
	if status == nil || status.State.Terminated == nil {
		state.Message = "the Pod succeeded, but its containers' states are not known"
		return
	}
	outcome, ok := ReadOutcome(status.State.Terminated.Message)
	if !ok {
		state.Message = "the Pod succeeded, but its termination message cannot be read: " + lastLine(status.State.Terminated.Message)
		return
	}
	state.Outcome, state.Reason, state.Message = &outcome, outcome.Reason, outcome.Message
}

func observeFailure(pod corev1.Pod, state *State) {
	state.Reason, state.Message = ReasonPodsFailed, failureOf(pod)
	status := terminatedContainer(pod)
	if status == nil {
		return
	}
	if outcome, ok := ReadOutcome(status.State.Terminated.Message); ok {
		state.Outcome, state.Reason, state.Message = &outcome, outcome.Reason, outcome.Message
	}
}

// failureOf says why a Pod failed whose program did not.
func failureOf(pod corev1.Pod) string {
	if pod.Status.Reason != "" {
		return strings.TrimSuffix(fmt.Sprintf("Pod %s: %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message), ": ")
	}
	status := terminatedContainer(pod)
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
	state.Phase, state.PodIP = Failed, ""
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

// containerStatus is that of the program.
func containerStatus(pod corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[0]
}

// terminatedContainer is the container that a failed Pod failed by: the program, or an init container before it.
func terminatedContainer(pod corev1.Pod) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil && ended.ExitCode != 0 {
				return &statuses[i]
			}
		}
	}
	return nil
}

// lastLine is what a program without an outcome said last.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
