package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func goes(instance *v1.MySQLBackupInstance) {
	instance.Spec.DeletionPolicy = v1.DeleteData
	instance.Finalizers = []string{"other.example.com/finalizer", transfer.FinalizerData}
	instance.DeletionTimestamp = &metav1.Time{Time: after(time.Hour)}
}

func TestWhichInstancesAreHeld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		own    v1.DeletionPolicy
		policy v1.DeletionPolicy
		marked bool
		held   bool
		want   bool
	}{
		"the data stays":                                   {own: v1.RetainData, policy: v1.RetainData},
		"the data is deleted":                              {own: v1.DeleteData, policy: v1.DeleteData, want: true},
		"retention deletes it, with any policy":            {own: v1.RetainData, policy: v1.RetainData, marked: true, want: true},
		"the policy was changed to Retain":                 {own: v1.RetainData, policy: v1.RetainData, held: true},
		"the schedule's policy is Delete":                  {policy: v1.DeleteData, want: true},
		"the schedule's policy was Delete, and it is gone": {policy: v1.RetainData, held: true, want: true},
		"no policy was ever set":                           {policy: v1.RetainData},
		"the instance's Retain overrides the schedule's":   {own: v1.RetainData, policy: v1.RetainData, held: true},
		"expired, and the schedule added the finalizer":    {own: v1.RetainData, policy: v1.RetainData, marked: true, held: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instance := fresh(func(i *v1.MySQLBackupInstance) {
				i.Spec.DeletionPolicy = test.own
				if test.marked {
					i.Annotations = map[string]string{transfer.AnnotationExpired: "keepLast"}
				}
				if test.held {
					i.Finalizers = []string{transfer.FinalizerData}
				}
			})
			if got := holds(instance, test.policy); got != test.want {
				t.Errorf("finalizer is %t, want %t", got, test.want)
			}
		})
	}
}

