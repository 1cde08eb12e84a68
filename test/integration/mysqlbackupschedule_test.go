package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// moments compares what the API keeps of a time.
func moments(t *testing.T, what string, got *metav1.Time, want time.Time) {
	t.Helper()
	switch {
	case got == nil && !want.IsZero(), got != nil && !got.Time.Equal(want):
		t.Errorf("%s is %v, want %s", what, got, want)
	}
}

func TestBackupScheduleMakesABackupWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "storage: 5Gi, bandwidthLimit: 20Mi, activeDeadlineSeconds: 3600, deletionPolicy: Delete, destination: {url: 's3://b/f', secret: keys}, encryption: {secret: age}")
	d.operate(t, nil)
	schedule := d.is(t, "Scheduled", nil)
	moments(t, "the next time", schedule.Status.NextScheduleTime, d.night(0))
	d.strikes(t, d.night(0).Add(-time.Second))
	d.has(t)

	t.Log("its time has come")
	d.strikes(t, d.night(0))
	d.has(t, 0)
	made, err := d.instance(t.Context(), d.named(0))
	if err != nil {
		t.Fatal(err)
	}
	schedule = d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return len(status.Active) == 1 })
	same(t, schedule.Status.Active, []string{made.Name})
	moments(t, "the last time", schedule.Status.LastScheduleTime, d.night(0))
	moments(t, "the next time", schedule.Status.NextScheduleTime, d.night(1))
	same(t, made.Spec.BackupSettings, schedule.Spec.BackupSettings)
	same(t, [2]string{made.Spec.Schedule, made.Spec.Cluster}, [2]string{"nightly", "db"})
	same(t, [2]string{made.Labels["schedule"], made.Labels["cluster"]}, [2]string{"nightly", "db"})
	same(t, len(made.OwnerReferences)+len(made.Finalizers), 0)
	same(t, d.told(t, "nightly", "Normal Scheduled") != "", true)

	t.Log("it is complete")
	d.completes(t, 0)
	schedule = d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool {
		return status.Backups == 1 && len(status.Active) == 0
	})
	same(t, schedule.Status.LastBackup, made.Name)
	moments(t, "the last success", schedule.Status.LastSuccessfulTime, d.night(0).Add(backupTakes))

	t.Log("the next one fails; the schedule reports that, and continues")
	d.strikes(t, d.night(1).Add(time.Second))
	d.fails(t, 1)
	schedule = d.is(t, "LastBackupFailed", nil)
	says(t, readyWord(schedule).Message, d.named(1), "DonorUnavailable", "no member answers")
	d.strikes(t, d.night(2).Add(time.Minute))
	d.completes(t, 2)
	d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.LastBackup == d.named(2) })

	t.Log("four nights pass without an operator's look: one backup is made up for")
	d.strikes(t, d.night(6).Add(5*time.Hour))
	d.has(t, 0, 1, 2, 6)
	says(t, d.told(t, "nightly", "Warning Missed"), "3 times passed", d.night(6).Format(time.RFC3339))
	same(t, d.is(t, "Scheduled", nil).Status.Missed, int32(0))

	t.Log("the schedule is deleted: no backup is")
	d.remove(t, "mysqlbackupschedules", "nightly")
	d.gone(t, "mysqlbackupschedules", "nightly")
	d.remove(t, "mysqlclusters", "db")
	d.gone(t, "mysqlclusters", "db")
	for _, night := range []int{0, 1, 2, 6} {
		d.stays(t, d.named(night))
	}
}

// TestBackupScheduleWakesUp leaves everything to the operator's own timer.
func TestBackupScheduleWakesUp(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "")
	d.clock.runs, d.clock.ahead = true, time.Until(d.first)-3*time.Second
	d.operate(t, nil)
	d.has(t, 0)
	found, err := d.instance(t.Context(), d.named(0))
	if err != nil {
		t.Fatal(err)
	}
	if late := found.CreationTimestamp.Add(d.clock.ahead).Sub(d.first); late < -time.Second || late > 10*time.Second {
		t.Errorf("the instance was made %s after its time", late)
	}
}

