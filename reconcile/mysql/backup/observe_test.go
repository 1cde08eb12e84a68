package backup

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// attempt is the number-th Pod of the Job nightly-1-backup.
func attempt(number int, phase corev1.PodPhase, outcome protocol.Outcome) corev1.Pod {
	message, err := outcome.Encode()
	if err != nil {
		panic(err)
	}
	controller := true
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "nightly-1-backup-" + string(rune('a'+number)), CreationTimestamp: metav1.NewTime(after(time.Duration(number) * time.Minute)),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "nightly-1-backup", UID: "job", Controller: &controller}},
	}}
	pod.Status.Phase = phase
	if phase == corev1.PodFailed || phase == corev1.PodSucceeded {
		ended := &corev1.ContainerStateTerminated{Message: string(message)}
		if phase == corev1.PodFailed {
			ended.ExitCode = protocol.ExitRetry
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "backup", State: corev1.ContainerState{Terminated: ended}}}
	}
	return pod
}

// TestWhyTheLastAttemptFailedIsToldUntilThereIsMore: the reason stays while the next Pod is only starting.
func TestWhyTheLastAttemptFailedIsToldUntilThereIsMore(t *testing.T) {
	t.Parallel()
	busy := protocol.Outcome{Reason: protocol.ReasonDonorBusy, Message: "busy"}
	failed := &batchv1.Job{Status: batchv1.JobStatus{Failed: 1}}
	for name, test := range map[string]struct {
		pods   []corev1.Pod
		phase  transfer.Phase
		reason string
	}{
		"the first is being started": {[]corev1.Pod{attempt(1, corev1.PodPending, busy)}, transfer.Pending, ""},
		"the first failed":           {[]corev1.Pod{attempt(1, corev1.PodFailed, busy)}, transfer.Pending, protocol.ReasonDonorBusy},
		"the second is being started": {
			[]corev1.Pod{attempt(1, corev1.PodFailed, busy), attempt(2, corev1.PodPending, busy)}, transfer.Pending, protocol.ReasonDonorBusy,
		},
		"the second is running": {[]corev1.Pod{attempt(1, corev1.PodFailed, busy), attempt(2, corev1.PodRunning, busy)}, transfer.Running, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := transferOf(failed, test.pods); got.Phase != test.phase || got.Reason != test.reason {
				t.Errorf("it is %s because of %q, want %s because of %q", got.Phase, got.Reason, test.phase, test.reason)
			}
		})
	}
}

// TestTheLastWordOfAPodWhoseJobIsGone: it counts if it is about this instance, and complete.
func TestTheLastWordOfAPodWhoseJobIsGone(t *testing.T) {
	t.Parallel()
	other := *good()
	other.UID = "uid-0"
	unknown := *good()
	unknown.UID = ""
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want transfer.Phase
	}{
		"none":                      {nil, ""},
		"it is complete":            {[]corev1.Pod{attempt(1, corev1.PodSucceeded, *good())}, transfer.Succeeded},
		"it is another instance's":  {[]corev1.Pod{attempt(1, corev1.PodSucceeded, other)}, ""},
		"it has no UID":             {[]corev1.Pod{attempt(1, corev1.PodSucceeded, unknown)}, ""},
		"it was ended":              {[]corev1.Pod{attempt(1, corev1.PodFailed, protocol.Outcome{Reason: protocol.ReasonInterrupted})}, ""},
		"it is running":             {[]corev1.Pod{attempt(1, corev1.PodRunning, *good())}, ""},
		"complete, then another is": {[]corev1.Pod{attempt(1, corev1.PodSucceeded, *good()), attempt(2, corev1.PodRunning, *good())}, transfer.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reportWithoutJob(fresh(begins), test.pods); got.Phase != test.want {
				t.Errorf("the last report is %q, want %q", got.Phase, test.want)
			}
		})
	}
}

// TestWhomAChangeConcerns maps children and clusters to instances.
func TestWhomAChangeConcerns(t *testing.T) {
	t.Parallel()
	long := "an-instance-whose-name-is-longer-than-the-value-of-a-label-may-be-in-kubernetes"
	named := func(name, cluster string, phase v1.BackupPhase) v1.MySQLBackupInstance {
		return fresh(func(i *v1.MySQLBackupInstance) { i.Name, i.Spec.Cluster, i.Status.Phase = name, cluster, phase })
	}
	all := put(t, named("new", "db", ""), named("running", "db", v1.BackupStarted), named("done", "db", v1.BackupCompleted),
		named("failed", "db", v1.BackupFailed), named("other", "other", ""), named("by-schedule", "", ""), named(long, "other", v1.BackupCompleted))
	names := func(child *unstructured.Unstructured, find func(*unstructured.Unstructured) []string) string {
		joined := ""
		for _, name := range find(child) {
			joined += name + " "
		}
		return joined
	}
	labelled := func(value string) *unstructured.Unstructured {
		child := &unstructured.Unstructured{Object: map[string]any{}}
		child.SetNamespace("shop")
		child.SetLabels(map[string]string{transfer.LabelBackup: value})
		return child
	}
	byLabels := func(child *unstructured.Unstructured) (found []string) {
		for _, key := range byLabel(child, all) {
			found = append(found, key.Name)
		}
		return found
	}
	byCluster := func(child *unstructured.Unstructured) (found []string) {
		for _, key := range waitingFor(child, all) {
			found = append(found, key.Name)
		}
		return found
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{}}
	cluster.SetNamespace("shop")
	cluster.SetName("db")
	for what, test := range map[string][2]string{
		"a Pod, of a backup that is over too":    {names(labelled("done"), byLabels), "done "},
		"a Pod of a truncated name":              {names(labelled(transfer.LabelValue(long)), byLabels), long + " "},
		"a Pod of a restore":                     {names(labelled(""), byLabels), ""},
		"a Pod without an instance":              {names(labelled("gone"), byLabels), ""},
		"a cluster, of backups that may need it": {names(cluster, byCluster), "new running by-schedule "},
	} {
		if test[0] != test[1] {
			t.Errorf("%s concerns %q, want %q", what, test[0], test[1])
		}
	}
}
