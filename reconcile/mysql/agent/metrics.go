package agent

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// maxScrapes is how many requests for metrics are answered at once, because any client may send them.
const maxScrapes = 4

// metricsHandler serves the member's current report and measurements.
func (a *Agent) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{
		agent:  a,
		state:  prometheus.NewDesc(prefix+"state", "1 for the state that the member is in.", []string{"state"}, nil),
		files:  prometheus.NewDesc(prefix+"disk_used_bytes", "Bytes of the volume that files of the data directory use, by purpose of the files, once a minute.", []string{"kind"}, nil),
		alarms: prometheus.NewDesc(prefix+"alarms_total", "Requests to the operator to look at once, and tests whether they arrive, by whether they arrived.", []string{"result"}, nil),
		gauges: gauges(),
	})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: maxScrapes})
}

// prefix begins the names of all of an agent's metrics.
const prefix = "mysql_operator_member_"

// metricValues is what the gauges report.
type metricValues struct {
	replication.Status
	measured
}

type gauge struct {
	desc  *prometheus.Desc
	value func(metricValues) float64
}

func gauges() []gauge {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, nil, nil)
	}
	return []gauge{
		{describe("writable", "1 while clients can write here."), func(s metricValues) float64 { return oneIf(s.Writable) }},
		{describe("acknowledging", "1 while this replica acknowledges commits."), func(s metricValues) float64 { return oneIf(s.Acknowledging) }},
		{describe("acks_enforced", "Acknowledgements that a commit waits for; 0 means none."), func(s metricValues) float64 { return float64(s.AcksEnforced) }},
		{describe("ack_clients", "Connected replicas that acknowledge commits."), func(s metricValues) float64 { return float64(s.AckClients) }},
		{describe("epoch", "Epoch of the record in the member's last assignment."), func(s metricValues) float64 { return float64(s.Held.Epoch) }},
		{describe("unapplied_transactions", "Transactions received and not yet applied."), func(s metricValues) float64 { return float64(s.Received.Subtract(s.Executed).Count()) }},
		{describe("disk_size_bytes", "Size of the member's volume; 0 while it is unknown."), func(s metricValues) float64 { return float64(s.Disk.Size) }},
		{describe("disk_free_bytes", "Free bytes on the member's volume."), func(s metricValues) float64 { return float64(s.Disk.Free) }},
		{describe("prepared_transactions", "Transactions in the state of XA PREPARE, once a minute."), func(s metricValues) float64 { return float64(s.Transactions.Prepared) }},
		{describe("oldest_transaction_seconds", "Seconds that the oldest transaction has been open, once a minute."), func(s metricValues) float64 { return float64(s.Transactions.OldestSeconds) }},
		{describe("commit_wait_seconds", "Seconds without any commit while sessions wait to commit, every five seconds."), func(s metricValues) float64 { return float64(s.Transactions.CommitWaitSeconds) }},
		{describe("commit_delay_seconds", "Seconds by which mysqld delays each group of commits."), func(s metricValues) float64 { return s.commitDelay.Seconds() }},
		{describe("history_list_length", "Undo logs that InnoDB has yet to purge, once a minute."), func(s metricValues) float64 { return float64(s.Transactions.History) }},
		{describe("lag_seconds", "Seconds behind the primary; -1 when MySQL does not report them."), lagValue},
		{describe("other_engine_tables", "Tables of other engines than InnoDB on the primary; -1 where the agent has not counted them."), otherEngines},
		{describe("tables_without_rows", "Tables whose rows were missing in the copy or backup that the member began with; -1 where the agent has not looked."), tablesWithoutRows},
		{describe("tables_without_primary_key", "Tables of the primary without a primary key or a unique key without NULL, once an hour; -1 where the agent has not counted them."), tablesWithoutKey},
		{describe("mysqld_starts", "Starts of mysqld in its container; 0 while its supervisor does not answer."), func(s metricValues) float64 { return float64(s.starts) }},
		{describe("memory_budget_bytes", "Memory of mysqld's container, from which the operator chose mysqld's sizes; 0 where the container has neither a limit nor a request."), func(s metricValues) float64 { return float64(s.budget) }},
		{describe("memory_used_bytes", "Memory that mysqld has allocated, as far as its instruments count, once a minute; 0 while it is unknown."), func(s metricValues) float64 { return float64(s.mysqld.Memory) }},
		{describe("open_files_limit", "Files that mysqld may have open; 0 while it is unknown."), func(s metricValues) float64 { return float64(s.mysqld.OpenFiles) }},
		{describe("open_files_wanted", "Files that mysqld asks to be able to open; with fewer it makes max_connections and table_open_cache smaller."), func(s metricValues) float64 { return float64(s.wantedFiles) }},
	}
}

func otherEngines(s metricValues) float64 {
	if s.OtherEngines == nil {
		return -1
	}
	return float64(s.OtherEngines.Count())
}

func tablesWithoutKey(s metricValues) float64 {
	if s.keyless == nil {
		return -1
	}
	return float64(*s.keyless)
}

func tablesWithoutRows(s metricValues) float64 {
	if s.TablesWithoutRows == nil {
		return -1
	}
	return float64(s.TablesWithoutRows.Count())
}

func lagValue(s metricValues) float64 {
	if s.LagSeconds == nil {
		return -1
	}
	return float64(*s.LagSeconds)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

type collector struct {
	agent  *Agent
	state  *prometheus.Desc
	files  *prometheus.Desc
	alarms *prometheus.Desc
	gauges []gauge
}

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.state
	descs <- c.files
	descs <- c.alarms
	for _, gauge := range c.gauges {
		descs <- gauge.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	now := metricValues{c.agent.Status(), c.agent.measures()}
	metrics <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, 1, string(now.State))
	arrived, failed := c.agent.alarms.counts()
	metrics <- prometheus.MustNewConstMetric(c.alarms, prometheus.CounterValue, float64(arrived), "arrived")
	metrics <- prometheus.MustNewConstMetric(c.alarms, prometheus.CounterValue, float64(failed), "failed")
	for kind, bytes := range now.files {
		metrics <- prometheus.MustNewConstMetric(c.files, prometheus.GaugeValue, float64(bytes), string(kind))
	}
	for _, gauge := range c.gauges {
		metrics <- prometheus.MustNewConstMetric(gauge.desc, prometheus.GaugeValue, gauge.value(now))
	}
}
