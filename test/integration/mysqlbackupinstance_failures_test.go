package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlbackupinstance "github.com/mysql-operator/mysql-operator/reconcile/mysql/backup"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestBackupInstanceThatIsGivenUpStoresNothingMore: the Pod of a backup runs long after its deadline, on a node whose kubelet does not
// notice that. Kubernetes does not end the Job. The operator deletes it when it gives the backup up, since no instance accounts for what
// a failed backup stores.
func TestBackupInstanceThatIsGivenUpStoresNothingMore(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	began := time.Now()
	clock := &handClock{now: began}
	d.place.operate(t, nil, mysqlbackupinstance.ControllerAt(backupInstances(), "operator:test", d.home, clock.read))
	d.back(t, "endless", "cluster: db, deletionPolicy: Retain, activeDeadlineSeconds: 3600")
	pod := d.pod(t, "endless", "backup")
	d.bind(t, pod)
	d.runs(t, pod, "")
	d.until(t, "endless", mysqlv1.BackupStarted, protocol.ReasonCopying)
	clock.set(began.Add(2 * time.Hour))
	d.patch(t, "mysqlbackupinstances", "endless", `{"metadata":{"annotations":{"hours":"2"}}}`)
	d.until(t, "endless", mysqlv1.BackupFailed, protocol.ReasonDeadlineExceeded)
	d.gone(t, "jobs", "endless-backup")
}

