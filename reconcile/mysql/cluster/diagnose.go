package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/claims"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// diagnose finds why the members' Pods do not run, the most useful reason first; nil if there is none. It reads what Kubernetes reports, so
// that users need not.
func diagnose(cluster v1.MySQLCluster, seen observed) *report.Problem {
	for _, volume := range seen.volumes {
		if found := claims.Diagnose(volume); found != nil {
			return found
		}
	}
	if seen.refused != nil {
		return seen.refused
	}
	for _, pod := range seen.pods {
		if found := diagnosePod(cluster, pod); found != nil {
			return found
		}
	}
	return lateVolume(seen)
}

// volumeLate is how long a volume may take before the operator reports it.
const volumeLate = 30 * time.Second

// lateVolume finds a claim whose provisioner does not deliver. Nothing else reports that: the scheduler has chosen a node and waits.
func lateVolume(seen observed) *report.Problem {
	for _, volume := range seen.volumes {
		if volume.Status.Phase == corev1.ClaimPending && seen.now.Sub(volume.CreationTimestamp.Time) > volumeLate {
			return &report.Problem{Reason: reasonVolumePending, Message: fmt.Sprintf("volume claim %s waits for StorageClass %s to provision its volume; kubectl describe pvc %s shows why", volume.Name, *volume.Spec.StorageClassName, volume.Name)}
		}
	}
	return nil
}

func diagnosePod(cluster v1.MySQLCluster, pod corev1.Pod) *report.Problem {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, container := range statuses {
		if found := diagnoseContainer(cluster, pod.Name, container); found != nil {
			return found
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return &report.Problem{Reason: reasonUnschedulable, Message: fmt.Sprintf("no node can take %s: %s", pod.Name, condition.Message)}
		}
	}
	return nil
}

func diagnoseContainer(cluster v1.MySQLCluster, pod string, container corev1.ContainerStatus) *report.Problem {
	if waiting := container.State.Waiting; waiting != nil {
		if found := diagnoseWaiting(cluster, pod, container.Name, *waiting); found != nil {
			return found
		}
	}
	ended := container.State.Terminated
	if ended == nil && container.State.Waiting != nil && container.State.Waiting.Reason == "CrashLoopBackOff" {
		ended = container.LastTerminationState.Terminated
	}
	if ended == nil || ended.ExitCode == 0 {
		return nil
	}
	return diagnoseEnd(cluster, pod, container.Name, *ended)
}

func diagnoseWaiting(cluster v1.MySQLCluster, pod, container string, waiting corev1.ContainerStateWaiting) *report.Problem {
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
		image := "spec.image " + cluster.Spec.Image
		if container == children.ContainerPrepare || container == children.ContainerAgent {
			image = "the operator's image"
		}
		// kubelet's message alternates between the two reasons. The user needs to know the image.
		return &report.Problem{Reason: reasonImagePull, Message: fmt.Sprintf("%s cannot be pulled for %s; check its name and that the node may pull it (kubectl describe pod %s shows more)", image, pod, pod), Stalled: true}
	case "CreateContainerConfigError":
		return &report.Problem{Reason: reasonPrepareFailed, Message: fmt.Sprintf("container %s of %s cannot be created: %s", container, pod, waiting.Message), Stalled: true}
	}
	return nil
}

// downgradeMarks are parts of mysqld's messages about a data directory of a newer release (errmsg, ER_DD_UPGRADE… and ER_IB_MSG…).
func downgradeMarks() []string {
	return []string{"MY-013171", "MY-014060", "MY-014061", "Cannot boot server version", "Invalid MySQL server downgrade", "Invalid MySQL server upgrade"}
}

// asynchronousIOMarks are parts of mysqld's messages when its node has no asynchronous I/O requests left for it (MySQL source,
// AIO::linux_create_io_ctx).
func asynchronousIOMarks() []string { return []string{"AIO sub-system", "io_setup"} }

