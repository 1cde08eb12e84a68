package backup

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// step is what a pass has to do.
type step string

const (
	// stepWait: something is missing, or on its way.
	stepWait step = "wait"
	// stepBegin: nothing is missing; the claim is made where it has to be, and the location goes on record.
	stepBegin step = "begin"
	// stepStart: the location is on record; the Job is made.
	stepStart step = "start"
	// stepFollow: a Pod is at work.
	stepFollow step = "follow"
	// stepAsk: the Job is deleted, so that another one tells what it made.
	stepAsk step = "ask"
	// stepStop: the Job is deleted, with its Pod.
	stepStop step = "stop"
	// stepComplete and stepFail: it is over.
	stepComplete step = "complete"
	stepFail     step = "fail"
)

// decision is what a pass does, and why.
type decision struct {
	step step
	// why is what is waited for, or why the backup failed; empty otherwise.
	why problem
}

// isOver says that nothing follows a phase.
func isOver(phase v1.BackupPhase) bool {
	return phase == v1.BackupCompleted || phase == v1.BackupFailed
}

// decide decides what a backup that is not over needs next.
func decide(instance v1.MySQLBackupInstance, seen sight) decision {
	if seen.transfer.Phase == transfer.Succeeded {
		return ended(instance, seen)
	}
	if seen.transfer.Phase != transfer.Failed && outlived(seen) {
		return decision{stepFail, unended(seen)}
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
		return decision{stepWait, problem{transfer.ReasonScheduled, "a Pod of its former Job, which may still write, has not ended; another Job is made when it has: if its node is gone, delete the node", false}}
	case instance.Status.Location == nil:
		return decision{step: stepBegin}
	}
	return decision{step: stepStart}
}

// timeLeft is for how long a backup that is not complete may go on before it fails, waiting and all attempts included. It is measured from
// when this process first knew the instance, with its own clock. The creation time is that of the API server's clock: it only ends a backup
// that is more than twice as old as it may be, so that operators that take over from each other, and count anew, do not wait for ever.
func timeLeft(instance v1.MySQLBackupInstance, seen sight) time.Duration {
	limit := limitOf(seen)
	old := seen.now.Sub(instance.CreationTimestamp.Time) - limit - transfer.ClockTolerance
	return limit - max(seen.waited, old)
}

func limitOf(seen sight) time.Duration {
	return time.Duration(*seen.settings.ActiveDeadlineSeconds) * time.Second
}

func overdue(seen sight, found *problem) problem {
	message := fmt.Sprintf("not complete within activeDeadlineSeconds (%s)", limitOf(seen))
	if found != nil {
		message += "; at last: " + found.message
	}
	return problem{transfer.ReasonDeadlineExceeded, message, true}
}

// outlived says that a Job is there long after its deadline. Kubernetes ends it then, but not before its Pods have ended, and a Pod whose
// node is gone never does. Nothing else may wait for it for ever: no further backup of its schedule would be made. It is measured by this
// process' own clock: one that is ahead of the API server's must not end a backup.
func outlived(seen sight) bool {
	if seen.job == nil || seen.job.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	limit := time.Duration(*seen.job.Spec.ActiveDeadlineSeconds) * time.Second
	return seen.known > limit+patience || seen.doomed > patience
}

func unended(seen sight) problem {
	limit := time.Duration(*seen.job.Spec.ActiveDeadlineSeconds) * time.Second
	message := fmt.Sprintf("its Job %s was to end within %s, and has not: is the node of its Pod gone?", seen.job.Name, limit)
	if said := cleanMessage(seen.transfer.Message); said != "" {
		message += " " + said
	}
	return problem{transfer.ReasonDeadlineExceeded, message, true}
}

// ended judges a Job that succeeded. Only what its Pod said itself makes a backup Completed.
func ended(instance v1.MySQLBackupInstance, seen sight) decision {
	outcome := seen.transfer.Outcome
	switch {
	case outcome == nil:
		return untold(instance, seen)
	case outcome.Reason != transfer.ReasonCompleted, outcome.Checksum == "", outcome.Size <= 0, outcome.DataSize <= 0:
		return decision{stepFail, unproven(instance, fmt.Sprintf("its Pod ended well, but said %q with the checksum %q and the sizes %d and %d", outcome.Reason, outcome.Checksum, outcome.DataSize, outcome.Size))}
	case outcome.UID != "" && outcome.UID != string(instance.UID):
		return decision{stepFail, unproven(instance, fmt.Sprintf("its Pod speaks of the backup with the UID %s", outcome.UID))}
	}
	return decision{step: stepComplete}
}

