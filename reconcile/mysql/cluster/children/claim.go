package children

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func volumeClaim(n Names, cluster v1.MySQLCluster, size resource.Quantity) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	if cluster.Spec.StorageClassName != nil {
		spec.WithStorageClassName(*cluster.Spec.StorageClassName)
	}
	return corev1ac.PersistentVolumeClaim("data", "").WithLabels(n.Labels()).WithSpec(spec)
}

// FirstClaim returns the first member's claim as the StatefulSet controller would create it. It has no owner: data outlives everything.
func FirstClaim(n Names, cluster v1.MySQLCluster) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	claim := volumeClaim(n, cluster, WantedStorage(cluster))
	return claim.WithName(n.Claim(0)).WithNamespace(n.Namespace)
}

// IsOwnClaim reports whether a claim has the labels of a cluster. A claim of a member has no owner.
func IsOwnClaim(n Names, claim *unstructured.Unstructured) bool {
	labels := claim.GetLabels()
	return labels[LabelManagedBy] == ManagedBy && labels[LabelInstance] == n.Cluster
}
