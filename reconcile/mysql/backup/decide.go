package backup

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// step is what a pass must do.
type step string

const (
	// stepWait: something is missing or in progress.
	stepWait step = "wait"
	// stepBegin: nothing is missing. Create the claim if necessary, and record the location in the status.
	stepBegin step = "begin"
	// stepStart: the location is recorded. Create the Job.
	stepStart step = "start"
	// stepFollow: a Pod is running.
	stepFollow step = "follow"
	// stepAsk: delete the Job, so that another Job reports what it made.
	stepAsk step = "ask"
	// stepStop: delete the Job with its Pod.
	stepStop step = "stop"
	// stepComplete and stepFail: the backup is over.
	stepComplete step = "complete"
	stepFail     step = "fail"
)

// decision is what a pass does, and why.
type decision struct {
	step step
	// why is what the backup waits for, or why it failed; empty otherwise.
	why report.Problem
}

// isOver reports whether a phase is final.
func isOver(phase v1.BackupPhase) bool {
	return phase == v1.BackupCompleted || phase == v1.BackupFailed
}

// decide decides what a backup that is not over needs next.
func decide(instance v1.MySQLBackupInstance, seen observed) decision {
	if seen.transfer.Phase == transfer.Succeeded {
		return ended(instance, seen)
	}
	if seen.transfer.Phase != transfer.Failed && isPastDeadline(seen) {
		return decision{stepFail, pastDeadlineProblem(seen)}
	}
	if _, replaced := instance.Annotations[transfer.AnnotationReplaced]; replaced {
		return replace(seen)
	}
	if seen.job != nil {
		return follow(instance, seen)
	}
	found := obstacle(instance, seen)
	if timeLeft(instance, seen) <= 0 {
		return decision{stepFail, overdue(seen, found)}
	}
	switch {
	case found != nil:
		return decision{stepWait, *found}
	case seen.pods > 0:
		return decision{stepWait, report.Problem{Reason: protocol.ReasonScheduled, Message: "waiting for a Pod of its previous Job to end, because that Pod may still write; then the operator creates another Job; if the Pod's node is gone, delete the node"}}
	case instance.Status.Location == nil:
		return decision{step: stepBegin}
	}
	return decision{step: stepStart}
}

// timeLeft is how much time an incomplete backup has before it fails, including all waiting and all attempts. This process measures it with
// its own clock, from when it first knew the instance. The creation time comes from the API server's clock. It only ends a backup that is
// more than twice as old as allowed. Otherwise operators that restart often, and count from zero each time, would wait indefinitely.
func timeLeft(instance v1.MySQLBackupInstance, seen observed) time.Duration {
	limit := limitOf(seen)
	old := seen.now.Sub(instance.CreationTimestamp.Time) - limit - transfer.ClockTolerance
	return limit - max(seen.waited, old)
}

func limitOf(seen observed) time.Duration {
	return time.Duration(*seen.settings.ActiveDeadlineSeconds) * time.Second
}

func overdue(seen observed, found *report.Problem) report.Problem {
	message := fmt.Sprintf("not complete within activeDeadlineSeconds (%s)", limitOf(seen))
	if found != nil {
		message += "; the last problem was: " + found.Message
	}
	return report.Problem{Reason: protocol.ReasonDeadlineExceeded, Message: message, Stalled: true}
}

// isPastDeadline reports whether a Job exists long after its deadline. Kubernetes ends a Job only after its Pods have ended, and a Pod
// whose node is gone never ends. The operator must not wait for it indefinitely: its schedule would make no further backup. This process
// measures with its own clock: a clock ahead of the API server's must not end a backup.
func isPastDeadline(seen observed) bool {
	if seen.job == nil || seen.job.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	limit := time.Duration(*seen.job.Spec.ActiveDeadlineSeconds) * time.Second
	return seen.known > limit+patience || seen.doomed > patience
}

func pastDeadlineProblem(seen observed) report.Problem {
	limit := time.Duration(*seen.job.Spec.ActiveDeadlineSeconds) * time.Second
	message := fmt.Sprintf("its Job %s did not end within %s; check whether the node of its Pod still exists", seen.job.Name, limit)
	if said := report.Brief(seen.transfer.Message, report.LongestMessage); said != "" {
		message += "; " + said
	}
	return report.Problem{Reason: protocol.ReasonDeadlineExceeded, Message: message, Stalled: true}
}

