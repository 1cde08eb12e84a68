package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestMySQLClusterRestored follows a restore from its beginning to a cluster that is as it should be.
func TestMySQLClusterRestored(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.nightly(t)
	o := v.operate(t, nil)
	v.apply(t, "db", "secret: root, fromBackup: nightly")

	pod := v.pod(t, "db")
	claim := v.get(t, "persistentvolumeclaims", "data-db-0")
	if len(claim.GetOwnerReferences()) > 0 {
		t.Errorf("the claim would go with %v", claim.GetOwnerReferences())
	}
	t.Log("it tells how far it is")
	reporter := v.depot.reporter(t, "db")
	reporter.says.Store(&protocol.Progress{Stage: "restoring", Bytes: 42 << 20, TotalBytes: 100 << 20, BytesPerSecond: 10 << 20})
	v.depot.runs(t, pod, reporter.address)
	soon(t, func(ctx context.Context) string {
		found, err := v.cluster(ctx, "db")
		if err != nil || found.Status.Restore == nil || found.Status.Restore.Progress == nil {
			return fmt.Sprintf("no progress: %+v (%v)", found.Status.Restore, err)
		}
		if is := found.Status; is.Restore.Progress.Percent != 42 || is.Restore.Progress.Summary != "42% of 100Mi, 10Mi/s" || is.Phase != mysqlv1.PhaseRestoring || why(found).Reason != "Restoring" {
			return fmt.Sprintf("the status is %+v", is)
		}
		return ""
	})
	writes := len(o.wire.written())
	asked := reporter.asked.Load()
	soon(t, func(context.Context) string {
		if reporter.asked.Load() < asked+2 {
			return "the Pod is not asked"
		}
		return ""
	})
	if now := o.wire.written(); len(now) > writes {
		t.Errorf("nothing new was written: %v", now[writes:])
	}
	if _, err := v.of("statefulsets").Get(t.Context(), "db", metav1.GetOptions{}); err == nil {
		t.Error("the members were made before the data was there")
	}

	t.Log("it ends, and the members begin on what it left")
	v.restores(t, "db", pod)
	found := v.settled(t, "db")
	if is := found.Status.Restore; is == nil || is.Phase != mysqlv1.RestoreCompleted || is.Checksum != theChecksum || is.Backup != "nightly" || is.ServerVersion != "9.7.4" || is.GTIDExecuted != theGTIDs ||
		is.StartTime == nil || is.CompletionTime == nil || is.Attempts != 1 || is.URL == "" || is.Progress != nil {
		t.Errorf("the restore is %+v", is)
	}
	if found.Status.Primary != "db-0" || found.Status.Epoch != 1 {
		t.Errorf("the primary is %s of epoch %d", found.Status.Primary, found.Status.Epoch)
	}
	v.fromTheBackup(t, found)
	v.onceRestored(t, 1)
	v.told(t, "db", [2]string{"Normal", "RestoreCompleted"}, "backup nightly is restored; this took "+found.Status.Restore.CompletionTime.Sub(found.Status.Restore.StartTime.Time).String())
	v.depot.gone(t, "jobs", "db-restore")
	if after := v.get(t, "persistentvolumeclaims", "data-db-0"); after.GetUID() != claim.GetUID() || len(after.GetOwnerReferences()) > 0 {
		t.Errorf("the claim is another one, or is owned now: %v", after.GetOwnerReferences())
	}
	if generation := v.get(t, "statefulsets", "db").GetGeneration(); generation != 1 {
		t.Errorf("the StatefulSet was changed %d times while it was made", generation-1)
	}
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("a restore is no error: %v", errors)
	}

	t.Log("the manifest may stay as it is, or lose the backup")
	v.apply(t, "db", "secret: root")
	v.settled(t, "db")
	v.restful(t, o)
}

