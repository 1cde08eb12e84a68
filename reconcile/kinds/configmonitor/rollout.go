package configmonitor

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// rollout is the progress of a workload that replaces its Pods.
type rollout struct {
	// stamp is the annotation of the ConfigMap in the workload's Pod template: the hash of the last restart. It is empty if there was none.
	stamp string
	// done reports whether every Pod has the current template and is available.
	done bool
	// notRolledReason is why the workload does not replace its Pods when their template changes, and what a user can do. It is empty if the
	// workload does.
	notRolledReason string
	// progressMessage describes the progress: what the workload waits for, or which Pods it leaves out.
	progressMessage string
	// stuck reports whether the workload makes no progress until a user acts.
	stuck bool
}

// onDelete returns the reason of a workload that replaces Pods only when a user deletes them: that user wants to choose the time.
func onDelete(kind, name string) string {
	return fmt.Sprintf("%s %s has the update strategy OnDelete and replaces its Pods only when a user deletes them: delete them one by one", kind, name)
}

// rolloutOfDeployment reads the progress as the Kubernetes documentation describes it ("Deployments", "Deployment status").
func rolloutOfDeployment(deployment appsv1.Deployment, key string) rollout {
	want, status := replicasOr1(deployment.Spec.Replicas), deployment.Status
	found := rollout{stamp: deployment.Spec.Template.Annotations[key]}
	seen := status.ObservedGeneration >= deployment.Generation
	found.done = seen && status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
	switch {
	case found.done:
	case deployment.Spec.Paused:
		found.stuck = true
		found.progressMessage = fmt.Sprintf("is paused: resume it with kubectl rollout resume deployment/%s", deployment.Name)
	case seen && missedDeadline(status.Conditions):
		found.stuck = true
		found.progressMessage = fmt.Sprintf("its new Pods do not become available, and the old ones stay: look at the new Pods (kubectl describe, kubectl logs), and correct the data or Deployment %s", deployment.Name)
	default:
		found.progressMessage = progress(status.UpdatedReplicas, want)
	}
	return found
}

// missedDeadline reports whether a Deployment stopped waiting for its Pods (spec.progressDeadlineSeconds).
func missedDeadline(conditions []appsv1.DeploymentCondition) bool {
	for _, condition := range conditions {
		if condition.Type == appsv1.DeploymentProgressing {
			return condition.Status == corev1.ConditionFalse && condition.Reason == "ProgressDeadlineExceeded"
		}
	}
	return false
}

// rolloutOfStatefulSet reads the progress as the Kubernetes documentation describes it ("StatefulSets", "Update strategies"). Pods below a
// partition keep the old template.
func rolloutOfStatefulSet(set appsv1.StatefulSet, key string) rollout {
	want, status := replicasOr1(set.Spec.Replicas), set.Status
	found := rollout{stamp: set.Spec.Template.Annotations[key]}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		found.notRolledReason = onDelete(kindStatefulSet, set.Name)
		return found
	}
	partition := int32(0)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		partition = min(*rolling.Partition, want)
	}
	toUpdate := want - partition
	updated := status.UpdatedReplicas >= toUpdate && (partition > 0 || status.CurrentRevision == status.UpdateRevision)
	found.done = status.ObservedGeneration >= set.Generation && updated && status.Replicas == want && status.ReadyReplicas == want
	switch {
	case !found.done:
		found.progressMessage = progress(min(status.UpdatedReplicas, toUpdate), toUpdate)
	case partition > 0:
		found.progressMessage = fmt.Sprintf("the %d Pods below spec.updateStrategy.rollingUpdate.partition keep the old data", partition)
	}
	return found
}

// rolloutOfDaemonSet reads the progress from the fields that the API reference names for it (DaemonSetStatus).
func rolloutOfDaemonSet(set appsv1.DaemonSet, key string) rollout {
	status := set.Status
	found := rollout{stamp: set.Spec.Template.Annotations[key]}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		found.notRolledReason = onDelete(kindDaemonSet, set.Name)
		return found
	}
	want := status.DesiredNumberScheduled
	found.done = status.ObservedGeneration >= set.Generation && status.UpdatedNumberScheduled >= want && status.NumberAvailable >= want
	if !found.done {
		found.progressMessage = progress(status.UpdatedNumberScheduled, want)
	}
	return found
}

func progress(updated, want int32) string {
	return fmt.Sprintf("%d of %d Pods replaced", min(updated, want), want)
}

// replicasOr1 returns the number of Pods wanted; the API server's default is 1.
func replicasOr1(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
