package transfer

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Paths in a transfer's Pod, in addition to agent.PodLayout.
const (
	// storeDir is the mount path of the volume of a file URL.
	storeDir = "/backups"
	// probeDir is where a MySQL image finds the program that reports its version.
	probeDir = "/probe"
	// credentialsDir has the keys of the Secret for a destination as files, encryptionDir those of the encryption Secret.
	credentialsDir = "/etc/mysql-operator/credentials" //nolint:gosec // a folder's name
	encryptionDir  = "/etc/mysql-operator/encryption"
)

const (
	// transferUser is the user that members run as, so that they own what is restored.
	transferUser = 10001
	// secretMode lets only the Pod's group read.
	secretMode = 0o440
	// memoryRequest and memoryLimit: the programs use less than 128 MiB. The kernel counts files being written, which needs the rest.
	memoryRequest = "64Mi"
	memoryLimit   = "192Mi"
	cpuRequest    = "10m"
	// workloadIdentity is the label that a Pod needs to get the Azure identity of its service account (Microsoft Entra Workload ID,
	// "Service account labels and annotations").
	workloadIdentity = "azure.workload.identity/use"
	// probeSize is the size of the volume for the program that reports the version.
	probeSize = "256Mi"
)

// podParts are the parts of a transfer's Pod.
type podParts struct {
	command, image, account string
	labels                  map[string]string
	arguments               []string
	// entry is the container's command instead of Program with the arguments. The image is then not trusted.
	entry     []string
	listening bool
	first     []*corev1ac.ContainerApplyConfiguration
	volumes   []*corev1ac.VolumeApplyConfiguration
	mounts    []*corev1ac.VolumeMountApplyConfiguration
}

// serve lets the operator ask for the progress, with the certificate of the members.
func (p *podParts) serve(cluster string) {
	p.listening = true
	p.secret("tls", agent.TLSDir, corev1ac.SecretVolumeSource().WithSecretName(cluster+"-tls"))
}

// cloneAccount mounts the only account that a copy needs.
func (p *podParts) cloneAccount(cluster string) {
	p.secret("accounts", agent.AccountsDir, corev1ac.SecretVolumeSource().WithSecretName(cluster+"-accounts").WithItems(item(mysqld.CloneUser)))
}

// place adds the location of the backup. A missing Secret does not prevent the Pod from starting: the program then reports what is missing,
// and users see it. A Pod that cannot start reports it only in events.
func (p *podParts) place(location v1.BackupLocation, readOnly bool) {
	p.account = location.ServiceAccountName
	if p.account != "" && strings.HasPrefix(location.URL, schemeAzure+"://") {
		p.labels = map[string]string{workloadIdentity: "true"}
	}
	where := protocol.FlagURL
	if readOnly {
		where = protocol.FlagFrom
	}
	p.arguments = append(p.arguments, option(where, location.URL), option(protocol.FlagReport, corev1.TerminationMessagePathDefault))
	if location.Claim != "" {
		p.claim("store", storeDir, location.Claim, readOnly)
		p.arguments = append(p.arguments, option(protocol.FlagStoreDir, storeDir))
	}
	if keys := storeKeys(location.URL); location.Secret != "" && len(keys) > 0 {
		p.secret("credentials", credentialsDir, corev1ac.SecretVolumeSource().WithSecretName(location.Secret).WithOptional(true).WithItems(items(keys)...))
		p.arguments = append(p.arguments, option(protocol.FlagCredentials, credentialsDir))
	}
}

// key adds the key of an encrypted backup. The Pod gets no other key of the Secret.
func (p *podParts) key(secret, key string) {
	if secret == "" {
		return
	}
	files := map[string]string{protocol.KeyRecipient: protocol.FlagRecipient, protocol.KeyIdentity: protocol.FlagIdentity}
	p.arguments = append(p.arguments, option(files[key], path.Join(encryptionDir, key)))
	p.secret("encryption", encryptionDir, corev1ac.SecretVolumeSource().WithSecretName(secret).WithOptional(true).WithItems(item(key)))
}

