package backup

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// expires is an instance with the mark of the retention of the schedule nightly, whose UID is uid-nightly.
func expires(instance *v1.MySQLBackupInstance) {
	instance.Spec.Schedule = "nightly"
	instance.Labels = map[string]string{v1.LabelBackupSchedule: "nightly"}
	instance.Annotations = map[string]string{transfer.AnnotationExpired: "uid-nightly"}
	instance.Finalizers = []string{transfer.FinalizerData}
}

// nightly is the schedule; change sets what differs.
func nightly(change ...func(*v1.MySQLBackupSchedule)) *v1.MySQLBackupSchedule {
	schedule := &v1.MySQLBackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "uid-nightly"}}
	for _, one := range change {
		one(schedule)
	}
	return schedule
}

// TestAMarkLapsesWithItsSchedule: a mark no longer counts if its schedule no longer counts the instance. The policy still applies.
func TestAMarkLapsesWithItsSchedule(t *testing.T) {
	t.Parallel()
	own := func(policy v1.DeletionPolicy) func(*v1.MySQLBackupInstance) {
		return func(instance *v1.MySQLBackupInstance) { instance.Spec.DeletionPolicy = policy }
	}
	label := func(value string) func(*v1.MySQLBackupInstance) {
		return func(instance *v1.MySQLBackupInstance) {
			instance.Labels = map[string]string{v1.LabelBackupSchedule: value}
		}
	}
	mark := func(value string) func(*v1.MySQLBackupInstance) {
		return func(instance *v1.MySQLBackupInstance) { instance.Annotations[transfer.AnnotationExpired] = value }
	}
	ends := func(schedule *v1.MySQLBackupSchedule) { schedule.DeletionTimestamp = &metav1.Time{Time: born()} }
	anew := func(schedule *v1.MySQLBackupSchedule) { schedule.UID = "uid-again" }
	deletes := func(schedule *v1.MySQLBackupSchedule) { schedule.Spec.DeletionPolicy = v1.DeleteData }
	for name, test := range map[string]struct {
		instance v1.MySQLBackupInstance
		schedule *v1.MySQLBackupSchedule
		// lapses is the reason why a mark no longer counts; empty if it counts.
		lapses string
		// goes means that the data is deleted anyway.
		goes bool
	}{
		"retention deletes it":                                {instance: fresh(expires), schedule: nightly()},
		"its schedule is of an earlier build":                 {instance: fresh(expires, mark("true")), schedule: nightly()},
		"its schedule is gone":                                {instance: fresh(expires), lapses: `"nightly", whose retention marked it for deletion, no longer exists`},
		"also that of an earlier build":                       {instance: fresh(expires, mark("true")), lapses: "no longer exists"},
		"its schedule is being deleted":                       {instance: fresh(expires), schedule: nightly(ends), lapses: "is being deleted"},
		"its schedule is another one":                         {instance: fresh(expires), schedule: nightly(anew), lapses: "created again"},
		"its label was removed":                               {instance: fresh(expires, label("")), schedule: nightly(), lapses: "no longer names its schedule"},
		"its label names another schedule":                    {instance: fresh(expires, label("weekly")), schedule: nightly(), lapses: "no longer names its schedule"},
		"an instance without a schedule has a mark":           {instance: fresh(expires, func(i *v1.MySQLBackupInstance) { i.Spec.Schedule = "" }), lapses: "no longer names its schedule"},
		"it stays by its own policy":                          {instance: fresh(expires, own(v1.RetainData)), schedule: nightly(ends, deletes), lapses: "is being deleted"},
		"its own policy deletes it":                           {instance: fresh(expires, own(v1.DeleteData)), lapses: "no longer exists", goes: true},
		"its schedule's policy deletes it, without the label": {instance: fresh(expires, label("")), schedule: nightly(deletes), lapses: "no longer names its schedule", goes: true},
		"it has no mark":                                      {instance: fresh(), schedule: nightly(ends)},
		"it has no mark, and its schedule is gone":            {instance: fresh(own(v1.DeleteData)), goes: true},
		"the schedule's Retain is no Delete":                  {instance: fresh(expires), schedule: nightly(ends, func(s *v1.MySQLBackupSchedule) { s.Spec.DeletionPolicy = v1.RetainData }), lapses: "is being deleted"},
		"its policy and the mark agree":                       {instance: fresh(expires, own(v1.DeleteData)), schedule: nightly(), goes: true},
		"retention overrides Retain":                          {instance: fresh(expires, own(v1.RetainData)), schedule: nightly()},
	} {
		because := markVoidReason(test.instance, test.schedule)
		if (because == "") != (test.lapses == "") || !strings.Contains(because, test.lapses) {
			t.Errorf("%s: the mark lapses because %q, want %q", name, because, test.lapses)
		}
		if goes := deletesWithoutMark(test.instance, test.schedule); goes != test.goes {
			t.Errorf("%s: the data is deleted without the mark: %t, want %t", name, goes, test.goes)
		}
	}
}

// TestWhoIsUnsureSaysSo: if the API server does not answer, the operator waits and reports why.
func TestWhoIsUnsureSaysSo(t *testing.T) {
	t.Parallel()
	schedules := schema.GroupResource{Resource: "mysqlbackupschedules"}
	for name, test := range map[string]struct {
		err    error
		reason string
		says   string
	}{
		"it does not answer":  {&markUnknownError{errors.New("connection refused")}, protocol.ReasonDeleting, "not deleted yet: check whether the schedule that marked it still exists: connection refused"},
		"it may not be read":  {&markUnknownError{apierrors.NewForbidden(schedules, "nightly", errors.New("no permission"))}, report.ReasonForbidden, "grant the permission"},
		"a retry may succeed": {err: errors.New("connection refused")},
	} {
		got := whyUnfinished(test.err)
		if (got == nil) != (test.reason == "") || got != nil && (got.Reason != test.reason || !strings.Contains(got.Message, test.says)) {
			t.Errorf("%s: it says %+v, want %s because %q", name, got, test.reason, test.says)
		}
	}
}
