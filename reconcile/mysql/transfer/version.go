package transfer

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Users of MySQLClusters choose the image, and the image may run any program. So it is asked for its version in a Pod of its own. That Pod
// has no credentials, no claim, no certificate and no service account that a user could choose. The operator accepts only a version from
// that Pod (docs/adr/0006-learn-mysqld-version-in-a-pod-of-its-own.md).

// AskAgain is how long the operator waits before it asks an image again that did not answer. It asks another image at once.
const AskAgain = 5 * time.Minute

const (
	// versionRetries is small: an image that reports no version will hardly report one later.
	versionRetries = 1
	// settingsKept is for how many seconds a finished Job that asked about settings is kept: its answer is used at once.
	settingsKept = 3600
	// settingsDeadline is how long such a Job may take, in seconds. A Job that never gets a Pod or an image must not stay when its answer
	// is no longer needed.
	settingsDeadline = 900
)

// VersionJob returns the Job that asks a MySQL image for its version, and about settings if the order has any.
func VersionJob(order VersionOrder) *batchv1ac.JobApplyConfiguration {
	deadline := int64(0)
	if order.Settings != "" {
		deadline = settingsDeadline
	}
	made := job(transfer{
		name: VersionJobName(order), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order), deadline: deadline,
		labels: map[string]string{LabelRestore: LabelValue(order.Cluster), LabelVersion: "true"},
		pod:    versionParts(order),
	})
	made.Spec.WithBackoffLimit(versionRetries)
	if order.Settings != "" {
		made.Spec.WithTTLSecondsAfterFinished(settingsKept)
	}
	return made
}

// VersionJobName is the name of the Job for an order.
func VersionJobName(order VersionOrder) string {
	if order.Settings != "" {
		return JobName(order.Cluster, "settings")
	}
	return JobName(order.Cluster, "version")
}

func versionParts(order VersionOrder) podParts {
	program := corev1ac.VolumeMount().WithName("probe").WithMountPath(probeDir)
	install := restricted("probe", order.Image).WithCommand(agent.ProgramPath, agent.CommandVersion, "--install", probeDir).WithResources(small()).WithVolumeMounts(program)
	settings, account := "", ""
	if order.Settings != "" {
		// The image also runs under the cluster's service account as a member. Users put imagePullSecrets there.
		account = order.Cluster
		settings = path.Join(probeDir, agent.ProbeSettings)
		// Kubernetes reads $$ as $.
		install.WithEnv(corev1ac.EnvVar().WithName(agent.EnvProbeSettings).WithValue(strings.ReplaceAll(order.Settings, "$", "$$")))
	}
	readOnly := corev1ac.VolumeMount().WithName("probe").WithMountPath(probeDir).WithReadOnly(true)
	return podParts{
		command: agent.CommandVersion, image: order.ServerImage, account: account, entry: agent.ProbeCommand(probeDir, corev1.TerminationMessagePathDefault, settings),
		first:  []*corev1ac.ContainerApplyConfiguration{install},
		mounts: []*corev1ac.VolumeMountApplyConfiguration{readOnly},
		volumes: []*corev1ac.VolumeApplyConfiguration{corev1ac.Volume().WithName("probe").
			WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse(probeSize)))},
	}
}

// ObserveVersion reads the state of the Job that asks an image, and the version that the image reported; empty while there is none. It
// never repeats a message that is not a version, nor anything else from a container of that Pod.
func ObserveVersion(job *batchv1.Job, pods []corev1.Pod) (version string, state State) {
	report, state := observeReport(job, pods)
	if version, _ = agent.ReadVersion(report); version == "" && state.Phase == Succeeded {
		state.Message = fmt.Sprintf("Pod %s succeeded, but did not report a version", state.Pod)
	}
	return version, state
}

// ObserveSettings reads the state of the Job that asks an image about settings, and its answer; nil while there is none. Of the image's
// report it repeats only the version, and names among the settings and plugins.
func ObserveSettings(job *batchv1.Job, pods []corev1.Pod, asked v1.MySQLClusterSpec) (answer *agent.Answer, state State) {
	report, state := observeReport(job, pods)
	if read, ok := agent.ReadAnswer(report, asked.Config, asked.Plugins); ok {
		return &read, state
	}
	if state.Phase == Succeeded {
		state.Message = fmt.Sprintf("Pod %s succeeded, but did not answer", state.Pod)
	}
	return nil, state
}

// observeReport reads the state of the Job that asks an image, and the report after a success. The report is not validated.
func observeReport(job *batchv1.Job, pods []corev1.Pod) (report string, state State) {
	silent := make([]corev1.Pod, len(pods))
	for i := range pods {
		silent[i] = *pods[i].DeepCopy()
		for _, statuses := range [][]corev1.ContainerStatus{silent[i].Status.InitContainerStatuses, silent[i].Status.ContainerStatuses} {
			for j := range statuses {
				if end := statuses[j].State.Terminated; end != nil {
					end.Message = ""
				}
			}
		}
	}
	state = Observe(agent.CommandVersion, job, silent)
	if state.Phase != Succeeded {
		return "", state
	}
	if at := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == state.Pod }); at >= 0 {
		if end := endOf(agent.CommandVersion, pods[at]); end != nil {
			report = end.Message
		}
	}
	state.Message = ""
	return report, state
}

// IsVersionPod reports whether a Pod asks for a version, and does not restore.
func IsVersionPod(pod corev1.Pod) bool { return pod.Labels[LabelVersion] != "" }