// TestMySQLClusterRestoreWaits lists what a restore cannot begin without. It begins by itself when that is there.
func TestMySQLClusterRestoreWaits(t *testing.T) {
	t.Parallel()
	secret := func(name, content string) func(*testing.T, *vault) {
		return func(t *testing.T, v *vault) {
			t.Helper()
			v.content(t, name, map[string]any{"stringData": map[string]any{content: "x"}})
		}
	}
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		before func(*testing.T, *vault)
		spec   string
		reason string
		told   []string
		mend   func(*testing.T, *vault)
		waits  bool
	}{
		"a backup that does not exist": {reason: "BackupNotFound", told: []string{`spec.fromBackup: MySQLBackupInstance "nightly" does not exist`, "to start without a backup, remove the field"},
			mend: func(t *testing.T, v *vault) { t.Helper(); v.nightly(t) }},
		"a backup that is being made": {reason: "BackupNotCompleted", waits: true,
			before: func(t *testing.T, v *vault) { t.Helper(); v.backedUp(t, "nightly", mysqlv1.BackupStarted, "null") },
			mend: func(t *testing.T, v *vault) {
				t.Helper()
				v.becomesBackup(t, "nightly", mysqlv1.BackupCompleted, `{"url":"s3://bucket/a"}`)
			}},
		"a backup that failed": {reason: "BackupFailed", told: []string{"there is no backup of that name"},
			before: func(t *testing.T, v *vault) { t.Helper(); v.backedUp(t, "nightly", mysqlv1.BackupFailed, "null") }},
		"credentials": {reason: "CredentialsNotFound", told: []string{`Secret "bucket"`, "spec.restore.secret"},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.backedUp(t, "nightly", mysqlv1.BackupCompleted, inBucket("bucket"))
			},
			mend: secret("bucket", "AWS_ACCESS_KEY_ID")},
		"other credentials": {reason: "CredentialsNotFound", spec: ", restore: {secret: mine}", told: []string{`Secret "mine"`},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.backedUp(t, "nightly", mysqlv1.BackupCompleted, inBucket("bucket"))
			},
			mend: secret("mine", "AWS_ACCESS_KEY_ID")},
		"credentials for that server": {reason: "DestinationRefused", told: []string{"endpoint=https://s3.example.com", `the key "endpoint" of Secret "bucket"`},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.backedUp(t, "nightly", mysqlv1.BackupCompleted, `{"url":"s3://bucket/a?endpoint=https%3A%2F%2Fs3.example.com","secret":"bucket"}`)
				secret("bucket", "AWS_ACCESS_KEY_ID")(t, v)
			},
			mend: func(t *testing.T, v *vault) {
				t.Helper()
				v.depot.patch(t, "secrets", "bucket", `{"stringData":{"endpoint":"https://s3.example.com"}}`)
			}},
		"a key": {reason: "EncryptionKeyNotFound", told: []string{`Secret "age"`, "spec.restore.encryptionSecret"},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.backedUp(t, "nightly", mysqlv1.BackupCompleted, `{"url":"s3://bucket/a","encryptionSecret":"age"}`)
			},
			mend: secret("age", "identity")},
		"half a key": {reason: "EncryptionKeyNotFound", told: []string{`no value under the key "identity"`},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.backedUp(t, "nightly", mysqlv1.BackupCompleted, `{"url":"s3://bucket/a","encryptionSecret":"age"}`)
				secret("age", "recipient")(t, v)
			},
			mend: secret("age", "identity")},
		"the volume with the backup": {reason: "ClaimNotFound", told: []string{`PersistentVolumeClaim "nightlies"`, "spec.restore.claim"},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.backedUp(t, "nightly", mysqlv1.BackupCompleted, `{"url":"file:///a","claim":"nightlies"}`)
			},
			mend: func(t *testing.T, v *vault) {
				t.Helper()
				v.depot.make(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: nightlies}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}")
			}},
		"room": {reason: "VolumeTooSmall", told: []string{"holds 2Gi of data, which is more than 1Gi", "raise spec.storage"},
			before: func(t *testing.T, v *vault) {
				t.Helper()
				v.nightly(t)
				v.depot.patch(t, "mysqlbackupinstances", "nightly", `{"status":{"dataSize":2147483648}}`, "status")
			},
			mend: func(t *testing.T, v *vault) {
				t.Helper()
				v.apply(t, "db", "secret: root, fromBackup: nightly, storage: 3Gi")
			}},
	} {
		stories[name] = func(t *testing.T) {
			v := newVault(t)
			if test.before != nil {
				test.before(t, v)
			}
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly"+test.spec)
			waiting := v.until(t, "db", test.reason)
			if test.waits {
				says(t, why(waiting).Message, test.told...)
			} else {
				v.stalled(t, waiting, test.told...)
			}
			if waiting.Status.Phase != mysqlv1.PhaseWaiting || waiting.Status.Restore == nil || waiting.Status.Restore.Phase != mysqlv1.RestorePending {
				t.Errorf("the cluster is %s, its restore %+v", waiting.Status.Phase, waiting.Status.Restore)
			}
			v.untouched(t, "db")
			if test.mend == nil {
				return
			}
			test.mend(t, v)
			v.restores(t, "db", v.pod(t, "db"))
			v.fromTheBackup(t, v.settled(t, "db"))
		}
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterRestoreRefused has Pods that refuse, and looks when there is another one.
func TestMySQLClusterRestoreRefused(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		reason, told string
		mend         func(*testing.T, *vault)
	}{
		"until the Secret is another": {"DestinationRefused", "spec.restore.secret", func(t *testing.T, v *vault) {
			t.Helper()
			v.content(t, "bucket", map[string]any{"stringData": map[string]any{"AWS_ACCESS_KEY_ID": "better"}})
		}},
		"until another Secret is named": {"DestinationRefused", "spec.restore.secret", func(t *testing.T, v *vault) {
			t.Helper()
			v.content(t, "other", map[string]any{"stringData": map[string]any{"AWS_ACCESS_KEY_ID": "better"}})
			v.apply(t, "db", "secret: root, fromBackup: nightly, restore: {secret: other}")
		}},
		"until the claim is another": {"DataExists", "delete these claims to restore: data-db-0", func(t *testing.T, v *vault) {
			t.Helper()
			v.remove(t, "persistentvolumeclaims", "data-db-0")
		}},
	} {
		stories[name] = func(t *testing.T) {
			v := newVault(t)
			v.backedUp(t, "nightly", mysqlv1.BackupCompleted, inBucket("bucket"))
			v.content(t, "bucket", map[string]any{"stringData": map[string]any{"AWS_ACCESS_KEY_ID": "x"}})
			o := v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			first := v.pod(t, "db")
			v.refuses(t, first, test.reason, "so it is")
			failed := v.until(t, "db", test.reason)
			v.stalled(t, failed, "backup nightly was not restored: so it is", test.told)
			if failed.Status.Restore.Phase != mysqlv1.RestoreFailed || failed.Status.Restore.Attempts != 1 {
				t.Errorf("the restore is %+v", failed.Status.Restore)
			}
			before := len(o.wire.written())
			test.mend(t, v)
			v.restores(t, "db", v.pod(t, "db", first))
			found := v.settled(t, "db")
			v.fromTheBackup(t, found)
			if found.Status.Restore.Attempts != 2 {
				t.Errorf("there were %d attempts, want 2", found.Status.Restore.Attempts)
			}
			if made := strings.Count(strings.Join(o.wire.written()[:before], "\n"), "POST /apis/batch"); made != 2 { // one that restores, and one that asks the image for its version
				t.Errorf("%d Jobs were made before anything changed", made)
			}
		}
	}
	sideBySide(t, 4, stories)
}