func TestBackupScheduleConcurrency(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){
		"Forbid leaves one out, and makes up for it later": func(t *testing.T) {
			d := newDiary(t, "")
			d.operate(t, nil)
			d.strikes(t, d.night(0))
			d.strikes(t, d.night(1))
			d.has(t, 0)
			d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.Missed == 1 })
			says(t, d.told(t, "nightly", "Warning Missed"), d.named(0), "spec.concurrencyPolicy is Forbid")
			d.clock.set(d.night(1).Add(2 * time.Hour))
			d.completes(t, 0)
			d.has(t, 0, 1)
			schedule := d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.Missed == 0 })
			moments(t, "the last time", schedule.Status.LastScheduleTime, d.night(1))
		},
		"but not beyond its deadline": func(t *testing.T) {
			d := newDiary(t, "startingDeadlineSeconds: 3600")
			d.operate(t, nil)
			d.strikes(t, d.night(0))
			d.strikes(t, d.night(1))
			d.clock.set(d.night(1).Add(2 * time.Hour))
			d.completes(t, 0)
			d.considers(t)
			d.has(t, 0)
			d.strikes(t, d.night(2).Add(time.Hour))
			d.has(t, 0, 2)
		},
		"Allow makes both": func(t *testing.T) {
			d := newDiary(t, "concurrencyPolicy: Allow")
			d.operate(t, nil)
			d.strikes(t, d.night(0))
			d.strikes(t, d.night(1))
			d.has(t, 0, 1)
			d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return len(status.Active) == 2 })
		},
		"Replace ends the one under way": func(t *testing.T) {
			d := newDiary(t, "concurrencyPolicy: Replace")
			d.operate(t, nil)
			d.strikes(t, d.night(0))
			d.strikes(t, d.night(1))
			d.has(t, 0, 1)
			first, err := d.instance(t.Context(), d.named(0))
			if err != nil {
				t.Fatal(err)
			}
			same(t, first.Annotations[transfer.AnnotationReplaced], "true")
			d.told(t, "nightly", "Normal Replaced")
			t.Log("that it fails then is no failure of the schedule")
			d.fails(t, 0)
			d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return len(status.Active) == 1 })
			second, err := d.instance(t.Context(), d.named(1))
			if err != nil {
				t.Fatal(err)
			}
			same(t, len(second.Annotations), 0)
		},
	}
	sideBySide(t, 4, stories)
}

