package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mysqlbackupinstance "github.com/mysql-operator/mysql-operator/reconcile/mysql/backup"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// held waits until an instance has the finalizer, or has not.
func (d *depot) held(t *testing.T, name string, want bool) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		instance, err := d.instance(ctx, name)
		if err != nil || slices.Contains(instance.Finalizers, transfer.FinalizerData) != want {
			return fmt.Sprintf("%s has the finalizers %v (%v)", name, instance.Finalizers, err)
		}
		return ""
	})
}

// TestBackupInstanceDataGoes deletes instances whose data goes with them.
func TestBackupInstanceDataGoes(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.schedule(t, "retains")
	d.operate(t, nil)
	completed := func(t *testing.T, name, spec string) {
		t.Helper()
		d.back(t, name, "cluster: db, "+spec)
		d.succeeds(t, name)
	}
	sideBySide(t, 6, map[string]func(*testing.T){
		"by its policy": func(t *testing.T) {
			completed(t, "policy", "deletionPolicy: Delete")
			d.held(t, "policy", true)
			d.remove(t, "mysqlbackupinstances", "policy")
			d.checkRemoval(t, "policy")
			going, err := d.instance(t.Context(), "policy")
			if err != nil || going.Status.Phase != mysqlv1.BackupCompleted {
				t.Errorf("while its data is deleted the backup is %s (%v)", going.Status.Phase, err)
			}
			d.removes(t, "policy", protocol.ExitDone, d.outcome(t, "policy", protocol.ReasonCompleted, ""))
			d.gone(t, "mysqlbackupinstances", "policy")
			d.gone(t, "jobs", "policy-delete")
			says(t, d.told(t, "policy", "Normal BackupDataDeleted"), "file:///"+d.namespace+"/db/policy in the volume of claim db-backups")
		},
		"by a policy that came later": func(t *testing.T) {
			completed(t, "later", "deletionPolicy: Retain")
			d.held(t, "later", false)
			d.patch(t, "mysqlbackupinstances", "later", `{"spec":{"deletionPolicy":"Delete"}}`)
			d.held(t, "later", true)
			d.patch(t, "mysqlbackupinstances", "later", `{"spec":{"deletionPolicy":"Retain"}}`)
			d.held(t, "later", false)
			d.patch(t, "mysqlbackupinstances", "later", `{"spec":{"deletionPolicy":"Delete"}}`)
			d.held(t, "later", true)
			d.remove(t, "mysqlbackupinstances", "later")
			d.removes(t, "later", protocol.ExitDone, "{}")
			d.gone(t, "mysqlbackupinstances", "later")
		},
		"by retention": func(t *testing.T) {
			completed(t, "expired", "schedule: retains, deletionPolicy: Retain")
			d.expires(t, "expired", "retains")
			d.remove(t, "mysqlbackupinstances", "expired")
			d.removes(t, "expired", protocol.ExitDone, "{}")
			d.gone(t, "mysqlbackupinstances", "expired")
		},
		"what failed attempts left": func(t *testing.T) {
			d.back(t, "failed", "cluster: db, schedule: retains, deletionPolicy: Retain")
			pod := d.pod(t, "failed", "backup")
			d.runs(t, pod, "")
			d.ends(t, pod, protocol.ExitRefused, d.outcome(t, "failed", protocol.ReasonCopyFailed, "it has a tablespace that is encrypted"))
			d.until(t, "failed", mysqlv1.BackupFailed, protocol.ReasonCopyFailed)
			d.expires(t, "failed", "retains")
			d.remove(t, "mysqlbackupinstances", "failed")
			d.checkRemoval(t, "failed")
			if arguments := d.argumentsOf(t, "failed-delete"); !slices.Contains(arguments, "--unfinished-only") {
				t.Errorf("a whole backup would be deleted as well: %q", arguments)
			}
			d.removes(t, "failed", protocol.ExitDone, "{}")
			d.gone(t, "mysqlbackupinstances", "failed")
			says(t, d.told(t, "failed", "Normal BackupDataDeleted"), "nothing is left of what failed attempts had stored")
		},
		"in the foreground": func(t *testing.T) {
			completed(t, "foreground", "deletionPolicy: Delete")
			foreground := metav1.DeletePropagationForeground
			if err := d.of("mysqlbackupinstances").Delete(t.Context(), "foreground", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Fatal(err)
			}
			d.gone(t, "jobs", "foreground-backup")
			d.removes(t, "foreground", protocol.ExitDone, "{}")
			d.gone(t, "mysqlbackupinstances", "foreground")
		},
		"after its cluster, under the finalizer of another client": func(t *testing.T) {
			d.cluster(t, "brief")
			d.back(t, "outlives", "cluster: brief, deletionPolicy: Delete")
			d.succeeds(t, "outlives")
			d.patch(t, "mysqlbackupinstances", "outlives", fmt.Sprintf(`{"metadata":{"finalizers":["example.com/audit",%q]}}`, transfer.FinalizerData))
			d.remove(t, "mysqlclusters", "brief")
			d.remove(t, "secrets", "brief-tls")
			d.removeAuthority(t, "brief")
			d.remove(t, "mysqlbackupinstances", "outlives")
			d.removes(t, "outlives", protocol.ExitDone, "{}")
			d.held(t, "outlives", false)
			going, err := d.instance(t.Context(), "outlives")
			if err != nil || !slices.Equal(going.Finalizers, []string{"example.com/audit"}) {
				t.Errorf("the finalizer of another client is not left alone: %v (%v)", going.Finalizers, err)
			}
			d.patch(t, "mysqlbackupinstances", "outlives", `{"metadata":{"finalizers":null}}`)
			d.gone(t, "mysqlbackupinstances", "outlives")
		},
		"while it is made": func(t *testing.T) {
			d.back(t, "running", "cluster: db, deletionPolicy: Delete")
			pod := d.pod(t, "running", "backup")
			d.bind(t, pod)
			d.runs(t, pod, "")
			d.until(t, "running", mysqlv1.BackupStarted, protocol.ReasonCopying)
			d.remove(t, "mysqlbackupinstances", "running")
			d.gone(t, "jobs", "running-backup")
			soon(t, func(ctx context.Context) string {
				instance, err := d.instance(ctx, "running")
				if err != nil || !strings.Contains(fmt.Sprint(instance.Status.Conditions), "waiting for its Pod to end before its data is deleted") {
					return fmt.Sprintf("it says %v (%v)", instance.Status.Conditions, err)
				}
				return ""
			})
			if _, err := d.of("jobs").Get(t.Context(), "running-delete", metav1.GetOptions{}); err == nil {
				t.Error("data is deleted while it is written")
			}
			d.ends(t, pod, protocol.ExitRetry, d.outcome(t, "running", protocol.ReasonInterrupted, ""))
			d.removes(t, "running", protocol.ExitDone, "{}")
			d.gone(t, "mysqlbackupinstances", "running")
		},
		"not, when the policy is changed in the last moment": func(t *testing.T) {
			completed(t, "saved", "deletionPolicy: Delete")
			d.remove(t, "mysqlbackupinstances", "saved")
			pod := d.pod(t, "saved", "delete")
			d.patch(t, "mysqlbackupinstances", "saved", `{"spec":{"deletionPolicy":"Retain"}}`)
			d.gone(t, "mysqlbackupinstances", "saved")
			d.gone(t, "pods", pod)
		},
		"not, when nothing was ever written": func(t *testing.T) {
			d.back(t, "unborn", "cluster: nowhere, deletionPolicy: Delete")
			d.waitsFor(t, "unborn", "ClusterNotFound", false)
			d.held(t, "unborn", true)
			d.remove(t, "mysqlbackupinstances", "unborn")
			d.gone(t, "mysqlbackupinstances", "unborn")
		},
	})
}

