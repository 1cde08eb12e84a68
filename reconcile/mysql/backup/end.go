package backup

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// patience is for how long the deletion of data may fail before the operator gives up: no namespace must wait for a bucket that no longer
// exists.
const patience = 10 * time.Minute

// userPatience is for how long the deletion of data waits for a Secret that no longer allows its credentials to be sent to the store. Only
// a user can fix the Secret, with one command, and only the instance records where the data is. If the operator restarts, the wait is at
// most twice as long.
const userPatience = 24 * time.Hour

// deletionObserved is what a pass observed of an instance that is being deleted.
type deletionObserved struct {
	now time.Time
	// job is the backup's own Job, if it still exists. pods are its Pods that may still write.
	job  *batchv1.Job
	pods []corev1.Pod
	// removal is the Job that deletes the data; nil before it is created. state is what it and its Pods report. stale means that the Job
	// belongs to another order, and state is unknown.
	removal *batchv1.Job
	state   transfer.State
	stale   bool
	// stopping is for how long this process has known that the Job or the Pod of that name is being deleted. It includes those of the
	// backup and of the removal. tried is for how long it has known the latest Pod of the removal, or its Job if it has no Pod; time during
	// which another backup blocked that Pod does not count. removing is for how long it has observed the deletion of the data.
	stopping        map[string]time.Duration
	tried, removing time.Duration
	// strayed is for how long it has known the backup's Pod of that name without a Job that would end it. The Pod is not being deleted.
	strayed map[string]time.Duration
	// shared means that another backup writes to the same volume, which may block a Pod of the removal; false after userPatience.
	shared bool
	// lost is why the data can never be reached; empty if it can.
	lost string
	// credentialsRefused is why the credentials must not be sent to the store of the data; empty if they may, or while a Pod deletes.
	// credentialsRefusedFor is for how long, by this process' clock.
	credentialsRefused    string
	credentialsRefusedFor time.Duration
}

// deletionStep is what a pass does about an instance that is being deleted.
type deletionStep string

const (
	// deletionStepNone: there is nothing to wait for.
	deletionStepNone deletionStep = "rest"
	// deletionStepStop: the backup's Job must end first.
	deletionStepStop deletionStep = "stop"
	// deletionStepRemove: create the Job that deletes the data.
	deletionStepRemove deletionStep = "remove"
	// deletionStepClear: delete a Job that has the same name.
	deletionStepClear deletionStep = "clear"
	// deletionStepWait: something is in progress.
	deletionStepWait deletionStep = "wait"
	// deletionStepKeep: the data stays, because of the policy, or because there is none.
	deletionStepKeep deletionStep = "keep"
	// deletionStepDone: the data is gone.
	deletionStepDone deletionStep = "done"
	// deletionStepWaitForUser: a user must fix something first.
	deletionStepWaitForUser deletionStep = "hold"
	// deletionStepAbandon: the data cannot be deleted, and is left in place.
	deletionStepAbandon deletionStep = "leave"
)

// decideEnd decides what an instance that is being deleted needs before the finalizer is removed. because is the reason.
func decideEnd(instance v1.MySQLBackupInstance, seen deletionObserved) (what deletionStep, because string) {
	switch {
	case !isHeld(instance):
		return deletionStepNone, ""
	case !holds(instance, instance.Spec.DeletionPolicy):
		return deletionStepKeep, "" // the policy was changed to Retain while the finalizer was on
	case instance.Status.Location == nil && seen.job == nil && len(seen.pods) == 0:
		return deletionStepKeep, "" // nothing was ever written
	}
	if what, because := decideStop(seen); what != deletionStepNone {
		return what, because
	}
	if instance.Status.Location == nil {
		return deletionStepKeep, ""
	}
	return decideData(instance, seen)
}

// decideData decides what to do with the data after the last write.
func decideData(instance v1.MySQLBackupInstance, seen deletionObserved) (what deletionStep, because string) {
	switch {
	case seen.lost != "":
		return deletionStepAbandon, seen.lost
	case stuckRemoval(seen) != "":
		return deletionStepAbandon, stuckRemoval(seen)
	case seen.credentialsRefused != "":
		return decideCredentialsRefused(instance, seen)
	case seen.stale:
		return deletionStepClear, "waiting for an outdated Job that deletes its data to end"
	case seen.removal == nil:
		return deletionStepRemove, "deleting its data"
	}
	return decideRemoval(seen)
}

// decideStop ends the backup before its data is deleted: a Pod that still writes would leave data behind. deletionStepNone: no Pod writes.
func decideStop(seen deletionObserved) (what deletionStep, because string) {
	if seen.job != nil && seen.job.DeletionTimestamp == nil {
		return deletionStepStop, "deleting its Job"
	}
	for _, pod := range seen.pods {
		if seen.stopping[pod.Name] > patience {
			return deletionStepAbandon, fmt.Sprintf("Pod %s, which may still write there, does not end; check whether its node %s still exists", pod.Name, pod.Spec.NodeName)
		}
		if seen.strayed[pod.Name] > strayPatience(pod) {
			return deletionStepAbandon, fmt.Sprintf("Pod %s, which may still write there, has no Job that would end it (kubectl delete pod %s ends it)", pod.Name, pod.Name)
		}
	}
	if job := seen.job; job != nil && seen.stopping[job.Name] > patience {
		return deletionStepAbandon, fmt.Sprintf("Job %s, which may still write there, does not end (finalizers: %v)", job.Name, job.Finalizers)
	}
	if seen.job != nil || len(seen.pods) > 0 {
		return deletionStepWait, "waiting for its Pod to end before its data is deleted"
	}
	return deletionStepNone, ""
}

