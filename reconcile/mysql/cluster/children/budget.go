package children

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// PodDisruptionBudget lets a drain evict one member at a time.
func PodDisruptionBudget(n Names) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(n.Cluster, n.Namespace).WithLabels(n.Labels()).WithSpec(policyv1ac.PodDisruptionBudgetSpec().
		WithMaxUnavailable(intstr.FromInt32(1)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(n.Labels())))
}

// ServiceAccount is the members' own: it has no permissions, and its token is not mounted.
func ServiceAccount(n Names) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(n.Cluster, n.Namespace).WithLabels(n.Labels()).WithAutomountServiceAccountToken(false)
}