func TestAnInstanceGoes(t *testing.T) {
	t.Parallel()
	ending := func(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }
	job := func(deleted *metav1.Time) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-backup", DeletionTimestamp: deleted}}
	}
	pod := func(deleted *metav1.Time) []corev1.Pod {
		return []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-backup-x", DeletionTimestamp: deleted}, Spec: corev1.PodSpec{NodeName: "node-3"}}}
	}
	removal := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-delete"}}
	now := after(2 * time.Hour)
	long := patience + time.Second
	stopping := func(name string) map[string]time.Duration { return map[string]time.Duration{name: long} }
	working := transfer.State{Phase: transfer.Running, Pod: "nightly-1-delete-x", Message: "Pod nightly-1-delete-x is being deleted: delete the node"}
	deleting := func(since time.Duration) map[string]time.Duration {
		return map[string]time.Duration{working.Pod: since}
	}
	for name, test := range map[string]struct {
		instance v1.MySQLBackupInstance
		seen     deletionObserved
		want     deletionStep
		says     string
	}{
		"without the finalizer nothing holds it":                {instance: fresh(begins), want: deletionStepNone},
		"its data stays: the policy was changed":                {instance: fresh(begins, goes, func(i *v1.MySQLBackupInstance) { i.Spec.DeletionPolicy = v1.RetainData }), want: deletionStepKeep},
		"it never began":                                        {instance: fresh(goes), want: deletionStepKeep},
		"it runs":                                               {instance: fresh(begins, goes), seen: deletionObserved{job: job(nil), pods: pod(nil)}, want: deletionStepStop},
		"its Job is being deleted":                              {instance: fresh(begins, goes), seen: deletionObserved{job: job(ending(now))}, want: deletionStepWait, says: "waiting for its Pod"},
		"its Pod ends":                                          {instance: fresh(begins, goes), seen: deletionObserved{pods: pod(ending(now))}, want: deletionStepWait, says: "waiting for its Pod"},
		"its Pod is gone with its node":                         {instance: fresh(begins, goes), seen: deletionObserved{pods: pod(ending(now)), stopping: stopping("nightly-1-backup-x")}, want: deletionStepAbandon, says: "node-3"},
		"its Job has a finalizer":                               {instance: fresh(begins, goes), seen: deletionObserved{job: job(ending(now)), stopping: stopping("nightly-1-backup")}, want: deletionStepAbandon, says: "nightly-1-backup"},
		"nothing writes any more":                               {instance: fresh(begins, goes), want: deletionStepRemove},
		"the data cannot be reached":                            {instance: fresh(begins, goes), seen: deletionObserved{lost: "the claim is gone"}, want: deletionStepAbandon, says: "the claim is gone"},
		"a Job of another order exists":                         {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, stale: true}, want: deletionStepClear},
		"the data is being deleted":                             {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: long, state: transfer.State{Phase: transfer.Running}}, want: deletionStepWait, says: "deleting its data"},
		"the data is deleted":                                   {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, state: transfer.State{Phase: transfer.Succeeded}}, want: deletionStepDone},
		"Kubernetes no longer retries":                          {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, state: transfer.State{Phase: transfer.Failed, Message: "no such bucket"}}, want: deletionStepAbandon, says: "no such bucket"},
		"a Pod with another running container is retried":       {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, removing: patience, state: transfer.State{Phase: transfer.Failed, Lingers: true, Message: "busy"}}, want: deletionStepClear, says: "busy"},
		"but not indefinitely":                                  {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, removing: long, state: transfer.State{Phase: transfer.Failed, Lingers: true, Message: "busy"}}, want: deletionStepAbandon, says: "busy"},
		"and not if it was refused":                             {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, state: transfer.State{Phase: transfer.Failed, Lingers: true, Refused: true, Message: "no"}}, want: deletionStepAbandon, says: "no"},
		"the clock is far ahead of the API server's":            {instance: fresh(begins, goes), seen: deletionObserved{removal: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born())}}, state: transfer.State{Phase: transfer.Pending}}, want: deletionStepWait},
		"also where its Pod ends":                               {instance: fresh(begins, goes), seen: deletionObserved{pods: pod(ending(born()))}, want: deletionStepWait, says: "waiting for its Pod"},
		"an attempt failed":                                     {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, state: transfer.State{Phase: transfer.Pending, Attempts: 1, Reason: "X", Message: "no answer"}}, want: deletionStepWait, says: "no answer"},
		"no Pod ever started":                                   {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: long, state: transfer.State{Phase: transfer.Pending, Message: "no node"}}, want: deletionStepAbandon, says: "no node"},
		"no Pod could start because of another backup":          {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: long, shared: true, state: transfer.State{Phase: transfer.Pending, Message: "attached elsewhere"}}, want: deletionStepWait, says: "attached elsewhere"},
		"its deadline passed because of another backup":         {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: long, shared: true, state: transfer.State{Phase: transfer.Failed, Reason: protocol.ReasonDeadlineExceeded, Message: "attached elsewhere"}}, want: deletionStepClear, says: "attached elsewhere"},
		"its deadline passed, and nothing blocked it":           {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: long, state: transfer.State{Phase: transfer.Failed, Reason: protocol.ReasonDeadlineExceeded, Message: "slow"}}, want: deletionStepAbandon, says: "slow"},
		"a failure during another backup is a failure":          {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, shared: true, state: transfer.State{Phase: transfer.Failed, Reason: protocol.ReasonDestinationRefused, Message: "read-only"}}, want: deletionStepAbandon, says: "read-only"},
		"its Job does not end because of another backup":        {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: removalDeadline*time.Second + long, shared: true, state: transfer.State{Phase: transfer.Pending, Message: "attached elsewhere"}}, want: deletionStepWait, says: "attached elsewhere"},
		"its Job does not end, and runs during another backup":  {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: removalDeadline*time.Second + long, shared: true, state: working}, want: deletionStepAbandon, says: "within 6h0m0s"},
		"the Pod that deletes has a deletion timestamp":         {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, stopping: deleting(patience), state: working}, want: deletionStepWait, says: "deleting its data; Pod nightly-1-delete-x is being deleted: delete the node"},
		"it is gone with its node":                              {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, stopping: deleting(long), state: working}, want: deletionStepAbandon, says: "Pod nightly-1-delete-x"},
		"it was gone before it could begin":                     {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, shared: true, stopping: deleting(long), state: transfer.State{Phase: transfer.Pending, Pod: working.Pod}}, want: deletionStepAbandon, says: "Pod nightly-1-delete-x"},
		"it has no deletion timestamp, long after its deadline": {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, tried: removalDeadline*time.Second + long, state: working}, want: deletionStepAbandon, says: "within 6h0m0s"},
		"it succeeded anyway":                                   {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, stopping: deleting(long), state: transfer.State{Phase: transfer.Succeeded, Pod: working.Pod}}, want: deletionStepDone},
		"the Job that deletes has a finalizer":                  {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, stopping: stopping("nightly-1-delete"), state: transfer.State{Phase: transfer.Pending}}, want: deletionStepAbandon, says: "Job nightly-1-delete"},
		"so is that of another order":                           {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, stale: true, stopping: stopping("nightly-1-delete")}, want: deletionStepAbandon, says: "Job nightly-1-delete"},
		"its Secret does not name its endpoint any more":        {instance: fresh(begins, goes), seen: deletionObserved{credentialsRefused: "not sent to endpoint=https://a", credentialsRefusedFor: userPatience}, want: deletionStepWaitForUser, says: "not sent to endpoint=https://a; after 24h0m0s the operator removes the instance"},
		"the Secret changed between two attempts":               {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, credentialsRefused: "not sent", state: transfer.State{Phase: transfer.Pending, Attempts: 1}}, want: deletionStepClear, says: "not sent"},
		"the Secret changed after the last attempt":             {instance: fresh(begins, goes), seen: deletionObserved{removal: removal, credentialsRefused: "not sent", state: transfer.State{Phase: transfer.Failed}}, want: deletionStepClear, says: "not sent"},
		"no user fixes it for a day":                            {instance: fresh(begins, goes), seen: deletionObserved{credentialsRefused: "not sent", credentialsRefusedFor: userPatience + time.Second}, want: deletionStepAbandon, says: "not sent"},
		"the policy is now Retain":                              {instance: fresh(begins, goes, func(i *v1.MySQLBackupInstance) { i.Spec.DeletionPolicy = v1.RetainData }), seen: deletionObserved{credentialsRefused: "not sent"}, want: deletionStepKeep},
		"a user deleted the Job":                                {instance: fresh(begins, goes), seen: deletionObserved{removal: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ending(now)}}, state: transfer.State{Phase: transfer.Pending}}, want: deletionStepWait, says: "creates another one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.seen.now = now
			got, because := decideEnd(test.instance, test.seen)
			if got != test.want || !strings.Contains(because, test.says) {
				t.Errorf("decided to %s because %q, want to %s because %q", got, because, test.want, test.says)
			}
		})
	}
}