// ended judges a Job that succeeded. Only a report of the Pod itself makes a backup Completed.
func ended(instance v1.MySQLBackupInstance, seen observed) decision {
	outcome := seen.transfer.Outcome
	switch {
	case outcome == nil:
		return unreportedDecision(instance, seen)
	case outcome.Reason != protocol.ReasonCompleted, outcome.Checksum == "", outcome.Size <= 0, outcome.DataSize <= 0:
		return decision{stepFail, unreportedProblem(instance, fmt.Sprintf("its Pod succeeded, but reported %q with the checksum %q and the sizes %d and %d", outcome.Reason, outcome.Checksum, outcome.DataSize, outcome.Size))}
	case outcome.UID != "" && outcome.UID != string(instance.UID):
		return decision{stepFail, unreportedProblem(instance, fmt.Sprintf("its Pod reported on another backup, with the UID %s", outcome.UID))}
	}
	return decision{step: stepComplete}
}

// unreportedDecision handles a Job that succeeded, but has no Pod left to report the result, for example because the node is gone. The
// operator creates another Job. Its Pod checks the destination first: it reports the complete backup of this instance if there is one, or
// else makes one. The operator does this once, and only where such a Pod could run: a second missing report is no accident.
func unreportedDecision(instance v1.MySQLBackupInstance, seen observed) decision {
	_, replaced := instance.Annotations[transfer.AnnotationReplaced]
	if seen.former > 0 || replaced || timeLeft(instance, seen) <= 0 || clusterObstacle(instance, seen) != nil {
		return decision{stepFail, unreportedProblem(instance, seen.transfer.Message)}
	}
	return decision{stepAsk, report.Problem{Reason: protocol.ReasonScheduled, Message: fmt.Sprintf("its Job succeeded, but its result is unknown (%s); another Pod checks the destination", report.Brief(seen.transfer.Message, report.LongestMessage))}}
}

// unreportedProblem is the problem of a Job that succeeded without a report of its Pod. There is probably a good backup, but users must
// check it before they rely on it.
func unreportedProblem(instance v1.MySQLBackupInstance, what string) report.Problem {
	return report.Problem{Reason: protocol.ReasonPodsFailed, Message: fmt.Sprintf("the Job succeeded, but its result is unknown (%s); there may be a good backup: check it with mysql-operator backup verify --from %s and restore it with spec.fromBackupURL of a MySQLCluster, or create another backup", what, urlOf(instance)), Stalled: true}
}

func urlOf(instance v1.MySQLBackupInstance) string {
	if instance.Status.Location == nil {
		return ""
	}
	if claim := instance.Status.Location.Claim; claim != "" {
		return fmt.Sprintf("%s (in the volume of claim %s)", instance.Status.Location.URL, claim)
	}
	return instance.Status.Location.URL
}

// replace ends a backup that the next backup of its schedule replaces. It fails when none of its Pods is running any more: until then it
// may still complete.
func replace(seen observed) decision {
	failed := report.Problem{Reason: protocol.ReasonReplaced, Message: "the schedule's next backup replaced it (concurrencyPolicy Replace)", Stalled: true}
	switch {
	case seen.job != nil && seen.transfer.Phase == transfer.Failed:
		return decision{stepFail, failed}
	case seen.job != nil && seen.job.DeletionTimestamp == nil:
		return decision{stepStop, ending("the schedule's next backup replaces it")}
	case seen.job != nil || seen.pods > 0:
		return decision{stepWait, ending("the schedule's next backup replaces it")}
	}
	return decision{stepFail, failed}
}

func ending(because string) report.Problem {
	return report.Problem{Reason: protocol.ReasonReplaced, Message: because + "; waiting for its Pod to end"}
}

