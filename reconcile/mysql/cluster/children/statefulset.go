package children

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// StatefulSetInput is what a StatefulSet depends on in addition to the cluster resource.
type StatefulSetInput struct {
	// AgentImage is the operator's own image.
	AgentImage string
	// Scale is how many members to ask for.
	Scale int
	// ClaimSize is the size that the StatefulSet's volume claims ask for: it cannot change once the StatefulSet exists.
	ClaimSize resource.Quantity
	// Partition is the number of the first member that may be restarted; nil sets none, and Kubernetes takes that as 0.
	Partition *int32
	// InnoDBOnly reports whether the cluster refuses tables whose rows copies do not contain.
	InnoDBOnly bool
	// Version is the resourceVersion of the StatefulSet that scale and partition were decided from; empty before there is one. The operator
	// does not change a StatefulSet with another one.
	Version string
}

// AnnotationImage, on the StatefulSet, is the spec.image that it was applied for. An admission webhook may set another image in the Pods,
// such as that of a mirror.
const AnnotationImage = Prefix + "image"

// ImageOf returns the spec.image that a StatefulSet was applied for; empty if it runs no mysqld.
func ImageOf(set appsv1.StatefulSet) string {
	if image := set.Annotations[AnnotationImage]; image != "" {
		return image
	}
	for _, container := range set.Spec.Template.Spec.Containers {
		if container.Name == ContainerMysqld {
			return container.Image
		}
	}
	return ""
}

// terminationGrace returns how long mysqld may take to stop cleanly, in seconds: it writes the changed pages of its buffer pool, half of
// the pool at 100 MiB a second.
func terminationGrace(cluster v1.MySQLCluster) int64 {
	pool := sizing.Size(plainSettings(cluster.Spec.Config)["innodb_buffer_pool_size"])
	if pool == 0 {
		pool = sizing.Pool(givenTo(cluster).Memory)
	}
	return min(max(300, 60+pool/(200<<20)), 1800)
}

// StatefulSet returns the StatefulSet of the members. They start in parallel, because a replica itself waits for its primary, and their
// volumes outlive everything.
func StatefulSet(n Names, cluster v1.MySQLCluster, spec StatefulSetInput) *appsv1ac.StatefulSetApplyConfiguration {
	set := appsv1ac.StatefulSet(n.Cluster, n.Namespace).WithLabels(n.Labels()).WithAnnotations(map[string]string{AnnotationImage: cluster.Spec.Image}).WithSpec(appsv1ac.StatefulSetSpec().
		WithReplicas(int32(spec.Scale)). //nolint:gosec // the schema bounds it far below
		WithServiceName(n.PodsService()).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(UpdateStrategy(spec.Partition)).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType).
			WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
		WithRevisionHistoryLimit(3).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(n.Labels())).
		WithTemplate(podTemplate(n, cluster, spec.AgentImage)).
		WithVolumeClaimTemplates(volumeClaim(n, cluster, spec.ClaimSize)))
	if spec.InnoDBOnly {
		set.WithLabels(map[string]string{LabelEngines: EnginesInnoDB})
	}
	if spec.Version != "" {
		set.WithResourceVersion(spec.Version)
	}
	return set
}

// UpdateStrategy restarts the members from the given number up; nil restarts all of them.
func UpdateStrategy(partition *int32) *appsv1ac.StatefulSetUpdateStrategyApplyConfiguration {
	strategy := appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)
	if partition != nil {
		strategy.WithRollingUpdate(appsv1ac.RollingUpdateStatefulSetStrategy().WithPartition(*partition))
	}
	return strategy
}

func podTemplate(n Names, cluster v1.MySQLCluster, agentImage string) *corev1ac.PodTemplateSpecApplyConfiguration {
	return corev1ac.PodTemplateSpec().
		WithLabels(n.Labels()).
		WithSpec(corev1ac.PodSpec().
			WithServiceAccountName(n.Cluster).
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithTerminationGracePeriodSeconds(terminationGrace(cluster)).
			WithSecurityContext(podSecurity(cluster)).
			WithAffinity(spread(n)).
			WithInitContainers(prepareContainer(n, cluster, agentImage), initializeContainer(cluster), agentContainer(n, cluster, agentImage)).
			WithContainers(mysqldContainer(cluster)).
			WithVolumes(podVolumes(n, cluster)...))
}

// memberUser runs all containers of a member. It is a number, because an image may have no name for it.
const memberUser = 10001

// firstUnprivilegedPort is the first port on which Linux lets every user listen, unless configured otherwise.
const firstUnprivilegedPort = 1024

func podSecurity(cluster v1.MySQLCluster) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).WithRunAsUser(memberUser).WithRunAsGroup(memberUser).WithFSGroup(memberUser).
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
		WithSysctls(keepAlive()...)
	if cluster.Spec.Port < firstUnprivilegedPort {
		// A safe sysctl, of the Pod's own network alone, which the restricted Pod Security Standard allows.
		security.WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
	}
	return security
}

// keepAlive ends connections of clients that have disappeared after two minutes, and releases the locks that they hold: Linux takes two
// hours. These are safe sysctls, of the Pod's own network alone (Kubernetes documentation, "Using sysctls in a Kubernetes Cluster"; since
// 1.29).
func keepAlive() []*corev1ac.SysctlApplyConfiguration {
	set := func(name, value string) *corev1ac.SysctlApplyConfiguration {
		return corev1ac.Sysctl().WithName("net.ipv4.tcp_keepalive_" + name).WithValue(value)
	}
	return []*corev1ac.SysctlApplyConfiguration{set("time", "60"), set("intvl", "10"), set("probes", "6")}
}

func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// spread asks for different nodes, if there are enough.
func spread(n Names) *corev1ac.AffinityApplyConfiguration {
	return corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.WeightedPodAffinityTerm().WithWeight(100).
			WithPodAffinityTerm(corev1ac.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).
				WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(n.Labels())))))
}
