package restore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/claims"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// action is one thing to do for a restore.
type action string

const (
	// actWatch: only look again. actRecord: do nothing before the status is written.
	actWatch     action = "Watch"
	actRecord    action = "Record"
	actMakeClaim action = "MakeClaim"
	actGrowClaim action = "GrowClaim"
	actMakeJob   action = "MakeJob"
	actDropJob   action = "DropJob"
	// actAskVersion and actDropVersion: create and delete the Job that asks the cluster's image for its version.
	actAskVersion  action = "AskVersion"
	actDropVersion action = "DropVersion"
)

// Step is what a pass decides: what to do, and what to report meanwhile.
type Step struct {
	act action
	// Status is what the cluster's status says about the restore.
	Status v1.RestoreStatus
	// Problem is why the cluster is not Ready.
	Problem report.Problem
}

// Decide decides what to do next for a cluster that must still be restored.
func Decide(cluster v1.MySQLCluster, seen Observed) Step {
	status := v1.RestoreStatus{Phase: v1.RestorePending}
	if cluster.Status.Restore != nil {
		status = *cluster.Status.Restore
	}
	status.Backup = cluster.Spec.FromBackup
	if seen.order != nil {
		status.URL = seen.order.Location.URL
	}
	switch {
	case seen.members:
		return waitWithoutJob(status, report.Problem{Reason: protocol.ReasonDataExists, Message: fmt.Sprintf("StatefulSet %s of an earlier cluster of this name exists, and the operator never overwrites data; remove spec.fromBackup and spec.fromBackupURL to adopt its members, or delete the StatefulSet and its claims to restore", cluster.Name), Stalled: true})
	case seen.job != nil:
		return decideJob(cluster, seen, status)
	case seen.alive > 0:
		return Step{actWatch, status, underWay("waiting for the Pod of an earlier attempt to end; if its node is gone, delete the node")}
	case seen.lacking != nil:
		return waitWithoutJob(status, *seen.lacking)
	}
	if found := obstacle(cluster, seen); found != nil {
		return waitWithoutJob(status, *found)
	}
	return begin(cluster, seen, status)
}

// begin creates what a restore needs, one object after the other, once the status says that the restore runs.
func begin(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	found := underWay(fmt.Sprintf("restoring %s to %s", sourceOf(cluster), seen.order.DataClaim))
	begun := HasBegun(cluster.Status)
	status.Phase = v1.RestoreRunning
	if status.StartTime == nil {
		at := metav1.NewTime(seen.now.Truncate(time.Second))
		status.StartTime = &at
	}
	wanted := children.WantedStorage(cluster)
	switch {
	case !begun:
		return Step{actRecord, status, found}
	case seen.claim == nil:
		return Step{actMakeClaim, status, found}
	case seen.claim.Status.Phase == corev1.ClaimBound && seen.claim.Spec.Resources.Requests.Storage().Cmp(wanted) < 0:
		return Step{actGrowClaim, status, found}
	}
	return Step{actMakeJob, status, found}
}

// obstacle finds what would make a restore fail, or do harm, before the operator creates anything for it.
func obstacle(cluster v1.MySQLCluster, seen Observed) *report.Problem {
	room := children.WantedStorage(cluster)
	if seen.claim != nil && seen.claim.Status.Capacity.Storage().Cmp(room) > 0 {
		room = *seen.claim.Status.Capacity.Storage()
	}
	switch {
	case seen.claim == nil && len(seen.others) > 0:
		return &report.Problem{Reason: protocol.ReasonDataExists, Message: fmt.Sprintf("there are volumes of an earlier cluster of this name (%s), but none of its first member, and the operator never overwrites data; remove spec.fromBackup and spec.fromBackupURL to adopt them, or delete these claims to restore", strings.Join(seen.others, ", ")), Stalled: true}
	case seen.claim != nil && seen.claim.DeletionTimestamp != nil:
		return &report.Problem{Reason: protocol.ReasonVolumePending, Message: fmt.Sprintf("claim %s is being deleted; when it is gone, the restore begins with a new claim", seen.claim.Name)}
	case seen.dataSize > room.Value():
		return &report.Problem{Reason: protocol.ReasonVolumeTooSmall, Message: fmt.Sprintf("spec.storage: the backup holds %s of data, which is more than %s; raise spec.storage", protocol.Size(seen.dataSize), room.String()), Stalled: true}
	}
	return nil
}

