package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const group = "cr.mysqloperator.grtl.github.com/"

// TestBackupInstanceLife makes a backup from the founding document's manifest, and deletes the instance: the data stays.
func TestBackupInstanceLife(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	report := d.reporter(t, "db")
	report.says.Store(&protocol.Progress{Stage: "copying", Source: "db-1", Bytes: 42, TotalBytes: 100, BytesPerSecond: 7})
	o := d.operate(t, nil)
	d.back(t, "one", "cluster: db")

	pod := d.pod(t, "one", "backup")
	before := d.until(t, "one", mysqlv1.BackupScheduled, protocol.ReasonScheduled)
	place := mysqlv1.BackupLocation{URL: "file:///" + d.namespace + "/db/one", Claim: "db-backups"}
	if diff := cmp.Diff(&place, before.Status.Location); diff != "" || before.Status.StartTime == nil || before.Status.Cluster != "db" {
		t.Errorf("unexpected status before the Pod starts: %+v", before.Status)
	}
	d.checkClaim(t, "db-backups", "2Gi")
	d.checkJob(t, before)

	d.runs(t, pod, report.address)
	copying := d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
	soon(t, func(ctx context.Context) string {
		copying, _ = d.instance(ctx, "one")
		if copying.Status.Progress == nil {
			return "its progress is not known"
		}
		return ""
	})
	if copying.Status.Progress.Summary != "42% of 100, 7/s" || copying.Status.Source != "db-1" || copying.Status.Attempts != 1 {
		t.Errorf("unexpected status of a Pod at work: %+v", copying.Status)
	}
	says(t, readyOf(copying).Message, "copying from db-1: copying")

	d.told(t, "one", "Normal Copying") // events are written after the status

	t.Log("as long as there is nothing new it is asked, and nothing is written")
	asked, writes := report.asked.Load(), len(o.wire.written())
	soon(t, func(context.Context) string {
		if report.asked.Load() < asked+2 {
			return "it has not been asked again"
		}
		return ""
	})
	if now := o.wire.written(); len(now) != writes {
		t.Errorf("the same progress was written again: %v", now[writes:])
	}
	report.says.Store(&protocol.Progress{Stage: "finishing", Source: "db-1", Bytes: 100, TotalBytes: 100})
	soon(t, func(ctx context.Context) string {
		now, err := d.instance(ctx, "one")
		if err != nil || now.Status.Progress.Percent != 99 {
			return fmt.Sprintf("progress is %+v (%v)", now.Status.Progress, err)
		}
		return ""
	})

	d.ends(t, pod, protocol.ExitDone, d.outcome(t, "one", protocol.ReasonCompleted, ""))
	done := d.until(t, "one", mysqlv1.BackupCompleted, protocol.ReasonCompleted)
	d.checkCompleted(t, done, place)
	for _, event := range []string{"Normal Scheduled", "Normal Copying", "Normal Completed"} {
		d.told(t, "one", event)
	}
	measured := operator{registry: o.registry}
	series := map[string]string{"namespace": d.namespace, "cluster": "db", "schedule": ""}
	if got := measured.measured(t, "backup_last_size_bytes", series); got != 1<<30 {
		t.Errorf("the size measured is %v", got)
	}

	d.remove(t, "mysqlbackupinstances", "one")
	d.gone(t, "mysqlbackupinstances", "one")
	d.gone(t, "jobs", "one-backup")
	d.checkClaim(t, "db-backups", "2Gi")
	soon(t, func(context.Context) string {
		if measured.measured(t, "backup_completed", series) != 0 {
			return "the backup is measured still"
		}
		return ""
	})
}

// checkClaim checks that the volume that the operator makes has no owner, and has labels.
func (d *depot) checkClaim(t *testing.T, name, size string) {
	t.Helper()
	claim, err := d.of("persistentvolumeclaims").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(claim.GetOwnerReferences()) > 0 || claim.GetLabels()["app.kubernetes.io/name"] != "mysql-backup" || claim.GetDeletionTimestamp() != nil {
		t.Errorf("the claim %s would not outlive what it was made for: %v", name, claim.Object["metadata"])
	}
	if cluster, found := claim.GetLabels()["app.kubernetes.io/instance"]; found {
		t.Errorf("the claim %s goes with what belongs to cluster %s", name, cluster)
	}
	spec, _ := claim.Object["spec"].(map[string]any)
	if got := fmt.Sprint(spec["resources"]); got != "map[requests:map[storage:"+size+"]]" {
		t.Errorf("the claim %s asks for %s, want %s", name, got, size)
	}
}

