package restore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func restoreTime() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// fromNightly returns db, which should start from the backup nightly.
func fromNightly(change ...func(*v1.MySQLCluster)) v1.MySQLCluster {
	return aCluster(2, append([]func(*v1.MySQLCluster){func(c *v1.MySQLCluster) { c.Spec.FromBackup = "nightly" }}, change...)...)
}

func begun(phase v1.RestorePhase, attempts int32) func(*v1.MySQLCluster) {
	return func(c *v1.MySQLCluster) {
		at := metav1.NewTime(restoreTime().Add(-time.Minute))
		c.Status.Restore = &v1.RestoreStatus{Phase: phase, Backup: "nightly", URL: "s3://bucket/shop/old/nightly", StartTime: &at, Attempts: attempts}
	}
}

func nightly(change ...func(*v1.MySQLBackupInstance)) *v1.MySQLBackupInstance {
	made := &v1.MySQLBackupInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "nightly-uid"},
		Status: v1.MySQLBackupInstanceStatus{
			Phase: v1.BackupCompleted, Checksum: "sha256:1", DataSize: 300 << 20,
			Location: &v1.BackupLocation{URL: "s3://bucket/shop/old/nightly", Secret: "bucket"},
		},
	}
	for _, apply := range change {
		apply(made)
	}
	return made
}

// scene returns what a pass sees of a restore; by default there is the backup, and the operator has created nothing yet.
func scene(cluster v1.MySQLCluster, change ...func(*Observed)) Observed {
	order := orderOf(cluster, "operator:1", false)
	order.Location, order.BackupUID, order.Checksum = *nightly().Status.Location, "nightly-uid", "sha256:1"
	seen := Observed{now: restoreTime(), order: &order, dataSize: 300 << 20, inputs: "inputs"}
	server("9.7.4", transfer.State{Phase: transfer.Succeeded})(&seen)
	seen.server.order = transfer.NewVersionOrder(cluster, "operator:1")
	seen.server.job.Annotations = map[string]string{transfer.AnnotationOrder: transfer.Hash(seen.server.order)}
	for _, apply := range change {
		apply(&seen)
	}
	return seen
}

// server sets the result of asking the cluster's image.
func server(version string, state transfer.State) func(*Observed) {
	return func(seen *Observed) {
		if seen.server.job == nil {
			seen.server.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-version"}}
		}
		seen.server.version, seen.server.state = version, state
	}
}

func withClaim(phase corev1.PersistentVolumeClaimPhase, size string) func(*Observed) {
	return func(seen *Observed) {
		seen.claim = &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0", UID: "claim-uid"},
			Spec:       corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
}

// withJob sets the Job that the order asks for, and its state.
func withJob(state transfer.State, change ...func(*batchv1.Job)) func(*Observed) {
	return func(seen *Observed) {
		hash := ""
		if seen.order != nil {
			hash = transfer.Hash(*seen.order)
		}
		seen.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-restore", Annotations: map[string]string{
			transfer.AnnotationOrder: hash, annotationInputs: seen.inputs, annotationAttempts: "0",
		}}}
		seen.state = state
		for _, apply := range change {
			apply(seen.job)
		}
		for _, condition := range seen.job.Status.Conditions {
			seen.ended = seen.now.Sub(condition.LastTransitionTime.Time) // a test has one clock
		}
	}
}

// failedBefore sets a Job that this process has known to have failed for this long.
func failedBefore(ago time.Duration) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(restoreTime().Add(-ago))}}
	}
}

func others(names ...string) func(*Observed) {
	return func(seen *Observed) { seen.others = names }
}

func lacking(reason string) func(*Observed) {
	return func(seen *Observed) {
		seen.order, seen.lacking = nil, &report.Problem{Reason: reason, Message: "it is missing", Stalled: true}
	}
}

