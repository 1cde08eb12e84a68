package backup

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observeTimes measures how long the Job is as it is.
func (r *reconciler) observeTimes(instance v1.MySQLBackupInstance, seen *sight) {
	waited := func(what string) time.Duration { return r.memory.sights.Waited(keyOf(instance), what, seen.now) }
	uid := string(seen.job.UID)
	seen.known = waited("job " + uid)
	if isDoomed(*seen.job) {
		seen.doomed = waited("doomed job " + uid)
	}
	if seen.transfer.Lingers {
		seen.ended = waited("ended pod " + seen.transfer.Pod)
	}
}

// isDoomed says that Kubernetes has decided to end a Job, and waits for its Pods.
func isDoomed(job batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Type == batchv1.JobFailureTarget && condition.Status == corev1.ConditionTrue
	})
}

// observeTried measures for how long the latest Pod of the removal has tried, or its Job without a Pod. While another backup keeps it out
// it does not: a volume that gets free takes minutes to come to another node.
func (r *reconciler) observeTried(instance v1.MySQLBackupInstance, seen *remains) {
	if seen.removal == nil || seen.stale {
		return
	}
	what := "removal " + string(seen.removal.UID) + seen.state.Pod
	if isKeptOut(*seen) {
		r.memory.sights.End(keyOf(instance), what)
		return
	}
	seen.tried = r.memory.sights.Waited(keyOf(instance), what, seen.now)
}

// observeStops measures for how long what of the backup was told to end has not ended, and for how long nobody has told it.
func (r *reconciler) observeStops(instance v1.MySQLBackupInstance, seen *remains) {
	for i := range seen.pods {
		r.observeStop(instance, seen, &seen.pods[i])
		r.observeStray(instance, seen, &seen.pods[i])
	}
	if seen.job != nil {
		r.observeStop(instance, seen, seen.job)
	}
}

func (r *reconciler) observeStop(instance v1.MySQLBackupInstance, seen *remains, object metav1.Object) {
	if object.GetDeletionTimestamp() != nil {
		seen.stopping[object.GetName()] = r.memory.sights.Waited(keyOf(instance), "stop "+string(object.GetUID()), seen.now)
	}
}

// observeStray looks whether a Pod of the backup is there without its Job. Garbage collection tells it to end, within a moment, unless
// somebody has orphaned it.
func (r *reconciler) observeStray(instance v1.MySQLBackupInstance, seen *remains, pod metav1.Object) {
	what := "stray " + string(pod.GetUID())
	if seen.job != nil || pod.GetDeletionTimestamp() != nil {
		r.memory.sights.End(keyOf(instance), what)
		return
	}
	seen.strayed[pod.GetName()] = r.memory.sights.Waited(keyOf(instance), what, seen.now)
}
