package backup

import (
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observed is what a pass observed of a backup that is not over. Every decision follows from it and from the instance.
type observed struct {
	now time.Time
	// waited is for how long this process has known the instance.
	waited time.Duration
	// scheduleMissing means that spec.schedule names a schedule that does not exist.
	scheduleMissing bool
	// name is the cluster's name; empty while it is unknown. cluster is nil if no cluster has that name.
	name    string
	cluster *v1.MySQLCluster
	// settings are the effective settings. location is where the data goes; urlFault is why it cannot be determined.
	settings v1.BackupSettings
	location v1.BackupLocation
	urlFault error
	// credentials and key are the Secrets of the location, claim is its PersistentVolumeClaim. They are read only while no Pod is running.
	credentials, key secret
	claim            *corev1.PersistentVolumeClaim
	// job is the backup's own Job; nil before it is created. transfer is what the Job and its Pods report.
	job      *batchv1.Job
	transfer transfer.State
	// known is for how long this process has known the Job. doomed is for how long it has known that the Job must end. ended is for how
	// long the program has ended in a Pod that still runs another container.
	known, doomed, ended time.Duration
	// former is how many Pods the backup's previous Jobs had.
	former int32
	// pods is how many Pods of the backup have not ended.
	pods int
	// refused is why Kubernetes creates no Pod for the Job, in its own words.
	refused string
	// progress is what the running Pod reports; nil if it does not answer.
	progress *protocol.Progress
}

// secret is a Secret that a backup needs.
type secret struct {
	found bool
	data  map[string][]byte
}

// observe reads everything that a backup in progress depends on.
func (r *reconciler) observe(ctx context.Context, instance v1.MySQLBackupInstance) (observed, error) {
	seen := observed{now: r.now()}
	seen.waited = r.memory.sights.Waited(keyOf(instance), "instance "+string(instance.UID), seen.now)
	if err := r.observeTransfer(ctx, instance, &seen, false); err != nil {
		return seen, err
	}
	if needsProof(seen) {
		// The cache of Jobs may be ahead of the cache of Pods. For a final decision, the operator asks the API server.
		if err := r.observeTransfer(ctx, instance, &seen, true); err != nil {
			return seen, err
		}
	}
	if err := r.observeWanted(ctx, instance, &seen); err != nil {
		return seen, err
	}
	if seen.transfer.Phase == transfer.Running {
		r.observeProgress(ctx, instance, &seen)
		return seen, nil
	}
	if seen.transfer.Phase == transfer.Succeeded || seen.transfer.Phase == transfer.Failed {
		return seen, nil
	}
	if err := r.observeNeeds(ctx, instance, &seen); err != nil {
		return seen, err
	}
	err := r.observeRefusal(ctx, instance, &seen)
	return seen, err
}

// needsProof reports whether a Job ended without a readable success, or does not end.
func needsProof(seen observed) bool {
	state := seen.transfer
	return state.Phase == transfer.Failed || state.Phase == transfer.Succeeded && state.Outcome == nil || state.Phase != transfer.Succeeded && isPastDeadline(seen)
}

// observeTransfer reads the backup's Job and its Pods, from the caches or live.
func (r *reconciler) observeTransfer(ctx context.Context, instance v1.MySQLBackupInstance, seen *observed, live bool) error {
	seen.job, seen.transfer, seen.pods, seen.former = nil, transfer.State{}, 0, 0
	seen.known, seen.doomed, seen.ended = 0, 0, 0
	job, err := r.ownJob(ctx, instance, live)
	if err != nil {
		return err
	}
	found, err := r.podsOf(ctx, instance, live)
	if err != nil {
		return err
	}
	seen.pods = countWriting(found)
	if job == nil {
		seen.transfer = reportWithoutJob(instance, found)
		return nil
	}
	seen.job = &batchv1.Job{}
	if err := schema.Decode(job, seen.job); err != nil {
		return err
	}
	seen.transfer, seen.former = transferOf(seen.job, transfer.PodsOf(seen.job, found)), transfer.FormerAttempts(seen.job, transfer.AnnotationAttempts)
	r.observeTimes(instance, seen)
	return nil
}

// transferOf returns what a Job and its Pods report. While the latest Pod has no reason yet, the failure of the Pod before it is more
// useful.
func transferOf(job *batchv1.Job, own []corev1.Pod) transfer.State {
	state := transfer.Observe(protocol.CommandBackup, job, own)
	if state.Phase != transfer.Pending || state.Reason != "" || len(own) < 2 {
		return state
	}
	before := transfer.Observe(protocol.CommandBackup, job, slices.DeleteFunc(slices.Clone(own), func(pod corev1.Pod) bool { return pod.Name == state.Pod }))
	if before.Phase == transfer.Pending && before.Outcome != nil {
		state.Reason, state.Message = before.Reason, before.Message
	}
	return state
}

// reportWithoutJob returns what the Pods of a backup report whose Job is gone. A Pod that was deleted may have completed the backup before.
func reportWithoutJob(instance v1.MySQLBackupInstance, all []corev1.Pod) transfer.State {
	state := transfer.Observe(protocol.CommandBackup, &batchv1.Job{}, slices.DeleteFunc(all, func(pod corev1.Pod) bool { return !isBackupPod(pod) }))
	if state.Phase == transfer.Succeeded && state.Outcome != nil && state.Outcome.UID == string(instance.UID) {
		return state
	}
	return transfer.State{}
}

// ownJob returns the Job that the instance owns; nil if there is none.
func (r *reconciler) ownJob(ctx context.Context, instance v1.MySQLBackupInstance, live bool) (*unstructured.Unstructured, error) {
	if !live {
		for _, job := range r.reader.Cached(jobs()).Owned(instance.UID) {
			return job, nil
		}
		return nil, nil //nolint:nilnil // no Job, and no error in looking for one
	}
	job, err := r.reader.Get(ctx, jobs(), instance.Namespace, transfer.JobName(instance.Name, jobSuffix))
	if apierrors.IsNotFound(err) || err == nil && !isControlledBy(job, instance) {
		return nil, nil //nolint:nilnil // no Job, and no error in looking for one
	}
	return job, err
}

// jobSuffix is what transfer.BackupJob appends to the instance's name.
const jobSuffix = "backup"

func isControlledBy(object *unstructured.Unstructured, instance v1.MySQLBackupInstance) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == instance.UID
}

