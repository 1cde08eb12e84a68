package pulsarconsumer

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/podenv"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	name           = "pulsar-consumer"
	managedBy      = "mysql-operator"

	// managedSelector selects the Deployments of all PulsarConsumers.
	managedSelector = labelManagedBy + "=" + managedBy + "," + labelName + "=" + name
)

const (
	// containerName is the name of the consumer's container.
	containerName = "consumer"
	// consumerUser is the user of every consumer. It is a number, because an image need not have a name for it.
	consumerUser = 65532
	// secretMode lets only the Pod's user and group read.
	secretMode = 0o440
	// The least that a consumer of the operator's image needs, with small messages. For large messages it may use podenv.Memory.
	memoryRequest = "32Mi"
	cpuRequest    = "10m"
	// readyPeriod is the period of the readiness probe, in seconds.
	readyPeriod = 2
)

// deploymentName returns the name that the founding document gives the Deployment.
func deploymentName(consumer v1.PulsarConsumer) string {
	return consumer.Name + "-deployment"
}

// labelsOf returns the labels of the Deployment and its Pods, which also select the Pods. They do not depend on the labels of the resource:
// users own those, may leave them out, and may change them, and a selector must not change.
func labelsOf(consumer v1.PulsarConsumer) map[string]string {
	return map[string]string{labelName: name, labelInstance: consumer.Name, labelManagedBy: managedBy}
}

func selectorOf(consumer v1.PulsarConsumer) string {
	return labels.SelectorFromSet(labelsOf(consumer)).String()
}

// deployment returns the Deployment that runs the consumers. ownImage is the operator's image.
func deployment(consumer v1.PulsarConsumer, ownImage string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(deploymentName(consumer), consumer.Namespace).WithLabels(labelsOf(consumer)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(consumer.Spec.Replicas).
			WithRevisionHistoryLimit(3).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labelsOf(consumer))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labelsOf(consumer)).WithSpec(podSpec(consumer, ownImage))))
}

// podSpec meets the Pod Security Standard restricted with any image.
func podSpec(consumer v1.PulsarConsumer, ownImage string) *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		// Otherwise a Service named pulsar would add variables that begin with PULSAR_.
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(podenv.StopSeconds).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(consumerUser).WithRunAsGroup(consumerUser).WithFSGroup(consumerUser).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
	image := cmp.Or(consumer.Spec.Image, ownImage)
	container := consumerContainer(consumer, image)
	if lastPart(image) == lastPart(ownImage) {
		ownContainer(container)
	}
	if consumer.Spec.Secret != "" {
		container.WithEnv(env(podenv.Credentials, podenv.CredentialsDir)).
			WithVolumeMounts(corev1ac.VolumeMount().WithName("credentials").WithMountPath(podenv.CredentialsDir).WithReadOnly(true))
		// Without optional, a Pod without its Secret would not start. With it, the program starts and logs what is missing.
		spec.WithVolumes(corev1ac.Volume().WithName("credentials").WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(consumer.Spec.Secret).WithDefaultMode(secretMode).WithOptional(true)))
	}
	return spec.WithContainers(container)
}

// lastPart returns the last part of an image's name, without its tag and digest. The operator's image stays the operator's image with
// another tag, digest or registry.
func lastPart(image string) string {
	name, _, _ := strings.Cut(image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}

func consumerContainer(consumer v1.PulsarConsumer, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName(containerName).WithImage(image).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithEnv(
			env(podenv.Server, consumer.Spec.ServerAddress),
			env(podenv.Topic, consumer.Spec.Topic),
			env(podenv.Subscription, consumer.Spec.SubscriptionName),
			corev1ac.EnvVar().WithName(podenv.Consumer).WithValueFrom(corev1ac.EnvVarSource().
				WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.name"))))
}

// ownContainer sets what the operator knows about its own image only.
func ownContainer(container *corev1ac.ContainerApplyConfiguration) {
	container.WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(podenv.ConsumeCommand).
		WithPorts(corev1ac.ContainerPort().WithName("health").WithProtocol(corev1.ProtocolTCP).WithContainerPort(podenv.HealthPort)).
		WithReadinessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithScheme(corev1.URISchemeHTTP).WithPort(intstr.FromInt32(podenv.HealthPort)).WithPath(podenv.ReadyPath)).
			WithPeriodSeconds(readyPeriod).WithTimeoutSeconds(2).WithFailureThreshold(2)).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuRequest), corev1.ResourceMemory: resource.MustParse(memoryRequest)}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(podenv.Memory, resource.BinarySI)}))
	container.SecurityContext.WithReadOnlyRootFilesystem(true)
}

// env returns a variable with exactly this value: without the escape, Kubernetes would replace $(NAME) in it (API reference, EnvVar).
func env(name, value string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValue(strings.ReplaceAll(value, "$", "$$"))
}