func TestDecideRestore(t *testing.T) {
	t.Parallel()
	refused := func(reason string) transfer.State {
		return transfer.State{Phase: transfer.Failed, Reason: reason, Message: "so it is", Attempts: 1}
	}
	done := transfer.State{Phase: transfer.Succeeded, Attempts: 1, Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, Checksum: "sha256:1", ServerVersion: "9.7.4", GTIDExecuted: "x:1-5"}}
	bound := withClaim(corev1.ClaimBound, "1Gi")
	running := []func(*v1.MySQLCluster){begun(v1.RestoreRunning, 0)}
	failed := []func(*v1.MySQLCluster){begun(v1.RestoreFailed, 1)}
	tests := map[string]struct {
		before  []func(*v1.MySQLCluster)
		seen    []func(*Observed)
		act     action
		phase   v1.RestorePhase
		reason  string
		stalled bool
		says    string
	}{
		"nothing is made before the status says that it begins":    {act: actRecord, phase: v1.RestoreRunning, reason: "Restoring"},
		"then the first member's claim is made":                    {before: running, act: actMakeClaim, phase: v1.RestoreRunning, reason: "Restoring"},
		"then the Job, though the claim waits for its Pod":         {before: running, seen: []func(*Observed){withClaim(corev1.ClaimPending, "1Gi")}, act: actMakeJob, phase: v1.RestoreRunning, reason: "Restoring"},
		"a volume that is too small grows first":                   {before: running, seen: []func(*Observed){withClaim(corev1.ClaimBound, "512Mi")}, act: actGrowClaim, phase: v1.RestoreRunning, reason: "Restoring"},
		"a Pod that should end and does not reports it":            {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Running, Attempts: 1, Message: "Pod x is told to end; delete the node"})}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring", says: "delete the node"},
		"a running Pod is watched":                                 {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Running, Attempts: 1})}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring"},
		"also when its backup is deleted meanwhile":                {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Running, Attempts: 1}), lacking("BackupNotFound")}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring"},
		"the end is written before anything else happens":          {before: running, seen: []func(*Observed){bound, withJob(done)}, act: actRecord, phase: v1.RestoreCompleted, reason: "CreatingMembers"},
		"a Pod that left no report is replaced by one that checks": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Succeeded})}, act: actDropJob, phase: v1.RestoreRunning, reason: "Restoring"},
		"but not indefinitely": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Succeeded, Attempts: 1, Message: "no words"}, failedBefore(30*time.Second), func(j *batchv1.Job) { j.Annotations[annotationAttempts] = "2" })},
			act: actWatch, phase: v1.RestoreFailed, reason: "RestoreFailed", stalled: true, says: "no words; check that --agent-image"},
		"a Job with other parameters is created again": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Running}, func(j *batchv1.Job) { j.Annotations[transfer.AnnotationOrder] = "other" })},
			act: actDropJob, phase: v1.RestoreRunning, reason: "Restoring"},
		"but not one that is done": {before: running, seen: []func(*Observed){bound, withJob(done, func(j *batchv1.Job) { j.Annotations[transfer.AnnotationOrder] = "other" })},
			act: actRecord, phase: v1.RestoreCompleted, reason: "CreatingMembers"},
		"a Job that goes is waited for": {before: running, seen: []func(*Observed){bound, withJob(done, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} })},
			act: actWatch, phase: v1.RestoreRunning, reason: "Restoring"},
		"and so is its Pod": {before: running, seen: []func(*Observed){bound, func(s *Observed) { s.alive = 1 }}, act: actWatch, phase: v1.RestoreRunning, reason: "Restoring", says: "delete the node"},
		"a Pod without a node is reported": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Pending, Reason: "Unschedulable", Waiting: "no room", Message: "no room"})},
			act: actWatch, phase: v1.RestoreRunning, reason: "Unschedulable", says: "no room"},
		"a volume that has no class is reported": {before: running, seen: []func(*Observed){withClaim(corev1.ClaimPending, "1Gi"), withJob(transfer.State{Phase: transfer.Pending, Reason: "VolumePending", Waiting: "unbound"})},
			act: actWatch, phase: v1.RestoreRunning, reason: "NoDefaultStorageClass", stalled: true},
		"an image that does not exist needs a user": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Pending, Reason: "ImagePullFailed", Message: "not found"})},
			act: actWatch, phase: v1.RestoreRunning, reason: "ImagePullFailed", stalled: true, says: "the operator's image"},
		"a failed attempt is reported, and another one awaited": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Pending, Attempts: 1, Reason: "DestinationUnavailable", Message: "cut in the middle"})},
			act: actWatch, phase: v1.RestoreRunning, reason: "Restoring", says: "the last attempt ended with DestinationUnavailable: cut in the middle"},
		"a quota that keeps Pods away, too": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Pending}), func(s *Observed) { s.refused = "exceeded quota" }},
			act: actWatch, phase: v1.RestoreRunning, reason: "PodsNotCreated", stalled: true, says: "exceeded quota"},

		"a backup that is not there is waited for":       {seen: []func(*Observed){lacking("BackupNotFound")}, act: actWatch, phase: v1.RestorePending, reason: "BackupNotFound", stalled: true},
		"one that is gone between two attempts needs us": {before: running, seen: []func(*Observed){lacking("BackupNotFound")}, act: actWatch, phase: v1.RestoreFailed, reason: "BackupNotFound", stalled: true},
		"data that cannot fit is not even tried":         {seen: []func(*Observed){func(s *Observed) { s.dataSize = 2 << 30 }}, act: actWatch, phase: v1.RestorePending, reason: "VolumeTooSmall", stalled: true, says: "raise spec.storage"},
		"volumes of other members are never joined by a restored one": {seen: []func(*Observed){others("data-db-1", "data-db-2")},
			act: actWatch, phase: v1.RestorePending, reason: "DataExists", stalled: true, says: "data-db-1, data-db-2"},
		"with the first one's among them, the Pod decides":      {before: running, seen: []func(*Observed){bound, others("data-db-1")}, act: actMakeJob, phase: v1.RestoreRunning, reason: "Restoring"},
		"members that run already are not restored over":        {seen: []func(*Observed){func(s *Observed) { s.members = true }}, act: actWatch, phase: v1.RestorePending, reason: "DataExists", stalled: true, says: "adopt"},
		"a claim that goes is waited for":                       {before: running, seen: []func(*Observed){bound, func(s *Observed) { s.claim.DeletionTimestamp = &metav1.Time{} }}, act: actWatch, phase: v1.RestoreRunning, reason: "VolumePending"},
		"a refusal stays until something changes":               {before: failed, seen: []func(*Observed){bound, withJob(refused("DestinationRefused"), failedBefore(30*time.Second))}, act: actWatch, phase: v1.RestoreFailed, reason: "DestinationRefused", stalled: true, says: "spec.restore.secret"},
		"data in the way has two ways out":                      {before: failed, seen: []func(*Observed){bound, others("data-db-1"), withJob(refused("DataExists"), failedBefore(time.Second))}, act: actWatch, phase: v1.RestoreFailed, reason: "DataExists", stalled: true, says: "delete these claims to restore: data-db-0, data-db-1"},
		"a new Secret is tried at once":                         {before: failed, seen: []func(*Observed){bound, withJob(refused("DestinationRefused"), failedBefore(time.Second), func(j *batchv1.Job) { j.Annotations[annotationInputs] = "older" })}, act: actDropJob, phase: v1.RestoreFailed, reason: "Restoring"},
		"settings that do not fit are reported":                 {before: failed, seen: []func(*Observed){bound, withJob(refused("SettingsMismatch"), failedBefore(time.Second))}, act: actWatch, phase: v1.RestoreFailed, reason: "SettingsMismatch", stalled: true, says: "so it is; the operator tries again at once"},
		"nothing new is tried again after a minute":             {before: failed, seen: []func(*Observed){bound, withJob(refused("BackupCorrupt"), failedBefore(time.Minute))}, act: actDropJob, phase: v1.RestoreFailed, reason: "Restoring"},
		"after many Pods only after half an hour":               {before: failed, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Failed, Reason: "PodsFailed", Attempts: 7}, failedBefore(29*time.Minute))}, act: actWatch, phase: v1.RestoreFailed, reason: "PodsFailed", stalled: true},
		"a clock that is ahead shortens no wait":                {before: failed, seen: []func(*Observed){bound, withJob(refused("BackupCorrupt"), failedBefore(time.Second)), func(s *Observed) { s.now = s.now.Add(24 * time.Hour) }}, act: actWatch, phase: v1.RestoreFailed, reason: "BackupCorrupt", stalled: true},
		"a failure waits while another container keeps running": {before: running, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Failed, Reason: "DestinationUnavailable", Attempts: 1, Lingers: true})}, act: actWatch, phase: v1.RestoreFailed, reason: "DestinationUnavailable", stalled: true},
		"and is tried again, too":                               {before: failed, seen: []func(*Observed){bound, withJob(transfer.State{Phase: transfer.Failed, Reason: "DestinationUnavailable", Attempts: 1, Lingers: true}, failedBefore(time.Minute))}, act: actDropJob, phase: v1.RestoreFailed, reason: "Restoring"},
		"not while the backup is gone":                          {before: failed, seen: []func(*Observed){bound, withJob(refused("BackupCorrupt"), failedBefore(time.Hour)), lacking("BackupNotFound")}, act: actWatch, phase: v1.RestoreFailed, reason: "BackupNotFound", stalled: true},
		"a volume that was too small grows before it is tried":  {before: failed, seen: []func(*Observed){withClaim(corev1.ClaimBound, "512Mi"), withJob(refused("VolumeTooSmall"), failedBefore(time.Second))}, act: actGrowClaim, phase: v1.RestoreFailed, reason: "Restoring"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fromNightly(test.before...)
			step := Decide(cluster, scene(cluster, test.seen...))
			got := fmt.Sprintf("%s, %s: %s %t", step.act, step.Status.Phase, step.Problem.Reason, step.Problem.Stalled)
			want := fmt.Sprintf("%s, %s: %s %t", test.act, test.phase, test.reason, test.stalled)
			if got != want || !strings.Contains(step.Problem.Message, test.says) {
				t.Errorf("got  %s (%s)\nwant %s (…%s…)", got, step.Problem.Message, want, test.says)
			}
		})
	}
}

