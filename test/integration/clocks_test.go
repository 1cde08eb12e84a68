package integration

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlbackupinstance "github.com/mysql-operator/mysql-operator/reconcile/mysql/backup"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// wrong are clocks that are ten minutes off: the operator's, and that of the node whose kubelet tells of Pods. The API server's is right.
func wrong() map[string]struct{ operator, node time.Duration } {
	const ten = 10 * time.Minute
	return map[string]struct{ operator, node time.Duration }{
		"the operator ahead":              {ten, 0},
		"the operator behind":             {-ten, 0},
		"the node ahead":                  {0, ten},
		"the node behind":                 {0, -ten},
		"the operator ahead, node behind": {ten, -ten},
		"the operator behind, node ahead": {-ten, ten},
	}
}

// off is a clock that runs, so far ahead of the real one.
func off(ahead time.Duration) *handClock {
	return &handClock{runs: true, ahead: ahead}
}

// ended is what kubelet says of a container that has ended, by a node's clock.
func ended(ahead time.Duration, status int, message string) map[string]any {
	now := time.Now().Add(ahead).UTC()
	return map[string]any{"terminated": map[string]any{
		"exitCode": status, "message": message, "reason": "Ended",
		"startedAt": now.Add(-time.Second).Format(time.RFC3339), "finishedAt": now.Format(time.RFC3339),
	}}
}

// TestBackupInstanceTenMinutesOff: a backup that may take five minutes waits for its cluster, is made and is deleted with its data.
func TestBackupInstanceTenMinutesOff(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){}
	for name, clocks := range wrong() {
		stories[name] = func(t *testing.T) {
			d := newDepot(t)
			d.place.operate(t, nil, mysqlbackupinstance.ControllerAt(backupInstances(), "operator:test", d.home, off(clocks.operator).read))
			d.back(t, "one", "cluster: db, deletionPolicy: Delete, activeDeadlineSeconds: 300")
			d.waitsFor(t, "one", "ClusterNotFound", false)
			d.cluster(t, "db")
			pod := d.pod(t, "one", "backup")
			if job := d.job(t, "one-backup"); job.Spec.ActiveDeadlineSeconds == nil || *job.Spec.ActiveDeadlineSeconds > 300 || *job.Spec.ActiveDeadlineSeconds < 200 {
				t.Errorf("Kubernetes ends the Job after %v seconds", job.Spec.ActiveDeadlineSeconds)
			}
			d.becomes(t, pod, "Running", "", map[string]any{"running": map[string]any{"startedAt": time.Now().Add(clocks.node).UTC().Format(time.RFC3339)}})
			d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
			d.becomes(t, pod, "Succeeded", "", ended(clocks.node, protocol.ExitDone, d.outcome(t, "one", protocol.ReasonCompleted, "")))
			done := d.until(t, "one", mysqlv1.BackupCompleted, protocol.ReasonCompleted)
			if took := done.Status.CompletionTime.Sub(done.Status.StartTime.Time); took < 0 || took > 5*time.Minute {
				t.Errorf("it took %s", took)
			}

			d.remove(t, "mysqlbackupinstances", "one")
			removing := d.pod(t, "one", "delete")
			d.patch(t, "mysqlbackupinstances", "one", `{"metadata":{"annotations":{"look":"again"}}}`)
			d.becomes(t, removing, "Succeeded", "", ended(clocks.node, protocol.ExitDone, d.outcome(t, "one", protocol.ReasonCompleted, "")))
			d.gone(t, "mysqlbackupinstances", "one")
			d.told(t, "one", "Normal BackupDataDeleted")
		}
	}
	sideBySide(t, 6, stories)
}