// checkRemoval checks that the Job that deletes data has no owner: garbage collection would otherwise delete the Job with the instance.
func (d *depot) checkRemoval(t *testing.T, name string) {
	t.Helper()
	d.pod(t, name, "delete")
	found, err := d.of("jobs").Get(t.Context(), name+"-delete", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := schema.Decode(found, &job); err != nil {
		t.Fatal(err)
	}
	if len(job.OwnerReferences) > 0 || job.Spec.TTLSecondsAfterFinished == nil {
		t.Errorf("the Job belongs to %v and lasts %v seconds", job.OwnerReferences, job.Spec.TTLSecondsAfterFinished)
	}
	for _, volume := range job.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			t.Errorf("it takes Secret %s, which a cluster that is gone does not have", volume.Secret.SecretName)
		}
	}
}

// argumentsOf is what a Job's program is told.
func (d *depot) argumentsOf(t *testing.T, name string) []string {
	t.Helper()
	return d.job(t, name).Spec.Template.Spec.Containers[0].Args
}

func (d *depot) job(t *testing.T, name string) batchv1.Job {
	t.Helper()
	var job batchv1.Job
	if err := schema.Decode(d.get(t, "jobs", name), &job); err != nil {
		t.Fatal(err)
	}
	return job
}

// TestBackupInstanceDataIsLeft deletes instances whose data cannot be deleted: they go, and it is told where the data is.
func TestBackupInstanceDataIsLeft(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	left := func(t *testing.T, name string, words ...string) {
		t.Helper()
		d.gone(t, "mysqlbackupinstances", name)
		says(t, d.told(t, name, "Warning BackupDataLeft"), append(words, "/"+d.namespace+"/db/"+name)...)
		d.gone(t, "jobs", name+"-delete")
	}
	sideBySide(t, 3, map[string]func(*testing.T){
		"refused": func(t *testing.T) {
			d.back(t, "refused", "cluster: db, deletionPolicy: Delete")
			d.succeeds(t, "refused")
			d.remove(t, "mysqlbackupinstances", "refused")
			d.removes(t, "refused", protocol.ExitRefused, d.outcome(t, "refused", protocol.ReasonDestinationRefused, "the volume is read-only"))
			left(t, "refused", "the volume is read-only")
		},
		"no volume": func(t *testing.T) {
			d.make(t, "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: nas}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}")
			d.back(t, "volumeless", "cluster: db, deletionPolicy: Delete, destination: {claim: nas}")
			d.succeeds(t, "volumeless")
			d.remove(t, "persistentvolumeclaims", "nas")
			d.remove(t, "mysqlbackupinstances", "volumeless")
			left(t, "volumeless", `PersistentVolumeClaim "nas"`)
		},
		"not yet, when its Secret does not name its endpoint": func(t *testing.T) {
			const server = "https://s3.example.com"
			d.secret(t, "minio", map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "endpoint": server})
			d.back(t, "barred", "cluster: db, deletionPolicy: Delete, destination: {url: 's3://bucket?endpoint="+server+"', secret: minio}")
			d.succeeds(t, "barred")
			d.patch(t, "secrets", "minio", `{"data":{"endpoint":null}}`)
			generation := d.get(t, "mysqlbackupinstances", "barred").GetGeneration()
			d.remove(t, "mysqlbackupinstances", "barred")
			says(t, d.told(t, "barred", "Warning DestinationRefused"), `Secret "minio"`, "endpoint="+server)
			held, err := d.instance(t.Context(), "barred")
			stalled := meta.FindStatusCondition(held.Status.Conditions, mysqlv1.ConditionStalled)
			if err != nil || stalled == nil || stalled.Reason != protocol.ReasonDestinationRefused || stalled.ObservedGeneration != generation+1 {
				t.Errorf("its conditions are %+v (%v), want them to be of the generation after %d, which the deletion makes", held.Status.Conditions, err, generation)
			}
			d.patch(t, "secrets", "minio", `{"stringData":{"endpoint":"`+server+`"}}`)
			d.patch(t, "mysqlbackupinstances", "barred", `{"metadata":{"annotations":{"look":"again"}}}`)
			d.removes(t, "barred", protocol.ExitDone, d.outcome(t, "barred", protocol.ReasonCompleted, ""))
			d.gone(t, "mysqlbackupinstances", "barred")
			d.told(t, "barred", "Normal BackupDataDeleted")
		},
		"no credentials": func(t *testing.T) {
			d.secret(t, "s3", map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
			d.back(t, "locked", "cluster: db, deletionPolicy: Delete, destination: {url: 's3://bucket', secret: s3}")
			d.succeeds(t, "locked")
			d.remove(t, "secrets", "s3")
			d.remove(t, "mysqlbackupinstances", "locked")
			d.removes(t, "locked", protocol.ExitRefused, d.outcome(t, "locked", protocol.ReasonCredentialsNotFound, "read credentials: there are none"))
			left(t, "locked", "there are none", "s3://bucket/")
		},
	})
}