// follow decides about a Job that has not succeeded.
func follow(instance v1.MySQLBackupInstance, seen observed) decision {
	switch seen.transfer.Phase {
	case transfer.Failed:
		if pause := pauseAfter(seen); seen.transfer.Lingers && !seen.transfer.Refused && pause > 0 {
			return repeat(seen, pause)
		}
		return decision{stepFail, report.Problem{Reason: reasonOr(seen.transfer, protocol.ReasonPodsFailed), Message: report.Brief(seen.transfer.Message, report.LongestMessage), Stalled: true}}
	case transfer.Running:
		return decision{step: stepFollow}
	case transfer.Pending, transfer.Succeeded:
	}
	return decision{stepWait, pending(instance, seen)}
}

// repeat retries where Kubernetes does not, because another container of the Pod still runs. The operator deletes the Job with its Pod, and
// creates another Job.
func repeat(seen observed, pause time.Duration) decision {
	why := report.Problem{Reason: reasonOr(seen.transfer, protocol.ReasonPodsFailed), Message: "the last attempt failed, and another Job retries it, because another container of its Pod is still running: " + report.Brief(seen.transfer.Message, report.LongestMessage)}
	if seen.job.DeletionTimestamp != nil || seen.ended < pause {
		return decision{stepWait, why}
	}
	return decision{stepAsk, why}
}

// pauseAfter is the delay after the latest attempt, the same as Kubernetes' between the Pods of a Job. It is 0 when Kubernetes would not
// retry either.
func pauseAfter(seen observed) time.Duration {
	const first, longest = 10 * time.Second, 6 * time.Minute
	attempts := seen.former + seen.transfer.Attempts
	if attempts > transfer.Retries {
		return 0
	}
	return min(first<<max(0, attempts-1), longest)
}

// pending returns what a Pod waits for.
func pending(instance v1.MySQLBackupInstance, seen observed) report.Problem {
	state := seen.transfer
	switch {
	case seen.job.DeletionTimestamp != nil:
		return report.Problem{Reason: protocol.ReasonScheduled, Message: "its Job is being deleted; then the operator creates another one"}
	case seen.refused != "":
		return report.Problem{Reason: protocol.ReasonPodsNotCreated, Message: fmt.Sprintf("Kubernetes does not create the Pod of Job %s: %s; fix that, and Kubernetes tries again within minutes", seen.job.Name, seen.refused), Stalled: true}
	case state.Reason == protocol.ReasonImagePullFailed:
		// kubelet's message alternates between two texts. Users need the name of the Pod.
		return report.Problem{Reason: state.Reason, Message: fmt.Sprintf("the operator's image cannot be pulled for Pod %s; check that the node may pull it (kubectl describe pod %s shows more)", state.Pod, state.Pod), Stalled: true}
	case state.Attempts > 0 && state.Reason != "":
		return report.Problem{Reason: state.Reason, Message: "the last attempt failed, and Kubernetes retries it: " + report.Brief(state.Message, report.LongestMessage)}
	}
	// Something that the Pod needs may have been deleted after the Pod was created.
	if found := obstacle(instance, seen); found != nil && found.Reason != protocol.ReasonClusterNotReady && found.Reason != protocol.ReasonWaitingForCluster {
		return *found
	}
	if found := volumePending(seen.claim); found != nil && state.Reason != "" {
		return *found
	}
	return report.Problem{Reason: reasonOr(state, protocol.ReasonScheduled), Message: report.Brief(state.Message, report.LongestMessage)}
}

func reasonOr(state transfer.State, reason string) string {
	if state.Reason != "" && state.Reason != protocol.ReasonCompleted {
		return state.Reason
	}
	return reason
}

// obstacle returns what a backup needs to begin and does not have; nil if nothing is missing. The checks have the order in which users fix
// things.
func obstacle(instance v1.MySQLBackupInstance, seen observed) *report.Problem {
	for _, look := range []func(v1.MySQLBackupInstance, observed) *report.Problem{clusterObstacle, urlObstacle, credentialsObstacle, keyObstacle, claimObstacle} {
		if found := look(instance, seen); found != nil {
			return found
		}
	}
	return nil
}

