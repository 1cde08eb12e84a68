package backup

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// born is the creation time of the tests' instances; deadlines count from it.
func born() time.Time { return time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC) }

// after is born plus a duration.
func after(span time.Duration) time.Time { return born().Add(span) }

// fresh is a new instance of the cluster db; change sets what differs.
func fresh(change ...func(*v1.MySQLBackupInstance)) v1.MySQLBackupInstance {
	instance := v1.MySQLBackupInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly-1", UID: "uid-1", Generation: 1, CreationTimestamp: metav1.NewTime(born())},
		Spec:       v1.MySQLBackupInstanceSpec{Cluster: "db"},
	}
	for _, one := range change {
		one(&instance)
	}
	return instance
}

// begins is an instance whose location is recorded.
func begins(instance *v1.MySQLBackupInstance) {
	at := metav1.NewTime(after(time.Minute))
	instance.Status = v1.MySQLBackupInstanceStatus{
		Phase: v1.BackupScheduled, Cluster: "db", StartTime: &at,
		Location: &v1.BackupLocation{URL: "file:///shop/db/nightly-1", Claim: "db-backups"},
	}
}

func isReplaced(instance *v1.MySQLBackupInstance) {
	instance.Annotations = map[string]string{transfer.AnnotationReplaced: "nightly-2"}
}

// calm is what a pass observes a minute after the instance's creation, with a cluster that is ready; change sets what differs.
func calm(change ...func(*observed)) observed {
	seen := observed{
		now: after(time.Minute), name: "db",
		cluster:  &v1.MySQLCluster{Status: v1.MySQLClusterStatus{Primary: "db-0", ReadyReplicas: 2}},
		location: v1.BackupLocation{URL: "file:///shop/db/nightly-1", Claim: "db-backups"},
	}
	seen.settings = transfer.Resolve(v1.MySQLBackupInstanceSpec{}, nil, v1.MySQLClusterSpec{Storage: resource.MustParse("1Gi")})
	for _, one := range change {
		one(&seen)
	}
	return seen
}

// working is a Job with a transfer in some state.
func working(state transfer.State) func(*observed) {
	return func(seen *observed) {
		seen.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-backup", CreationTimestamp: metav1.NewTime(after(time.Minute))}}
		seen.transfer = state
	}
}

// waited is an instance that this process has known for so long, since its creation.
func waited(span time.Duration) func(*observed) {
	return func(seen *observed) { seen.now, seen.waited = after(span), span }
}

// due gives the Job a deadline in seconds, and the time for which this process has known the Job.
func due(seconds int64, since time.Duration) func(*observed) {
	return func(seen *observed) {
		seen.job.Spec.ActiveDeadlineSeconds = &seconds
		seen.known = since
	}
}

func good() *protocol.Outcome {
	return &protocol.Outcome{
		Reason: protocol.ReasonCompleted, Source: "db-1", ServerVersion: "9.7.4", GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5",
		Checksum: "sha256:abc", DataSize: 3 << 30, Size: 1 << 30, UID: "uid-1",
		Spent: &protocol.Spent{Wait: 300, Copy: 40000, Rest: 0, Upload: 10250, Finish: -1},
	}
}

func succeeded(change func(*protocol.Outcome)) transfer.State {
	outcome := good()
	if change != nil {
		change(outcome)
	}
	return transfer.State{Phase: transfer.Succeeded, Outcome: outcome, Reason: outcome.Reason, Attempts: 1, Pod: "nightly-1-backup-x"}
}

func claimNamed(name string, labels map[string]string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
}
