package transfer

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A Pod may have containers that are not ours: admission webhooks add proxies and agents. kubelet sorts statuses by name, so a container is
// found by its name and never by its place.

// statusOf returns the status of the container with that name; nil while kubelet has none.
func statusOf(container string, pod corev1.Pod) *corev1.ContainerStatus {
	at := slices.IndexFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == container })
	if at < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[at]
}

// endOf tells how a Pod's program ended; nil while it has not.
func endOf(program string, pod corev1.Pod) *corev1.ContainerStateTerminated {
	if status := statusOf(program, pod); status != nil {
		return status.State.Terminated
	}
	return nil
}

// hasSucceeded says that a Pod's program has ended well, whatever the Pod's other containers do. kubelet says so of the container about a
// second before it says so of the Pod, of which it first clears away the rest.
func hasSucceeded(program string, pod corev1.Pod) bool {
	if end := endOf(program, pod); end != nil {
		return end.ExitCode == 0
	}
	return pod.Status.Phase == corev1.PodSucceeded
}

func hasStarted(program string, pod corev1.Pod) bool {
	status := statusOf(program, pod)
	return status != nil && (status.State.Running != nil || status.State.Terminated != nil)
}

// isRunning says that a Pod's program is at work. Kubernetes calls a Pod Pending while any container of it waits, for its image for
// example.
func isRunning(program string, pod corev1.Pod) bool {
	status := statusOf(program, pod)
	return pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending && status != nil && status.State.Running != nil
}

// lingers says, of a Pod whose program has ended, that its Job does not end with the program: another container has not ended, or has
// failed. kubelet itself ends sidecars that are init containers.
func lingers(program string, pod corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return pod.Status.Phase == corev1.PodFailed && hasSucceeded(program, pod)
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name != program && status.State.Terminated == nil
	})
}

// failedContainer is the container that a Pod failed by: the program, an init container before it, or one that is not ours.
func failedContainer(program string, pod corev1.Pod) *corev1.ContainerStatus {
	if end := endOf(program, pod); end != nil && end.ExitCode != 0 {
		return statusOf(program, pod)
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil && ended.ExitCode != 0 {
				return &statuses[i]
			}
		}
	}
	return nil
}
