package transfer

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

const (
	// Retries is how many attempts may fail beside the first; Kubernetes waits 10 s, 20 s, 40 s … up to six minutes between them
	// (Kubernetes docs, "Pod backoff failure policy").
	Retries = 6
	// abortGrace is how long a Pod that is told to end may take to remove what it has stored, in seconds.
	abortGrace = 60
)

// Program is the program of the operator's image that runs in the Pods of transfers. ProgramPath is where the image has it.
const (
	Program     = "mysql-operator-backup"
	ProgramPath = "/" + Program
)

// The subcommands of Program.
const (
	CommandBackup  = "backup"
	CommandRestore = "restore"
	CommandDelete  = "backup-delete"
)

// transfer is what the three Jobs differ in.
type transfer struct {
	name, namespace, cluster, hash string
	labels                         map[string]string
	deadline                       int64
	pod                            podParts
}

// BackupJob makes a backup. A Job's Pods cannot be changed: where the Job exists already it is left as it is, whatever the order says by
// now (an operator of another release orders another image), or deleted and made anew.
func BackupJob(order BackupOrder) *batchv1ac.JobApplyConfiguration {
	arguments := []string{
		option(FlagNamespace, order.Namespace), option(FlagCluster, order.Cluster), option(FlagInstance, order.Instance), option(FlagUID, order.UID),
		option(FlagPort, strconv.Itoa(int(order.Port))),
	}
	if order.BandwidthLimit > 0 {
		arguments = append(arguments, option(FlagBandwidth, strconv.FormatInt(order.BandwidthLimit, 10)))
	}
	parts := podParts{command: CommandBackup, image: order.Image, arguments: arguments}
	parts.place(order.Location, false)
	parts.key(order.Location.EncryptionSecret, cmp.Or(order.EncryptionKey, KeyRecipient))
	parts.serve(order.Cluster)
	parts.cloneAccount(order.Cluster)
	return job(transfer{
		name: JobName(order.Instance, "backup"), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order), deadline: order.Deadline,
		labels: map[string]string{LabelBackup: LabelValue(order.Instance)}, pod: parts,
	})
}

// RestoreJob restores a backup to the volume of a cluster's first member.
func RestoreJob(order RestoreOrder) *batchv1ac.JobApplyConfiguration {
	arguments := []string{option(FlagNamespace, order.Namespace), option(FlagCluster, order.Cluster), option(FlagVolume, agent.VolumeDir)}
	if order.BackupUID != "" {
		arguments = append(arguments, option(FlagUID, order.BackupUID))
	}
	if order.Checksum != "" {
		arguments = append(arguments, option(FlagChecksum, order.Checksum))
	}
	if order.AdoptOnly {
		arguments = append(arguments, "--"+FlagAdoptOnly)
	}
	if order.BandwidthLimit > 0 {
		arguments = append(arguments, option(FlagBandwidth, strconv.FormatInt(order.BandwidthLimit, 10)))
	}
	for _, name := range slices.Sorted(maps.Keys(order.ServerSettings)) {
		arguments = append(arguments, option(FlagSetting, name+"="+order.ServerSettings[name]))
	}
	parts := podParts{command: CommandRestore, image: order.Image, arguments: arguments}
	parts.place(order.Location, true)
	parts.key(order.Location.EncryptionSecret, KeyIdentity)
	parts.serve(order.Cluster)
	parts.room(order.ServerResources)
	parts.claim("data", agent.VolumeDir, order.DataClaim, false)
	return job(transfer{
		name: JobName(order.Cluster, "restore"), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order),
		labels: map[string]string{LabelRestore: LabelValue(order.Cluster)}, pod: parts,
	})
}

// DeleteJob deletes a backup's data.
func DeleteJob(order DeleteOrder) *batchv1ac.JobApplyConfiguration {
	arguments := []string{
		option(FlagNamespace, order.Namespace), option(FlagCluster, order.Cluster), option(FlagInstance, order.Instance), option(FlagUID, order.UID),
	}
	if order.UnfinishedOnly {
		arguments = append(arguments, "--"+FlagUnfinished)
	}
	parts := podParts{command: CommandDelete, image: order.Image, arguments: arguments}
	parts.place(order.Location, false)
	return job(transfer{
		name: JobName(order.Instance, "delete"), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order), deadline: order.Deadline,
		labels: map[string]string{LabelBackup: LabelValue(order.Instance)}, pod: parts,
	})
}

// job tries again what may go better next time, and gives up at once what a program has refused. A Pod that its node is drained of
// or that is preempted is not counted. The next Pod is made when the last one has certainly ended: no two of them write to one place.
func job(wanted transfer) *batchv1ac.JobApplyConfiguration {
	labels := Labels(wanted.cluster)
	maps.Copy(labels, wanted.labels)
	ofPod := maps.Clone(labels)
	maps.Copy(ofPod, wanted.pod.labels)
	spec := batchv1ac.JobSpec().
		WithParallelism(1).WithCompletions(1).WithBackoffLimit(Retries).
		WithPodReplacementPolicy(batchv1.Failed).
		WithPodFailurePolicy(failurePolicy(wanted.pod.command)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(ofPod).WithSpec(wanted.pod.spec()))
	if wanted.deadline > 0 {
		spec.WithActiveDeadlineSeconds(wanted.deadline)
	}
	return batchv1ac.Job(wanted.name, wanted.namespace).WithLabels(labels).
		WithAnnotations(map[string]string{AnnotationOrder: wanted.hash}).WithSpec(spec)
}

// failurePolicy heeds the exit status of the program, and of no container that a webhook adds.
func failurePolicy(program string) *batchv1ac.PodFailurePolicyApplyConfiguration {
	return batchv1ac.PodFailurePolicy().WithRules(
		batchv1ac.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionFailJob).
			WithOnExitCodes(batchv1ac.PodFailurePolicyOnExitCodesRequirement().
				WithContainerName(program).WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).WithValues(ExitRefused)),
		batchv1ac.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionIgnore).
			WithOnPodConditions(batchv1ac.PodFailurePolicyOnPodConditionsPattern().WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)),
	)
}

func option(name, value string) string { return "--" + name + "=" + value }
