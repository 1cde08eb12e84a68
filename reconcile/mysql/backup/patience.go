package backup

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observeTimes measures for how long the Job has been in its current state.
func (r *reconciler) observeTimes(instance v1.MySQLBackupInstance, seen *observed) {
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

// isDoomed reports whether Kubernetes has decided to end a Job, and waits for its Pods.
func isDoomed(job batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Type == batchv1.JobFailureTarget && condition.Status == corev1.ConditionTrue
	})
}

// observeTried measures for how long the latest Pod of the removal has tried, or its Job if it has no Pod. Time during which another backup
// blocks the volume does not count: a volume takes minutes to move to another node.
func (r *reconciler) observeTried(instance v1.MySQLBackupInstance, seen *deletionObserved) {
	if seen.removal == nil || seen.stale {
		return
	}
	what := "removal " + string(seen.removal.UID) + seen.state.Pod
	if isVolumeBlocked(*seen) {
		r.memory.sights.End(keyOf(instance), what)
		return
	}
	seen.tried = r.memory.sights.Waited(keyOf(instance), what, seen.now)
}

// observeStops measures for how long deleted Pods and Jobs of the backup have not ended, and for how long Pods without a Job were not
// deleted.
func (r *reconciler) observeStops(instance v1.MySQLBackupInstance, seen *deletionObserved) {
	for i := range seen.pods {
		r.observeStop(instance, seen, &seen.pods[i])
		r.observeStray(instance, seen, &seen.pods[i])
	}
	if seen.job != nil {
		r.observeStop(instance, seen, seen.job)
	}
}

func (r *reconciler) observeStop(instance v1.MySQLBackupInstance, seen *deletionObserved, object metav1.Object) {
	if object.GetDeletionTimestamp() != nil {
		seen.stopping[object.GetName()] = r.memory.sights.Waited(keyOf(instance), "stop "+string(object.GetUID()), seen.now)
	}
}

// observeStray measures for how long a Pod of the backup has been there without its Job. Garbage collection deletes such a Pod within a
// moment, unless a user has orphaned it.
func (r *reconciler) observeStray(instance v1.MySQLBackupInstance, seen *deletionObserved, pod metav1.Object) {
	what := "stray " + string(pod.GetUID())
	if seen.job != nil || pod.GetDeletionTimestamp() != nil {
		r.memory.sights.End(keyOf(instance), what)
		return
	}
	seen.strayed[pod.GetName()] = r.memory.sights.Waited(keyOf(instance), what, seen.now)
}
