package reconcile

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
)

// MetricsPrefix begins the name of every metric of the operator.
const MetricsPrefix = "mysql_operator_"

// metrics are the engine's metrics.
type metrics struct {
	passes    *prometheus.CounterVec
	durations *prometheus.HistogramVec
	panics    *prometheus.CounterVec
	writes    *prometheus.CounterVec
	leader    prometheus.Gauge
	requests  *prometheus.CounterVec
	latencies *prometheus.HistogramVec
	queue     *queueMetrics
}

func newMetrics(registry prometheus.Registerer, version string) (*metrics, error) {
	queue := newQueueMetrics()
	m := &metrics{
		passes:    counters("reconcile_total", "Passes over objects, by result.", "kind", "result"),
		durations: passHistograms("reconcile_duration_seconds", "How long passes took.", "kind"),
		panics:    counters("reconcile_panics_total", "Passes that panicked.", "kind"),
		writes:    counters("reconcile_status_writes_total", "Statuses written.", "kind"),
		leader:    prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricsPrefix + "leader", Help: "Whether this process is the leader (1) or a standby (0)."}),
		requests:  counters("api_requests_total", "Requests to the API server, by HTTP status code of the answer (0: no answer).", "verb", "resource", "code"),
		latencies: histograms("api_request_duration_seconds", "How long the API server took to answer requests, except watches.", "verb"),
		queue:     queue,
	}
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        MetricsPrefix + "build_info",
		Help:        "Always 1; its labels are the operator's version and the Go release it was built with.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	}, func() float64 { return 1 })

	all := append([]prometheus.Collector{m.passes, m.durations, m.panics, m.writes, m.leader, m.requests, m.latencies, info}, queue.collectors()...)
	for _, collector := range all {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: MetricsPrefix + name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: MetricsPrefix + name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	buckets := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: MetricsPrefix + name, Help: help, Buckets: buckets}, labels)
}

// passHistograms returns histograms for durations that are below a millisecond if nothing needs to change.
func passHistograms(name, help string, labels ...string) *prometheus.HistogramVec {
	buckets := []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: MetricsPrefix + name, Help: help, Buckets: buckets}, labels)
}

func (m *metrics) passed(kind, result string, took time.Duration) {
	m.passes.WithLabelValues(kind, result).Inc()
	m.durations.WithLabelValues(kind).Observe(took.Seconds())
}

// queueMetrics provides the work queues' metrics without workqueue's process-wide provider. It implements workqueue.MetricsProvider; a
// queue's name is its kind.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

func newQueueMetrics() *queueMetrics {
	return &queueMetrics{
		depth:      gauges("queue_depth", "Objects that wait for a pass.", "kind"),
		unfinished: gauges("queue_unfinished_seconds", "Total age of the passes that are running.", "kind"),
		longest:    gauges("queue_longest_running_seconds", "Age of the oldest pass that is running.", "kind"),
		adds:       counters("queue_adds_total", "Objects queued.", "kind"),
		retries:    counters("queue_retries_total", "Objects queued again after a failure.", "kind"),
		latency:    histograms("queue_latency_seconds", "How long objects waited for a pass.", "kind"),
		work:       histograms("queue_work_seconds", "How long passes held objects.", "kind"),
	}
}

func (q *queueMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{q.depth, q.unfinished, q.longest, q.adds, q.retries, q.latency, q.work}
}

// reset sets the gauges of a queue to 0. A queue that is shut down leaves them unchanged, although nothing waits or runs any more.
func (q *queueMetrics) reset(name string) {
	for _, gauge := range []*prometheus.GaugeVec{q.depth, q.unfinished, q.longest} {
		gauge.WithLabelValues(name).Set(0)
	}
}

// NewDepthMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name)
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.latency.WithLabelValues(name)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

// NewRetriesMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}

// objectStates counts each kind's objects by state, from the caches, when the metrics are read.
type objectStates struct {
	description *prometheus.Desc
	caches      map[string]Lister
}

func newObjectStates(caches map[string]Lister) *objectStates {
	description := prometheus.NewDesc(MetricsPrefix+"objects", "Objects of a kind, by state: their phase if they have one, else a state derived from their conditions.", []string{logKind, "state"}, nil)
	return &objectStates{description: description, caches: caches}
}

// Describe implements prometheus.Collector.
func (s *objectStates) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- s.description
}

// Collect implements prometheus.Collector.
func (s *objectStates) Collect(found chan<- prometheus.Metric) {
	for kind, cached := range s.caches {
		counts := map[string]int{}
		for object := range cached.All() {
			counts[stateOf(object)]++
		}
		for state, count := range counts {
			found <- prometheus.MustNewConstMetric(s.description, prometheus.GaugeValue, float64(count), kind, state)
		}
	}
}

// stateOf returns one word for the state of an object of any kind.
func stateOf(object *unstructured.Unstructured) string {
	if object.GetDeletionTimestamp() != nil {
		return "Deleting"
	}
	if phase, _, err := unstructured.NestedString(object.Object, "status", "phase"); err == nil && phase != "" {
		return phase
	}
	status, _ := object.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	holds := map[string]bool{}
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		holds[conditionType(condition)] = fields["status"] == "True"
	}
	for _, state := range []string{ConditionStalled, ConditionReady, ConditionReconciling} {
		if holds[state] {
			return state
		}
	}
	if len(conditions) > 0 {
		return "NotReady"
	}
	return "New"
}