// TestBackupInstanceFails tells every way in which a backup is over without one, and that nothing follows.
func TestBackupInstanceFails(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	sideBySide(t, 6, map[string]func(*testing.T){
		"refused": func(t *testing.T) {
			d.back(t, "refused", "cluster: db")
			pod := d.pod(t, "refused", "backup")
			d.runs(t, pod, "")
			d.until(t, "refused", mysqlv1.BackupStarted, protocol.ReasonCopying)
			d.ends(t, pod, protocol.ExitRefused, d.outcome(t, "refused", protocol.ReasonDestinationOccupied, "the folder holds another backup"))
			failed := d.until(t, "refused", mysqlv1.BackupFailed, protocol.ReasonDestinationOccupied)
			says(t, readyOf(failed).Message, "the folder holds another backup")
			says(t, d.told(t, "refused", "Warning DestinationOccupied"), "the folder holds another backup")

			t.Log("nothing follows, though the object changes and its Job goes")
			d.remove(t, "jobs", "refused-backup")
			d.gone(t, "jobs", "refused-backup")
			d.patch(t, "mysqlbackupinstances", "refused", `{"spec":{"deletionPolicy":"Delete"}}`)
			after := d.until(t, "refused", mysqlv1.BackupFailed, protocol.ReasonDestinationOccupied)
			after.Status.ObservedGeneration = failed.Status.ObservedGeneration
			same(t, after.Status, failed.Status)
		},
		"tried again": func(t *testing.T) {
			d.back(t, "busy", "cluster: db")
			pod := d.pod(t, "busy", "backup")
			d.runs(t, pod, "")
			d.ends(t, pod, protocol.ExitRetry, d.outcome(t, "busy", protocol.ReasonDonorBusy, "db-1 gives a copy to db-2"))
			waits := d.until(t, "busy", mysqlv1.BackupStarted, protocol.ReasonDonorBusy)
			says(t, readyOf(waits).Message, "retries it", "db-1 gives a copy to db-2")
			if done := d.succeeds(t, "busy"); done.Status.Attempts != 2 {
				t.Errorf("it took %d attempts, want 2", done.Status.Attempts)
			}
		},
		"without a word": func(t *testing.T) {
			d.back(t, "mute", "cluster: db")
			first := d.pod(t, "mute", "backup")
			d.ends(t, first, protocol.ExitDone, "all is well")
			d.gone(t, "pods", first)
			d.ends(t, d.pod(t, "mute", "backup"), protocol.ExitDone, "all is well, I said")
			failed := d.until(t, "mute", mysqlv1.BackupFailed, protocol.ReasonPodsFailed)
			says(t, readyOf(failed).Message, "there may be a good backup", "backup verify --from file:///"+d.namespace+"/db/mute")
			if failed.Status.Attempts != 2 {
				t.Errorf("it took %d attempts, want 2", failed.Status.Attempts)
			}
		},
		"its word is lost": func(t *testing.T) {
			d.back(t, "lost", "cluster: db")
			pod := d.pod(t, "lost", "backup")
			d.ends(t, pod, protocol.ExitDone, "")
			d.gone(t, "pods", pod)
			if done := d.succeeds(t, "lost"); done.Status.Attempts != 2 {
				t.Errorf("it took %d attempts, want 2", done.Status.Attempts)
			}
		},
		"about another backup": func(t *testing.T) {
			d.back(t, "liar", "cluster: db")
			d.back(t, "other", "cluster: db")
			d.ends(t, d.pod(t, "liar", "backup"), protocol.ExitDone, d.outcome(t, "other", protocol.ReasonCompleted, ""))
			says(t, readyOf(d.until(t, "liar", mysqlv1.BackupFailed, protocol.ReasonPodsFailed)).Message, "another backup")
		},
		"Job deleted": func(t *testing.T) {
			d.back(t, "jobless", "cluster: db")
			pod := d.pod(t, "jobless", "backup")
			d.remove(t, "jobs", "jobless-backup")
			d.gone(t, "pods", pod)
			d.succeeds(t, "jobless")
		},
		"Job made by another client": func(t *testing.T) {
			d.make(t, "jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: squatted-backup}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}}}`)
			d.back(t, "squatted", "cluster: db")
			d.waitsFor(t, "squatted", "ForeignObject", true, "squatted-backup exists already and was not made by this operator")
			d.remove(t, "jobs", "squatted-backup")
			d.succeeds(t, "squatted")
		},
		"image not to be had": func(t *testing.T) {
			d.back(t, "imageless", "cluster: db")
			pod := d.pod(t, "imageless", "backup")
			d.becomes(t, pod, "Pending", "", map[string]any{"waiting": map[string]any{"reason": "ErrImagePull", "message": "no such host"}})
			d.waitsFor(t, "imageless", "ImagePullFailed", true, "kubectl describe pod "+pod)
			before, _ := d.instance(t.Context(), "imageless")
			d.becomes(t, pod, "Pending", "", map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff", "message": "Back-off pulling image"}})
			d.succeeds(t, "imageless")
			if before.Status.Attempts != 0 {
				t.Errorf("a Pod that never ran is counted: %+v", before.Status)
			}
		},
	})
}

// TestBackupInstanceIsReplaced ends backups whose schedule makes another one in their place.
func TestBackupInstanceIsReplaced(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	o := d.operate(t, nil)
	replace := func(t *testing.T, name string) {
		t.Helper()
		d.patch(t, "mysqlbackupinstances", name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"next"}}}`, transfer.AnnotationReplaced))
	}
	failed := func(t *testing.T, name string) {
		t.Helper()
		says(t, readyOf(d.until(t, name, mysqlv1.BackupFailed, protocol.ReasonReplaced)).Message, "concurrencyPolicy Replace")
		d.gone(t, "jobs", name+"-backup")
	}
	sideBySide(t, 3, map[string]func(*testing.T){
		"before it began": func(t *testing.T) {
			d.back(t, "unborn", "cluster: nowhere")
			d.waitsFor(t, "unborn", "ClusterNotFound", false)
			replace(t, "unborn")
			failed(t, "unborn")
		},
		"while its Pod waits": func(t *testing.T) {
			d.back(t, "young", "cluster: db")
			d.pod(t, "young", "backup")
			replace(t, "young")
			failed(t, "young")
		},
		"while it runs": func(t *testing.T) {
			d.back(t, "running", "cluster: db")
			pod := d.pod(t, "running", "backup")
			d.bind(t, pod)
			d.runs(t, pod, "")
			d.until(t, "running", mysqlv1.BackupStarted, protocol.ReasonCopying)
			replace(t, "running")
			d.gone(t, "jobs", "running-backup")
			d.terminates(t, pod)
			ending := d.until(t, "running", mysqlv1.BackupStarted, protocol.ReasonReplaced)
			says(t, readyOf(ending).Message, "waiting for its Pod to end")
			d.ends(t, pod, protocol.ExitRetry, d.outcome(t, "running", protocol.ReasonInterrupted, "the program was stopped"))
			failed(t, "running")
		},
		"at the moment that it is complete": func(t *testing.T) {
			d.back(t, "quick", "cluster: db")
			pod := d.pod(t, "quick", "backup")
			d.bind(t, pod)
			d.runs(t, pod, "")
			d.until(t, "quick", mysqlv1.BackupStarted, protocol.ReasonCopying)
			replace(t, "quick")
			d.gone(t, "jobs", "quick-backup")
			d.terminates(t, pod)
			d.ends(t, pod, protocol.ExitDone, d.outcome(t, "quick", protocol.ReasonCompleted, ""))
			d.until(t, "quick", mysqlv1.BackupCompleted, protocol.ReasonCompleted)
		},
	})
	for _, write := range o.wire.written() {
		if write == "DELETE /api/v1/namespaces/"+d.namespace+"/pods" {
			t.Errorf("Pods are Kubernetes' to end: %s", write)
		}
	}
}

// terminates waits until Kubernetes has begun to delete a Pod, after its Job. One that has ended before is gone at once, perhaps before the
// operator has seen how it ended.
func (d *depot) terminates(t *testing.T, pod string) {
	t.Helper()
	soon(t, func(context.Context) string {
		if d.get(t, "pods", pod).GetDeletionTimestamp() == nil {
			return "Kubernetes has not begun to delete " + pod
		}
		return ""
	})
}

// bind puts a Pod on a node of its own, so that it takes a while to end: a test has to say that it did. The node exists, since Kubernetes
// deletes at once whatever is on nodes that do not (pod garbage collection; it looks for such nodes every 20 s).
func (d *depot) bind(t *testing.T, pod string) {
	t.Helper()
	node := object(t, "{apiVersion: v1, kind: Node, metadata: {name: "+d.namespace+"."+pod+"}}")
	nodes := d.Dynamic.Resource(coreResource("nodes"))
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(t.Context()), node.GetName(), metav1.DeleteOptions{}) })
	binding := object(t, "{apiVersion: v1, kind: Binding, metadata: {name: "+pod+"}, target: {apiVersion: v1, kind: Node, name: "+node.GetName()+"}}")
	if _, err := d.of("pods").Create(t.Context(), binding, metav1.CreateOptions{}, "binding"); err != nil {
		t.Fatal(err)
	}
}

// TestBackupInstanceVolumeGrows raises a volume to what later backups ask for, and never lowers it.
func TestBackupInstanceVolumeGrows(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	o := d.operate(t, nil)
	d.back(t, "first", "cluster: db, storage: 1Gi")
	d.succeeds(t, "first")
	d.checkClaim(t, "db-backups", "1Gi")
	d.provide(t, "db-backups")

	d.back(t, "second", "cluster: db, storage: 3Gi")
	d.succeeds(t, "second")
	d.checkClaim(t, "db-backups", "3Gi")
	writes := len(o.wire.written())

	d.back(t, "third", "cluster: db, storage: 2Gi")
	d.succeeds(t, "third")
	d.checkClaim(t, "db-backups", "3Gi")
	for _, write := range o.wire.written()[writes:] {
		if write == "PATCH /api/v1/namespaces/"+d.namespace+"/persistentvolumeclaims/db-backups" {
			t.Errorf("the volume was written to without need: %s", write)
		}
	}
}

// provide binds a claim to a volume of its own.
func (d *depot) provide(t *testing.T, name string) {
	t.Helper()
	claim, err := d.of("persistentvolumeclaims").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := claim.Object["spec"].(map[string]any)
	volume := object(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-%s}
spec:
  capacity: {storage: 1Ti}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %s
  hostPath: {path: /nonexistent}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: %s, name: %s, uid: %s}
`, claim.GetUID(), spec["storageClassName"], d.namespace, name, claim.GetUID()))
	volumes := d.Dynamic.Resource(coreResource("persistentvolumes"))
	if _, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = volumes.Delete(context.WithoutCancel(t.Context()), volume.GetName(), metav1.DeleteOptions{})
	})
	soon(t, func(ctx context.Context) string {
		found, err := d.of("persistentvolumeclaims").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if status, _ := found.Object["status"].(map[string]any); status["phase"] != string(corev1.ClaimBound) {
			return fmt.Sprintf("the claim is %v", status["phase"])
		}
		return ""
	})
}

