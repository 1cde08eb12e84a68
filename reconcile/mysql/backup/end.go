package backup

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// patience is for how long the deletion of data may fail before it is given up: nobody's namespace waits for a bucket that is no more.
const patience = 10 * time.Minute

// mendPatience is for how long the deletion of data waits for a Secret that does not let its credentials go to the data any more. Only its
// owner can put that right, which is one command, and the instance is all that leads to the data. Where operators change, it waits for
// twice as long at most.
const mendPatience = 24 * time.Hour

// remains is what a pass saw of an instance that is being deleted.
type remains struct {
	now time.Time
	// job is the backup's own, if it is still there, and pods are its Pods that may still write.
	job  *batchv1.Job
	pods []corev1.Pod
	// removal is the Job that deletes the data; nil before it is made. state is what it and its Pods tell. stale says that it is there for
	// another order, and state is not known.
	removal *batchv1.Job
	state   transfer.State
	stale   bool
	// stopping is for how long this process has known that the Job or the Pod of that name was told to end: of the backup or of the removal.
	// tried is for how long it has known the latest Pod of the removal (or its Job, without a Pod), since no other backup kept that out.
	// removing is for how long it has seen the data being deleted.
	stopping        map[string]time.Duration
	tried, removing time.Duration
	// strayed is for how long it has known the backup's Pod of that name without a Job that would end it, and not told to end.
	strayed map[string]time.Duration
	// shared says that another backup is being written to the same volume, which may keep a Pod from it; false after mendPatience.
	shared bool
	// lost is why the data cannot be reached at all; empty if it can.
	lost string
	// barred is why the credentials may not be sent to where the data is, for barredFor by this process' clock; empty if they may, or while a
	// Pod deletes.
	barred    string
	barredFor time.Duration
}

// parting is what a pass does about an instance that is being deleted.
type parting string

const (
	// partRest: there is nothing to wait for.
	partRest parting = "rest"
	// partStop: the backup's Job has to end first.
	partStop parting = "stop"
	// partRemove: the Job that deletes the data is made.
	partRemove parting = "remove"
	// partClear: a Job of that name is in the way.
	partClear parting = "clear"
	// partWait: something is on its way.
	partWait parting = "wait"
	// partKeep: the data stays, as the policy says, or there is none.
	partKeep parting = "keep"
	// partDone: the data is gone.
	partDone parting = "done"
	// partHold: somebody has to help first.
	partHold parting = "hold"
	// partLeave: the data cannot be deleted, and is left.
	partLeave parting = "leave"
)

// decideEnd decides what an instance that is being deleted needs before it may go. The second result says why.
func decideEnd(instance v1.MySQLBackupInstance, seen remains) (what parting, because string) {
	switch {
	case !isHeld(instance):
		return partRest, ""
	case !holds(instance, instance.Spec.DeletionPolicy):
		return partKeep, "" // the policy was changed to Retain while the finalizer was on
	case instance.Status.Location == nil && seen.job == nil && len(seen.pods) == 0:
		return partKeep, "" // nothing was ever written
	}
	if what, because := decideStop(seen); what != partRest {
		return what, because
	}
	if instance.Status.Location == nil {
		return partKeep, ""
	}
	return decideData(instance, seen)
}

// decideData decides what becomes of the data once nothing writes any more.
func decideData(instance v1.MySQLBackupInstance, seen remains) (what parting, because string) {
	switch {
	case seen.lost != "":
		return partLeave, seen.lost
	case hungRemoval(seen) != "":
		return partLeave, hungRemoval(seen)
	case seen.barred != "":
		return decideBarred(instance, seen)
	case seen.stale:
		return partClear, "waits for the Job of an earlier order to end"
	case seen.removal == nil:
		return partRemove, "deletes its data"
	}
	return decideRemoval(seen)
}

// decideStop ends the backup before its data is deleted: what still writes would leave something behind. partRest: nothing does.
func decideStop(seen remains) (what parting, because string) {
	if seen.job != nil && seen.job.DeletionTimestamp == nil {
		return partStop, "ends its Job"
	}
	for _, pod := range seen.pods {
		if seen.stopping[pod.Name] > patience {
			return partLeave, fmt.Sprintf("Pod %s, which may still write there, does not end (is its node %s gone?)", pod.Name, pod.Spec.NodeName)
		}
		if seen.strayed[pod.Name] > strayPatience(pod) {
			return partLeave, fmt.Sprintf("Pod %s, which may still write there, has no Job any more that would end it (kubectl delete pod %s does)", pod.Name, pod.Name)
		}
	}
	if job := seen.job; job != nil && seen.stopping[job.Name] > patience {
		return partLeave, fmt.Sprintf("Job %s, which may still write there, does not end (finalizers: %v)", job.Name, job.Finalizers)
	}
	if seen.job != nil || len(seen.pods) > 0 {
		return partWait, "waits for its Pod to end before its data is deleted"
	}
	return partRest, ""
}

