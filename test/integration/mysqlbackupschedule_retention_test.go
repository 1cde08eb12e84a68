package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// complete lets these nights pass, each with a backup that ends well.
func (d *diary) complete(t *testing.T, nights ...int) {
	t.Helper()
	for _, night := range nights {
		d.strikes(t, d.night(night))
		d.completes(t, night)
	}
}

func TestBackupScheduleRetention(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "retention: {keepLast: 3}")
	d.operate(t, nil)
	d.complete(t, 0, 1)

	t.Log("what others made is not the schedule's, whatever its labels say")
	strangers := map[string]string{
		"labelled": "labels: {schedule: nightly, cluster: db}}, spec: {cluster: db}",
		"of-other": "labels: {schedule: nightly, cluster: db}}, spec: {cluster: db, schedule: weekly}",
		"by-hand":  "annotations: {note: mine}}, spec: {cluster: db, schedule: nightly}",
	}
	for name, rest := range strangers {
		d.make(t, "mysqlbackupinstances", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLBackupInstance, metadata: {name: %s, %s}", schema.MySQLGroup, name, rest))
		d.over(t, name, mysqlv1.BackupCompleted, d.night(-30))
	}

	t.Log("the fourth takes the place of the first, whose data is deleted before it; another client has a finalizer on the first")
	d.patch(t, "mysqlbackupinstances", d.named(0), `{"metadata":{"finalizers":["example.com/mine"]}}`)
	d.complete(t, 2, 3)
	soon(t, func(ctx context.Context) string {
		first, err := d.instance(ctx, d.named(0))
		if err != nil || first.DeletionTimestamp == nil {
			return fmt.Sprintf("%s is not on its way out (%v)", d.named(0), err)
		}
		return ""
	})
	first, err := d.instance(t.Context(), d.named(0))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(first.Finalizers)
	same(t, first.Finalizers, []string{transfer.FinalizerData, "example.com/mine"})
	same(t, first.Annotations[transfer.AnnotationExpired], string(d.get(t, "mysqlbackupschedules", "nightly").GetUID()))
	says(t, d.told(t, "nightly", "Normal Expired"), d.named(0), "with their data")
	d.has(t, 0, 1, 2, 3)
	d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.Backups == 3 })
	d.patch(t, "mysqlbackupinstances", d.named(0), `{"metadata":{"finalizers":null}}`)
	d.has(t, 1, 2, 3)

	t.Log("only the latest is wanted; but a cluster is being made from one")
	graves := d.buries(t)
	d.serves(t, "copy", "fromBackup: "+d.named(2))
	d.considers(t)
	d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"retention":{"keepLast":1}}}`)
	d.has(t, 2, 3)
	d.considers(t)
	d.stays(t, d.named(2))
	d.patch(t, "mysqlclusters", "copy", `{"status":{"replicas":0,"readyReplicas":0,"restore":{"phase":"Running"}}}`, "status")
	d.considers(t)
	d.stays(t, d.named(2))
	d.patch(t, "mysqlclusters", "copy", `{"status":{"restore":{"phase":"Completed"}}}`, "status")
	d.has(t, 3)
	same(t, graves.all(), []string{d.named(1), d.named(2)})

	t.Log("the last one stays, however long ago, and what others made")
	d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"retention":{"keepLast":null,"keepFor":"1h"},"suspend":true}}`)
	d.strikes(t, d.night(900))
	d.considers(t)
	d.stays(t, d.named(3))
	for name := range strangers {
		d.stays(t, name)
	}
}

func TestBackupScheduleKeepsByAge(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "retention: {keepFor: 60h}")
	graves := d.buries(t)
	d.operate(t, nil)
	d.complete(t, 0, 1, 2)
	old := d.night(2).Add(12*time.Hour + backupTakes + transfer.ClockTolerance)
	d.strikes(t, old)
	d.has(t, 0, 1, 2)
	t.Log("sixty hours after it was complete, between two backups, and what clocks may differ by")
	d.strikes(t, old.Add(time.Second))
	d.has(t, 1, 2)
	same(t, graves.all(), []string{d.named(0)})
}

// TestBackupScheduleKeepsWhatOneClockCallsOld: the operator's clock alone is a year ahead. No backup is so old for that that it goes.
func TestBackupScheduleKeepsWhatOneClockCallsOld(t *testing.T) {
	t.Parallel()
	const wild = 2 + 365
	d := newDiary(t, "retention: {keepFor: 60h}")
	graves := d.buries(t)
	d.operate(t, nil)
	d.complete(t, 0, 1, 2)

	t.Log("a year ahead, with a backup that makes it the latest")
	d.clock.set(d.night(wild))
	d.considers(t)
	d.completes(t, wild)
	d.considers(t)
	d.considers(t)
	d.stuck(t, "ClocksDiffer", "spec.retention.keepFor", "differ by more than 10m0s")
	d.has(t, 0, 1, 2, wild)
	for _, night := range []int{0, 1, 2} {
		kept := d.get(t, "mysqlbackupinstances", d.named(night))
		if _, marked := kept.GetAnnotations()[transfer.AnnotationExpired]; marked || len(kept.GetFinalizers()) > 0 {
			t.Errorf("%s is marked: %v %v", kept.GetName(), kept.GetAnnotations(), kept.GetFinalizers())
		}
	}
	same(t, len(graves.all()), 0)

	t.Log("right again: age counts")
	d.strikes(t, d.night(2).Add(time.Hour))
	d.is(t, "Scheduled", nil)
	d.has(t, 0, 1, 2, wild)
	d.strikes(t, d.night(2).Add(12*time.Hour+backupTakes+transfer.ClockTolerance+time.Second))
	d.has(t, 1, 2, wild)
	same(t, graves.all(), []string{d.named(0)})
}