// strayPatience is for how long the operator waits for a Pod without its Job. A running Pod may complete by itself.
func strayPatience(pod corev1.Pod) time.Duration {
	if pod.Status.Phase == corev1.PodRunning {
		return removalDeadline*time.Second + patience
	}
	return patience
}

// decideCredentialsRefused waits, without a Job, until the Secret allows its credentials to be sent to the store again. Once the status
// reports that the data is left, that decision is final.
func decideCredentialsRefused(instance v1.MySQLBackupInstance, seen deletionObserved) (what deletionStep, because string) {
	switch {
	case isReportedLeft(instance.Status), heldFor(instance, seen) > userPatience:
		return deletionStepAbandon, seen.credentialsRefused
	case seen.removal != nil:
		return deletionStepClear, "waiting for the Job that deletes its data to end: " + seen.credentialsRefused
	}
	return deletionStepWaitForUser, fmt.Sprintf("its data is not deleted yet: %s; after %s the operator removes the instance and leaves the data in place", seen.credentialsRefused, userPatience)
}

// stuckRemoval returns what part of the removal does not end long after its deletion; empty if there is none. A lost node never reports
// that its Pod has ended, and Kubernetes creates no other Pod meanwhile. The instance does not wait for that node. Its Pod may continue for
// a while, but it only deletes in a folder with the instance's UID, and it deletes that mark last.
func stuckRemoval(seen deletionObserved) string {
	switch {
	case seen.removal == nil || seen.state.Phase == transfer.Succeeded:
		return ""
	case seen.stopping[seen.removal.Name] > patience:
		return fmt.Sprintf("Job %s, which deletes the data, does not end (finalizers: %v)", seen.removal.Name, seen.removal.Finalizers)
	case seen.stopping[seen.state.Pod] > patience:
		return fmt.Sprintf("Pod %s, which deletes the data, does not end; check whether its node still exists", seen.state.Pod)
	case seen.tried > removalDeadline*time.Second+patience && !isVolumeBlocked(seen):
		return fmt.Sprintf("Job %s, which deletes the data, did not end within %s; check whether the node of its Pod still exists", seen.removal.Name, removalDeadline*time.Second)
	}
	return ""
}

// isVolumeBlocked reports whether another backup may block the volume for the Pod that deletes. That backup has its own deadline.
func isVolumeBlocked(seen deletionObserved) bool {
	return seen.shared && seen.state.Phase == transfer.Pending && seen.state.Reason != protocol.ReasonImagePullFailed
}

// decideRemoval follows the Job that deletes the data. Kubernetes spaces its attempts so that it fails after about the time of patience. A
// Pod that has not started by then will never start.
func decideRemoval(seen deletionObserved) (what deletionStep, because string) {
	switch seen.state.Phase {
	case transfer.Succeeded:
		return deletionStepDone, ""
	case transfer.Failed:
		return decideFailed(seen)
	case transfer.Running:
		return deletionStepWait, strings.TrimSuffix("deleting its data; "+report.Brief(seen.state.Message, report.LongestMessage), "; ")
	case transfer.Pending:
	}
	if seen.removal.DeletionTimestamp != nil {
		return deletionStepWait, "waiting for the Job that deletes its data to end; then the operator creates another one"
	}
	if seen.tried > patience && !isVolumeBlocked(seen) {
		return deletionStepAbandon, report.Brief(seen.state.Message, report.LongestMessage)
	}
	if seen.state.Attempts > 0 && seen.state.Reason != "" {
		return deletionStepWait, "deleting its data; the last attempt failed, and Kubernetes retries it: " + report.Brief(seen.state.Message, report.LongestMessage)
	}
	return deletionStepWait, "deleting its data; " + report.Brief(seen.state.Message, report.LongestMessage)
}

// decideFailed leaves the data in place if the Job that deletes it has failed, unless another Job may succeed.
func decideFailed(seen deletionObserved) (what deletionStep, because string) {
	why := report.Brief(seen.state.Message, report.LongestMessage)
	switch {
	case isRepeated(seen):
		return deletionStepClear, "deleting its data; the last attempt failed, and another Job retries it: " + why
	case seen.shared && seen.state.Reason == protocol.ReasonDeadlineExceeded:
		return deletionStepClear, "deleting its data; the Job waited for another backup on the volume until its deadline, and another Job retries it: " + why
	}
	return deletionStepAbandon, why
}

// isRepeated reports whether another Job retries an attempt that failed in a Pod in which another container still runs.
func isRepeated(seen deletionObserved) bool {
	return seen.state.Lingers && !seen.state.Refused && seen.removing <= patience
}

// unreachable returns why data can never be reached; empty if it can. A missing Secret may come back: the Job that deletes waits for it,
// and fails after a while.
func unreachable(location v1.BackupLocation, claim *corev1.PersistentVolumeClaim) string {
	switch {
	case location.Claim != "" && claim == nil:
		return fmt.Sprintf("PersistentVolumeClaim %q no longer exists", location.Claim)
	case location.Claim != "" && claim.DeletionTimestamp != nil:
		return fmt.Sprintf("PersistentVolumeClaim %q is being deleted", location.Claim)
	}
	return ""
}