// A setting that data files depend on is a part of the order, so that a restore that was refused for it is retried at once; others are not.
func TestSettingsOfDataFilesAreOrdered(t *testing.T) {
	t.Parallel()
	with := func(name, value string) string {
		cluster := fromNightly(func(c *v1.MySQLCluster) { c.Spec.Config = map[string]string{name: value} })
		return transfer.Hash(orderOf(cluster, "operator:1", false))
	}
	none := transfer.Hash(orderOf(fromNightly(), "operator:1", false))
	if with("max_connections", "500") != none || with("innodb-page-size", "8K") == none || with("lower_case_table_names", "0") == with("lower_case_table_names", "1") {
		t.Error("the order does not follow the settings that data files rest on, or follows others")
	}
}

func TestACompletedRestoreTellsWhatWasRestored(t *testing.T) {
	t.Parallel()
	cluster := fromNightly(begun(v1.RestoreRunning, 0))
	seen := scene(cluster, withClaim(corev1.ClaimBound, "1Gi"), withJob(transfer.State{Phase: transfer.Succeeded, Attempts: 1, Outcome: &protocol.Outcome{Reason: protocol.ReasonCompleted, ServerVersion: "9.7.4", GTIDExecuted: "x:1-5"}},
		func(j *batchv1.Job) { j.Annotations[annotationAttempts] = "3" }))
	is := Decide(cluster, seen).Status
	if is.Checksum != "sha256:1" || is.ServerVersion != "9.7.4" || is.GTIDExecuted != "x:1-5" || is.Attempts != 4 || is.Backup != "nightly" || is.URL != "s3://bucket/shop/old/nightly" {
		t.Errorf("the status says %+v", is)
	}
	if is.Phase != v1.RestoreCompleted || is.CompletionTime == nil || !is.CompletionTime.Time.Equal(restoreTime()) || is.CompletionTime.Sub(is.StartTime.Time) != time.Minute {
		t.Errorf("the status says %+v", is)
	}
}

