package backup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// collector are the metrics of the existing backups, computed from the cache at each scrape. There are at most six series for each cluster
// and schedule, and one for each reason of a failed backup. They disappear with their instances.
type collector struct {
	instances reconcile.Lister
	now       func() time.Time

	lastSuccess, lastDuration, lastData, lastSize *prometheus.Desc
	completed, failed                             *prometheus.Desc
}

func newCollector(instances reconcile.Lister, now func() time.Time) prometheus.Collector {
	describe := func(name, help string, more ...string) *prometheus.Desc {
		labels := append([]string{"namespace", "cluster", "schedule"}, more...)
		return prometheus.NewDesc(reconcile.MetricsPrefix+"backup_"+name, help, labels, nil)
	}
	return collector{
		instances:    instances,
		now:          now,
		lastSuccess:  describe("last_success_timestamp_seconds", "Unix time at which the latest completed backup was complete."),
		lastDuration: describe("last_duration_seconds", "How long the latest completed backup took."),
		lastData:     describe("last_data_bytes", "How many bytes the latest completed backup copied from its member."),
		lastSize:     describe("last_size_bytes", "How many bytes the latest completed backup takes at its destination."),
		completed:    describe("completed", "Number of completed backups."),
		failed:       describe("failed", "Number of failed backups, by reason.", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (m collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{m.lastSuccess, m.lastDuration, m.lastData, m.lastSize, m.completed, m.failed} {
		descriptions <- description
	}
}

// series identifies the backups that are measured together.
type series struct{ namespace, cluster, schedule string }

// tally is what was counted for a series.
type tally struct {
	completed int
	// latest is the status of the latest completed backup. at is when it ended, as far as the recorded time is plausible; it may be zero.
	latest v1.MySQLBackupInstanceStatus
	at     time.Time
	failed map[string]int
}

// Collect implements prometheus.Collector.
func (m collector) Collect(found chan<- prometheus.Metric) {
	for of, counted := range m.count() {
		gauge := func(description *prometheus.Desc, value float64, more ...string) {
			labels := append([]string{of.namespace, of.cluster, of.schedule}, more...)
			found <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
		}
		gauge(m.completed, float64(counted.completed))
		for reason, count := range counted.failed {
			gauge(m.failed, float64(count), reason)
		}
		if counted.completed == 0 {
			continue
		}
		latest := counted.latest
		gauge(m.lastData, float64(latest.DataSize))
		gauge(m.lastSize, float64(latest.Size))
		if !counted.at.IsZero() {
			gauge(m.lastSuccess, float64(counted.at.Unix()))
		}
		if latest.StartTime != nil && counted.at.Equal(latest.CompletionTime.Time) {
			gauge(m.lastDuration, latest.CompletionTime.Sub(latest.StartTime.Time).Seconds())
		}
	}
}

// count counts the instances. It skips an instance that it cannot decode.
func (m collector) count() map[series]*tally {
	all := map[series]*tally{}
	for object := range m.instances.All() {
		var instance v1.MySQLBackupInstance
		if schema.Decode(object, &instance) != nil || instance.DeletionTimestamp != nil || !isOver(instance.Status.Phase) {
			continue
		}
		of := series{instance.Namespace, instance.Status.Cluster, instance.Spec.Schedule}
		if all[of] == nil {
			all[of] = &tally{failed: map[string]int{}}
		}
		all[of].add(instance, m.now())
	}
	return all
}

func (t *tally) add(instance v1.MySQLBackupInstance, now time.Time) {
	status := instance.Status
	if status.Phase == v1.BackupFailed {
		t.failed[reasonOf(status)]++
		return
	}
	if status.CompletionTime == nil {
		return
	}
	t.completed++
	if at := transfer.PlausibleEnd(status.CompletionTime.Time, instance.CreationTimestamp.Time, now); t.completed == 1 || at.After(t.at) {
		t.latest, t.at = status, at
	}
}

// reasonOf returns why a backup failed: one of this program's constants.
func reasonOf(status v1.MySQLBackupInstanceStatus) string {
	if condition := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); condition != nil {
		return condition.Reason
	}
	return ""
}