// TestBackupScheduleTenMinutesOff: the clock is wrong for a night, and right again. No night has two backups, and none goes early.
func TestBackupScheduleTenMinutesOff(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){}
	for name, ahead := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		stories[name] = func(t *testing.T) {
			d := newDiary(t, "retention: {keepFor: 30h}")
			d.buries(t)
			d.operate(t, nil)
			d.complete(t, 0)
			t.Log("by a wrong clock")
			d.strikes(t, d.night(1).Add(min(0, ahead)))
			if ahead < 0 {
				d.has(t, 0)
				d.strikes(t, d.night(1))
			}
			d.has(t, 0, 1)
			d.over(t, d.named(1), mysqlv1.BackupCompleted, d.night(1).Add(backupTakes+ahead))
			t.Log("by the right one")
			d.strikes(t, d.night(1).Add(-ahead))
			d.has(t, 0, 1)
			d.strikes(t, d.night(1).Add(time.Hour))
			d.has(t, 0, 1)
			d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool {
				return status.Missed == 0 && status.NextScheduleTime != nil && status.NextScheduleTime.Time.Equal(d.night(2))
			})
			t.Log("a moment before its time has come for all clocks")
			goes := d.night(0).Add(backupTakes + 30*time.Hour)
			d.strikes(t, goes.Add(ahead))
			d.has(t, 0, 1)
			d.strikes(t, goes.Add(transfer.ClockTolerance+time.Second))
			d.has(t, 1)
		}
	}
	sideBySide(t, 2, stories)
}

// TestMySQLClusterRestoreTenMinutesOff: a restore that is refused waits as long as it says, and the next attempt makes the cluster.
func TestMySQLClusterRestoreTenMinutesOff(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	stories := map[string]func(*testing.T){}
	for name, clocks := range wrong() {
		stories[name] = func(t *testing.T) {
			v := newVault(t)
			v.backedUp(t, "nightly", mysqlv1.BackupCompleted, inBucket("bucket"))
			v.content(t, "bucket", map[string]any{"stringData": map[string]any{"AWS_ACCESS_KEY_ID": "x"}})
			o := v.place.operate(t, nil, mysqlcluster.ControllerAt(mysqlClusters(), mysqlcluster.Operator{Image: "operator:test", Home: v.home, Namespace: "operators"}, off(clocks.operator).read))
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			first := v.pod(t, "db")
			content, err := protocol.Outcome{Reason: protocol.ReasonBackupNotFound, Message: "nothing is there"}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			v.depot.becomes(t, first, "Failed", "", ended(clocks.node, protocol.ExitRefused, string(content)))
			v.until(t, "db", protocol.ReasonBackupNotFound)
			o.restful(t)
			if pods, err := v.restorePods(t.Context(), "db"); err != nil || len(pods) != 1 {
				t.Errorf("there are %d Pods before anything changed (%v)", len(pods), err)
			}
			v.content(t, "bucket", map[string]any{"stringData": map[string]any{"AWS_ACCESS_KEY_ID": "better"}})
			v.restores(t, "db", v.pod(t, "db", first))
			found := v.settled(t, "db")
			v.fromTheBackup(t, found)
			if is := found.Status.Restore; is.CompletionTime.Before(is.StartTime) {
				t.Errorf("the restore was from %s to %s", is.StartTime, is.CompletionTime)
			}
			v.onceRestored(t, 1)
		}
	}
	sideBySide(t, 3, stories)
}

// TestBackupsUnderALeaseOfAnotherClock: the Lease of an operator that is gone was written ten minutes ahead, or behind. It is waited for as
// long as it lasts, and no longer: what its holder's clock said does not matter.
func TestBackupsUnderALeaseOfAnotherClock(t *testing.T) {
	t.Parallel()
	const lasts = 6 * time.Second
	stories := map[string]func(*testing.T){}
	for name, ahead := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		stories[name] = func(t *testing.T) {
			d := newDepot(t)
			d.cluster(t, "db")
			written := time.Now().Add(ahead).UTC().Format(metav1.RFC3339Micro)
			lease := object(t, fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s}, spec: {holderIdentity: gone, leaseDurationSeconds: %d, acquireTime: %q, renewTime: %q}}",
				reconcile.LeaseName, int(lasts.Seconds()), written, written))
			leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
			if _, err := d.Dynamic.Resource(leases).Namespace(d.namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			d.operate(t, func(config *reconcile.Config) {
				d.elected(config)
				config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = lasts, 4*time.Second, 500*time.Millisecond
			})
			d.back(t, "one", "cluster: db")
			d.succeeds(t, "one")
			if waited := time.Since(began); waited < lasts {
				t.Errorf("it worked after %s beside the other, whose Lease lasts %s", waited, lasts)
			}
		}
	}
	sideBySide(t, 2, stories)
}
