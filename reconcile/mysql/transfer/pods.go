package transfer

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodsOf returns the Pods that a Job controls.
func PodsOf(job *batchv1.Job, all []corev1.Pod) []corev1.Pod {
	own := []corev1.Pod{}
	for i := range all {
		if metav1.IsControlledBy(&all[i], job) {
			own = append(own, all[i])
		}
	}
	return own
}

// HasEnded reports whether all containers of a Pod have ended, so that the Pod writes nothing any more.
func HasEnded(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// CountActive counts the Pods that have not ended, and may still write.
func CountActive(pods []corev1.Pod) int {
	count := 0
	for _, pod := range pods {
		if !HasEnded(pod) {
			count++
		}
	}
	return count
}

// IsFinished reports whether a Job is complete or has failed, so that it creates no more Pods.
func IsFinished(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobFailed) != nil
}

// FormerAttempts returns how many Pods ran before a Job was created. The Job has that number in the given annotation. The result is 0 if
// the annotation is missing: the Job is the first one, or another client removed the annotation.
func FormerAttempts(job *batchv1.Job, annotation string) int32 {
	former, err := strconv.ParseInt(job.Annotations[annotation], 10, 32)
	if err != nil {
		return 0
	}
	return int32(former)
}
