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
	// consumerUser runs every consumer: a number, since an image need not know it by name.
	consumerUser = 65532
	// secretMode lets the Pod's group, and nobody else, read.
	secretMode = 0o440
	// What a consumer of the operator's image needs at least: small messages. What it may have for large ones is podenv.Memory.
	memoryRequest = "32Mi"
	cpuRequest    = "10m"
	// readyPeriod is how often the kubelet asks, in seconds.
	readyPeriod = 2
)

// deploymentName is the name that the founding document gives the Deployment.
func deploymentName(consumer v1.PulsarConsumer) string {
	return consumer.Name + "-deployment"
}

// labelsOf are on the Deployment and its Pods, and select these. They do not depend on the labels of the resource: those are the user's,
// may be missing, and may change, which a selector must not.
func labelsOf(consumer v1.PulsarConsumer) map[string]string {
	return map[string]string{labelName: name, labelInstance: consumer.Name, labelManagedBy: managedBy}
}

func selectorOf(consumer v1.PulsarConsumer) string {
	return labels.SelectorFromSet(labelsOf(consumer)).String()
}

// deployment is what runs the consumers. ownImage is the operator's.
func deployment(consumer v1.PulsarConsumer, ownImage string) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(deploymentName(consumer), consumer.Namespace).WithLabels(labelsOf(consumer)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(consumer.Spec.Replicas).
			WithRevisionHistoryLimit(3).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labelsOf(consumer))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labelsOf(consumer)).WithSpec(podSpec(consumer, ownImage))))
}

// podSpec passes the Pod Security Standard restricted, whatever the image.
func podSpec(consumer v1.PulsarConsumer, ownImage string) *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		// A Service called pulsar would else add variables that begin with PULSAR_.
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
		// Without its Secret a Pod would wait in silence; the program in it says what it lacks.
		spec.WithVolumes(corev1ac.Volume().WithName("credentials").WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(consumer.Spec.Secret).WithDefaultMode(secretMode).WithOptional(true)))
	}
	return spec.WithContainers(container)
}

// lastPart is the last part of an image's name, without its tag and digest. The operator's image pinned to another of these, or kept in
// another registry, is the operator's image still.
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

// ownContainer is what is known of the operator's image and of no other.
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

// env is a variable with exactly this value: Kubernetes would else replace $(NAME) in it (API reference, EnvVar).
func env(name, value string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValue(strings.ReplaceAll(value, "$", "$$"))
}
