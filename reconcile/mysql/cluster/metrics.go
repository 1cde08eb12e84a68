package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The phases of a takeover that the operator sees.
const (
	// phaseDetect: the primary has failed, and the takeover has not begun. It is measured together with phaseStop, and only if it is known
	// when the primary failed.
	phaseDetect = "detect"
	// phaseStop: the others stop acknowledging, and the former primary certainly takes no writes. It ends when the next one is chosen.
	phaseStop = "stop"
	// phasePromote: the next primary begins to take writes.
	phasePromote = "promote"
)

// takeoverSeconds are the durations of the phases of takeovers that this process has seen from the beginning.
func takeoverSeconds() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: reconcile.MetricsPrefix + "takeover_phase_seconds", Help: "How long the phases of takeovers took: detect, from the failure until the takeover began, stop, until the next primary was chosen, and promote, until it took writes.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128},
	}, []string{"phase"})
}

// collector are the metrics of the existing clusters, from the cache at each scrape, and those of takeovers.
type collector struct {
	clusters      reconcile.Lister
	takeovers     *prometheus.HistogramVec
	failoverReady *prometheus.Desc
}

func newCollector(clusters reconcile.Lister, takeovers *prometheus.HistogramVec) prometheus.Collector {
	labels := []string{"namespace", "cluster"}
	return collector{clusters, takeovers, prometheus.NewDesc(reconcile.MetricsPrefix+"failover_ready", "1 if a replica could take over from the primary.", labels, nil)}
}

// Describe implements prometheus.Collector.
func (m collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.failoverReady
	m.takeovers.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (m collector) Collect(found chan<- prometheus.Metric) {
	m.takeovers.Collect(found)
	for object := range m.clusters.All() {
		var cluster struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if schema.Decode(object, &cluster) != nil {
			continue
		}
		if ready := meta.FindStatusCondition(cluster.Status.Conditions, conditionFailoverReady); ready != nil {
			value := 0.0
			if ready.Status == metav1.ConditionTrue {
				value = 1
			}
			found <- prometheus.MustNewConstMetric(m.failoverReady, prometheus.GaugeValue, value, object.GetNamespace(), object.GetName())
		}
	}
}

// takeoverPhase is the phase of a takeover that is in progress, and since when.
type takeoverPhase struct {
	uid   types.UID
	epoch int64
	since time.Time
	// failed is when the former primary failed; zero if that is not known, and after phaseStop.
	failed time.Time
}

// failedAt is when the primary failed from which a member takes over now; zero if that is not known. The operator that begins the takeover
// computes it with its own clock.
func failedAt(status v1.MySQLClusterStatus) time.Time {
	count := len(status.Takeovers)
	if count == 0 || status.Takeovers[count-1].Epoch != status.Epoch || status.Takeovers[count-1].FailureTime == nil {
		return time.Time{}
	}
	return status.Takeovers[count-1].FailureTime.Time
}

// isComplete reports whether the latest takeover is complete. A user may have removed it from the status.
func isComplete(status v1.MySQLClusterStatus) bool {
	count := len(status.Takeovers)
	return count > 0 && status.Takeovers[count-1].CompletionTime != nil
}

// stopped measures the phases before the choice of the next primary. phaseDetect waits until then, because the status write with which a
// takeover begins may fail: the next pass begins it again, or does not. If a clock was set back, the duration may be negative: it does not
// count.
func (p takeoverPhase) stopped(seconds *prometheus.HistogramVec, now time.Time) {
	if detected := p.since.Sub(p.failed); !p.failed.IsZero() && detected >= 0 {
		seconds.WithLabelValues(phaseDetect).Observe(detected.Seconds())
	}
	seconds.WithLabelValues(phaseStop).Observe(now.Sub(p.since).Seconds())
}

// measureTakeover measures the phases that end with this status. Each begins where the one before it ends.
func (m *memory) measureTakeover(seconds *prometheus.HistogramVec, cluster v1.MySQLCluster, after v1.MySQLClusterStatus, now time.Time) {
	key, before := keyOf(cluster), cluster.Status
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.takeovers[key]
	isSeen := known.uid == cluster.UID && known.epoch == after.Epoch
	switch {
	case before.FormerPrimary == "" && after.FormerPrimary != "":
		m.takeovers[key] = takeoverPhase{cluster.UID, after.Epoch, now, failedAt(after)}
	case !isSeen:
		delete(m.takeovers, key)
	case before.FormerPrimary != "" && after.Primary != "":
		known.stopped(seconds, now)
		m.takeovers[key] = takeoverPhase{uid: cluster.UID, epoch: after.Epoch, since: now}
	case after.Primary != "" && isComplete(after):
		seconds.WithLabelValues(phasePromote).Observe(now.Sub(known.since).Seconds())
		delete(m.takeovers, key)
	}
}