// asynchronousIORemedy says how to fix that. Each mysqld reserves 256 requests per thread, and all processes of a node share them.
const asynchronousIORemedy = "the node has no asynchronous I/O requests left for another mysqld: raise fs.aio-max-nr there (sysctl -w fs.aio-max-nr=1048576, and a file in /etc/sysctl.d), " +
	"or set innodb_use_native_aio: \"OFF\" in spec.config"

// withRemedy adds the fix to mysqld's message, if the fix is known.
func withRemedy(says, log string) string {
	if slices.ContainsFunc(asynchronousIOMarks(), func(mark string) bool { return strings.Contains(log, mark) }) {
		return says + "; " + asynchronousIORemedy
	}
	return says
}

func diagnoseEnd(cluster v1.MySQLCluster, pod, container string, ended corev1.ContainerStateTerminated) *report.Problem {
	says := lastLines(ended.Message)
	if ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun" {
		return diagnoseStart(cluster, pod, container, says)
	}
	switch container {
	case children.ContainerPrepare:
		return &report.Problem{Reason: reasonPrepareFailed, Message: fmt.Sprintf("%s cannot be prepared: %s", pod, says), Stalled: true}
	case children.ContainerInitialize:
		return &report.Problem{Reason: reasonSettings, Message: fmt.Sprintf("mysqld of %s refuses its settings or its data directory: %s", pod, withRemedy(says, ended.Message)), Stalled: true}
	case children.ContainerMysqld:
		if slices.ContainsFunc(downgradeMarks(), func(mark string) bool { return strings.Contains(ended.Message, mark) }) {
			return &report.Problem{Reason: reasonDowngrade, Message: fmt.Sprintf("spec.image %s cannot open the data of %s, which another release of MySQL wrote: %s; set spec.image back to that release; nothing was changed", cluster.Spec.Image, pod, says), Stalled: true}
		}
		if ended.Reason == "OOMKilled" {
			return &report.Problem{Reason: reasonServerFailed, Message: fmt.Sprintf("mysqld of %s was killed for using more memory than spec.resources.limits.memory allows", pod)}
		}
		if !strings.Contains(ended.Message, "[ERROR]") {
			return nil // stopped, killed, or restarting too often: kubelet starts it again
		}
		return &report.Problem{Reason: reasonServerFailed, Message: fmt.Sprintf("mysqld of %s ended: %s", pod, withRemedy(says, ended.Message))}
	}
	return nil
}

// diagnoseStart explains why a container cannot start its program.
func diagnoseStart(cluster v1.MySQLCluster, pod, container, says string) *report.Problem {
	switch {
	case container == children.ContainerPrepare || container == children.ContainerAgent:
		return &report.Problem{Reason: reasonPrepareFailed, Message: fmt.Sprintf("the operator's image cannot run container %s of %s: %s; --agent-image must name an image of "+
			"the operator's release", container, pod, says), Stalled: true}
	case strings.Contains(says, agent.SupervisorPath):
		return &report.Problem{Reason: reasonPrepareFailed, Message: fmt.Sprintf("mysqld of %s cannot be started: %s; the node must allow programs in emptyDir volumes: "+
			"kubelet's folder must not be mounted with noexec", pod, says), Stalled: true}
	}
	return &report.Problem{Reason: reasonImageUnusable, Message: fmt.Sprintf("spec.image %s cannot run mysqld in %s: %s; the image must have mysqld on its PATH",
		cluster.Spec.Image, pod, says), Stalled: true}
}

// longestQuote limits how much of a log a message repeats.
const longestQuote = 600

// lastLines returns the errors at the end of a log, without their times, so that the same fault always has the same text.
func lastLines(log string) string {
	var errors []string
	for line := range strings.Lines(log) {
		if _, text, found := strings.Cut(line, "[ERROR] "); found {
			errors = append(errors, strings.TrimSpace(text))
		}
	}
	text := strings.Join(errors, " ")
	if text == "" {
		text = strings.TrimSpace(log)
	}
	// The log may contain bytes that are not text; the API server would store something else than was written.
	return report.Brief(text, longestQuote)
}