// TestBackupInstanceDataOutlastsAPodUnseen deletes an instance while its Pod writes and the operator's cache has never had that Pod. The
// data stays until the API server itself says that nothing writes.
func TestBackupInstanceDataOutlastsAPodUnseen(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	late := newLaggard("pods")
	d.operate(t, late.slow)
	d.back(t, "seen", "cluster: db")
	d.succeeds(t, "seen")
	late.lag()
	d.back(t, "unseen", "cluster: db, deletionPolicy: Delete")
	pod := d.pod(t, "unseen", "backup")
	d.bind(t, pod)
	d.runs(t, pod, "")
	d.held(t, "unseen", true)
	d.remove(t, "mysqlbackupinstances", "unseen")
	d.gone(t, "jobs", "unseen-backup")
	soon(t, func(ctx context.Context) string {
		instance, err := d.instance(ctx, "unseen")
		if err != nil || !strings.Contains(fmt.Sprint(instance.Status.Conditions), "deleting its data") {
			return fmt.Sprintf("it says %v (%v)", instance.Status.Conditions, err)
		}
		return ""
	})
	if _, err := d.of("jobs").Get(t.Context(), "unseen-delete", metav1.GetOptions{}); err == nil {
		t.Error("data is deleted while it is written")
	}
	late.catchUp()
	d.ends(t, pod, protocol.ExitRetry, d.outcome(t, "unseen", protocol.ReasonInterrupted, ""))
	d.removes(t, "unseen", protocol.ExitDone, "{}")
	d.gone(t, "mysqlbackupinstances", "unseen")
}

