package children

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The containers of a member.
const (
	ContainerPrepare    = "prepare"
	ContainerInitialize = "initialize"
	ContainerMysqld     = "mysqld"
	ContainerAgent      = "agent"
)

// prepareContainer writes configuration files for the two containers that start mysqld. The settings are part of the Pod. So a change of
// them creates new Pods, and a client that may only write ConfigMaps cannot change them. Kubernetes reads $$ as $.
func prepareContainer(n Names, cluster v1.MySQLCluster, image string) *corev1ac.ContainerApplyConfiguration {
	return ownContainer(n, ContainerPrepare, image).WithCommand(agent.ProgramPath, agent.CommandInit).
		WithEnv(corev1ac.EnvVar().WithName(agent.EnvSettings).WithValue(strings.ReplaceAll(RenderConfig(cluster), "$", "$$"))).
		WithEnv(sizeEnv(cluster)...).WithEnv(rootEnv(cluster)...).
		WithVolumeMounts(mount("data", agent.VolumeDir), mount("run", agent.RunDir), mount("accounts", agent.AccountsDir), mount("root", agent.RootDir),
			mount("program", agent.ProgramDir))
}

// initializeContainer runs plain mysqld. The options, which prepare wrote, make it create a data directory or, if there is one, only check
// the settings.
func initializeContainer(cluster v1.MySQLCluster) *corev1ac.ContainerApplyConfiguration {
	return serverContainer(ContainerInitialize, cluster).WithCommand(mysqldCommand(agent.InitConfigPath)...)
}

func mysqldContainer(cluster v1.MySQLCluster) *corev1ac.ContainerApplyConfiguration {
	return serverContainer(ContainerMysqld, cluster).
		WithCommand(append([]string{agent.SupervisorPath, agent.RunDir}, mysqldCommand(agent.ServerConfigPath)...)...).
		WithVolumeMounts(mount("program", agent.ProgramDir).WithReadOnly(true)).
		WithPorts(corev1ac.ContainerPort().WithName(mysqlPortName).WithProtocol(corev1.ProtocolTCP).WithContainerPort(cluster.Spec.Port)).
		// Crash recovery may take long: kubelet gives up only after a day.
		WithStartupProbe(probe("/startupz", 2, 43200)).
		WithReadinessProbe(probe("/readyz", 2, 2)).
		// The agent itself decides when mysqld hangs. To kubelet, an agent that is down looks the same. So the threshold is longer than
		// kubelet's longest pause before it starts a container again, five minutes: an agent that crashes does not end its mysqld.
		WithLivenessProbe(probe("/livez", 10, 36))
}

func mysqldCommand(config string) []string { return []string{"mysqld", "--defaults-file=" + config} }

func serverContainer(name string, cluster v1.MySQLCluster) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName(name).WithImage(cluster.Spec.Image).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(containerSecurity()).
		WithResources(serverResources(cluster)).
		WithVolumeMounts(mount("data", agent.VolumeDir), mount("run", agent.RunDir), mount("tmp", agent.TempDir), mount("tls", agent.TLSDir))
}

// rootEnv is empty for the default, so that clusters from before this field do not restart.
func rootEnv(cluster v1.MySQLCluster) []*corev1ac.EnvVarApplyConfiguration {
	if cluster.Spec.Root != v1.RootAbsent {
		return nil
	}
	return []*corev1ac.EnvVarApplyConfiguration{corev1ac.EnvVar().WithName(agent.EnvRoot).WithValue(agent.RootAbsent)}
}

// agentContainer is a sidecar (Kubernetes documentation, "Sidecar Containers"): it starts before mysqld, and kubelet stops it after mysqld.
func agentContainer(n Names, cluster v1.MySQLCluster, image string) *corev1ac.ContainerApplyConfiguration {
	return ownContainer(n, ContainerAgent, image).WithRestartPolicy(corev1.ContainerRestartPolicyAlways).WithCommand(agent.ProgramPath, agent.CommandAgent).WithEnv(rootEnv(cluster)...).WithEnv(memoryEnv(cluster)...).
		WithPorts(corev1ac.ContainerPort().WithName("agent").WithProtocol(corev1.ProtocolTCP).WithContainerPort(agent.Port)).
		WithLivenessProbe(probe("/healthz", 10, 6)).
		WithVolumeMounts(mount("data", agent.VolumeDir), mount("run", agent.RunDir), mount("tls", agent.TLSDir),
			mount("accounts", agent.AccountsDir), mount("root", agent.RootDir))
}

func ownContainer(n Names, name, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName(name).WithImage(image).WithImagePullPolicy(corev1.PullIfNotPresent).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(containerSecurity()).
		WithEnv(fieldEnv(agent.EnvPod, "metadata.name"), fieldEnv(agent.EnvPodUID, "metadata.uid"),
			corev1ac.EnvVar().WithName(agent.EnvCluster).WithValue(n.Cluster),
			corev1ac.EnvVar().WithName(agent.EnvHost).WithValue(n.Host("$("+agent.EnvPod+")"))).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}))
}

func fieldEnv(name, path string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
		WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
}

func serverResources(cluster v1.MySQLCluster) *corev1ac.ResourceRequirementsApplyConfiguration {
	wanted := corev1ac.ResourceRequirements()
	if len(cluster.Spec.Resources.Requests) > 0 {
		wanted.WithRequests(cluster.Spec.Resources.Requests)
	}
	if len(cluster.Spec.Resources.Limits) > 0 {
		wanted.WithLimits(cluster.Spec.Resources.Limits)
	}
	return wanted
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}

func probe(path string, period, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithScheme(corev1.URISchemeHTTPS).WithPort(intstr.FromInt32(agent.Port)).WithPath(path)).
		WithPeriodSeconds(period).WithTimeoutSeconds(3).WithFailureThreshold(failures)
}

const (
	// runSize limits the memory for rendered settings and the socket.
	runSize = "16Mi"
	// programSize limits the disk space for the program that starts mysqld.
	programSize = "16Mi"
	// secretMode lets the member's user and group read, and no other user.
	secretMode = 0o440
)

func podVolumes(n Names, cluster v1.MySQLCluster) []*corev1ac.VolumeApplyConfiguration {
	volume := func(name string) *corev1ac.VolumeApplyConfiguration { return corev1ac.Volume().WithName(name) }
	secret := func(name string) *corev1ac.SecretVolumeSourceApplyConfiguration {
		return corev1ac.SecretVolumeSource().WithSecretName(name).WithDefaultMode(secretMode)
	}
	return []*corev1ac.VolumeApplyConfiguration{
		// In memory, because it holds passwords.
		volume("run").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse(runSize))),
		volume("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
		volume("program").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse(programSize))),
		volume("accounts").WithSecret(secret(n.AccountsSecret())),
		volume("tls").WithSecret(secret(n.CertificateSecret())),
		volume("root").WithSecret(secret(cluster.Spec.Secret).
			WithItems(corev1ac.KeyToPath().WithKey(agent.PasswordKey).WithPath(agent.PasswordKey))),
	}
}
