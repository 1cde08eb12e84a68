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
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

const (
	// Retries is how many attempts may fail in addition to the first one. Kubernetes waits 10 s, 20 s, 40 s … up to six minutes between
	// them (Kubernetes docs, "Pod backoff failure policy").
	Retries = 6
	// abortGrace is how long a terminating Pod may take to remove what it has stored, in seconds.
	abortGrace = 60
)

// transfer is what differs between the Jobs.
type transfer struct {
	name, namespace, cluster, hash string
	labels                         map[string]string
	deadline                       int64
	pod                            podParts
}

// BackupJob returns the Job that makes a backup. A Job's Pods cannot be changed. So an existing Job is left as it is, even if the order has
// changed (an operator of another release orders another image), or it is deleted and created again.
func BackupJob(order BackupOrder) *batchv1ac.JobApplyConfiguration {
	arguments := []string{
		option(protocol.FlagNamespace, order.Namespace), option(protocol.FlagCluster, order.Cluster), option(protocol.FlagInstance, order.Instance), option(protocol.FlagUID, order.UID),
		option(protocol.FlagPort, strconv.Itoa(int(order.Port))),
	}
	if order.BandwidthLimit > 0 {
		arguments = append(arguments, option(protocol.FlagBandwidth, strconv.FormatInt(order.BandwidthLimit, 10)))
	}
	parts := podParts{command: protocol.CommandBackup, image: order.Image, arguments: arguments}
	parts.place(order.Location, false)
	parts.key(order.Location.EncryptionSecret, cmp.Or(order.EncryptionKey, protocol.KeyRecipient))
	parts.serve(order.Cluster)
	parts.cloneAccount(order.Cluster)
	return job(transfer{
		name: JobName(order.Instance, "backup"), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order), deadline: order.Deadline,
		labels: map[string]string{LabelBackup: LabelValue(order.Instance)}, pod: parts,
	})
}

// RestoreJob returns the Job that restores a backup to the volume of a cluster's first member.
func RestoreJob(order RestoreOrder) *batchv1ac.JobApplyConfiguration {
	arguments := []string{option(protocol.FlagNamespace, order.Namespace), option(protocol.FlagCluster, order.Cluster), option(protocol.FlagVolume, agent.VolumeDir)}
	if order.BackupUID != "" {
		arguments = append(arguments, option(protocol.FlagUID, order.BackupUID))
	}
	if order.Checksum != "" {
		arguments = append(arguments, option(protocol.FlagChecksum, order.Checksum))
	}
	if order.AdoptOnly {
		arguments = append(arguments, "--"+protocol.FlagAdoptOnly)
	}
	if order.BandwidthLimit > 0 {
		arguments = append(arguments, option(protocol.FlagBandwidth, strconv.FormatInt(order.BandwidthLimit, 10)))
	}
	for _, name := range slices.Sorted(maps.Keys(order.ServerSettings)) {
		arguments = append(arguments, option(protocol.FlagSetting, name+"="+order.ServerSettings[name]))
	}
	parts := podParts{command: protocol.CommandRestore, image: order.Image, arguments: arguments}
	parts.place(order.Location, true)
	parts.key(order.Location.EncryptionSecret, protocol.KeyIdentity)
	parts.serve(order.Cluster)
	parts.room(order.ServerResources)
	parts.claim("data", agent.VolumeDir, order.DataClaim, false)
	return job(transfer{
		name: JobName(order.Cluster, "restore"), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order),
		labels: map[string]string{LabelRestore: LabelValue(order.Cluster)}, pod: parts,
	})
}

// DeleteJob returns the Job that deletes a backup's data.
func DeleteJob(order DeleteOrder) *batchv1ac.JobApplyConfiguration {
	arguments := []string{
		option(protocol.FlagNamespace, order.Namespace), option(protocol.FlagCluster, order.Cluster), option(protocol.FlagInstance, order.Instance), option(protocol.FlagUID, order.UID),
	}
	if order.UnfinishedOnly {
		arguments = append(arguments, "--"+protocol.FlagUnfinished)
	}
	parts := podParts{command: protocol.CommandDelete, image: order.Image, arguments: arguments}
	parts.place(order.Location, false)
	return job(transfer{
		name: JobName(order.Instance, "delete"), namespace: order.Namespace, cluster: order.Cluster, hash: Hash(order), deadline: order.Deadline,
		labels: map[string]string{LabelBackup: LabelValue(order.Instance)}, pod: parts,
	})
}

// job returns a Job that retries what may succeed later, and fails at once if a program has refused. Evictions by a node drain or by
// preemption do not count. Kubernetes creates the next Pod only when the last one has certainly ended: two Pods must never write to one
// place.
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

// failurePolicy uses the exit status of the program only, not that of a container that a webhook adds.
func failurePolicy(program string) *batchv1ac.PodFailurePolicyApplyConfiguration {
	return batchv1ac.PodFailurePolicy().WithRules(
		batchv1ac.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionFailJob).
			WithOnExitCodes(batchv1ac.PodFailurePolicyOnExitCodesRequirement().
				WithContainerName(program).WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).WithValues(protocol.ExitRefused)),
		batchv1ac.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionIgnore).
			WithOnPodConditions(batchv1ac.PodFailurePolicyOnPodConditionsPattern().WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)),
	)
}

func option(name, value string) string { return "--" + name + "=" + value }
