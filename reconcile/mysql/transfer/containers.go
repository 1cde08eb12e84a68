package transfer

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A Pod may have containers that are not the operator's: admission webhooks add proxies and agents. kubelet sorts statuses by name, so this
// code finds a container by its name, never by its position.

// statusOf returns the status of the container with that name; nil if kubelet has reported none.
func statusOf(container string, pod corev1.Pod) *corev1.ContainerStatus {
	at := slices.IndexFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == container })
	if at < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[at]
}

// endOf returns how a Pod's program ended; nil while it has not.
func endOf(program string, pod corev1.Pod) *corev1.ContainerStateTerminated {
	if status := statusOf(program, pod); status != nil {
		return status.State.Terminated
	}
	return nil
}

// hasSucceeded reports whether a Pod's program has succeeded, whatever the Pod's other containers do. kubelet reports the container's end
// about a second before the Pod's end, because it cleans up the Pod in between.
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

// isRunning reports whether a Pod's program is running. Kubernetes calls a Pod Pending while any container of it waits, for example for its
// image.
func isRunning(program string, pod corev1.Pod) bool {
	status := statusOf(program, pod)
	return pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending && status != nil && status.State.Running != nil
}

// lingers reports whether the Job of a Pod does not end with the Pod's program, which has ended: another container has not ended, or has
// failed. kubelet itself ends sidecars that are init containers.
func lingers(program string, pod corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return pod.Status.Phase == corev1.PodFailed && hasSucceeded(program, pod)
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name != program && status.State.Terminated == nil
	})
}

// failedContainer returns the container because of which a Pod failed: the program, an init container before it, or another container.
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