// decideJob decides what to do about a Job that exists.
func decideJob(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	state := seen.state
	status.Phase = v1.RestoreRunning
	status.Attempts = transfer.FormerAttempts(seen.job, annotationAttempts) + state.Attempts
	again := func(why string) Step { return Step{actDropJob, status, underWay(why)} }
	switch {
	case seen.job.DeletionTimestamp != nil:
		return Step{actWatch, status, underWay("waiting until the Job of an earlier attempt is deleted")}
	case state.Phase == transfer.Succeeded && (state.Outcome == nil || state.Outcome.Reason != protocol.ReasonCompleted):
		return decideUntold(cluster, seen, status)
	case state.Phase == transfer.Succeeded:
		return restored(cluster, seen, status)
	case seen.order != nil && seen.job.Annotations[transfer.AnnotationOrder] != transfer.Hash(*seen.order):
		return again("starting the restore again, because its parameters have changed")
	case state.Phase == transfer.Failed:
		return decideFailed(cluster, seen, status)
	}
	return underWayStep(cluster, seen, status)
}

// underWayStep follows a Job that has not ended, and the one that asks the image.
func underWayStep(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	status.Progress = steadyProgress(status.Progress, seen.progress)
	made := ""
	if status.Progress != nil && status.Progress.Bytes > 0 { // before that, the Pod may find that there is nothing to restore
		made = seen.dataVersion
	}
	act, found := decideVersion(cluster, seen, made)
	going := watched(cluster, seen)
	if found != nil && found.Stalled && !going.Stalled {
		going = *found
	}
	return Step{act, status, going}
}

// decideUntold makes another Pod check what was restored to the volume. If two such Pods have nothing to report either, that is no
// accident.
func decideUntold(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	const accidents = 2
	if status.Attempts > accidents && seen.ended < backoff(status.Attempts-accidents) {
		return waitWithoutJob(status, report.Problem{Reason: protocol.ReasonRestoreFailed, Message: fmt.Sprintf("the operator does not know whether %s was restored: %s; check that --agent-image names the operator's image. The operator tries again within half an hour", sourceOf(cluster), seen.state.Message), Stalled: true})
	}
	return Step{actDropJob, status, underWay("checking what was restored to the volume, because the Pod that restored no longer reports it")}
}

// watched describes a Job that has not ended.
func watched(cluster v1.MySQLCluster, seen Observed) report.Problem {
	state := seen.state
	going := fmt.Sprintf("restoring %s to %s", sourceOf(cluster), children.NamesOf(cluster).Claim(0))
	if state.Phase == transfer.Running {
		// There is a message only if the Pod should end, and does not.
		return underWay(cmp.Or(state.Message, going+"; status.restore.progress shows the progress"))
	}
	if seen.claim != nil {
		if found := claims.Diagnose(*seen.claim); found != nil {
			return *found
		}
	}
	switch {
	case seen.refused != "":
		return report.Problem{Reason: protocol.ReasonPodsNotCreated, Message: fmt.Sprintf("Kubernetes does not create the Pod of Job %s: %s; fix that, and Kubernetes tries again within minutes", seen.job.Name, seen.refused), Stalled: true}
	case state.Reason == protocol.ReasonImagePullFailed:
		return report.Problem{Reason: state.Reason, Message: state.Message + "; check that the node may pull the operator's image", Stalled: true}
	case state.Waiting != "":
		return report.Problem{Reason: cmp.Or(state.Reason, protocol.ReasonRestoring), Message: state.Message}
	case state.Reason != "":
		// Only Kubernetes decides whether it creates another Pod, or gives up.
		return underWay(fmt.Sprintf("%s; the last attempt ended with %s: %s", going, state.Reason, state.Message))
	}
	return underWay(going + "; status.restore.progress shows the progress")
}

// decideFailed waits after a failure, until an input has changed or some time has passed.
func decideFailed(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	status.Phase, status.Progress = v1.RestoreFailed, nil
	changed := seen.order != nil && seen.job.Annotations[annotationInputs] != seen.inputs
	if seen.lacking == nil && (changed || seen.ended >= backoff(status.Attempts)) {
		return Step{actDropJob, status, underWay("trying again to restore " + sourceOf(cluster))}
	}
	if wanted := children.WantedStorage(cluster); seen.claim != nil && seen.claim.Status.Phase == corev1.ClaimBound && seen.claim.Spec.Resources.Requests.Storage().Cmp(wanted) < 0 {
		return Step{actGrowClaim, status, underWay(fmt.Sprintf("expanding %s to %s", seen.claim.Name, wanted.String()))}
	}
	if seen.lacking != nil {
		return waitWithoutJob(status, *seen.lacking)
	}
	reason := cmp.Or(seen.state.Reason, protocol.ReasonRestoreFailed)
	message := fmt.Sprintf("%s was not restored: %s; %s", sourceOf(cluster), seen.state.Message, remedy(reason, seen))
	return waitWithoutJob(status, report.Problem{Reason: reason, Message: message, Stalled: true})
}