// untold is a Job that succeeded and has nobody left to say what it made: its Pod is gone, with its node for example. Another Job is made,
// whose Pod looks at the destination first: it finds the whole backup of this very instance there and tells of it, or else makes one. That
// happens once, and where such a Pod could work; two that have nothing to say are no accident.
func untold(instance v1.MySQLBackupInstance, seen sight) decision {
	_, replaced := instance.Annotations[transfer.AnnotationReplaced]
	if seen.former > 0 || replaced || timeLeft(instance, seen) <= 0 || clusterObstacle(instance, seen) != nil {
		return decision{stepFail, unproven(instance, seen.transfer.Message)}
	}
	return decision{stepAsk, problem{transfer.ReasonScheduled, fmt.Sprintf("its Job succeeded, but what it made is not known (%s); another Pod looks at the destination", cleanMessage(seen.transfer.Message)), false}}
}

// unproven is a Job that says that all went well, without the Pod's word for it: most likely there is a good backup, but nobody may rely on
// it unseen.
func unproven(instance v1.MySQLBackupInstance, what string) problem {
	return problem{transfer.ReasonPodsFailed, fmt.Sprintf("the Job succeeded, but what it made is not known (%s): there may be a good backup; mysql-operator backup verify --from %s tells, and spec.fromBackupURL of a MySQLCluster restores it; or make another backup", what, urlOf(instance)), true}
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

// replace ends a backup whose schedule makes another one in its place. It has failed when nothing of it is at work any more: until then
// it may still come to its end.
func replace(seen sight) decision {
	failed := problem{transfer.ReasonReplaced, "the schedule's next backup took its place (concurrencyPolicy Replace)", true}
	switch {
	case seen.job != nil && seen.transfer.Phase == transfer.Failed:
		return decision{stepFail, failed}
	case seen.job != nil && seen.job.DeletionTimestamp == nil:
		return decision{stepStop, ending("is replaced by the schedule's next backup")}
	case seen.job != nil || seen.pods > 0:
		return decision{stepWait, ending("is replaced by the schedule's next backup")}
	}
	return decision{stepFail, failed}
}

func ending(because string) problem {
	return problem{transfer.ReasonReplaced, because + "; waits for its Pod to end", false}
}

// follow says how a Job goes that has not succeeded.
func follow(instance v1.MySQLBackupInstance, seen sight) decision {
	switch seen.transfer.Phase {
	case transfer.Failed:
		if pause := pauseAfter(seen); seen.transfer.Lingers && !seen.transfer.Refused && pause > 0 {
			return repeat(seen, pause)
		}
		return decision{stepFail, problem{reasonOr(seen.transfer, transfer.ReasonPodsFailed), cleanMessage(seen.transfer.Message), true}}
	case transfer.Running:
		return decision{step: stepFollow}
	case transfer.Pending, transfer.Succeeded:
	}
	return decision{stepWait, pending(instance, seen)}
}

// repeat makes another attempt where Kubernetes does not, since another container of the Pod runs on: the Job is deleted, with its Pod, and
// another one is made.
func repeat(seen sight, pause time.Duration) decision {
	why := problem{reasonOr(seen.transfer, transfer.ReasonPodsFailed), "the last attempt failed and is made again by another Job, since another container of its Pod runs on: " + cleanMessage(seen.transfer.Message), false}
	if seen.job.DeletionTimestamp != nil || seen.ended < pause {
		return decision{stepWait, why}
	}
	return decision{stepAsk, why}
}

// pauseAfter is how long to wait after the latest attempt, as Kubernetes does between the Pods of a Job; 0 after as many attempts as it
// makes.
func pauseAfter(seen sight) time.Duration {
	const first, longest = 10 * time.Second, 6 * time.Minute
	attempts := seen.former + seen.transfer.Attempts
	if attempts > transfer.Retries {
		return 0
	}
	return min(first<<max(0, attempts-1), longest)
}

// pending says what a Pod waits for.
func pending(instance v1.MySQLBackupInstance, seen sight) problem {
	state := seen.transfer
	switch {
	case seen.job.DeletionTimestamp != nil:
		return problem{transfer.ReasonScheduled, "its Job was deleted; another one is made when that is gone", false}
	case seen.refused != "":
		return problem{reasonPodsNotCreated, fmt.Sprintf("Kubernetes does not make the Pod of Job %s: %s; once that is put right it tries again by itself, within minutes", seen.job.Name, seen.refused), true}
	case state.Reason == transfer.ReasonImagePullFailed:
		// kubelet's words alternate; the Pod is what a person needs to know.
		return problem{state.Reason, fmt.Sprintf("the operator's image cannot be pulled for Pod %s; check that the node may pull it (kubectl describe pod %s tells more)", state.Pod, state.Pod), true}
	case state.Attempts > 0 && state.Reason != "":
		return problem{state.Reason, "the last attempt failed and is made again: " + cleanMessage(state.Message), false}
	}
	// Something that the Pod needs may have gone after it was asked for.
	if found := obstacle(instance, seen); found != nil && found.reason != transfer.ReasonClusterNotReady && found.reason != transfer.ReasonWaitingForCluster {
		return *found
	}
	if found := volumePending(seen.claim); found != nil && state.Reason != "" {
		return *found
	}
	return problem{reasonOr(state, transfer.ReasonScheduled), cleanMessage(state.Message), false}
}

func reasonOr(state transfer.State, reason string) string {
	if state.Reason != "" && state.Reason != transfer.ReasonCompleted {
		return state.Reason
	}
	return reason
}

// longestMessage bounds, in bytes, what a status repeats of others' words.
const longestMessage = 4096

// cleanMessage makes others' words fit to be kept: text, and not too much of it.
func cleanMessage(text string) string {
	if len(text) > longestMessage {
		text = text[:longestMessage] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// obstacle finds what a backup lacks to begin; nil for nothing. The order is that in which people put things right.
func obstacle(instance v1.MySQLBackupInstance, seen sight) *problem {
	for _, look := range []func(v1.MySQLBackupInstance, sight) *problem{clusterObstacle, urlObstacle, credentialsObstacle, keyObstacle, claimObstacle} {
		if found := look(instance, seen); found != nil {
			return found
		}
	}
	return nil
}

func clusterObstacle(instance v1.MySQLBackupInstance, seen sight) *problem {
	namespace := instance.Namespace
	switch {
	case seen.name == "" && seen.scheduleMissing:
		return &problem{reasonScheduleNotFound, fmt.Sprintf("spec.schedule: MySQLBackupSchedule %q does not exist in namespace %q, and spec.cluster does not say what to back up; create it, or create another instance with spec.cluster", instance.Spec.Schedule, namespace), false}
	case seen.cluster == nil:
		return &problem{transfer.ReasonClusterNotFound, fmt.Sprintf("MySQLCluster %q does not exist in namespace %q; backups are made in their cluster's own namespace and under the name it has now: create the cluster, or create another instance that names the right one", seen.name, namespace), false}
	case seen.cluster.DeletionTimestamp != nil:
		return &problem{transfer.ReasonClusterNotReady, fmt.Sprintf("MySQLCluster %q is being deleted", seen.name), false}
	case seen.cluster.Status.ReadyReplicas > 0:
		return nil
	case seen.cluster.Status.Primary == "":
		return &problem{transfer.ReasonWaitingForCluster, fmt.Sprintf("MySQLCluster %q has no members yet; waits until one serves (kubectl get mysqlcluster %s tells what it waits for)", seen.name, seen.name), false}
	}
	return &problem{transfer.ReasonClusterNotReady, fmt.Sprintf("no member of MySQLCluster %q serves; waits until one does (kubectl get mysqlcluster %s tells what is wrong)", seen.name, seen.name), false}
}

func urlObstacle(_ v1.MySQLBackupInstance, seen sight) *problem {
	if seen.urlFault == nil {
		return nil
	}
	return &problem{reasonURLInvalid, fmt.Sprintf("%v; create another instance, or correct the schedule and create another instance", seen.urlFault), true}
}

// claimObstacle looks at the volume. One that the operator may make is no obstacle while it is missing.
func claimObstacle(instance v1.MySQLBackupInstance, seen sight) *problem {
	name := seen.location.Claim
	switch {
	case name == "" || seen.claim == nil && isDefaultClaim(seen):
		return nil
	case seen.claim == nil:
		return &problem{transfer.ReasonClaimNotFound, fmt.Sprintf("destination.claim: PersistentVolumeClaim %q does not exist in namespace %q; create it", name, instance.Namespace), true}
	case seen.claim.DeletionTimestamp != nil:
		return &problem{transfer.ReasonClaimNotFound, fmt.Sprintf("PersistentVolumeClaim %q is being deleted; once it is gone, create it again", name), true}
	case seen.claim.Status.Phase == corev1.ClaimLost:
		return &problem{transfer.ReasonVolumePending, fmt.Sprintf("PersistentVolumeClaim %q has lost its volume; delete the claim, or bring its volume back", name), true}
	case instance.Status.Location == nil && isDefaultClaim(seen) && !isOurs(seen.claim.Labels):
		return &problem{reasonForeignObject, fmt.Sprintf("PersistentVolumeClaim %q exists already and was not made by this operator for backups; to have backups there name it in destination.claim, or rename it", name), true}
	}
	return nil
}

// isDefaultClaim says whether the claim is the one that the operator makes.
func isDefaultClaim(seen sight) bool {
	return seen.settings.Destination == nil || seen.settings.Destination.Claim == ""
}

// volumePending explains a claim that has no volume while a Pod waits for it.
func volumePending(claim *corev1.PersistentVolumeClaim) *problem {
	switch {
	case claim == nil || claim.Status.Phase != corev1.ClaimPending:
		return nil
	case claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "":
		return &problem{reasonNoStorageClass, fmt.Sprintf("PersistentVolumeClaim %s waits because this Kubernetes has no default StorageClass; make one the default (Kubernetes then assigns it to waiting claims), or delete the claim and set storageClassName", claim.Name), true}
	}
	return &problem{transfer.ReasonVolumePending, fmt.Sprintf("PersistentVolumeClaim %s waits for StorageClass %s to make its volume; kubectl describe pvc %s tells why", claim.Name, *claim.Spec.StorageClassName, claim.Name), false}
}
