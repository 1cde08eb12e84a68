package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestBackupScheduleSparesWhatIsRestoredElsewhere: a cluster of another namespace is made from the backup, by a URL in a spelling of its
// own.
func TestBackupScheduleSparesWhatIsRestoredElsewhere(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "")
	drill := &diary{depot: newDepot(t)}
	d.operate(t, func(config *reconcile.Config) {
		d.omnipotent(config)
		config.Namespaces = []string{d.namespace, drill.namespace}
	})
	d.complete(t, 0, 1)
	url := fmt.Sprintf("s3://bucket/%s/db/%s", d.namespace, d.named(0))
	d.patch(t, "mysqlbackupinstances", d.named(0), fmt.Sprintf(`{"status":{"location":{"url":%q}}}`, url+"?endpoint=https%3A%2F%2Fs3.example.com&region=eu"), "status")
	drill.serves(t, "copy", fmt.Sprintf("fromBackupURL: %q", url+"/?region=eu&endpoint=http://minio.storage.svc:9000"))
	d.considers(t)

	d.buries(t)
	d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"retention":{"keepLast":1}}}`)
	d.complete(t, 2)
	d.has(t, 0, 2)
	drill.patch(t, "mysqlclusters", "copy", `{"status":{"restore":{"phase":"Running"}}}`, "status")
	d.considers(t)
	d.stays(t, d.named(0))

	t.Log("when it is restored, the schedule hears of it although nothing changes in its own namespace")
	drill.patch(t, "mysqlclusters", "copy", `{"status":{"restore":{"phase":"Completed"}}}`, "status")
	d.has(t, 2)
}

// TestBackupScheduleSparesWhatItHasNotHeardIsRestored: the operator's cache has never had the cluster that is made from the backup.
func TestBackupScheduleSparesWhatItHasNotHeardIsRestored(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "")
	late := newLaggard("mysqlclusters")
	o := d.operate(t, late.slow)
	d.buries(t)
	d.complete(t, 0, 1)
	d.has(t, 0, 1)
	o.restful(t)
	late.lag()
	d.serves(t, "copy", "fromBackup: "+d.named(0))
	d.patch(t, "mysqlclusters", "copy", `{"status":{"restore":{"phase":"Running"}}}`, "status")
	d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"retention":{"keepLast":1}}}`)
	d.complete(t, 2)
	d.has(t, 0, 2)
	late.catchUp()
	d.considers(t)
	d.stays(t, d.named(0))
}

// TestBackupScheduleDeletesByTheSpecAsItIs: a user makes a schedule keep its backups for longer, and the operator learns of that late. It
// deletes no backup by the former spec.
func TestBackupScheduleDeletesByTheSpecAsItIs(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "retention: {keepFor: 30h}")
	late := newLaggard("mysqlbackupschedules")
	o := d.operate(t, late.slow)
	d.complete(t, 0, 1)
	d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.Backups == 2 })
	o.restful(t)
	kept := func(ctx context.Context) {
		found, err := d.instance(ctx, d.named(0))
		if err != nil || found.Annotations[transfer.AnnotationExpired] != "" || found.DeletionTimestamp != nil {
			t.Fatalf("a backup is deleted that the schedule keeps: %v %v", found.ObjectMeta, err)
		}
	}

	measured := operator{registry: o.registry}
	conflicts := func() float64 {
		return measured.measured(t, "reconcile_total", map[string]string{"result": "conflict"})
	}
	before := conflicts()
	late.lag()
	d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"retention":{"keepFor":"8760h"}}}`)
	d.turn(t, d.night(1).Add(10*time.Hour))
	d.patch(t, "mysqlbackupinstances", d.named(1), `{"metadata":{"annotations":{"touched":"now"}}}`)
	soon(t, func(ctx context.Context) string {
		noticed := conflicts() > before
		kept(ctx)
		if !noticed {
			return "no pass has noticed that the schedule is another by now"
		}
		return ""
	})
	late.catchUp()
	d.considers(t)
	kept(t.Context())
}

// TestBackupScheduleForbidsUnderALaggingWatch: the operator hears late of the backup that it has made itself. Only that one is under way,
// as long as it is not over: whatever the caches say.
func TestBackupScheduleForbidsUnderALaggingWatch(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	d := newDiary(t, "concurrencyPolicy: Forbid")
	late := newLaggard("mysqlbackupinstances")
	o := d.operate(t, late.slow)
	d.is(t, "Scheduled", nil)
	o.restful(t)
	late.lag()
	strikes := func(night int) {
		d.clock.set(d.night(night))
		d.patch(t, "mysqlbackupschedules", "nightly", fmt.Sprintf(`{"metadata":{"annotations":{"night":"%d"}}}`, night))
	}
	strikes(0)
	d.has(t, 0)
	strikes(1)
	d.leavesOut(t)
	late.catchUp()
	d.considers(t)
	d.has(t, 0)
}

// leavesOut waits until a pass has left the second night out, because the backup of the first is not over.
func (d *diary) leavesOut(t *testing.T) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		if made := d.names(ctx); len(made) != 1 {
			t.Fatalf("there are the instances %v, none of them over", made)
		}
		schedule, err := d.read(ctx)
		if err != nil || schedule.Status.Missed != 1 {
			return fmt.Sprintf("no pass has left the second night out: %+v (%v)", schedule.Status, err)
		}
		return ""
	})
}

// TestBackupScheduleForbidsUnderANewLeader: the caches of a standby lack the backup that the leader made last. As the leader it makes none
// beside it.
func TestBackupScheduleForbidsUnderANewLeader(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "concurrencyPolicy: Forbid")
	stands := func(config *reconcile.Config) {
		d.elected(config)
		d.omnipotent(config)
	}
	leader := d.operate(t, stands)
	d.is(t, "Scheduled", nil)
	late := newLaggard("mysqlbackupinstances")
	standby := d.operate(t, func(config *reconcile.Config) {
		stands(config)
		config.Identity = "standby"
		late.slow(config)
	})
	soon(t, func(context.Context) string {
		if err := standby.manager.CachesSynced(); err != nil {
			return err.Error()
		}
		return ""
	})
	late.lag()
	d.turn(t, d.night(0))
	d.considers(t)
	d.has(t, 0)

	leader.finish(t)
	d.strikes(t, d.night(1))
	d.leavesOut(t)
	late.catchUp()
	d.completes(t, 0)
	d.has(t, 0, 1)
}