func TestDataThatCannotBeReached(t *testing.T) {
	t.Parallel()
	bound := claimNamed("nightly", nil, corev1.ClaimBound)
	terminating := claimNamed("nightly", nil, corev1.ClaimBound)
	terminating.DeletionTimestamp = &metav1.Time{Time: born()}
	for name, test := range map[string]struct {
		location v1.BackupLocation
		claim    *corev1.PersistentVolumeClaim
		want     string
	}{
		"a volume that is there":               {location: v1.BackupLocation{Claim: "nightly"}, claim: bound},
		"a volume that does not exist":         {location: v1.BackupLocation{Claim: "nightly"}, want: `"nightly" no longer exists`},
		"a volume that is being deleted":       {location: v1.BackupLocation{Claim: "nightly"}, claim: terminating, want: `"nightly" is being deleted`},
		"a bucket, whose Secret may come back": {location: v1.BackupLocation{Secret: "s3"}},
		"a bucket by identity":                 {location: v1.BackupLocation{ServiceAccountName: "cloud"}},
		"a key is not needed":                  {location: v1.BackupLocation{EncryptionSecret: "age"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := unreachable(test.location, test.claim)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWhatIsGivenUp: only refusals of the API server count, from the first one for this instance.
func TestWhatIsGivenUp(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a missing permission, or a quota":        {apierrors.NewForbidden(jobs, "x", errors.New("quota")), true},
		"another controller's Job":                {&reconcile.ForeignError{Name: "x"}, true},
		"a webhook that does not answer":          {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"an API server that does not answer":      {&url.Error{Op: "Get", Err: io.ErrUnexpectedEOF}, false},
		"an API server that is starting":          {apierrors.NewServiceUnavailable("starting"), false},
		"an object that another client changed":   {apierrors.NewConflict(jobs, "x", errors.New("changed")), false},
		"a pass that took too long":               {context.DeadlineExceeded, false},
		"too many requests, of which this is one": {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isRefusal(fmt.Errorf("create: %w", test.err)); got != test.want {
				t.Errorf("it counts: %t, want %t", got, test.want)
			}
		})
	}
	kept, key := newMemory(), types.NamespacedName{Name: "one"}
	first := kept.fail(key, "uid-1", after(0))
	if again := kept.fail(key, "uid-1", after(time.Hour)); !again.Equal(first) {
		t.Errorf("the continuing failure began at %s, not %s", first, again)
	}
	if fresh := kept.fail(key, "uid-2", after(time.Hour)); fresh.Equal(first) {
		t.Error("an instance has the failures of an earlier one with its name")
	}
	kept.succeed(key)
	if fresh := kept.fail(key, "uid-2", after(2*time.Hour)); !fresh.Equal(after(2 * time.Hour)) {
		t.Errorf("a success in between does not count: failing since %s", fresh)
	}
}

// A failed instance has no data worth keeping, except a complete backup that its Pod could not report. That backup is deleted only if a
// user asked for it.
func TestWhatGoesWithAFailedInstance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase   v1.BackupPhase
		policy  v1.DeletionPolicy
		expired bool
		want    bool
	}{
		"a failed one that expired":         {phase: v1.BackupFailed, expired: true, want: true},
		"whose data stays":                  {phase: v1.BackupFailed, policy: v1.RetainData, expired: true, want: true},
		"whose data goes":                   {phase: v1.BackupFailed, policy: v1.DeleteData, expired: true},
		"a failed one deleted by hand":      {phase: v1.BackupFailed, policy: v1.DeleteData},
		"by the policy of its schedule":     {phase: v1.BackupFailed},
		"a backup that retention deletes":   {phase: v1.BackupCompleted, expired: true},
		"one that is deleted while it runs": {phase: v1.BackupStarted, policy: v1.DeleteData},
	} {
		instance := fresh(begins, func(i *v1.MySQLBackupInstance) {
			i.Status.Phase, i.Spec.DeletionPolicy = test.phase, test.policy
			if test.expired {
				i.Annotations = map[string]string{transfer.AnnotationExpired: "true"}
			}
		})
		if got := (&reconciler{}).removalOrder(instance).UnfinishedOnly; got != test.want {
			t.Errorf("%s: only unfinished data is deleted: %t, want %t", name, got, test.want)
		}
	}
}