// strayPatience is for how long a Pod without its Job is waited for. One that works may come to its end by itself.
func strayPatience(pod corev1.Pod) time.Duration {
	if pod.Status.Phase == corev1.PodRunning {
		return removalDeadline*time.Second + patience
	}
	return patience
}

// decideBarred waits, without a Job, until the Secret lets its credentials go there again. That the data is left is not taken back once it
// was told.
func decideBarred(instance v1.MySQLBackupInstance, seen remains) (what parting, because string) {
	switch {
	case isToldLeft(instance.Status), heldFor(instance, seen) > mendPatience:
		return partLeave, seen.barred
	case seen.removal != nil:
		return partClear, "waits for its Job to be gone: " + seen.barred
	}
	return partHold, fmt.Sprintf("its data is not deleted yet: %s; after %s the instance goes and the data is left", seen.barred, mendPatience)
}

// hungRemoval says what of the removal does not end, although it was told to long ago; empty for nothing. A node that is lost never says
// that its Pod has ended, and nobody makes another Pod beside it. The instance does not wait for that node: its Pod may go on for a while,
// but it only deletes, in a folder that bears the instance's UID, and it deletes that mark last.
func hungRemoval(seen remains) string {
	switch {
	case seen.removal == nil || seen.state.Phase == transfer.Succeeded:
		return ""
	case seen.stopping[seen.removal.Name] > patience:
		return fmt.Sprintf("Job %s, which deletes it, does not end (finalizers: %v)", seen.removal.Name, seen.removal.Finalizers)
	case seen.stopping[seen.state.Pod] > patience:
		return fmt.Sprintf("Pod %s, which deletes it, does not end (is its node gone?)", seen.state.Pod)
	case seen.tried > removalDeadline*time.Second+patience && !isKeptOut(seen):
		return fmt.Sprintf("Job %s was to delete it within %s, and has not ended (is the node of its Pod gone?)", seen.removal.Name, removalDeadline*time.Second)
	}
	return ""
}

// isKeptOut says whether the Pod that deletes may be waiting for another backup on its volume. That backup has a deadline of its own.
func isKeptOut(seen remains) bool {
	return seen.shared && seen.state.Phase == transfer.Pending && seen.state.Reason != transfer.ReasonImagePullFailed
}

// decideRemoval follows the Job that deletes the data. Kubernetes spaces its attempts so that it fails after about as long as patience
// lasts; what has not even begun by then will not.
func decideRemoval(seen remains) (what parting, because string) {
	switch seen.state.Phase {
	case transfer.Succeeded:
		return partDone, ""
	case transfer.Failed:
		return decideFailed(seen)
	case transfer.Running:
		return partWait, strings.TrimSuffix("deletes its data; "+cleanMessage(seen.state.Message), "; ")
	case transfer.Pending:
	}
	if seen.removal.DeletionTimestamp != nil {
		return partWait, "waits for its Job to be gone, and makes another one"
	}
	if seen.tried > patience && !isKeptOut(seen) {
		return partLeave, cleanMessage(seen.state.Message)
	}
	if seen.state.Attempts > 0 && seen.state.Reason != "" {
		return partWait, "deletes its data; the last attempt failed and is made again: " + cleanMessage(seen.state.Message)
	}
	return partWait, "deletes its data; " + cleanMessage(seen.state.Message)
}

// decideFailed leaves the data where the Job that deletes it has failed, unless another Job may do better.
func decideFailed(seen remains) (what parting, because string) {
	why := cleanMessage(seen.state.Message)
	switch {
	case isRepeated(seen):
		return partClear, "deletes its data; the last attempt failed and is made again by another Job: " + why
	case seen.shared && seen.state.Reason == transfer.ReasonDeadlineExceeded:
		return partClear, "deletes its data; its Job waited for another backup on the volume until its deadline, and another Job is made: " + why
	}
	return partLeave, why
}

// isRepeated says whether an attempt that failed beside a container that runs on is made again, by another Job.
func isRepeated(seen remains) bool {
	return seen.state.Lingers && !seen.state.Refused && seen.removing <= patience
}

// unreachable says why data cannot be reached; empty if it can. A Secret that is missing may come back: the Job that deletes waits for it,
// and is given up after a while.
func unreachable(location v1.BackupLocation, claim *corev1.PersistentVolumeClaim) string {
	switch {
	case location.Claim != "" && claim == nil:
		return fmt.Sprintf("PersistentVolumeClaim %q does not exist any more", location.Claim)
	case location.Claim != "" && claim.DeletionTimestamp != nil:
		return fmt.Sprintf("PersistentVolumeClaim %q is being deleted", location.Claim)
	}
	return ""
}