// podsOf returns all Pods with the instance's label, whichever Job owns them.
func (r *reconciler) podsOf(ctx context.Context, instance v1.MySQLBackupInstance, live bool) ([]corev1.Pod, error) {
	value := transfer.LabelValue(instance.Name)
	objects := r.reader.Cached(pods()).Indexed(indexLabel, indexKey(instance.Namespace, value))
	if live {
		var err error
		if objects, err = r.reader.List(ctx, pods(), instance.Namespace, transfer.Selector+","+transfer.LabelBackup+"="+value); err != nil {
			return nil, err
		}
	}
	found := []corev1.Pod{}
	for _, object := range objects {
		if object.GetLabels()[transfer.LabelBackup] != value {
			continue
		}
		var pod corev1.Pod
		if err := schema.Decode(object, &pod); err != nil {
			return nil, err
		}
		found = append(found, pod)
	}
	return found, nil
}

// isBackupPod reports whether a Pod writes a backup, and does not delete one. It decides by the Job that owns the Pod.
func isBackupPod(pod corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(&pod)
	return controller == nil || strings.HasSuffix(controller.Name, "-"+jobSuffix)
}

// countWriting counts the Pods that may still write.
func countWriting(all []corev1.Pod) int {
	count := 0
	for _, pod := range all {
		if !transfer.HasEnded(pod) && isBackupPod(pod) {
			count++
		}
	}
	return count
}