// TestBackupInstanceAtRest has backups of every sort, and looks whether anything is written about them when nothing happens.
func TestBackupInstanceAtRest(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	first, second := d.operate(t, d.elected), d.operate(t, nil)
	d.back(t, "done", "cluster: db, deletionPolicy: Delete")
	d.succeeds(t, "done")
	d.back(t, "failed", "cluster: db")
	d.ends(t, d.pod(t, "failed", "backup"), protocol.ExitRefused, d.outcome(t, "failed", protocol.ReasonDestinationRefused, "no"))
	d.until(t, "failed", mysqlv1.BackupFailed, protocol.ReasonDestinationRefused)
	d.back(t, "waiting", "cluster: nowhere")
	d.waitsFor(t, "waiting", "ClusterNotFound", false)
	d.back(t, "stalled", "cluster: db, encryption: {secret: nowhere}")
	d.waitsFor(t, "stalled", "EncryptionKeyNotFound", true)
	d.back(t, "pending", "cluster: db")
	d.pod(t, "pending", "backup")
	d.back(t, "silent", "cluster: db")
	d.runs(t, d.pod(t, "silent", "backup"), "127.0.0.1")
	d.until(t, "silent", mysqlv1.BackupStarted, protocol.ReasonCopying)
	d.restful(t, first, second)
}