// checkJob looks whose a Job is, and that it ends in time.
func (d *depot) checkJob(t *testing.T, instance mysqlv1.MySQLBackupInstance) {
	t.Helper()
	found, err := d.of("jobs").Get(t.Context(), instance.Name+"-backup", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := schema.Decode(found, &job); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(&job, &instance) || job.Spec.ActiveDeadlineSeconds == nil || *job.Spec.ActiveDeadlineSeconds > 86400 || *job.Spec.ActiveDeadlineSeconds < 86300 {
		t.Errorf("the Job is %v with the deadline %v", job.OwnerReferences, job.Spec.ActiveDeadlineSeconds)
	}
}

func (d *depot) checkCompleted(t *testing.T, done mysqlv1.MySQLBackupInstance, place mysqlv1.BackupLocation) {
	t.Helper()
	if done.Status.StartTime == nil || done.Status.CompletionTime == nil || done.Status.Duration == "" {
		t.Errorf("its times are not told: %+v", done.Status)
	}
	got := done.Status
	got.StartTime, got.CompletionTime, got.Duration, got.Conditions, got.Progress = nil, nil, "", nil, nil
	want := mysqlv1.MySQLBackupInstanceStatus{
		ObservedGeneration: 1, Phase: mysqlv1.BackupCompleted, Cluster: "db", Location: &place, Source: "db-1", Attempts: 1, DataSize: 3 << 30, Size: 1 << 30,
		Stages:      &mysqlv1.BackupStages{Wait: "0.1s", Copy: "2.0s", Rest: "0.0s", Upload: "0.0s", Finish: "0.3s"},
		SizeSummary: "1Gi", GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", ServerVersion: "9.7.4", Checksum: "sha256:abc",
	}
	same(t, got, want)
	if len(done.Finalizers) > 0 {
		t.Errorf("an instance whose data stays has the finalizers %v", done.Finalizers)
	}
}

// TestBackupInstanceWaits: instances that each miss one thing wait for it, and continue by themselves when it is there.
func TestBackupInstanceWaits(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	elsewhere := newDepot(t)
	elsewhere.cluster(t, "far")
	d.operate(t, nil)
	stories := map[string]func(*testing.T){
		"for its cluster": func(t *testing.T) {
			d.back(t, "early", "cluster: late")
			d.waitsFor(t, "early", "ClusterNotFound", false, `"late" does not exist in namespace "`+d.namespace+`"`)
			d.make(t, "mysqlclusters", "{apiVersion: "+group+"v1, kind: MySQLCluster, metadata: {name: late}, spec: {secret: root}}")
			d.waitsFor(t, "early", "WaitingForCluster", false, "has no members yet")
			d.patch(t, "mysqlclusters", "late", `{"status":{"primary":"late-0","replicas":2,"readyReplicas":0}}`, "status")
			d.waitsFor(t, "early", "ClusterNotReady", false, "no member")
			d.serve(t, "late")
			d.succeeds(t, "early")
		},
		"for a cluster of another namespace, in vain": func(t *testing.T) {
			d.back(t, "astray", "cluster: far")
			d.waitsFor(t, "astray", "ClusterNotFound", false, "a cluster of its own namespace")
		},
		"for its schedule": func(t *testing.T) {
			d.back(t, "unscheduled", "schedule: weekly")
			d.waitsFor(t, "unscheduled", "ScheduleNotFound", false, `"weekly" does not exist`)
			d.cluster(t, "scheduled")
			d.make(t, "mysqlbackupschedules", "{apiVersion: "+group+"v1, kind: MySQLBackupSchedule, metadata: {name: weekly}, spec: {cluster: scheduled, time: '@weekly', storage: 5Gi, deletionPolicy: Delete}}")
			done := d.succeeds(t, "unscheduled")
			if done.Status.Location.Claim != "weekly" || done.Status.Cluster != "scheduled" || !slices.Contains(done.Finalizers, transfer.FinalizerData) {
				t.Errorf("the schedule's settings do not apply: %+v %v", done.Status, done.Finalizers)
			}
			d.checkClaim(t, "weekly", "5Gi")
		},
		"for its credentials": func(t *testing.T) {
			d.cluster(t, "cloudy")
			d.back(t, "cloud", "cluster: cloudy, destination: {url: 's3://bucket/mysql?region=x', secret: s3}")
			d.waitsFor(t, "cloud", "CredentialsNotFound", true, `Secret "s3" does not exist`)
			d.secret(t, "s3", map[string]string{"AWS_ACCESS_KEY_ID": "a"})
			soon(t, func(ctx context.Context) string {
				instance, err := d.instance(ctx, "cloud")
				if err != nil || !strings.Contains(readyOf(instance).Message, "is missing keys") {
					return fmt.Sprintf("the instance says %q (%v)", readyOf(instance).Message, err)
				}
				return ""
			})
			d.patch(t, "secrets", "s3", `{"stringData":{"AWS_SECRET_ACCESS_KEY":"b"}}`)
			done := d.succeeds(t, "cloud")
			same(t, *done.Status.Location, mysqlv1.BackupLocation{URL: "s3://bucket/mysql/" + d.namespace + "/cloudy/cloud?region=x", Secret: "s3"})
		},
		"for its key": func(t *testing.T) {
			d.cluster(t, "secret")
			d.back(t, "sealed", "cluster: secret, encryption: {secret: age}")
			d.waitsFor(t, "sealed", "EncryptionKeyNotFound", true, `Secret "age" does not exist`)
			d.secret(t, "age", map[string]string{"recipient": "age1 is not a key"})
			d.waitsFor(t, "sealed", "EncryptionKeyInvalid", true, `Secret "age"`)
			d.patch(t, "secrets", "age", `{"stringData":{"recipient":"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"}}`)
			if done := d.succeeds(t, "sealed"); done.Status.Location.EncryptionSecret != "age" {
				t.Errorf("the key is not part of the location: %+v", done.Status.Location)
			}
		},
		"for the claim that it names": func(t *testing.T) {
			d.cluster(t, "claimed")
			d.back(t, "named", "cluster: claimed, destination: {claim: nas, url: 'file:///mysql'}")
			d.waitsFor(t, "named", "ClaimNotFound", true, `"nas" does not exist`)
			d.make(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: nas}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}")
			done := d.succeeds(t, "named")
			same(t, *done.Status.Location, mysqlv1.BackupLocation{URL: "file:///mysql/" + d.namespace + "/claimed/named", Claim: "nas"})
		},
		"for a name that the claim of another client has": func(t *testing.T) {
			d.cluster(t, "taken")
			d.make(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: taken-backups}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}")
			d.back(t, "foreign", "cluster: taken")
			d.waitsFor(t, "foreign", "ForeignObject", true, `"taken-backups" exists already and was not made by this operator`, "destination.claim")
			d.remove(t, "persistentvolumeclaims", "taken-backups")
			d.succeeds(t, "foreign")
			d.checkClaim(t, "taken-backups", "2Gi")
		},
		"for its namesake's end": func(t *testing.T) {
			d.cluster(t, "again")
			d.back(t, "namesake", "cluster: again")
			first := d.pod(t, "namesake", "backup")
			d.remove(t, "mysqlbackupinstances", "namesake")
			d.back(t, "namesake", "cluster: again")
			d.gone(t, "pods", first)
			d.succeeds(t, "namesake")
		},
		"for a Pod that Kubernetes refuses": func(t *testing.T) {
			d.cluster(t, "refused")
			d.back(t, "homeless", "cluster: refused, destination: {url: 's3://bucket', serviceAccountName: uploader}")
			d.waitsFor(t, "homeless", "PodsNotCreated", true, `"uploader" not found`)
			d.make(t, "serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: uploader}}")
			d.succeeds(t, "homeless")
		},
		"as long as it may, and not longer": func(t *testing.T) {
			d.back(t, "impatient", "cluster: never, activeDeadlineSeconds: 60")
			failed := d.until(t, "impatient", mysqlv1.BackupFailed, protocol.ReasonDeadlineExceeded)
			says(t, readyOf(failed).Message, "activeDeadlineSeconds (1m0s)", `"never" does not exist`)
			if waited := failed.Status.CompletionTime.Sub(failed.CreationTimestamp.Time).Seconds(); waited < 60 {
				t.Errorf("it failed after %v seconds", waited)
			}
		},
	}
	sideBySide(t, 6, stories)
}
