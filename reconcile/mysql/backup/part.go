package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// removalDeadline bounds, in seconds, how long a running Pod may take to delete the data: many parts in a slow bucket.
	removalDeadline = 6 * 3600
	// removalKept is for how many seconds Kubernetes keeps the finished Job if the operator does not delete it.
	removalKept = 3600
	// removalSuffix is what transfer.DeleteJob appends to the instance's name.
	removalSuffix = "delete"
)

// end makes one pass over an instance that is being deleted. Garbage collection deletes its children.
func (r *reconciler) end(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) (reconcile.Outcome, error) {
	if !isHeld(instance) {
		return reconcile.Outcome{}, nil
	}
	seen, err := r.observeRemains(ctx, instance)
	if err != nil {
		return r.unfinished(ctx, client, instance, err)
	}
	what, because := decideEnd(instance, seen)
	switch what {
	case deletionStepStop, deletionStepRemove, deletionStepClear, deletionStepWait, deletionStepNone:
	case deletionStepKeep:
		return r.release(ctx, client, instance, false, nil)
	case deletionStepDone:
		gone := reconcile.Event{Type: reconcile.Normal, Reason: reasonDataDeleted, Action: "Delete", Note: "the data is deleted: " + where(*instance.Status.Location)}
		if onlyUnfinished(instance) {
			gone.Note = "nothing is left of what failed attempts had stored: " + where(*instance.Status.Location)
		}
		return r.release(ctx, client, instance, true, &gone)
	case deletionStepWaitForUser:
		r.memory.succeed(keyOf(instance))
		r.memory.sights.End(keyOf(instance), sightRemoval)
		return waitForUserOutcome(instance, because, seen.now), nil
	case deletionStepAbandon:
		return r.abandonData(ctx, client, instance, because)
	}
	if err := r.carryOut(ctx, client, instance, what); err != nil {
		return r.unfinished(ctx, client, instance, err)
	}
	r.memory.succeed(keyOf(instance))
	return reconcile.Outcome{Status: deletionStatus(instance, report.Problem{Reason: protocol.ReasonDeleting, Message: because}, seen.now), RequeueAfter: helpEvery}, nil
}

// carryOut does what a step requires of the Jobs.
func (r *reconciler) carryOut(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, what deletionStep) error {
	switch what {
	case deletionStepStop:
		return r.stop(ctx, client, instance)
	case deletionStepRemove:
		return r.remove(ctx, client, instance)
	case deletionStepClear:
		return r.clear(ctx, client, instance)
	case deletionStepWait, deletionStepNone, deletionStepKeep, deletionStepDone, deletionStepWaitForUser, deletionStepAbandon:
	}
	return nil
}

// unfinished ends a pass that could not do its work. It gives up what is refused for longer than patience. It gives up at once in a
// namespace that is being deleted, because nothing can be created there.
func (r *reconciler) unfinished(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, err error) (reconcile.Outcome, error) {
	now, found := r.now(), whyUnfinished(err)
	lapsed, isLapsed := errors.AsType[*markVoidError](err)
	switch {
	case isLapsed:
		return r.abandonData(ctx, client, instance, lapsed.because)
	case reconcile.IsNamespaceTerminating(err):
		return r.abandonData(ctx, client, instance, "the namespace is being deleted")
	case isRefusal(err) && now.Sub(r.memory.fail(keyOf(instance), instance.UID, now)) > patience:
		return r.abandonData(ctx, client, instance, err.Error())
	case found == nil:
		return reconcile.Outcome{}, err
	}
	return reconcile.Outcome{Status: deletionStatus(instance, *found, now), RequeueAfter: helpEvery}, nil
}

// whyUnfinished is what the status reports of an error; nil if a retry may succeed without a report.
func whyUnfinished(err error) *report.Problem {
	if found := report.FromError(err); found != nil {
		return found
	}
	if unsure, ok := errors.AsType[*markUnknownError](err); ok {
		return &report.Problem{Reason: protocol.ReasonDeleting, Message: "its data is not deleted yet: " + unsure.Error()}
	}
	return nil
}

// isRefusal reports whether the API server refused, by itself or because an admission webhook is gone. It is false for one that does not
// answer, or whose data is old.
func isRefusal(err error) bool {
	return report.FromError(err) != nil || apierrors.IsInternalError(err)
}

// abandonData releases an instance without deleting its data. It first reports where the data is: after the instance is gone, users could
// not find it. The finalizer is removed in the next pass, when the API server has the event and the status. In a namespace that is being
// deleted, which accepts no events, the status alone must be enough.
func (r *reconciler) abandonData(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, because string) (reconcile.Outcome, error) {
	if isReportedLeft(instance.Status) {
		return r.release(ctx, client, instance, true, nil)
	}
	left := reconcile.Event{Type: reconcile.Warning, Reason: protocol.ReasonDataLeft, Action: "Delete"}
	left.Note = "the data was not deleted: " + because
	if instance.Status.Location != nil {
		left.Note = fmt.Sprintf("the data, if there is any, was not deleted and remains at %s: %s", where(*instance.Status.Location), because)
	}
	err := client.WriteEvent(ctx, left)
	if found := report.FromError(err); found != nil {
		return reconcile.Outcome{Status: deletionStatus(instance, *found, r.now()), RequeueAfter: helpEvery}, nil
	}
	if err != nil && !reconcile.IsNamespaceTerminating(err) {
		return reconcile.Outcome{}, err
	}
	logr.FromContextOrDiscard(ctx).Info("left the backup's data in place", "op", "delete", "reason", protocol.ReasonDataLeft, "message", left.Note)
	return reconcile.Outcome{Status: deletionStatus(instance, report.Problem{Reason: protocol.ReasonDataLeft, Message: left.Note, Stalled: true}, r.now()), RequeueAfter: toldEvery}, nil
}