func clusterObstacle(instance v1.MySQLBackupInstance, seen observed) *report.Problem {
	namespace := instance.Namespace
	switch {
	case seen.name == "" && seen.scheduleMissing:
		return &report.Problem{Reason: reasonScheduleNotFound, Message: fmt.Sprintf("spec.schedule: MySQLBackupSchedule %q does not exist in namespace %q, and spec.cluster is empty; create the schedule, or create another instance with spec.cluster", instance.Spec.Schedule, namespace)}
	case seen.cluster == nil:
		return &report.Problem{Reason: protocol.ReasonClusterNotFound, Message: fmt.Sprintf("MySQLCluster %q does not exist in namespace %q; a backup must name a cluster of its own namespace, by its current name; create the cluster, or create another instance that names the right one", seen.name, namespace)}
	case seen.cluster.DeletionTimestamp != nil:
		return &report.Problem{Reason: protocol.ReasonClusterNotReady, Message: fmt.Sprintf("MySQLCluster %q is being deleted", seen.name)}
	case seen.cluster.Status.ReadyReplicas > 0:
		return nil
	case !seen.cluster.Status.HadPrimary():
		return &report.Problem{Reason: protocol.ReasonWaitingForCluster, Message: fmt.Sprintf("MySQLCluster %q has no members yet; waiting until a member is ready (kubectl get mysqlcluster %s shows what the cluster waits for)", seen.name, seen.name)}
	}
	return &report.Problem{Reason: protocol.ReasonClusterNotReady, Message: fmt.Sprintf("no member of MySQLCluster %q is ready; waiting until one is (kubectl get mysqlcluster %s shows the problem)", seen.name, seen.name)}
}

func urlObstacle(_ v1.MySQLBackupInstance, seen observed) *report.Problem {
	if seen.urlFault == nil {
		return nil
	}
	return &report.Problem{Reason: reasonURLInvalid, Message: fmt.Sprintf("%v; fix the schedule if the setting comes from there, and create another instance", seen.urlFault), Stalled: true}
}

// claimObstacle checks the volume. A missing claim that the operator may create is no obstacle.
func claimObstacle(instance v1.MySQLBackupInstance, seen observed) *report.Problem {
	name := seen.location.Claim
	switch {
	case name == "" || seen.claim == nil && isDefaultClaim(seen):
		return nil
	case seen.claim == nil:
		return &report.Problem{Reason: protocol.ReasonClaimNotFound, Message: fmt.Sprintf("destination.claim: PersistentVolumeClaim %q does not exist in namespace %q; create it", name, instance.Namespace), Stalled: true}
	case seen.claim.DeletionTimestamp != nil:
		return &report.Problem{Reason: protocol.ReasonClaimNotFound, Message: fmt.Sprintf("PersistentVolumeClaim %q is being deleted; once it is gone, create it again", name), Stalled: true}
	case seen.claim.Status.Phase == corev1.ClaimLost:
		return &report.Problem{Reason: protocol.ReasonVolumePending, Message: fmt.Sprintf("PersistentVolumeClaim %q has lost its volume; delete the claim, or bring its volume back", name), Stalled: true}
	case instance.Status.Location == nil && isDefaultClaim(seen) && !isOurs(seen.claim.Labels):
		return &report.Problem{Reason: report.ReasonForeignObject, Message: fmt.Sprintf("PersistentVolumeClaim %q exists already and was not made by this operator for backups; name it in destination.claim to store backups there, or rename it", name), Stalled: true}
	}
	return nil
}

// isDefaultClaim reports whether the claim is the one that the operator creates.
func isDefaultClaim(seen observed) bool {
	return seen.settings.Destination == nil || seen.settings.Destination.Claim == ""
}

// volumePending explains a claim that has no volume while a Pod waits for it.
func volumePending(claim *corev1.PersistentVolumeClaim) *report.Problem {
	switch {
	case claim == nil || claim.Status.Phase != corev1.ClaimPending:
		return nil
	case claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "":
		return &report.Problem{Reason: protocol.ReasonNoStorageClass, Message: fmt.Sprintf("PersistentVolumeClaim %s waits because this Kubernetes cluster has no default StorageClass; make one the default (Kubernetes then assigns it to waiting claims), or delete the claim and set storageClassName", claim.Name), Stalled: true}
	}
	return &report.Problem{Reason: protocol.ReasonVolumePending, Message: fmt.Sprintf("PersistentVolumeClaim %s waits for StorageClass %s to provision its volume; kubectl describe pvc %s shows why", claim.Name, *claim.Spec.StorageClassName, claim.Name)}
}