func TestBackupScheduleForgetsFailures(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "failedHistoryLimit: 2, retention: {keepLast: 1}")
	graves := d.buries(t)
	d.operate(t, nil)
	d.complete(t, 0)
	for night := range 4 {
		d.strikes(t, d.night(night+1))
		d.fails(t, night+1)
	}
	d.has(t, 0, 3, 4)
	same(t, len(graves.all()), 0)
	schedule := d.is(t, "LastBackupFailed", nil)
	same(t, schedule.Status.Backups, int32(1))
	same(t, schedule.Status.LastBackup, d.named(0))
}

// TestBackupScheduleClearsUpAfterFailures: what an attempt may have left goes with a failed instance that is one too many.
func TestBackupScheduleClearsUpAfterFailures(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "failedHistoryLimit: 1")
	graves := d.buries(t)
	d.operate(t, nil)
	for night := range 3 {
		d.strikes(t, d.night(night))
		d.patch(t, "mysqlbackupinstances", d.named(night), fmt.Sprintf(`{"status":{"location":{"url":"s3://bucket/%s/db/%s"}}}`, d.namespace, d.named(night)), "status")
		d.fails(t, night)
	}
	d.has(t, 2)
	same(t, graves.all(), []string{d.named(0), d.named(1)})
}

// TestBackupScheduleSparesWhatWasMarked has the rules change between the mark and the deletion.
func TestBackupScheduleSparesWhatWasMarked(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "")
	o := d.operate(t, nil)
	d.complete(t, 0, 1)
	d.considers(t)
	o.finish(t)
	d.patch(t, "mysqlbackupinstances", d.named(0), fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"},"finalizers":[%q]}}`, transfer.AnnotationExpired, transfer.FinalizerData))
	d.operate(t, nil)
	soon(t, func(ctx context.Context) string {
		found, err := d.instance(ctx, d.named(0))
		if err != nil {
			return err.Error()
		}
		if _, marked := found.Annotations[transfer.AnnotationExpired]; marked {
			return "it is still marked"
		}
		if len(found.Finalizers) > 0 {
			return fmt.Sprintf("its data would go with it: %v", found.Finalizers)
		}
		return ""
	})
	d.stays(t, d.named(0))
}

// TestBackupScheduleSurvivesEveryCrash kills the operator at each write of three nights with retention, once before the API server has got
// it and once before the operator has got the answer. Whoever takes over makes each backup once, and deletes what is to go and nothing
// else.
func TestBackupScheduleSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	clean := newDiary(t, "retention: {keepLast: 1}")
	undisturbed := clean.operate(t, nil)
	clean.threeNights(t)
	writes := undisturbed.wire.written()
	if len(writes) < 9 {
		t.Fatalf("three nights take more writes than these: %v", writes)
	}
	survivesCrashes(t, crashesUpTo(len(writes)), func(t *testing.T, at crash) bool {
		d := newDiary(t, "retention: {keepLast: 1}")
		doomed := d.operate(t, nil)
		doomed.wire.dieAt(at.write, at.sent)
		d.succeededBy(t, doomed)
		d.threeNights(t)
		return doomed.wire.isDead()
	})
}

// succeededBy starts another operator as soon as one has died.
func (d *diary) succeededBy(t *testing.T, doomed *operating) {
	t.Helper()
	dead := make(chan struct{})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		defer close(dead)
		for !doomed.wire.isDead() && ctx.Err() == nil {
			timer := time.NewTimer(20 * time.Millisecond)
			<-timer.C
		}
		if ctx.Err() == nil {
			d.operate(t, nil)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-dead
	})
}

// threeNights lets three nights pass, and wants to find one instance made in each, of which the last is left.
func (d *diary) threeNights(t *testing.T) {
	t.Helper()
	graves := d.buries(t)
	made := map[string]string{}
	for night := range 3 {
		d.strikes(t, d.night(night))
		soon(t, func(ctx context.Context) string {
			found, err := d.instance(ctx, d.named(night))
			if err != nil {
				return err.Error()
			}
			made[found.Name] = string(found.UID)
			return ""
		})
		d.completes(t, night)
	}
	d.has(t, 2)
	d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool {
		return status.Backups == 1 && len(status.Active) == 0 && status.LastScheduleTime != nil && status.LastScheduleTime.Time.Equal(d.night(2))
	})
	same(t, graves.all(), []string{d.named(0), d.named(1)})
	last, err := d.of("mysqlbackupinstances").Get(t.Context(), d.named(2), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(last.GetUID()), made[d.named(2)])
}