func TestBackupScheduleHeldUp(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){
		"suspended: times pass, and the latest is made up for afterwards": func(t *testing.T) {
			d := newDiary(t, "suspend: true")
			d.operate(t, nil)
			schedule := d.is(t, "Suspended", nil)
			moments(t, "the next time", schedule.Status.NextScheduleTime, time.Time{})
			d.strikes(t, d.night(2).Add(time.Hour))
			d.has(t)
			d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"suspend":false}}`)
			d.has(t, 2)
			says(t, d.told(t, "nightly", "Warning Missed"), "2 times")
		},
		"suspended, with a deadline that is over": func(t *testing.T) {
			d := newDiary(t, "suspend: true, startingDeadlineSeconds: 600")
			d.operate(t, nil)
			d.strikes(t, d.night(2).Add(time.Hour))
			d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"suspend":false}}`)
			d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.Missed == 3 })
			says(t, d.told(t, "nightly", "Warning Missed"), "spec.startingDeadlineSeconds")
			d.has(t)
		},
		"there is no cluster: times pass, quietly, and no instances pile up": func(t *testing.T) {
			d := newBareDiary(t, "cluster: db, time: 0 3 * * *")
			o := d.operate(t, nil)
			schedule := d.is(t, "ClusterNotFound", nil)
			says(t, readyWord(schedule).Message, `"db"`, d.namespace, "create it")
			same(t, meta.IsStatusConditionTrue(schedule.Status.Conditions, mysqlv1.ConditionStalled), false)
			for night := range 5 {
				d.strikes(t, d.night(night))
			}
			d.is(t, "ClusterNotFound", func(status mysqlv1.MySQLBackupScheduleStatus) bool { return status.Missed == 5 })
			d.has(t)
			events, err := d.of("events").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(events.Items) != 1 {
				t.Errorf("%d events tell of one thing (%v); writes: %v", len(events.Items), err, o.wire.written())
			}
			t.Log("when there is one, the latest is made up for")
			d.serves(t, "db", "")
			d.has(t, 4)
			d.is(t, "Scheduled", nil)
			t.Log("it is deleted")
			d.remove(t, "mysqlclusters", "db")
			d.is(t, "ClusterNotFound", nil)
			d.stays(t, d.named(4))
		},
		"a day that never comes": func(t *testing.T) {
			d := newBareDiary(t, "cluster: db, time: 0 3 30 2 *")
			d.operate(t, nil)
			d.stuck(t, "TimeNeverComes", "spec.time", "no such day")
			d.patch(t, "mysqlbackupschedules", "nightly", `{"spec":{"time":"0 3 * * *"}}`)
			d.is(t, "ClusterNotFound", nil)
		},
		"a range the wrong way round": func(t *testing.T) {
			d := newBareDiary(t, "cluster: db, time: 0 5-3 * * *")
			d.operate(t, nil)
			d.stuck(t, "InvalidTime", "spec.time", "5-3")
		},
		"a zone that there is not": func(t *testing.T) {
			d := newBareDiary(t, "cluster: db, time: 0 3 * * *, timeZone: Europe/Atlantis")
			d.operate(t, nil)
			d.stuck(t, "InvalidTimeZone", "spec.timeZone", "Europe/Atlantis")
		},
		"an instance of another client has the name": func(t *testing.T) {
			d := newDiary(t, "")
			d.make(t, "mysqlbackupinstances", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLBackupInstance, metadata: {name: %s}, spec: {cluster: db}}", schema.MySQLGroup, d.named(0)))
			o := d.operate(t, nil)
			d.strikes(t, d.night(0))
			says(t, d.told(t, "nightly", "Warning NameTaken"), d.named(0), "delete it")
			d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool {
				return status.LastScheduleTime != nil && status.LastScheduleTime.Time.Equal(d.night(0))
			})
			writes := len(o.wire.written())
			d.considers(t)
			if more := o.wire.written()[writes:]; len(more) > 0 {
				t.Errorf("it is tried again and again: %v", more)
			}
			d.strikes(t, d.night(1))
			d.has(t, 0, 1)
		},
	}
	sideBySide(t, 4, stories)
}

// stuck waits until the schedule says everywhere that it needs help, with these words.
func (d *diary) stuck(t *testing.T, reason string, words ...string) {
	t.Helper()
	schedule := d.is(t, reason, nil)
	ready, stalled := readyWord(schedule), meta.FindStatusCondition(schedule.Status.Conditions, mysqlv1.ConditionStalled)
	says(t, ready.Message, words...)
	if ready.Status != metav1.ConditionFalse || stalled == nil || stalled.Reason != reason || stalled.Message != ready.Message {
		t.Errorf("Ready is %+v and Stalled is %+v, want both to give the same reason", ready, stalled)
	}
	same(t, d.told(t, "nightly", "Warning "+reason), ready.Message)
}

func TestBackupScheduleWhileClocksAreWrong(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "concurrencyPolicy: Allow")
	d.operate(t, nil)
	d.strikes(t, d.night(0))
	d.has(t, 0)

	t.Log("set back by two seconds: the time comes a second time")
	d.strikes(t, d.night(0).Add(-2*time.Second))
	d.strikes(t, d.night(0))
	d.has(t, 0)

	t.Log("five years ahead, for a moment")
	wild := d.night(5 * 366)
	d.strikes(t, wild)
	d.has(t, 0, 5*366)

	t.Log("right again: the schedule does not wait for five years")
	d.strikes(t, d.night(0).Add(time.Hour))
	d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool {
		return status.NextScheduleTime != nil && status.NextScheduleTime.Time.Equal(d.night(1))
	})
	d.strikes(t, d.night(1))
	d.has(t, 0, 1, 5*366)
	d.strikes(t, d.night(1).Add(time.Second))
	d.has(t, 0, 1, 5*366)
}

