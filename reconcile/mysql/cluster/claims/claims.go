// Package claims looks at the PersistentVolumeClaims of members, and enlarges them.
package claims

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// managerStorage is the field manager that owns the size of a claim.
const managerStorage = reconcile.ManagerChildren + "-storage"

// ReasonExpansion is the reason of a problem with the size of a claim.
const ReasonExpansion = "StorageExpansionRefused"

// Diagnose returns why Kubernetes creates no volume for a claim, as far as only a user can fix it; nil for no such cause.
func Diagnose(volume corev1.PersistentVolumeClaim) *report.Problem {
	if volume.Status.Phase != corev1.ClaimPending {
		return nil
	}
	if volume.Spec.StorageClassName == nil || *volume.Spec.StorageClassName == "" {
		return &report.Problem{Reason: protocol.ReasonNoStorageClass, Message: fmt.Sprintf("volume claim %s waits because this Kubernetes cluster has no default StorageClass; make one the default (Kubernetes then assigns it to waiting claims), or create the cluster with spec.storageClassName", volume.Name), Stalled: true}
	}
	return nil
}

// Grow raises a claim to a size. A refusal by the API server stands for a problem. Any other failure is a transient error.
func Grow(ctx context.Context, client *reconcile.Client, volume corev1.PersistentVolumeClaim, wanted resource.Quantity) error {
	claim := corev1ac.PersistentVolumeClaim(volume.Name, volume.Namespace).WithSpec(corev1ac.PersistentVolumeClaimSpec().
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: wanted})))
	_, err := client.ApplyFields(ctx, managerStorage, claim)
	if err != nil && report.FromError(err) == nil {
		return fmt.Errorf("expand %s to %s: %w", volume.Name, wanted.String(), err)
	}
	if err != nil {
		asked := volume.Spec.Resources.Requests[corev1.ResourceStorage]
		return report.Problem{Reason: ReasonExpansion, Message: fmt.Sprintf("spec.storage: %s cannot grow from %s to %s: %v; allow expansion in the StorageClass, otherwise the volumes keep their size", volume.Name, asked.String(), wanted.String(), err), Stalled: true}.Err()
	}
	return nil
}