// observeWanted finds out what to back up, how, and to which location. What was fixed when the backup began stays.
func (r *reconciler) observeWanted(ctx context.Context, instance v1.MySQLBackupInstance, seen *observed) error {
	schedule, err := r.schedule(ctx, instance, seen.transfer.Phase == transfer.Running)
	if err != nil {
		return err
	}
	seen.scheduleMissing = schedule == nil && instance.Spec.Schedule != ""
	seen.name = instance.Spec.Cluster
	if seen.name == "" && schedule != nil {
		seen.name = schedule.Spec.Cluster
	}
	if instance.Status.Location != nil {
		seen.name = instance.Status.Cluster
	}
	cluster := v1.MySQLCluster{}
	if object, found := r.reader.Cached(clusters(r.kind)).Get(instance.Namespace, seen.name); found && seen.name != "" {
		if err := schema.Decode(object, &cluster); err != nil {
			return err
		}
		seen.cluster = &cluster
	}
	seen.settings = transfer.Resolve(instance.Spec, schedule, cluster.Spec)
	if instance.Status.Location != nil {
		seen.location = *instance.Status.Location
		return nil
	}
	who := transfer.Identity{Namespace: instance.Namespace, Cluster: seen.name, Schedule: instance.Spec.Schedule, Instance: instance.Name}
	seen.location, seen.urlFault = transfer.LocationOf(seen.settings, who)
	return nil
}

// schedule reads the schedule that an instance names. It returns nil if there is none, or if nothing depends on it any more. It reads live,
// because few backups wait, and none for long.
func (r *reconciler) schedule(ctx context.Context, instance v1.MySQLBackupInstance, isRunning bool) (*v1.MySQLBackupSchedule, error) {
	if instance.Spec.Schedule == "" || isRunning {
		return nil, nil //nolint:nilnil // no schedule, and no error in looking for one
	}
	object, err := r.reader.Get(ctx, schedules(r.kind), instance.Namespace, instance.Spec.Schedule)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the same
	}
	if err != nil {
		return nil, err
	}
	schedule := &v1.MySQLBackupSchedule{}
	return schedule, schema.Decode(object, schedule)
}

// observeNeeds reads what a Pod needs that is not running yet.
func (r *reconciler) observeNeeds(ctx context.Context, instance v1.MySQLBackupInstance, seen *observed) error {
	var err error
	if seen.credentials, err = r.secret(ctx, instance.Namespace, seen.location.Secret); err != nil {
		return err
	}
	if seen.key, err = r.secret(ctx, instance.Namespace, seen.location.EncryptionSecret); err != nil {
		return err
	}
	seen.claim, err = r.claim(ctx, instance.Namespace, seen.location.Claim)
	return err
}

func (r *reconciler) secret(ctx context.Context, namespace, name string) (secret, error) {
	if name == "" {
		return secret{}, nil
	}
	object, err := r.reader.Get(ctx, secrets(), namespace, name)
	if apierrors.IsNotFound(err) {
		return secret{}, nil
	}
	if err != nil {
		return secret{}, err
	}
	var held corev1.Secret
	err = schema.Decode(object, &held)
	return secret{found: true, data: held.Data}, err
}

func (r *reconciler) claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no claim, and no error in looking for one
	}
	object, err := r.reader.Get(ctx, claims(), namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the same
	}
	if err != nil {
		return nil, err
	}
	claim := &corev1.PersistentVolumeClaim{}
	return claim, schema.Decode(object, claim)
}

// podLate is for how long a Job may have no Pod before the operator reads the Job's events.
const podLate = 5 * time.Second

// observeRefusal finds out why Kubernetes creates no Pod for the Job: a quota, a security policy, a missing service account. Only the Job's
// events report it. If the operator has no permission to list events, the status reports less, and the backup continues.
func (r *reconciler) observeRefusal(ctx context.Context, instance v1.MySQLBackupInstance, seen *observed) error {
	if seen.job == nil || seen.pods > 0 || seen.transfer.Pod != "" || seen.known < podLate {
		return nil
	}
	job, err := r.ownJob(ctx, instance, false)
	if job == nil || err != nil {
		return err
	}
	told, err := r.reader.Regarding(ctx, job)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	seen.refused, err = transfer.JobRefusal(told)
	return err
}

// isOurs reports whether the operator creates objects for backups with these labels, of whichever cluster.
func isOurs(labels map[string]string) bool {
	for name, value := range transfer.ClaimLabels() {
		if labels[name] != value {
			return false
		}
	}
	return true
}