func TestBackupScheduleWithoutARight(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct{ verb, told string }{
		"make instances":   {"create", "cannot create resource \"mysqlbackupinstances\""},
		"mark instances":   {"patch", "cannot patch resource \"mysqlbackupinstances\""},
		"delete instances": {"delete", "cannot delete resource \"mysqlbackupinstances\""},
	} {
		stories[name] = func(t *testing.T) {
			d := newDiary(t, "retention: {keepLast: 1}")
			d.buries(t)
			d.grant(t, butNot(scheduleRules(), test.verb, "mysqlbackupinstances"))
			d.operate(t, nil)
			d.strikes(t, d.night(0))
			if test.verb != "create" {
				d.has(t, 0)
				d.completes(t, 0)
				d.strikes(t, d.night(1))
				d.has(t, 0, 1)
				d.completes(t, 1)
			}
			d.stuck(t, "Forbidden", test.told, d.namespace, "mysql-operator manifests rbac")
			d.grant(t, scheduleRules())
			d.considers(t)
			if test.verb == "create" {
				d.has(t, 0)
			} else {
				d.has(t, 1)
			}
			d.is(t, "Scheduled", nil)
		}
	}
	sideBySide(t, 3, stories)
}

// TestBackupScheduleUnderTwoOperators has two operators that both think they lead, and then counts what they write when all is well.
func TestBackupScheduleUnderTwoOperators(t *testing.T) {
	t.Parallel()
	d := newDiary(t, "retention: {keepLast: 2}")
	graves := d.buries(t)
	other := &handClock{now: d.clock.read()}
	first, second := d.operate(t, nil), d.operateBy(t, other, nil)
	for night := range 6 {
		other.set(d.night(night).Add(time.Duration(night-3) * time.Second)) // its clock differs
		d.strikes(t, d.night(night))
		soon(t, func(ctx context.Context) string {
			_, err := d.instance(ctx, d.named(night))
			if apierrors.IsNotFound(err) {
				return "no instance"
			}
			return ""
		})
		d.completes(t, night)
	}
	d.has(t, 4, 5)
	same(t, graves.all(), []string{d.named(0), d.named(1), d.named(2), d.named(3)})
	d.is(t, "Scheduled", func(status mysqlv1.MySQLBackupScheduleStatus) bool {
		return status.Backups == 2 && len(status.Active) == 0
	})

	t.Log("at rest nothing is written, though both operators continue to look")
	d.resting(t, first, second)
}

// resting fails the test if operators write although nothing happens but that a cluster tells how it is.
func (d *diary) resting(t *testing.T, operators ...*operating) {
	t.Helper()
	written := func() int {
		sum := 0
		for _, o := range operators {
			sum += len(o.wire.written())
		}
		return sum
	}
	before, since := written(), time.Now()
	soon(t, func(context.Context) string {
		if now := written(); now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return fmt.Sprintf("there were %d writes, and still more", before)
		}
		return ""
	})
	passes := operators[0].passes(t)
	for ready := range 3 {
		d.patch(t, "mysqlclusters", "db", fmt.Sprintf(`{"status":{"replicas":2,"readyReplicas":%d}}`, ready), "status")
		soon(t, func(context.Context) string {
			if operators[0].passes(t) < passes+float64(ready)+1 {
				return "no pass was made"
			}
			return ""
		})
	}
	if now := written(); now != before {
		for _, o := range operators {
			t.Logf("writes: %v", o.wire.written())
		}
		t.Errorf("at rest there were %d writes", now-before)
	}
}