// room makes the Pod request a member's resources, with an init container that does nothing.
func (p *podParts) room(resources v1.Resources) {
	wanted := corev1ac.ResourceRequirements()
	if len(resources.Requests) > 0 {
		wanted.WithRequests(resources.Requests)
	}
	if len(resources.Limits) > 0 {
		wanted.WithLimits(resources.Limits)
	}
	p.first = append(p.first, restricted("room", p.image).WithCommand(protocol.ProgramPath, "help").WithResources(wanted))
}

// storeKeys returns the keys that the Secret of a destination may have. The Pod gets no others. A store on a volume needs none.
func storeKeys(location string) []string {
	scheme, _, _ := strings.Cut(location, "://")
	keys := map[string][]string{
		"s3":        {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"},
		"gs":        {"service-account.json"},
		schemeAzure: {"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"},
	}[scheme]
	if keys == nil {
		return nil
	}
	return append(keys, "ca.crt", "endpoint", "endpoints")
}

func (p *podParts) secret(name, folder string, source *corev1ac.SecretVolumeSourceApplyConfiguration) {
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(name).WithSecret(source.WithDefaultMode(secretMode)))
	p.mounts = append(p.mounts, corev1ac.VolumeMount().WithName(name).WithMountPath(folder).WithReadOnly(true))
}

func (p *podParts) claim(name, folder, claim string, readOnly bool) {
	mount, source := corev1ac.VolumeMount().WithName(name).WithMountPath(folder), corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(claim)
	if readOnly {
		mount.WithReadOnly(true)
		source.WithReadOnly(true) // otherwise kubelet gives all files on the volume to the Pod's group
	}
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(name).
		WithPersistentVolumeClaim(source))
	p.mounts = append(p.mounts, mount)
}

func items(keys []string) []*corev1ac.KeyToPathApplyConfiguration {
	all := make([]*corev1ac.KeyToPathApplyConfiguration, len(keys))
	for i, key := range keys {
		all[i] = item(key)
	}
	return all
}

func item(key string) *corev1ac.KeyToPathApplyConfiguration {
	return corev1ac.KeyToPath().WithKey(key).WithPath(key)
}

func (p podParts) spec() *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(abortGrace).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(transferUser).WithRunAsGroup(transferUser).WithFSGroup(transferUser).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithInitContainers(p.first...).
		WithContainers(p.container()).
		WithVolumes(p.volumes...)
	if p.account != "" {
		spec.WithServiceAccountName(p.account)
	}
	return spec
}

func (p podParts) container() *corev1ac.ContainerApplyConfiguration {
	container := restricted(p.command, p.image).WithResources(small()).WithVolumeMounts(p.mounts...)
	if len(p.entry) > 0 {
		// The log of an untrusted image is no message.
		container.WithCommand(p.entry...).WithTerminationMessagePolicy(corev1.TerminationMessageReadFile)
		// As for a member: the image's tag may move.
		container.ImagePullPolicy = nil
	} else {
		container.WithCommand(protocol.ProgramPath, p.command).WithArgs(p.arguments...)
	}
	if p.listening {
		container.WithPorts(corev1ac.ContainerPort().WithName("transfer").WithProtocol(corev1.ProtocolTCP).WithContainerPort(agent.Port))
	}
	return container
}

// small requests very little CPU, so that mysqld has priority when CPU is short. It requests some, because a quota may require that of
// every container.
func small() *corev1ac.ResourceRequirementsApplyConfiguration {
	return corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuRequest), corev1.ResourceMemory: resource.MustParse(memoryRequest)}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memoryLimit)})
}

func restricted(name, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName(name).WithImage(image).WithImagePullPolicy(corev1.PullIfNotPresent).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
}