// If the data came from the backup and a cluster has used it since, the operator does not report it as the backup.
func TestARestoreThatRestoredNothingSaysSo(t *testing.T) {
	t.Parallel()
	cluster := fromNightly(begun(v1.RestoreRunning, 0))
	adopted := &protocol.Outcome{Reason: protocol.ReasonCompleted, Adopted: true, Used: true, Checksum: "sha256:1", UID: "u", Message: "data that a cluster has used since"}
	seen := scene(cluster, withClaim(corev1.ClaimBound, "1Gi"), others("data-db-1"), withJob(transfer.State{Phase: transfer.Succeeded, Attempts: 1, Outcome: adopted}))
	step := Decide(cluster, seen)
	if is := step.Status; is.Phase != v1.RestoreCompleted || !is.Adopted || is.Checksum != "" {
		t.Errorf("the status says %+v", is)
	}
	if found := step.Problem; found.Reason != "RestoreAdopted" || !strings.Contains(found.Message, "the claims data-db-0, data-db-1, which destroys") || strings.Contains(found.Message, "is restored") {
		t.Errorf("the problem is %+v", found)
	}

	adopted.Used = false // an earlier Pod of this restore did it, and could not report it
	if is := Decide(cluster, seen).Status; is.Phase != v1.RestoreCompleted || is.Adopted || is.Checksum != "sha256:1" {
		t.Errorf("the status says %+v", is)
	}
}

