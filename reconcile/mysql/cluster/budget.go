package cluster

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// budget lets a drain evict one member at a time.
func budget(n names) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(n.cluster, n.namespace).WithLabels(n.labels()).WithSpec(policyv1ac.PodDisruptionBudgetSpec().
		WithMaxUnavailable(intstr.FromInt32(1)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(n.labels())))
}

// serviceAccount is the members' own: it has no permissions, and its token is not mounted.
func serviceAccount(n names) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(n.cluster, n.namespace).WithLabels(n.labels()).WithAutomountServiceAccountToken(false)
}