// TestBackupInstanceUnderTwoOperators has two operators that both think they lead: still one Job, one Pod, one end.
func TestBackupInstanceUnderTwoOperators(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	d.operate(t, nil)
	d.operate(t, nil)
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		d.back(t, name, "cluster: db, deletionPolicy: Delete")
	}
	for _, name := range names {
		if done := d.succeeds(t, name); done.Status.Attempts != 1 {
			t.Errorf("%s took %d attempts", name, done.Status.Attempts)
		}
	}
	d.checkClaim(t, "db-backups", "2Gi")
	for _, name := range names {
		d.remove(t, "mysqlbackupinstances", name)
		d.removes(t, name, protocol.ExitDone, "{}")
	}
	for _, name := range names {
		d.gone(t, "mysqlbackupinstances", name)
	}
}

// TestBackupInstanceOutcomeIsHeardBehindTheCache holds the watch of Pods up, as a busy API server may: the Job is seen to be complete, and
// what its Pod said is not. That is no reason to take a good backup for a failed one.
func TestBackupInstanceOutcomeIsHeardBehindTheCache(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.cluster(t, "db")
	late := &recorder{held: "/pods"}
	d.operate(t, func(config *reconcile.Config) { config.Rest.Wrap(late.around) })
	d.back(t, "one", "cluster: db")
	pod := d.pod(t, "one", "backup")
	d.runs(t, pod, "")
	d.until(t, "one", mysqlv1.BackupStarted, protocol.ReasonCopying)
	gate := make(chan struct{})
	late.gate.Store(&gate)
	defer func() {
		late.gate.Store(nil)
		close(gate)
	}()
	d.ends(t, pod, protocol.ExitDone, d.outcome(t, "one", protocol.ReasonCompleted, ""))
	d.until(t, "one", mysqlv1.BackupCompleted, protocol.ReasonCompleted)
}
