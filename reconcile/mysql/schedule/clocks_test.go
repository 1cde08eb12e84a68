package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// hourAgo is the backup that was created so many hours before now, by the API server's clock. It took a minute, but the operator's clock
// was wrong by off when it ended.
func hourAgo(now time.Time, hours int, off time.Duration) instance {
	at := now.Add(-time.Duration(hours) * time.Hour)
	ended := metav1.NewTime(at.Add(time.Minute + off))
	hourly := v1.MySQLBackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: "hourly"}}
	return instanceFrom(hourly, v1.MySQLBackupInstance{
		ObjectMeta: metav1.ObjectMeta{Name: instanceName("hourly", at), CreationTimestamp: metav1.NewTime(at)},
		Spec:       v1.MySQLBackupInstanceSpec{Cluster: "db"},
		Status:     v1.MySQLBackupInstanceStatus{Phase: v1.BackupCompleted, CompletionTime: &ended},
	})
}

// TestRetentionOutlivesAWrongClock: there are 17 hourly backups. The operator's clock was wrong when some of them ended, and is right
// again. The API server's clock was always right. Only the oldest backups may be deleted.
func TestRetentionOutlivesAWrongClock(t *testing.T) {
	t.Parallel()
	const all, year = 17, 365 * 24 * time.Hour
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		limits []func(*observed)
		// off is the error of the clock for the backups created between from and to hours ago.
		off      time.Duration
		from, to int
		// goes is how many of the oldest are deleted.
		goes int
	}{
		"the clock was right, by number":                                       {limits: []func(*observed){keepLast(10)}, goes: 7},
		"the clock was right, by age":                                          {limits: []func(*observed){keepFor("10h30m")}, goes: 7},
		"a year behind, by number":                                             {limits: []func(*observed){keepLast(7)}, off: -year, from: 10, to: 1, goes: 10},
		"a year behind, by age":                                                {limits: []func(*observed){keepFor("10h30m")}, off: -year, from: 10, to: 1, goes: 7},
		"a year behind, by both":                                               {limits: []func(*observed){keepLast(7), keepFor("12h30m")}, off: -year, from: 10, to: 1, goes: 5},
		"two hours behind, by number":                                          {limits: []func(*observed){keepLast(7)}, off: -2 * time.Hour, from: 10, to: 1, goes: 10},
		"two hours behind, by age":                                             {limits: []func(*observed){keepFor("10h30m")}, off: -2 * time.Hour, from: 10, to: 1, goes: 7},
		"six hours ahead until seven hours ago":                                {limits: []func(*observed){keepLast(7)}, off: 6 * time.Hour, from: 17, to: 8, goes: 10},
		"a day ahead: what ended in the future is neither counted nor deleted": {limits: []func(*observed){keepLast(7)}, off: 24 * time.Hour, from: 10, to: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, want := observed{now: now, serverNow: now}, []string{}
			for _, set := range test.limits {
				set(&seen)
			}
			for hours := 1; hours <= all; hours++ {
				off := time.Duration(0)
				if hours <= test.from && hours >= test.to {
					off = test.off
				}
				one := hourAgo(now, hours, off)
				seen.instances = append(seen.instances, one)
				if hours > all-test.goes {
					want = append(want, one.name)
				}
			}
			found := retain(seen)
			if diff := cmp.Diff(want, append([]string{}, found.toMark...)); diff != "" {
				t.Errorf("condemned (-want +got):\n%s", diff)
			}
		})
	}
}
