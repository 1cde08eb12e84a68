package restore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// A restore is complete when its data is there and the image can start it. The operator asks the image in parallel.
func TestARestoreIsCompleteWhenTheImageFits(t *testing.T) {
	t.Parallel()
	done := func(version string) func(*Observed) {
		return withJob(transfer.State{Phase: transfer.Succeeded, Attempts: 1, Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, Checksum: "sha256:1", ServerVersion: version}})
	}
	works := withJob(transfer.State{Phase: transfer.Running, Attempts: 1})
	writes := func(s *Observed) { s.progress = &protocol.Progress{Bytes: 1, TotalBytes: 100} }
	used := withJob(transfer.State{Phase: transfer.Succeeded, Attempts: 1, Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, Adopted: true, Used: true, Checksum: "sha256:1"}})
	made := func(version string) func(*Observed) {
		return func(s *Observed) { s.dataVersion = version }
	}
	long := func(s *Observed) { s.server.ended = transfer.AskAgain }
	failing := server("", transfer.State{Phase: transfer.Failed, Message: "Pod x ended with exit status 1"})
	tests := map[string]struct {
		seen    []func(*Observed)
		act     action
		phase   v1.RestorePhase
		reason  string
		stalled bool
		says    string
	}{
		"the image fits":                                              {seen: []func(*Observed){done("9.7.3")}, act: actRecord, phase: v1.RestoreCompleted, reason: "CreatingMembers"},
		"the image is of another series":                              {seen: []func(*Observed){done("8.4.6")}, act: actWatch, phase: v1.RestoreFailed, reason: "VersionMismatch", stalled: true, says: "image of 8.4 first"},
		"the image is older":                                          {seen: []func(*Observed){done("9.7.5")}, act: actWatch, phase: v1.RestoreFailed, reason: "VersionMismatch", stalled: true, says: "at least 9.7.5"},
		"that is known before the restore ends":                       {seen: []func(*Observed){works, writes, made("9.7.5")}, act: actWatch, phase: v1.RestoreRunning, reason: "VersionMismatch", stalled: true, says: "at least 9.7.5"},
		"but not before the Pod has looked at the volume":             {seen: []func(*Observed){works, made("9.7.5")}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring"},
		"a cluster has used the data since, and may have upgraded it": {seen: []func(*Observed){used, made("8.4.6")}, act: actRecord, phase: v1.RestoreCompleted, reason: "RestoreAdopted", says: "nothing was restored: data-db-0 holds data that came from backup nightly"},
		"of the instance, if the Pod does not report it":              {seen: []func(*Observed){done(""), made("9.7.5")}, act: actWatch, phase: v1.RestoreFailed, reason: "VersionMismatch", stalled: true},
		"the release that made the data is unknown":                   {seen: []func(*Observed){done("")}, act: actRecord, phase: v1.RestoreCompleted, reason: "CreatingMembers"},
		"the image was not asked yet":                                 {seen: []func(*Observed){works, func(s *Observed) { s.server.job = nil }}, act: actAskVersion, phase: v1.RestoreRunning, reason: "Restoring"},
		"the image was not asked yet, and all else is done":           {seen: []func(*Observed){done("9.7.4"), func(s *Observed) { s.server.job = nil }}, act: actAskVersion, phase: v1.RestoreRunning, reason: "Restoring"},
		"the answer is awaited":                                       {seen: []func(*Observed){done("9.7.4"), server("", transfer.State{Phase: transfer.Running})}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring", says: "for its version"},
		"another image was asked":                                     {seen: []func(*Observed){done("9.7.4"), func(s *Observed) { s.server.order.ServerImage = "mysql:9.8" }}, act: actDropVersion, phase: v1.RestoreRunning, reason: "Restoring"},
		"the Job that asked goes":                                     {seen: []func(*Observed){done("9.7.4"), func(s *Observed) { s.server.job.DeletionTimestamp = &metav1.Time{} }}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring"},
		"the image says nothing":                                      {seen: []func(*Observed){done("9.7.4"), failing}, act: actWatch, phase: v1.RestoreFailed, reason: "VersionMismatch", stalled: true, says: "exit status 1; kubectl logs job/db-version"},
		"the image says nothing of use":                               {seen: []func(*Observed){works, server("", transfer.State{Phase: transfer.Succeeded, Message: "no version"})}, act: actWatch, phase: v1.RestoreRunning, reason: "VersionMismatch", stalled: true, says: "no version"},
		"it is asked again after a while":                             {seen: []func(*Observed){done("9.7.4"), failing, long}, act: actDropVersion, phase: v1.RestoreRunning, reason: "Restoring"},
		"the image cannot be pulled":                                  {seen: []func(*Observed){works, server("", transfer.State{Phase: transfer.Pending, Reason: "ImagePullFailed", Message: "not found"})}, act: actWatch, phase: v1.RestoreRunning, reason: "ImagePullFailed", stalled: true, says: "spec.image"},
		"Kubernetes makes no Pod to ask":                              {seen: []func(*Observed){works, server("", transfer.State{Phase: transfer.Pending}), func(s *Observed) { s.server.refused = "exceeded quota" }}, act: actWatch, phase: v1.RestoreRunning, reason: "PodsNotCreated", stalled: true, says: "exceeded quota"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fromNightly(begun(v1.RestoreRunning, 0))
			step := Decide(cluster, scene(cluster, append([]func(*Observed){withClaim(corev1.ClaimBound, "1Gi")}, test.seen...)...))
			got := fmt.Sprintf("%s, %s: %s %t", step.act, step.Status.Phase, step.Problem.Reason, step.Problem.Stalled)
			want := fmt.Sprintf("%s, %s: %s %t", test.act, test.phase, test.reason, test.stalled)
			if got != want || !strings.Contains(step.Problem.Message, test.says) {
				t.Errorf("got  %s (%s)\nwant %s (…%s…)", got, step.Problem.Message, want, test.says)
			}
		})
	}
}

// This test follows a cluster's image from the order to the messages that every reader of the cluster sees. The image has no access to what
// its restore may read, and nothing repeats what it prints.
func TestWhatATenantsImageSaysIsNotRepeated(t *testing.T) {
	t.Parallel()
	const secret = "S3cr3t-of-another-team"
	cluster := fromNightly(begun(v1.RestoreRunning, 0), func(c *v1.MySQLCluster) {
		c.Spec.Image = "evil.example/mysqld:1"
		c.Spec.Restore = &v1.RestoreSettings{Secret: "other-teams-secret", ServiceAccountName: "prod-s3-admin", EncryptionSecret: "backup-key"}
	})
	order := orderOf(cluster, "operator:1", false)
	order.Location = overridden(v1.BackupLocation{URL: "s3://mine/mine"}, cluster.Spec.Restore)
	for _, one := range []batchv1.Job{as[batchv1.Job](t, transfer.RestoreJob(order)), as[batchv1.Job](t, transfer.VersionJob(transfer.NewVersionOrder(cluster, "operator:1")))} {
		pod := one.Spec.Template.Spec
		containers, volumes := slices.Concat(pod.InitContainers, pod.Containers), fmt.Sprint(pod.Volumes, pod.ServiceAccountName)
		runs := false
		for _, container := range containers {
			runs = runs || container.Image == cluster.Spec.Image
		}
		if sees := strings.Contains(volumes, "other-teams-secret") || strings.Contains(volumes, "prod-s3-admin") || strings.Contains(volumes, "db-tls"); runs == sees {
			t.Errorf("Job %s runs the tenant's image: %t, and has the credentials: %t", one.Name, runs, sees)
		}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-version"}}
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: secret}}
		if phase == corev1.PodFailed {
			ended.Terminated.ExitCode = 1
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: agent.CommandVersion, State: ended}}}}
		version, state := transfer.ObserveVersion(job, []corev1.Pod{pod})
		step := Decide(cluster, scene(cluster, withClaim(corev1.ClaimBound, "1Gi"), withJob(transfer.State{Phase: transfer.Running}), server(version, state)))
		if told := fmt.Sprintf("%+v", step); strings.Contains(told, secret) || !strings.Contains(told, "VersionMismatch") {
			t.Errorf("%s: it is reported: %s", phase, told)
		}
	}
}