// toldEvery is how soon the finalizer is removed after the status reports that the data is left.
const toldEvery = time.Second

func isReportedLeft(status v1.MySQLBackupInstanceStatus) bool {
	condition := meta.FindStatusCondition(status.Conditions, v1.ConditionStalled)
	return condition != nil && condition.Reason == protocol.ReasonDataLeft
}

// release removes the finalizer, after it has deleted the Job that deleted the data: no later pass would delete that Job. settled means
// that the data is dealt with, so that no other change of the instance matters.
func (r *reconciler) release(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance, settled bool, told *reconcile.Event) (reconcile.Outcome, error) {
	outcome := reconcile.Outcome{}
	if told != nil {
		outcome.Events = []reconcile.Event{*told}
	}
	// If the operator has no permission to delete the Job, Kubernetes deletes it after a while.
	if err := r.clear(ctx, client, instance); err != nil && report.FromError(err) == nil {
		return reconcile.Outcome{}, err
	}
	_, err := r.hold(ctx, client, client.Owner(), false)
	if settled && apierrors.IsConflict(err) {
		err = r.releaseLive(ctx, client)
	}
	if err != nil {
		return reconcile.Outcome{}, err
	}
	return outcome, nil
}

// releaseLive removes the finalizer of an instance that another client has changed meanwhile, for example garbage collection its own
// finalizer. The data is dealt with, and the Job that did so is gone: another pass would create that Job again.
func (r *reconciler) releaseLive(ctx context.Context, client *reconcile.Client) error {
	object := client.Owner()
	live, err := r.reader.Get(ctx, r.kind.GVR(), object.GetNamespace(), object.GetName())
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != object.GetUID() {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = r.hold(ctx, client, live, false)
	return err
}

// deletionStatus returns the status of an instance whose data is being deleted. What it reports of the backup stays.
func deletionStatus(instance v1.MySQLBackupInstance, what report.Problem, now time.Time) v1.MySQLBackupInstanceStatus {
	status := previousStatus(instance)
	conditionsOf(&status, now).Progress(what)
	return status
}

// observeRemains reads what is left of an instance.
func (r *reconciler) observeRemains(ctx context.Context, instance v1.MySQLBackupInstance) (deletionObserved, error) {
	seen := deletionObserved{now: r.now(), stopping: map[string]time.Duration{}, strayed: map[string]time.Duration{}}
	all, err := r.podsOf(ctx, instance, false)
	if err != nil {
		return seen, err
	}
	for _, pod := range all {
		if isBackupPod(pod) && !transfer.HasEnded(pod) {
			seen.pods = append(seen.pods, pod)
		}
	}
	job, err := r.ownJob(ctx, instance, false)
	if err != nil {
		return seen, err
	}
	if job != nil {
		var typed batchv1.Job
		if err := schema.Decode(job, &typed); err != nil {
			return seen, err
		}
		if !transfer.IsFinished(&typed) { // a finished Job creates no more Pods, and users may want to read its log
			seen.job = &typed
		}
	}
	r.observeStops(instance, &seen)
	if instance.Status.Location == nil {
		return seen, nil
	}
	if err := r.observeRemoval(instance, all, &seen); err != nil {
		return seen, err
	}
	if err := r.observeReach(ctx, instance, &seen); err != nil {
		return seen, err
	}
	r.observeTried(instance, &seen)
	return seen, nil
}

// observeRemoval reads the Job that deletes the data.
func (r *reconciler) observeRemoval(instance v1.MySQLBackupInstance, all []corev1.Pod, seen *deletionObserved) error {
	object, found := r.reader.Cached(jobs()).Get(instance.Namespace, transfer.JobName(instance.Name, removalSuffix))
	if !found {
		return nil
	}
	seen.removal = &batchv1.Job{}
	if err := schema.Decode(object, seen.removal); err != nil {
		return err
	}
	r.observeStop(instance, seen, seen.removal)
	if object.GetAnnotations()[transfer.AnnotationOrder] != transfer.Hash(r.removalOrder(instance)) {
		seen.stale = true
		return nil
	}
	own := transfer.PodsOf(seen.removal, all)
	seen.state = transfer.Observe(protocol.CommandDelete, seen.removal, own)
	for i := range own {
		r.observeStop(instance, seen, &own[i])
	}
	seen.removing = r.removingFor(instance, seen.now)
	return nil
}

// observeReach checks whether the data can be reached, and whether another backup uses its volume.
func (r *reconciler) observeReach(ctx context.Context, instance v1.MySQLBackupInstance, seen *deletionObserved) error {
	location := *instance.Status.Location
	claim, err := r.claim(ctx, instance.Namespace, location.Claim)
	if err != nil {
		return err
	}
	seen.lost = unreachable(location, claim)
	if location.Claim == "" {
		return r.observeBar(ctx, instance, seen)
	}
	for _, other := range r.reader.Cached(r.kind.GVR()).Indexed(indexClaim, indexKey(instance.Namespace, location.Claim)) {
		seen.shared = seen.shared || other.GetUID() != instance.UID
	}
	// A volume may never be free: backups write to it all the time, or its node is gone.
	seen.shared = seen.shared && seen.removing <= userPatience
	return nil
}

func (r *reconciler) removalOrder(instance v1.MySQLBackupInstance) transfer.DeleteOrder {
	return transfer.DeleteOrder{
		Namespace: instance.Namespace, Cluster: instance.Status.Cluster, Instance: instance.Name, UID: string(instance.UID),
		Location: *instance.Status.Location, UnfinishedOnly: onlyUnfinished(instance), Deadline: removalDeadline, Image: r.image,
	}
}

// onlyUnfinished reports whether only the remains of failed attempts are deleted with an instance. It failed, retention has marked it, and
// no user has asked to delete its data. A complete backup stays, if there is one that its Pod could not report.
func onlyUnfinished(instance v1.MySQLBackupInstance) bool {
	_, expired := instance.Annotations[transfer.AnnotationExpired]
	return expired && instance.Status.Phase == v1.BackupFailed && instance.Spec.DeletionPolicy != v1.DeleteData
}

// mayRemove reports whether the data must be deleted according to the API server, too. It returns a markVoidError if only a mark of
// retention requires it, and the schedule is gone.
func (r *reconciler) mayRemove(ctx context.Context, instance v1.MySQLBackupInstance) (bool, error) {
	live, err := r.reader.Get(ctx, r.kind.GVR(), instance.Namespace, instance.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var latest v1.MySQLBackupInstance
	if err := schema.Decode(live, &latest); err != nil {
		return false, err
	}
	if live.GetUID() != instance.UID || latest.DeletionTimestamp == nil || !isHeld(latest) || !holds(latest, latest.Spec.DeletionPolicy) {
		return false, nil // the cache will show it soon, too
	}
	return true, r.stillMarked(ctx, latest)
}

// remove creates the Job that deletes the data, if the data must be deleted.
func (r *reconciler) remove(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) error {
	if may, err := r.mayRemove(ctx, instance); err != nil || !may {
		return err
	}
	if writes, err := r.stillWrites(ctx, instance); err != nil || writes {
		return err // the caches may be older than the Pod's first write
	}
	job := transfer.DeleteJob(r.removalOrder(instance))
	job.Spec.WithTTLSecondsAfterFinished(removalKept)
	_, err := client.CreateUnowned(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		return r.refuseForeignRemoval(ctx, instance, *job.Name)
	}
	if err == nil {
		logr.FromContextOrDiscard(ctx).Info("job created", "op", "delete", "job", *job.Name, "url", instance.Status.Location.URL)
	}
	return err
}

// stillWrites reports whether the API server has a Pod of the backup that has not ended, or a Job that may create one.
func (r *reconciler) stillWrites(ctx context.Context, instance v1.MySQLBackupInstance) (bool, error) {
	job, err := r.ownJob(ctx, instance, true)
	if err != nil {
		return false, err
	}
	if job != nil {
		var typed batchv1.Job
		if err := schema.Decode(job, &typed); err != nil || !transfer.IsFinished(&typed) {
			return true, err
		}
	}
	all, err := r.podsOf(ctx, instance, true)
	return countWriting(all) > 0, err
}

// refuseForeignRemoval checks who owns an existing Job with the name of the one that deletes data. A Job of the operator for another order
// is found stale by the next pass.
func (r *reconciler) refuseForeignRemoval(ctx context.Context, instance v1.MySQLBackupInstance, name string) error {
	job, err := r.reader.Get(ctx, jobs(), instance.Namespace, name)
	if apierrors.IsNotFound(err) || err == nil && job.GetLabels()[transfer.LabelBackup] == transfer.LabelValue(instance.Name) && isOurs(job.GetLabels()) {
		return nil
	}
	if err != nil {
		return err
	}
	return &reconcile.ForeignError{Resource: jobs(), Namespace: instance.Namespace, Name: name}
}

// clear deletes the Job that deletes data, finished or not.
func (r *reconciler) clear(ctx context.Context, client *reconcile.Client, instance v1.MySQLBackupInstance) error {
	job, found := r.reader.Cached(jobs()).Get(instance.Namespace, transfer.JobName(instance.Name, removalSuffix))
	if !found || job.GetDeletionTimestamp() != nil {
		return nil
	}
	return client.Delete(ctx, jobs(), job)
}

func keyOf(instance v1.MySQLBackupInstance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
}
