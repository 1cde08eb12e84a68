package tdset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "mysql-operator"
	nameValue      = "tdset"

	// managedSelector selects all objects that the operator creates for TDSets.
	managedSelector = labelManagedBy + "=" + managedBy + "," + labelName + "=" + nameValue

	// annotationScaled, on the Deployment, is the reason for its current replicas: "5 since 2026-11-21T09:00:00Z".
	annotationScaled = schema.ScheduleGroup + "/scaled"

	// containerName names the container and its port. A TDSet's own name may be too long for both.
	containerName = "app"
)

// labelsOf returns the labels of all children of a TDSet; they also select its Pods.
func labelsOf(set v1.TDSet) map[string]string {
	return map[string]string{labelName: nameValue, labelInstance: set.Name, labelManagedBy: managedBy}
}

func selectorOf(set v1.TDSet) string {
	return labels.SelectorFromSet(labelsOf(set)).String()
}

// deploymentFor returns the wanted Deployment. It leaves out replicas if another client sets them. Otherwise it sets them only on the
// version that the pass saw: the cache may not show yet what another client scaled a moment ago.
func deploymentFor(set v1.TDSet, made decision) *appsv1ac.DeploymentApplyConfiguration {
	container := corev1ac.Container().WithName(containerName).WithImage(set.Spec.Container.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithPorts(corev1ac.ContainerPort().WithName(containerName).WithProtocol(corev1.ProtocolTCP).WithContainerPort(set.Spec.Container.Port))
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labelsOf(set))).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labelsOf(set)).WithSpec(corev1ac.PodSpec().WithContainers(container)))
	spec.Replicas = made.replicas
	wanted := appsv1ac.Deployment(set.Name, set.Namespace).WithLabels(labelsOf(set)).WithSpec(spec)
	if made.version != "" {
		wanted.WithResourceVersion(made.version)
	}
	if made.mark != "" {
		wanted.WithAnnotations(map[string]string{annotationScaled: made.mark})
	}
	return wanted
}

// serviceFor returns the wanted Service of a TDSet that asks for one.
func serviceFor(set v1.TDSet) *corev1ac.ServiceApplyConfiguration {
	port := set.Spec.Service.Port
	if port == 0 {
		port = set.Spec.Container.Port
	}
	return corev1ac.Service(set.Name, set.Namespace).WithLabels(labelsOf(set)).WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(labelsOf(set)).
		WithPorts(corev1ac.ServicePort().WithName(containerName).WithProtocol(corev1.ProtocolTCP).
			WithPort(port).WithTargetPort(intstr.FromString(containerName))))
}
