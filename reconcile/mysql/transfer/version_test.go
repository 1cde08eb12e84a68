package transfer

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestATenantsImageRunsWhereThereIsNothing: a user who creates a MySQLCluster chooses its image. The image must share no Pod with
// credentials, claims, certificates, keys, or a service account that the user chooses.
func TestATenantsImageRunsWhereThereIsNothing(t *testing.T) {
	t.Parallel()
	order := aRestore(func(o *RestoreOrder) {
		o.Location = v1.BackupLocation{URL: "s3://x/y", Claim: "mine-backups", Secret: "other-teams-secret", ServiceAccountName: "prod-s3-admin", EncryptionSecret: "backup-key"}
	})
	restore := as[batchv1.Job](t, RestoreJob(order)).Spec.Template.Spec
	for _, container := range slices.Concat(restore.InitContainers, restore.Containers) {
		if container.Image != operatorImage {
			t.Errorf("image %s runs in the Pod that has %s", container.Image, order.Location.Secret)
		}
	}

	asks := as[batchv1.Job](t, VersionJob(aQuestion())).Spec.Template.Spec
	if asks.ServiceAccountName != "" || *asks.AutomountServiceAccountToken {
		t.Errorf("the image runs as service account %q, with a token: %t", asks.ServiceAccountName, *asks.AutomountServiceAccountToken)
	}
	about := aQuestion()
	about.Settings = "[mysqld]\n"
	settings := as[batchv1.Job](t, VersionJob(about)).Spec.Template.Spec
	if settings.ServiceAccountName != about.Cluster || *settings.AutomountServiceAccountToken {
		t.Errorf("asked about settings, the image runs as service account %q, with a token: %t; members run as %q", settings.ServiceAccountName, *settings.AutomountServiceAccountToken, about.Cluster)
	}
	for _, volume := range slices.Concat(asks.Volumes, settings.Volumes) {
		if volume.EmptyDir == nil || volume.EmptyDir.SizeLimit == nil {
			t.Errorf("the image sees volume %s: %+v", volume.Name, volume.VolumeSource)
		}
	}
	server := asks.Containers[0]
	if server.Image != "mysql:9.7" || len(server.VolumeMounts) != 1 || !server.VolumeMounts[0].ReadOnly || server.TerminationMessagePolicy != corev1.TerminationMessageReadFile {
		t.Errorf("the image runs as %+v", server)
	}
	if server.Resources.Limits.Memory().IsZero() {
		t.Error("the image may use any memory")
	}
}

// TestOnlyAVersionIsHeard has an image that reports arbitrary content, in every possible way.
func TestOnlyAVersionIsHeard(t *testing.T) {
	t.Parallel()
	const secret = "S3cr3t-of-another-team"
	outcome := `{"reason":"Completed","message":"` + secret + `","checksum":"sha256:1"}`
	said := func(phase corev1.PodPhase, status int32, text string) []corev1.Pod {
		end := func() corev1.ContainerState {
			return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: status, Reason: "Error", Message: text}}
		}
		pod := podOf("db-version-x")
		pod.Status.Phase = phase
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "probe", State: end()}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "another", State: end()}, {Name: agent.CommandVersion, State: end()}}
		return []corev1.Pod{pod}
	}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"a version":                     {said(corev1.PodSucceeded, 0, "9.7.4-2"), "9.7.4-2"},
		"something else":                {said(corev1.PodSucceeded, 0, secret), ""},
		"a version, and something else": {said(corev1.PodSucceeded, 0, "9.7.4 "+secret), ""},
		"very much":                     {said(corev1.PodSucceeded, 0, strings.Repeat("9", 4096)), ""},
		"a report of a restore":         {said(corev1.PodSucceeded, 0, outcome), ""},
		"a failure":                     {said(corev1.PodFailed, 1, secret), ""},
		"a failure of a restore":        {said(corev1.PodFailed, protocol.ExitRefused, outcome), ""},
		"a failure with a version":      {said(corev1.PodFailed, 1, "9.7.4"), ""},
		"nothing yet":                   {[]corev1.Pod{podOf("db-version-x")}, ""},
		"nothing at all":                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, state := ObserveVersion(jobWith(), test.pods)
			if version != test.want {
				t.Errorf("the version is %q, want %q", version, test.want)
			}
			if strings.Contains(state.Message, secret) || state.Outcome != nil {
				t.Errorf("its report is repeated: %+v", state)
			}
		})
	}
}
