package mysqlbackupinstance

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/backup"
)

// TestAPodHasItsTimeOnceItsVolumeIsFree: for an hour another backup keeps the Pod that deletes out. The data is left if that does not start within
// patience after the other one has ended, and no earlier.
func TestAPodHasItsTimeOnceItsVolumeIsFree(t *testing.T) {
	t.Parallel()
	r, instance := &reconciler{memory: newMemory()}, fresh(begins, goes)
	removal := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1-delete", UID: "uid-delete"}}
	left := -1
	for minute := 0; minute < 90 && left < 0; minute++ {
		seen := remains{
			now: after(time.Duration(minute) * time.Minute), removal: removal, shared: minute < 60,
			state: backup.State{Phase: backup.Pending, Pod: "nightly-1-delete-x", Message: "attached elsewhere"},
		}
		r.observeTried(instance, &seen)
		if what, _ := decideEnd(instance, seen); what == partLeave {
			left = minute
		}
	}
	if left != 71 {
		t.Errorf("the data is left in minute %d, want 71", left)
	}
}
