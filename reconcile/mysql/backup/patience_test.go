package backup

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// minutes runs a pass over a deleted instance once a minute, and returns the minute in which the operator leaves its data; -1 if it does
// not. see is what the pass of a minute observes.
func minutes(instance v1.MySQLBackupInstance, until int, see func(minute int) deletionObserved) int {
	r := &reconciler{memory: newMemory()}
	for minute := range until {
		seen := see(minute)
		seen.now, seen.stopping, seen.strayed = after(time.Duration(minute)*time.Minute), map[string]time.Duration{}, map[string]time.Duration{}
		r.observeStops(instance, &seen)
		r.observeTried(instance, &seen)
		if what, _ := decideEnd(instance, seen); what == deletionStepAbandon {
			return minute
		}
	}
	return -1
}

// TestAStrayPodIsNotWaitedForForEver: a Pod of the backup exists without its Job. No controller deletes it, and no node starts it.
func TestAStrayPodIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	pod := func(phase corev1.PodPhase) []corev1.Pod {
		return []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-backup-x", UID: "uid-x"}, Status: corev1.PodStatus{Phase: phase}}}
	}
	doomed := pod(corev1.PodPending)
	doomed[0].DeletionTimestamp = &metav1.Time{Time: born()}
	going := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-backup", UID: "uid-job", DeletionTimestamp: &metav1.Time{Time: born()}}}
	for name, test := range map[string]struct {
		see  func(minute int) deletionObserved
		left int
	}{
		"it never starts": {func(int) deletionObserved { return deletionObserved{pods: pod(corev1.PodPending)} }, 11},
		"it runs, and ends in time": {func(minute int) deletionObserved {
			return deletionObserved{pods: pod(corev1.PodRunning)[:max(0, min(1, 300-minute))]}
		}, -1},
		"it never ends": {func(int) deletionObserved { return deletionObserved{pods: pod(corev1.PodRunning)} }, 371},
		"it is deleted in the ninth minute": {func(minute int) deletionObserved {
			return deletionObserved{pods: [][]corev1.Pod{pod(corev1.PodPending), doomed}[min(1, minute/9)]}
		}, 20},
		"its Job is being deleted for a while": {func(minute int) deletionObserved {
			return deletionObserved{pods: pod(corev1.PodPending), job: []*batchv1.Job{going, nil}[min(1, minute/8)]}
		}, 19},
	} {
		if left := minutes(fresh(begins, goes), 400, test.see); left != test.left {
			t.Errorf("%s: the data is left in minute %d, want %d", name, left, test.left)
		}
	}
}

// TestAVolumeThatIsNeverFreeIsNotWaitedForForEver: two backups that cannot be written wait for each other's removal.
func TestAVolumeThatIsNeverFreeIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	r, instance := &reconciler{memory: newMemory()}, fresh(begins, goes)
	instance.DeletionTimestamp = &metav1.Time{Time: after(0)}
	if first := r.removingFor(instance, after(time.Minute)); first > time.Minute {
		t.Errorf("after a minute it has taken %s", first)
	}
	if day := r.removingFor(instance, after(userPatience+2*time.Minute)); day <= userPatience {
		t.Errorf("after a day it has taken %s", day)
	}
	another := &reconciler{memory: newMemory()}
	if days := another.removingFor(instance, after(2*userPatience+time.Hour)); days <= userPatience {
		t.Errorf("to a new operator it has taken %s after two days", days)
	}
	pulls := transfer.State{Phase: transfer.Pending, Reason: protocol.ReasonImagePullFailed, Pod: "nightly-1-delete-x"}
	removal := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-delete", UID: "uid-delete"}}
	if left := minutes(instance, 60, func(int) deletionObserved { return deletionObserved{removal: removal, shared: true, state: pulls} }); left != 11 {
		t.Errorf("no node gets the image, and the data is left in minute %d, want 11", left)
	}
}

// TestAPodHasItsTimeOnceItsVolumeIsFree: for an hour another backup blocks the Pod that deletes. The operator leaves the data if the Pod
// does not start within patience after the other backup has ended, and no earlier.
func TestAPodHasItsTimeOnceItsVolumeIsFree(t *testing.T) {
	t.Parallel()
	removal := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-delete", UID: "uid-delete"}}
	waits := transfer.State{Phase: transfer.Pending, Pod: "nightly-1-delete-x", Message: "attached elsewhere"}
	left := minutes(fresh(begins, goes), 90, func(minute int) deletionObserved {
		return deletionObserved{removal: removal, shared: minute < 60, state: waits}
	})
	if left != 71 {
		t.Errorf("the data is left in minute %d, want 71", left)
	}
}
