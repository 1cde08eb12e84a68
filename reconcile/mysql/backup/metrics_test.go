package backup

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// shelf is a cache that a test fills.
type shelf []*unstructured.Unstructured

// Get implements reconcile.Lister.
func (s shelf) Get(namespace, name string) (*unstructured.Unstructured, bool) {
	for _, object := range s {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object, true
		}
	}
	return nil, false
}

// All implements reconcile.Lister.
func (s shelf) All() iter.Seq[*unstructured.Unstructured] { return slices.Values(s) }

// Owned implements reconcile.Lister.
func (s shelf) Owned(types.UID) []*unstructured.Unstructured { return nil }

// Indexed implements reconcile.Lister.
func (s shelf) Indexed(index, key string) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{}
	for _, object := range s {
		if slices.Contains(indices()[index](object), key) {
			found = append(found, object)
		}
	}
	return found
}

func put(t *testing.T, instances ...v1.MySQLBackupInstance) shelf {
	t.Helper()
	filled := shelf{}
	for _, instance := range instances {
		content, err := schema.Encode(instance)
		if err != nil {
			t.Fatal(err)
		}
		filled = append(filled, &unstructured.Unstructured{Object: content})
	}
	return filled
}

// finished is an instance that is over, a number of minutes after it began.
func finished(number int, phase v1.BackupPhase, reason string) v1.MySQLBackupInstance {
	return fresh(begins, func(i *v1.MySQLBackupInstance) {
		i.Name, i.Spec.Schedule = fmt.Sprintf("nightly-%d", number), "nightly"
		ended := metav1.NewTime(i.Status.StartTime.Add(time.Duration(number) * time.Minute))
		i.Status.Phase, i.Status.CompletionTime = phase, &ended
		i.Status.DataSize, i.Status.Size = int64(number)*1000, int64(number)*100
		i.Status.Conditions = []metav1.Condition{{Type: "Ready", Reason: reason}}
	})
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	all := put(t,
		finished(3, v1.BackupCompleted, "Completed"), finished(1, v1.BackupCompleted, "Completed"), finished(2, v1.BackupFailed, "DonorBusy"),
		finished(4, v1.BackupFailed, "DonorBusy"), finished(5, v1.BackupFailed, "DestinationFull"), fresh(begins), fresh(),
	)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(all, tomorrow))
	const labels = `{cluster="db",namespace="shop",schedule="nightly"}`
	want := map[string]string{
		"completed":                      labels + " 2",
		"last_data_bytes":                labels + " 3000",
		"last_duration_seconds":          labels + " 180",
		"last_size_bytes":                labels + " 300",
		"last_success_timestamp_seconds": labels + fmt.Sprintf(" %v", float64(born().Add(4*time.Minute).Unix())),
	}
	for name, series := range want {
		count := testutil.CollectAndCount(newCollector(all, tomorrow), "mysql_operator_backup_"+name)
		if count != 1 {
			t.Errorf("%s has %d series, want 1", name, count)
		}
		if err := gathered(registry, name, series); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	failures := `{cluster="db",namespace="shop",reason="DestinationFull",schedule="nightly"} 1` + "\n" +
		`mysql_operator_backup_failed{cluster="db",namespace="shop",reason="DonorBusy",schedule="nightly"} 2`
	if err := gathered(registry, "failed", failures); err != nil {
		t.Errorf("failed: %v", err)
	}
}

// gathered compares one metric with the expected one, except its help.
func gathered(registry *prometheus.Registry, name, series string) error {
	full := "mysql_operator_backup_" + name
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() == full {
			expected := fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n%s%s\n", full, family.GetHelp(), full, full, series)
			return testutil.GatherAndCompare(registry, strings.NewReader(expected), full)
		}
	}
	return errors.New("there is none")
}

// A clock that was ahead must not hide that no backup has succeeded since then.
func TestMeasuresDoNotBelieveTheFuture(t *testing.T) {
	t.Parallel()
	ahead := finished(1, v1.BackupCompleted, "Completed")
	future := metav1.NewTime(born().AddDate(3, 0, 0))
	ahead.Status.CompletionTime = &future
	const labels = `{cluster="db",namespace="shop",schedule="nightly"}`
	for name, test := range map[string]struct {
		all               shelf
		succeeded, copied string
		durations         int
	}{
		"another one is the latest": {put(t, ahead, finished(2, v1.BackupCompleted, "Completed")), fmt.Sprint(float64(after(3 * time.Minute).Unix())), "2000", 1},
		"it is the only one":        {put(t, ahead), fmt.Sprint(float64(born().Unix())), "1000", 0},
	} {
		registry := prometheus.NewRegistry()
		registry.MustRegister(newCollector(test.all, tomorrow))
		for metric, want := range map[string]string{"last_success_timestamp_seconds": test.succeeded, "last_data_bytes": test.copied} {
			if err := gathered(registry, metric, labels+" "+want); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if count := testutil.CollectAndCount(newCollector(test.all, tomorrow), "mysql_operator_backup_last_duration_seconds"); count != test.durations {
			t.Errorf("%s: %d durations", name, count)
		}
	}
}

func tomorrow() time.Time { return after(24 * time.Hour) }

// TestMeasuresEndWithTheirObjects: metrics do not count instances that are deleted or being deleted.
func TestMeasuresEndWithTheirObjects(t *testing.T) {
	t.Parallel()
	going := finished(1, v1.BackupCompleted, "Completed")
	going.DeletionTimestamp = &metav1.Time{Time: born()}
	if count := testutil.CollectAndCount(newCollector(put(t, going, fresh()), tomorrow)); count != 0 {
		t.Errorf("there are %d series of backups that do not exist", count)
	}
}