// remedy returns what a user can do about a restore that failed.
func remedy(reason string, seen Observed) string {
	switch reason {
	case protocol.ReasonDataExists:
		return fmt.Sprintf("remove spec.fromBackup and spec.fromBackupURL to adopt the data on the volumes, or, if it is not needed, delete these claims to restore: %s", strings.Join(claimsOf(seen), ", "))
	case protocol.ReasonVolumeTooSmall:
		return "raise spec.storage"
	case protocol.ReasonSettingsMismatch:
		return "the operator tries again at once"
	case protocol.ReasonCredentialsNotFound, protocol.ReasonDestinationRefused:
		return "fix the Secret, or name another one in spec.restore.secret; the operator then tries again at once, otherwise within half an hour"
	case protocol.ReasonEncryptionKeyNotFound, protocol.ReasonEncryptionKeyInvalid:
		return "put the right key into the Secret, or name another one in spec.restore.encryptionSecret; the operator then tries again at once"
	case protocol.ReasonBackupCorrupt, protocol.ReasonBackupIncomplete, protocol.ReasonBackupForeign, protocol.ReasonBackupNotFound:
		return "if its data cannot be fixed, delete this MySQLCluster and apply it with another backup; the operator tries again within half an hour"
	}
	return fmt.Sprintf("the operator tries again within half an hour; kubectl logs job/%s shows more", seen.job.Name)
}

// complete is the last step: the status says so before the operator creates the members.
func complete(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	told, at := *seen.state.Outcome, metav1.NewTime(seen.now.Truncate(time.Second))
	status.Phase, status.Progress, status.CompletionTime = v1.RestoreCompleted, nil, &at
	status.Checksum, status.ServerVersion = told.Checksum, report.Brief(told.ServerVersion, report.LongestWord)
	status.GTIDExecuted = report.Brief(told.GTIDExecuted, replication.LongestGTIDs)
	if seen.order != nil {
		status.Checksum = cmp.Or(status.Checksum, seen.order.Checksum)
	}
	if told.Used {
		status.Adopted, status.Checksum = true, ""
		return Step{actRecord, status, report.Problem{Reason: protocol.ReasonRestoreAdopted, Message: adoptedNote(cluster, seen) + "; the operator is creating the members"}}
	}
	return Step{actRecord, status, report.Problem{Reason: ReasonCreatingMembers, Message: sourceOf(cluster) + " is restored; the operator is creating the members"}}
}

// adoptedNote says that nothing was restored, and how to get the backup.
func adoptedNote(cluster v1.MySQLCluster, seen Observed) string {
	return fmt.Sprintf("nothing was restored: %s holds data that came from %s and that a cluster has used since, and the operator never overwrites data; to get the backup itself, restore it under another name, or delete this MySQLCluster and the claims %s, which destroys that data, and apply it again",
		children.NamesOf(cluster).Claim(0), sourceOf(cluster), strings.Join(claimsOf(seen), ", "))
}

// claimsOf returns the names of all members' claims.
func claimsOf(seen Observed) []string {
	all := slices.Clone(seen.others)
	if seen.claim != nil {
		all = slices.Insert(all, 0, seen.claim.Name)
	}
	return all
}

// waitWithoutJob waits for a user, or for another event, while no Job runs.
func waitWithoutJob(status v1.RestoreStatus, found report.Problem) Step {
	status.Progress = nil
	if status.Phase == v1.RestoreRunning && found.Stalled {
		status.Phase = v1.RestoreFailed
	}
	return Step{actWatch, status, found}
}

func underWay(message string) report.Problem {
	return report.Problem{Reason: protocol.ReasonRestoring, Message: message}
}

func sourceOf(cluster v1.MySQLCluster) string {
	if cluster.Spec.FromBackup != "" {
		return "backup " + cluster.Spec.FromBackup
	}
	return "the backup at " + cluster.Spec.FromBackupURL
}

// steadyProgress changes with each percent: a status that followed every byte would write to the API server continuously.
func steadyProgress(before *v1.TransferProgress, told *protocol.Progress) *v1.TransferProgress {
	if told == nil {
		return before
	}
	fresh := transfer.StatusProgress(*told)
	if before != nil && before.Percent == fresh.Percent && (before.TotalBytes == 0) == (fresh.TotalBytes == 0) {
		return before
	}
	return &fresh
}

// backoff returns how long to wait after this many Pods have failed.
func backoff(attempts int32) time.Duration {
	patience := retryFirst
	for range max(attempts, 1) - 1 {
		patience = min(2*patience, retryLast)
	}
	return patience
}