func TestRestorePatience(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int32]time.Duration{0: time.Minute, 1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 5: 16 * time.Minute, 6: 30 * time.Minute, 100: 30 * time.Minute} {
		if got := backoff(attempts); got != want {
			t.Errorf("after %d attempts it waits %s, want %s", attempts, got, want)
		}
	}
}

func TestProgressIsWrittenByThePercent(t *testing.T) {
	t.Parallel()
	before := &v1.TransferProgress{Bytes: 10, TotalBytes: 1000, Percent: 1}
	if got := steadyProgress(before, &protocol.Progress{Bytes: 19, TotalBytes: 1000}); got != before {
		t.Errorf("19 of 1000 would be written: %+v", got)
	}
	if got := steadyProgress(before, &protocol.Progress{Bytes: 20, TotalBytes: 1000}); got.Percent != 2 || got.Bytes != 20 {
		t.Errorf("20 of 1000 are %+v", got)
	}
	if got := steadyProgress(nil, &protocol.Progress{Bytes: 1, TotalBytes: 1000}); got == nil || got.TotalBytes != 1000 {
		t.Errorf("the beginning is %+v", got)
	}
	if got := steadyProgress(before, nil); got != before {
		t.Errorf("a Pod that does not answer changes it: %+v", got)
	}
}

func TestWhatAnInstanceMustBeToBeRestored(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		instance *v1.MySQLBackupInstance
		seen     Observed
		before   []func(*v1.MySQLCluster)
		reason   string
		stalled  bool
		says     string
	}{
		"complete":          {instance: nightly()},
		"there":             {reason: "BackupNotFound", stalled: true, says: "without a backup"},
		"there, or adopted": {seen: Observed{others: []string{"data-db-1"}}, reason: "BackupNotFound", stalled: true, says: "earlier cluster on data-db-1"},
		"there to the end":  {before: []func(*v1.MySQLCluster){begun(v1.RestoreRunning, 0)}, reason: "BackupNotFound", stalled: true, says: "spec.fromBackupURL"},
		"not about to go":   {instance: nightly(func(i *v1.MySQLBackupInstance) { i.DeletionTimestamp = &metav1.Time{} }), reason: "BackupNotFound", stalled: true, says: "being deleted"},
		"made":              {instance: nightly(func(i *v1.MySQLBackupInstance) { i.Status = v1.MySQLBackupInstanceStatus{} }), reason: "BackupNotCompleted"},
		"finished":          {instance: nightly(func(i *v1.MySQLBackupInstance) { i.Status.Phase = v1.BackupStarted }), reason: "BackupNotCompleted"},
		"a success":         {instance: nightly(func(i *v1.MySQLBackupInstance) { i.Status.Phase = v1.BackupFailed }), reason: "BackupFailed", stalled: true},
		"somewhere":         {instance: nightly(func(i *v1.MySQLBackupInstance) { i.Status.Location = nil }), reason: "BackupNotFound", stalled: true, says: "status.location"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := notRestorable(fromNightly(test.before...), test.instance, test.seen)
			if found == nil {
				found = &report.Problem{}
			}
			if found.Reason != test.reason || found.Stalled != test.stalled || !strings.Contains(found.Message, test.says) {
				t.Errorf("got %+v, want %s (…%s…)", found, test.reason, test.says)
			}
		})
	}
}