// TestMySQLClusterRestoreMeetsData never overwrites what is there, and tells both ways out.
func TestMySQLClusterRestoreMeetsData(t *testing.T) {
	t.Parallel()
	// lived is a cluster that was deleted; its volumes are there.
	lived := func(t *testing.T, spec string) *vault {
		t.Helper()
		v := newVault(t)
		v.nightly(t)
		v.operate(t, nil)
		v.apply(t, "db", spec)
		if strings.Contains(spec, "fromBackup") {
			v.restores(t, "db", v.pod(t, "db"))
		}
		v.settled(t, "db")
		v.remove(t, "mysqlclusters", "db")
		v.gone(t, "mysqlclusters", "db")
		v.childrenGone(t, "db")
		return v
	}
	stories := map[string]func(*testing.T){
		"the same manifest again adopts what became of the backup": func(t *testing.T) {
			v := lived(t, "secret: root, fromBackup: nightly")
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			pod := v.pod(t, "db")
			if spec := fmt.Sprint(v.get(t, "pods", pod).Object["spec"]); !strings.Contains(spec, "--adopt-only") {
				t.Errorf("the Pod might restore: %s", spec)
			}
			v.restores(t, "db", pod)
			found := v.settled(t, "db")
			if found.Status.Epoch != 2 {
				t.Errorf("the cluster is of epoch %d, want the former one's next", found.Status.Epoch)
			}
			v.onceRestored(t, 1)
		},
		"without the backup the data is adopted": func(t *testing.T) {
			v := lived(t, "secret: root")
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.refuses(t, v.pod(t, "db"), "DataExists", "the volume holds the data of a cluster's member")
			v.stalled(t, v.until(t, "db", "DataExists"), "remove spec.fromBackup", "data-db-0, data-db-1")
			v.apply(t, "db", "secret: root")
			if found := v.settled(t, "db"); found.Status.Epoch != 2 {
				t.Errorf("the cluster is of epoch %d, want the former one's next", found.Status.Epoch)
			}
			v.onceRestored(t, 0)
		},
		"without the volumes the backup is restored": func(t *testing.T) {
			v := lived(t, "secret: root")
			v.remove(t, "persistentvolumeclaims", "data-db-0")
			v.gone(t, "persistentvolumeclaims", "data-db-0")
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			found := v.until(t, "db", "DataExists")
			v.stalled(t, found, "data-db-1", "none of its first member", "delete these claims to restore")
			v.remove(t, "persistentvolumeclaims", "data-db-1")
			v.restores(t, "db", v.pod(t, "db"))
			v.fromTheBackup(t, v.settled(t, "db"))
			v.onceRestored(t, 1)
		},
		"members that run are not restored over": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root")
			v.settled(t, "db")
			orphan := metav1.DeletePropagationOrphan
			if err := v.of("mysqlclusters").Delete(t.Context(), "db", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
				t.Fatal(err)
			}
			v.gone(t, "mysqlclusters", "db")
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.stalled(t, v.until(t, "db", "DataExists"), "StatefulSet db", "to adopt its members")
			v.apply(t, "db", "secret: root")
			v.settled(t, "db")
			v.onceRestored(t, 0)
		},
		"the claim of another client is left alone": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			made := v.depot.make(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}")
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.stalled(t, v.until(t, "db", "ForeignObject"), "data-db-0 exists already and was not made by this operator")
			if now := v.get(t, "persistentvolumeclaims", "data-db-0"); now.GetUID() != made.GetUID() || len(now.GetLabels()) > 0 {
				t.Errorf("the claim is %v", now)
			}
		},
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterRestoreGivenUp takes away, at different moments, what a cluster was to start from.
func TestMySQLClusterRestoreGivenUp(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){
		"before anything was made": func(t *testing.T) {
			v := newVault(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.until(t, "db", "BackupNotFound")
			v.apply(t, "db", "secret: root")
			if found := v.settled(t, "db"); found.Status.Restore != nil {
				t.Errorf("it tells of a restore: %+v", found.Status.Restore)
			}
		},
		"while it was restored: no empty database takes its place": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.depot.runs(t, v.pod(t, "db"), "")
			v.phase(t, "db", mysqlv1.RestoreRunning)
			v.apply(t, "db", "secret: root")
			found := v.until(t, "db", "RestoreFailed")
			v.stalled(t, found, "data-db-0 is empty", "Delete this MySQLCluster and claim data-db-0")
			if found.Status.Primary != "" || found.Status.Restore.Phase != mysqlv1.RestoreFailed {
				t.Errorf("the status is %+v", found.Status)
			}
			v.depot.gone(t, "jobs", "db-restore")
		},
		"when the data was there, and no operator had reported it": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			o := v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			pod := v.pod(t, "db")
			o.finish(t)
			v.restores(t, "db", pod)
			v.apply(t, "db", "secret: root")
			v.operate(t, nil)
			v.fromTheBackup(t, v.settled(t, "db"))
			v.onceRestored(t, 1)
		},
		"with the cluster: the volume stays, the Pod goes": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.depot.runs(t, v.pod(t, "db"), "")
			claim := v.get(t, "persistentvolumeclaims", "data-db-0").GetUID()
			v.remove(t, "mysqlclusters", "db")
			v.gone(t, "mysqlclusters", "db")
			v.depot.gone(t, "jobs", "db-restore")
			v.childrenGone(t, "db")
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			v.restores(t, "db", v.pod(t, "db"))
			v.fromTheBackup(t, v.settled(t, "db"))
			if now := v.get(t, "persistentvolumeclaims", "data-db-0").GetUID(); now != claim {
				t.Errorf("the claim is another one")
			}
		},
		"not while it is paused": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly, paused: true")
			v.until(t, "db", "Paused")
			v.untouched(t, "db")
			v.apply(t, "db", "secret: root, fromBackup: nightly, paused: false")
			pod := v.pod(t, "db")
			v.apply(t, "db", "secret: root, fromBackup: nightly, paused: true")
			v.until(t, "db", "Paused")
			v.restores(t, "db", pod)
			if found := v.phase(t, "db", mysqlv1.RestoreRunning); found.Status.Primary != "" {
				t.Errorf("the status is %+v", found.Status)
			}
			v.apply(t, "db", "secret: root, fromBackup: nightly, paused: false")
			v.fromTheBackup(t, v.settled(t, "db"))
		},
		"not with its instance, once it runs": func(t *testing.T) {
			v := newVault(t)
			v.nightly(t)
			v.operate(t, nil)
			v.apply(t, "db", "secret: root, fromBackup: nightly")
			pod := v.pod(t, "db")
			v.depot.runs(t, pod, "")
			v.depot.remove(t, "mysqlbackupinstances", "nightly")
			v.restores(t, "db", pod)
			v.fromTheBackup(t, v.settled(t, "db"))
		},
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterRestoredByURL needs no instance.
func TestMySQLClusterRestoredByURL(t *testing.T) {
	t.Parallel()
	pinned := "sha256:" + strings.Repeat("0a", 32)
	v := newVault(t)
	v.content(t, "bucket", map[string]any{"stringData": map[string]any{"AWS_ACCESS_KEY_ID": "x"}})
	v.operate(t, nil)
	v.apply(t, "db", "secret: root, fromBackupURL: 's3://bucket/other/old/nightly?region=x', restore: {secret: bucket, bandwidthLimit: 20Mi, checksum: '"+pinned+"'}")
	pod := v.pod(t, "db")
	arguments := fmt.Sprint(v.get(t, "pods", pod).Object["spec"])
	says(t, arguments, "s3://bucket/other/old/nightly?region=x", "--bandwidth-limit=20971520", "--checksum="+pinned, "data-db-0")
	v.restores(t, "db", pod)
	found := v.settled(t, "db")
	if is := found.Status.Restore; is.Backup != "" || is.URL != "s3://bucket/other/old/nightly?region=x" || is.Checksum != theChecksum {
		t.Errorf("the restore is %+v", is)
	}
	v.fromTheBackup(t, found)
}

// TestMySQLClusterRestorePodIsLost loses the Pod that has restored, with its node, before it could tell: the volume tells.
func TestMySQLClusterRestorePodIsLost(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.nightly(t)
	o := v.operate(t, nil)
	v.apply(t, "db", "secret: root, fromBackup: nightly")
	pod := v.pod(t, "db")
	o.finish(t)
	v.restores(t, "db", pod)
	soon(t, func(ctx context.Context) string {
		job, err := v.depot.of("jobs").Get(ctx, "db-restore", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if done, _, _ := unstructured.NestedInt64(job.Object, "status", "succeeded"); done != 1 {
			return fmt.Sprintf("the Job is %v", job.Object["status"])
		}
		return ""
	})
	v.remove(t, "pods", pod)
	v.gone(t, "pods", pod)
	v.operate(t, nil)
	v.restores(t, "db", v.pod(t, "db"))
	v.fromTheBackup(t, v.settled(t, "db"))
	v.onceRestored(t, 1)
}