// TestBackupInstanceDataIsLeftOnALostNode loses the Pod that deletes with its node, which never says that it has ended. The instance says
// what it waits for, and goes when its patience is over.
func TestBackupInstanceDataIsLeftOnALostNode(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	began := time.Now()
	clock := &handClock{now: began}
	d.place.operate(t, nil, mysqlbackupinstance.ControllerAt(backupInstances(), "operator:test", d.home, clock.read))
	d.back(t, "lost", "cluster: db, deletionPolicy: Delete")
	d.succeeds(t, "lost")
	d.remove(t, "mysqlbackupinstances", "lost")
	pod := d.pod(t, "lost", "delete")
	d.bind(t, pod)
	d.runs(t, pod, "")
	d.remove(t, "pods", pod)
	soon(t, func(ctx context.Context) string {
		instance, err := d.instance(ctx, "lost")
		if err != nil || !strings.Contains(fmt.Sprint(instance.Status.Conditions), pod+" is being deleted") {
			return fmt.Sprintf("it says %v (%v)", instance.Status.Conditions, err)
		}
		return ""
	})
	clock.set(began.Add(9 * time.Minute))
	d.patch(t, "mysqlbackupinstances", "lost", `{"metadata":{"annotations":{"minutes":"9"}}}`)
	d.held(t, "lost", true)
	clock.set(began.Add(11 * time.Minute))
	d.patch(t, "mysqlbackupinstances", "lost", `{"metadata":{"annotations":{"minutes":"11"}}}`)
	d.gone(t, "mysqlbackupinstances", "lost")
	says(t, d.told(t, "lost", "Warning BackupDataLeft"), pod, "check whether its node still exists")
}

// TestBackupInstanceStaysUntilItIsTold deletes an instance whose data cannot be deleted, while the operator cannot write events. The
// instance stays: without it and without an event, no user would find the data.
func TestBackupInstanceStaysUntilItIsTold(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	d.back(t, "saved", "cluster: db, deletionPolicy: Delete")
	d.succeeds(t, "saved")
	d.grant(t, slices.DeleteFunc(instanceRules(), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, "create") && slices.Contains(rule.Resources, "events")
	}))
	d.remove(t, "mysqlbackupinstances", "saved")
	d.removes(t, "saved", protocol.ExitRefused, d.outcome(t, "saved", protocol.ReasonDestinationRefused, "the volume is read-only"))
	soon(t, func(ctx context.Context) string {
		instance, err := d.instance(ctx, "saved")
		if err != nil || !strings.Contains(fmt.Sprint(instance.Status.Conditions), "create event BackupDataLeft") {
			return fmt.Sprintf("it says %v (%v)", instance.Status.Conditions, err)
		}
		return ""
	})
	d.held(t, "saved", true)

	d.grant(t, instanceRules())
	d.gone(t, "mysqlbackupinstances", "saved")
	says(t, d.told(t, "saved", "Warning BackupDataLeft"), "the volume is read-only", "/"+d.namespace+"/db/saved")
}