func TestWhatTheUserSaysAboutReadingABackupHolds(t *testing.T) {
	t.Parallel()
	location := *nightly().Status.Location
	if got := overridden(location, nil); got != location {
		t.Errorf("nothing said gives %+v", got)
	}
	got := overridden(location, &v1.RestoreSettings{Secret: "mine", EncryptionSecret: "key", ServiceAccountName: "reader"})
	want := v1.BackupLocation{URL: location.URL, Secret: "mine", EncryptionSecret: "key", ServiceAccountName: "reader"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestARestoreByURLTakesNoOtherBackup: a client that may write to the bucket can put another backup there.
func TestARestoreByURLTakesNoOtherBackup(t *testing.T) {
	t.Parallel()
	const url = "s3://bucket/shop/old/nightly"
	asked := func(checksum string) v1.MySQLCluster {
		return aCluster(1, func(c *v1.MySQLCluster) {
			c.Spec.FromBackupURL, c.Spec.Restore = url, &v1.RestoreSettings{Secret: "bucket", Checksum: checksum}
		})
	}
	if order := orderOf(asked("sha256:1"), "operator:1", false); order.Checksum != "sha256:1" || order.Location.URL != url {
		t.Errorf("the order is %+v", order)
	}
	if first, second := orderOf(asked("sha256:1"), "operator:1", false), orderOf(asked("sha256:2"), "operator:1", false); transfer.Hash(first) == transfer.Hash(second) {
		t.Error("a restore whose checksum was corrected does not start again")
	}
}

func TestARestoreIsKnownByWhatItDependsOn(t *testing.T) {
	t.Parallel()
	claim := scene(fromNightly(), withClaim(corev1.ClaimBound, "1Gi")).claim
	base := inputsOf([]string{"secret/1"}, claim)
	larger, another := claim.DeepCopy(), claim.DeepCopy()
	larger.Spec.Resources.Requests[corev1.ResourceStorage], another.UID = resource.MustParse("2Gi"), "other"
	for what, inputs := range map[string]string{
		"a new Secret": inputsOf([]string{"secret/2"}, claim), "a larger volume": inputsOf([]string{"secret/1"}, larger),
		"another volume": inputsOf([]string{"secret/1"}, another), "no volume": inputsOf([]string{"secret/1"}, nil),
	} {
		if inputs == base {
			t.Errorf("%s makes no difference", what)
		}
	}
	bound := claim.DeepCopy()
	bound.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}
	if inputsOf([]string{"secret/1"}, bound) != base {
		t.Error("that the volume is there makes a difference")
	}
}

func TestNoEmptyDatabaseTakesTheRestoredOnesPlace(t *testing.T) {
	t.Parallel()
	appointed := replication.Decision{Record: replication.Record{Epoch: 1, Revision: 1, Primary: "db-0"}, Scale: 2}
	of := func(origin replication.Origin) []replication.Member {
		return []replication.Member{{Name: "db-0", Status: &replication.Status{Origin: origin, State: replication.StateWaiting}}}
	}
	tests := map[string]struct {
		cluster  v1.MySQLCluster
		members  []replication.Member
		decision replication.Decision
		blocked  bool
	}{
		"restored data becomes the primary":                   {cluster: fromNightly(begun(v1.RestoreCompleted, 1)), members: of(replication.OriginMember), decision: appointed},
		"a new volume in its place does not":                  {cluster: fromNightly(begun(v1.RestoreCompleted, 1)), members: of(replication.OriginFresh), decision: appointed, blocked: true},
		"nor does one after a restore was given up":           {cluster: aCluster(2, begun(v1.RestoreFailed, 1)), members: of(replication.OriginFresh), decision: appointed, blocked: true},
		"a restore that never began is no obstacle":           {cluster: aCluster(2, begun(v1.RestorePending, 0)), members: of(replication.OriginFresh), decision: appointed},
		"a cluster without one begins empty":                  {cluster: aCluster(2), members: of(replication.OriginFresh), decision: appointed},
		"data that was adopted instead becomes the primary":   {cluster: aCluster(2, begun(v1.RestoreFailed, 1)), members: of(replication.OriginMember), decision: appointed},
		"a cluster with a primary has its own rules":          {cluster: fromNightly(begun(v1.RestoreCompleted, 1), func(c *v1.MySQLCluster) { c.Status.Primary = "db-0" }), members: of(replication.OriginFresh), decision: appointed},
		"as long as there is no new primary there is no note": {cluster: fromNightly(begun(v1.RestoreCompleted, 1)), members: of(replication.OriginFresh), decision: replication.Decision{Scale: 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := PreventEmptyPrimary(test.cluster, test.members, replication.Record{}, test.decision)
			if blocked := got.Note != nil && got.Note.Blocked; blocked != test.blocked || got.Scale != test.decision.Scale {
				t.Fatalf("got %+v, want it blocked: %t", got, test.blocked)
			}
			if test.blocked && (got.Record.Primary != "" || got.Assignments != nil || !strings.Contains(got.Note.Message, "Delete this MySQLCluster and claim data-db-0")) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestARestoreThatIsGivenUpIsRemembered(t *testing.T) {
	t.Parallel()
	if IsAbandoned(fromNightly(begun(v1.RestoreRunning, 0))) || !IsAbandoned(aCluster(2, begun(v1.RestoreRunning, 0))) || IsAbandoned(aCluster(2, begun(v1.RestoreCompleted, 0))) {
		t.Error("what is abandoned is a restore that was begun and is wanted no more")
	}
	if got := GiveUp(aCluster(2, begun(v1.RestorePending, 0))).Status.Restore; got != nil {
		t.Errorf("nothing was made, and it says %+v", got)
	}
	cluster := aCluster(2, begun(v1.RestoreRunning, 0))
	if got := GiveUp(cluster).Status.Restore; got == nil || got.Phase != v1.RestoreFailed || cluster.Status.Restore.Phase != v1.RestoreRunning {
		t.Errorf("it says %+v", got)
	}
}

// TestARestoreSendsCredentialsNowhereElse: the user who writes a URL need not own the credentials.
func TestARestoreSendsCredentialsNowhereElse(t *testing.T) {
	t.Parallel()
	const elsewhere = "s3://bucket/shop/old/nightly?endpoint=https%3A%2F%2Fs3.example.com"
	keys := func(endpoint string) map[string][]byte {
		return map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("a"), "AWS_SECRET_ACCESS_KEY": []byte("b"), "endpoint": []byte(endpoint)}
	}
	for name, test := range map[string]struct {
		location v1.BackupLocation
		keys     map[string][]byte
		want     string
	}{
		"the provider's own servers":             {location: v1.BackupLocation{URL: "s3://bucket/shop/old/nightly", Secret: "bucket"}, keys: keys("")},
		"the server that the Secret names":       {location: v1.BackupLocation{URL: elsewhere, Secret: "bucket"}, keys: keys("https://s3.example.com")},
		"the Secret names none":                  {location: v1.BackupLocation{URL: elsewhere, Secret: "bucket"}, keys: keys(""), want: `under the key "endpoint" of Secret "bucket", or name in spec.restore.secret a Secret that has the server's URL under the key "endpoint"`},
		"the Secret names another":               {location: v1.BackupLocation{URL: elsewhere, Secret: "bucket"}, keys: keys("https://evil.example.com"), want: "endpoint=https://s3.example.com"},
		"the identity of the Pod goes nowhere":   {location: v1.BackupLocation{URL: elsewhere}, want: "if you trust that server, name in spec.restore.secret a Secret that has the server's URL"},
		"a volume":                               {location: v1.BackupLocation{URL: "file:///shop/old/nightly", Claim: "nas"}},
		"what else is wrong is the Pod's to say": {location: v1.BackupLocation{URL: "ftp://bucket"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := endpointRefused(test.location, test.keys)
			if (found != nil) != (test.want != "") {
				t.Fatalf("found %+v, want %q", found, test.want)
			}
			if found != nil && (found.Reason != protocol.ReasonDestinationRefused || !found.Stalled || !strings.Contains(found.Message, test.want)) {
				t.Errorf("found %+v, want %q", found, test.want)
			}
		})
	}
}

// TestTheEndOfARestoreIsSeenSoon: the operator asks a Pod that is about to end more often.
func TestTheEndOfARestoreIsSeenSoon(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		told *protocol.Progress
		want time.Duration
	}{
		"it does not answer":          {want: progressEvery},
		"it does not know how much":   {told: &protocol.Progress{Bytes: 5}, want: progressEvery},
		"it has just begun":           {told: &protocol.Progress{TotalBytes: 1000}, want: progressEvery},
		"half of it is through":       {told: &protocol.Progress{Bytes: 500, TotalBytes: 1000, BytesPerSecond: 100}, want: progressEvery},
		"a second is left":            {told: &protocol.Progress{Bytes: 900, TotalBytes: 1000, BytesPerSecond: 100}, want: progressLast},
		"all is through, and flushed": {told: &protocol.Progress{Bytes: 1000, TotalBytes: 1000}, want: progressLast},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lookAtProgress(test.told); got != test.want {
				t.Errorf("it is asked again after %s, want %s", got, test.want)
			}
		})
	}
}
