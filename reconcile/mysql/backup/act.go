package backup

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// managerStorage is the field manager that owns the size of expanded claims.
const managerStorage = reconcile.ManagerChildren + "-storage"

// act carries out the decision, and returns the status that follows.
func (r *reconciler) act(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, seen observed, decided decision) (v1.MySQLBackupInstanceStatus, error) {
	switch decided.step {
	case stepBegin:
		if err := r.provide(ctx, client, instance, seen); err != nil {
			return v1.MySQLBackupInstanceStatus{}, err
		}
		return begun(instance, seen), nil
	case stepStart:
		if err := r.provide(ctx, client, instance, seen); err != nil {
			return v1.MySQLBackupInstanceStatus{}, err
		}
		return waiting(instance, seen, starting()), r.start(ctx, client, instance, seen)
	case stepAsk:
		status := waiting(instance, seen, decided.why)
		status.Attempts = max(status.Attempts, 1) // so that the next Job knows that it is not the first
		return status, r.stop(ctx, client, instance)
	case stepStop:
		return waiting(instance, seen, decided.why), r.stop(ctx, client, instance)
	case stepFollow:
		return followed(instance, seen), nil
	case stepComplete:
		return completed(instance, seen), nil
	case stepFail:
		return failed(instance, seen, decided.why), nil
	case stepWait:
	}
	return waiting(instance, seen, decided.why), nil
}

// provide creates the operator's own claim if it is missing, and expands an existing one to the size in the settings. The claim has no
// owner: backups outlive their schedule, their cluster and their instances.
func (r *reconciler) provide(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, seen observed) error {
	if seen.location.Claim == "" || !isDefaultClaim(seen) {
		return nil
	}
	if seen.claim != nil {
		return expand(ctx, client, seen)
	}
	_, err := client.CreateUnowned(ctx, claimFor(instance.Namespace, seen))
	if apierrors.IsAlreadyExists(err) {
		return nil // another backup created it just now; the next pass checks its labels
	}
	if err == nil {
		logr.FromContextOrDiscard(ctx).Info("claim created", "op", "provide", "claim", seen.location.Claim)
	}
	return err
}

// claimFor returns the claim of the volume for backups, as the operator creates it.
func claimFor(namespace string, seen observed) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: seen.settings.Storage}))
	if seen.settings.StorageClassName != nil {
		spec.WithStorageClassName(*seen.settings.StorageClassName)
	}
	return corev1ac.PersistentVolumeClaim(seen.location.Claim, namespace).WithLabels(transfer.ClaimLabels()).WithSpec(spec)
}

// expand requests a larger volume if the settings do. It never makes a volume smaller. If the StorageClass refuses, the backup is tried
// anyway: there may be enough space.
func expand(ctx context.Context, client *reconcile.Client, seen observed) error {
	asked, wanted := seen.claim.Spec.Resources.Requests[corev1.ResourceStorage], seen.settings.Storage
	if seen.claim.Status.Phase != corev1.ClaimBound || asked.Cmp(wanted) >= 0 {
		return nil
	}
	claim := corev1ac.PersistentVolumeClaim(seen.claim.Name, seen.claim.Namespace).WithSpec(corev1ac.PersistentVolumeClaimSpec().
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: wanted})))
	_, err := client.ApplyFields(ctx, managerStorage, claim)
	if err != nil && report.FromError(err) != nil {
		logr.FromContextOrDiscard(ctx).Info("failed to expand the claim, using its current size", "op", "expand", "claim", seen.claim.Name, "reason", err.Error())
		return nil
	}
	return err
}

// start creates the Job. It does not if the API server has a Pod of a previous Job that the cache does not have yet: two Pods would write
// to one place.
func (r *reconciler) start(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, seen observed) error {
	left, err := r.podsOf(ctx, instance, true)
	if err != nil || countWriting(left) > 0 {
		return err
	}
	job := transfer.BackupJob(transfer.BackupOrder{
		Namespace: instance.Namespace, Cluster: seen.name, Instance: instance.Name, UID: string(instance.UID),
		Port: seen.cluster.Spec.Port, Location: seen.location, EncryptionKey: keyFor(seen.key), BandwidthLimit: seen.settings.BandwidthLimit.Value(),
		Deadline: int64(math.Ceil(timeLeft(instance, seen).Seconds())), Image: r.image,
	})
	if former := instance.Status.Attempts; former > 0 {
		job.WithAnnotations(map[string]string{transfer.AnnotationAttempts: strconv.Itoa(int(former))})
	}
	_, err = client.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		return r.refuseForeignJob(ctx, client, instance.Namespace, *job.Name)
	}
	if err == nil {
		logr.FromContextOrDiscard(ctx).Info("job created", "op", "start", "job", *job.Name, "cluster", seen.name, "url", seen.location.URL)
	}
	return err
}

// refuseForeignJob checks who owns a Job that already exists. The instance's own Job is no error: an earlier pass created it and did not
// receive the answer.
func (r *reconciler) refuseForeignJob(ctx context.Context, client *reconcile.Client, namespace, name string) error {
	job, err := r.reader.Get(ctx, jobs(), namespace, name)
	if apierrors.IsNotFound(err) {
		return nil // it is gone again; the next pass creates one
	}
	if err != nil {
		return err
	}
	return client.CheckOwnership(job, jobs(), nil)
}

// stop deletes the backup's Job, as the API server has it now.
func (r *reconciler) stop(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) error {
	job, err := r.ownJob(ctx, instance, true)
	if job == nil || err != nil || job.GetDeletionTimestamp() != nil {
		return err
	}
	if err := client.Delete(ctx, jobs(), job); err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("job deleted", "op", "stop", "job", job.GetName())
	return nil
}

// requeueAfter returns the requeue time of a backup that is not over.
func requeueAfter(instance v1.MySQLBackupInstance, seen observed, decided decision) time.Duration {
	switch decided.step {
	case stepComplete, stepFail:
		if seen.job != nil && !transfer.IsFinished(seen.job) {
			return time.Second // the next pass may have to delete the Job
		}
		return 0
	case stepFollow:
		return pollEvery
	case stepWait, stepBegin, stepStart, stepStop, stepAsk:
	}
	return max(time.Second, min(helpEvery, timeLeft(instance, seen)))
}

func starting() report.Problem {
	return report.Problem{Reason: protocol.ReasonScheduled, Message: "creating its Job"}
}

// where describes where the data of an instance is.
func where(location v1.BackupLocation) string {
	if location.Claim != "" {
		return fmt.Sprintf("%s in the volume of claim %s", location.URL, location.Claim)
	}
	return location.URL
}
