package restore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// On the Job: how many Pods earlier Jobs of the restore had, and what inputs were when it was created.
	annotationAttempts = children.Prefix + "restore-attempts"
	annotationInputs   = children.Prefix + "restore-inputs"
)

// orderOf returns the order of a cluster's restore from a URL. For the backup of an instance, the caller sets the location.
func orderOf(cluster v1.MySQLCluster, image string, adoptOnly bool) transfer.RestoreOrder {
	order := transfer.RestoreOrder{
		Namespace: cluster.Namespace, Cluster: cluster.Name, ClusterUID: string(cluster.UID), DataClaim: children.NamesOf(cluster).Claim(0),
		Location: v1.BackupLocation{URL: cluster.Spec.FromBackupURL}, AdoptOnly: adoptOnly,
		Image: image, ServerResources: cluster.Spec.Resources, ServerSettings: protocol.DataSettings(cluster.Spec.Config),
	}
	if cluster.Spec.Restore != nil {
		order.BandwidthLimit = cluster.Spec.Restore.BandwidthLimit.Value()
		order.Checksum = cluster.Spec.Restore.Checksum
	}
	return order
}

// overridden returns a location with the fields that the user sets instead.
func overridden(location v1.BackupLocation, settings *v1.RestoreSettings) v1.BackupLocation {
	if settings == nil {
		return location
	}
	for _, field := range []struct {
		into *string
		from string
	}{
		{&location.Claim, settings.Claim}, {&location.Secret, settings.Secret},
		{&location.ServiceAccountName, settings.ServiceAccountName}, {&location.EncryptionSecret, settings.EncryptionSecret},
	} {
		if field.from != "" {
			*field.into = field.from
		}
	}
	return location
}

// notRestorable says why an instance cannot be restored; nil if it can. instance is nil if it does not exist.
func notRestorable(cluster v1.MySQLCluster, instance *v1.MySQLBackupInstance, seen Observed) *report.Problem {
	name := cluster.Spec.FromBackup
	about := func(reason, format string, values ...any) *report.Problem {
		return &report.Problem{Reason: reason, Message: "spec.fromBackup: " + fmt.Sprintf(format, values...), Stalled: true}
	}
	switch {
	case instance == nil:
		return about(protocol.ReasonBackupNotFound, "MySQLBackupInstance %q does not exist in namespace %q; the operator creates the cluster once it exists%s", name, cluster.Namespace, otherWays(cluster, seen))
	case instance.DeletionTimestamp != nil:
		return about(protocol.ReasonBackupNotFound, "MySQLBackupInstance %q is being deleted%s", name, otherWays(cluster, seen))
	case instance.Status.Phase == v1.BackupFailed:
		return about(protocol.ReasonBackupFailed, "MySQLBackupInstance %q failed, so there is no backup of that name; delete this MySQLCluster and apply it with another backup", name)
	case instance.Status.Phase != v1.BackupCompleted:
		return &report.Problem{Reason: protocol.ReasonBackupNotCompleted, Message: fmt.Sprintf("spec.fromBackup: MySQLBackupInstance %q is not complete yet; the operator restores the cluster once it is", name)}
	case instance.Status.Location == nil || instance.Status.Location.URL == "":
		return about(protocol.ReasonBackupNotFound, "MySQLBackupInstance %q does not say where its data is (status.location); name the place in spec.fromBackupURL of a new MySQLCluster", name)
	}
	return nil
}

// otherWays says what else the user can do while there is no backup.
func otherWays(cluster v1.MySQLCluster, seen Observed) string {
	claims := claimsOf(seen)
	switch {
	case HasBegun(cluster.Status):
		return fmt.Sprintf("; the restore had begun from %s: if the data is still there, delete this MySQLCluster and apply it with spec.fromBackupURL", cluster.Status.Restore.URL)
	case len(claims) > 0:
		return fmt.Sprintf("; to use the data of an earlier cluster on %s instead, remove the field", strings.Join(claims, ", "))
	}
	return "; to start without a backup, remove the field"
}

// inputsOf identifies the content of everything that an order names: it changes with another Secret, another volume, or a claim that asks
// for more. The claim's capacity is no part of it, because the volume comes after the Job was created.
func inputsOf(versions []string, claim *corev1.PersistentVolumeClaim) string {
	if claim != nil {
		versions = append(versions, string(claim.UID), claim.Spec.Resources.Requests.Storage().String())
	}
	return hashOf(strings.Join(versions, "\n"))
}

// jobOf returns the Job for an order, with the annotations that later passes need.
func jobOf(order transfer.RestoreOrder, attempts int32, inputs string) *batchv1ac.JobApplyConfiguration {
	return transfer.RestoreJob(order).WithAnnotations(map[string]string{annotationAttempts: strconv.Itoa(int(attempts)), annotationInputs: inputs})
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
