package backup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The flags of the programs.
const (
	FlagNamespace = "namespace"
	FlagCluster   = "cluster"
	FlagInstance  = "instance"
	FlagUID       = "uid"
	FlagPort      = "port"
	FlagURL       = "url"
	FlagChecksum  = "checksum"
	FlagBandwidth = "bandwidth-limit"
)

// Where things are in a transfer's Pod, beside agent.TLSDir, agent.AccountsDir and, for a restore, agent.VolumeDir.
const (
	// StoreDir is the volume of a file URL.
	StoreDir = "/backups"
	// CredentialsDir holds the keys of the Secret for a destination, EncryptionDir those of the encryption Secret, as files.
	CredentialsDir = "/etc/mysql-operator/credentials" //nolint:gosec // a folder's name
	EncryptionDir  = "/etc/mysql-operator/encryption"
	// TerminationFile is where a program leaves its Outcome.
	TerminationFile = corev1.TerminationMessagePathDefault
)

// The keys of the encryption Secret.
const (
	KeyRecipient = "recipient"
	KeyIdentity  = "identity"
)

const (
	// transferUser is the user that members run as: what is restored is theirs.
	transferUser = 10001
	// secretMode lets the Pod's group, and nobody else, read.
	secretMode = 0o440
	// memoryRequest and memoryLimit: the programs stay below 128 MiB; the rest is for what the kernel counts of files being written.
	memoryRequest = "64Mi"
	memoryLimit   = "192Mi"
)

// podParts are put together to the Pod of a transfer.
type podParts struct {
	command, image string
	arguments      []string
	location       v1.BackupLocation
	// readOnly mounts the destination's volume so.
	readOnly  bool
	listening bool
	volumes   []*corev1ac.VolumeApplyConfiguration
	mounts    []*corev1ac.VolumeMountApplyConfiguration
}

// serve lets the operator ask how far it is, with the certificate that members have.
func (p *podParts) serve(cluster string) {
	p.listening = true
	p.secret("tls", agent.TLSDir, corev1ac.SecretVolumeSource().WithSecretName(cluster+"-tls").WithDefaultMode(secretMode))
}

// cloneAccount is the one account that taking a copy needs.
func (p *podParts) cloneAccount(cluster string) {
	p.secret("accounts", agent.AccountsDir, corev1ac.SecretVolumeSource().WithSecretName(cluster+"-accounts").WithDefaultMode(secretMode).
		WithItems(item(mysql.CloneUser)))
}

func (p *podParts) dataVolume(claim string) {
	p.claim("data", agent.VolumeDir, claim, false)
}

// place adds what the location takes. Secrets that are missing do not keep the Pod from starting: the program says what it lacks, which
// people see, while a Pod that does not start says so in events only.
func (p *podParts) place() {
	if p.location.Claim != "" {
		p.claim("store", StoreDir, p.location.Claim, p.readOnly)
	}
	if p.location.Secret != "" {
		p.secret("credentials", CredentialsDir, corev1ac.SecretVolumeSource().WithSecretName(p.location.Secret).WithDefaultMode(secretMode).WithOptional(true))
	}
	if p.location.EncryptionSecret != "" {
		p.secret("encryption", EncryptionDir, corev1ac.SecretVolumeSource().WithSecretName(p.location.EncryptionSecret).WithDefaultMode(secretMode).
			WithOptional(true).WithItems(item(KeyRecipient), item(KeyIdentity)))
	}
}

func (p *podParts) secret(name, path string, source *corev1ac.SecretVolumeSourceApplyConfiguration) {
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(name).WithSecret(source))
	p.mounts = append(p.mounts, corev1ac.VolumeMount().WithName(name).WithMountPath(path).WithReadOnly(true))
}

func (p *podParts) claim(name, path, claim string, readOnly bool) {
	source := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(claim)
	mount := corev1ac.VolumeMount().WithName(name).WithMountPath(path)
	if readOnly {
		mount.WithReadOnly(true)
	}
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(name).WithPersistentVolumeClaim(source))
	p.mounts = append(p.mounts, mount)
}

func item(key string) *corev1ac.KeyToPathApplyConfiguration {
	return corev1ac.KeyToPath().WithKey(key).WithPath(key)
}

func (p podParts) spec() *corev1ac.PodSpecApplyConfiguration {
	p.place()
	spec := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(abortGrace).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(transferUser).WithRunAsGroup(transferUser).WithFSGroup(transferUser).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(p.container()).
		WithVolumes(p.volumes...)
	if p.location.ServiceAccountName != "" {
		spec.WithServiceAccountName(p.location.ServiceAccountName)
	}
	return spec
}

// container asks for no CPU: where it is short, mysqld goes first.
func (p podParts) container() *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().WithName(p.command).WithImage(p.image).WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(append([]string{p.command}, p.arguments...)...).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memoryRequest)}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memoryLimit)})).
		WithVolumeMounts(p.mounts...)
	if p.listening {
		container.WithPorts(corev1ac.ContainerPort().WithName("transfer").WithProtocol(corev1.ProtocolTCP).WithContainerPort(agent.Port))
	}
	return container
}
