package agent

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
)

// maxScrapes is how many requests for metrics are answered at once; anybody may ask.
const maxScrapes = 4

// metricsHandler serves what the member's report says, as it stands when it is asked.
func (a *Agent) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{agent: a, state: prometheus.NewDesc("mysql_operator_member_state", "1 for the state that the member is in.", []string{"state"}, nil),
		gauges: gauges()})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: maxScrapes})
}

type gauge struct {
	desc  *prometheus.Desc
	value func(replication.Status) float64
}

func gauges() []gauge {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("mysql_operator_member_"+name, help, nil, nil)
	}
	return []gauge{
		{describe("writable", "1 while clients can write here."), func(s replication.Status) float64 { return oneIf(s.Writable) }},
		{describe("acknowledging", "1 while this replica acknowledges commits."), func(s replication.Status) float64 { return oneIf(s.Acknowledging) }},
		{describe("acks_enforced", "Acknowledgements that a commit waits for; 0 waits for none."), func(s replication.Status) float64 { return float64(s.AcksEnforced) }},
		{describe("ack_clients", "Replicas connected that acknowledge commits."), func(s replication.Status) float64 { return float64(s.AckClients) }},
		{describe("epoch", "Epoch of the record that the member holds."), func(s replication.Status) float64 { return float64(s.Held.Epoch) }},
		{describe("unapplied_transactions", "Transactions received and not yet applied."), func(s replication.Status) float64 { return float64(s.Received.Subtract(s.Executed).Count()) }},
		{describe("disk_size_bytes", "Size of the member's volume; 0 while it is not known."), func(s replication.Status) float64 { return float64(s.Disk.Size) }},
		{describe("disk_free_bytes", "Free bytes on the member's volume."), func(s replication.Status) float64 { return float64(s.Disk.Free) }},
		{describe("prepared_transactions", "Transactions in the state of XA PREPARE, once a minute."), func(s replication.Status) float64 { return float64(s.Transactions.Prepared) }},
		{describe("oldest_transaction_seconds", "For how long the oldest transaction has been open, once a minute."), func(s replication.Status) float64 { return float64(s.Transactions.OldestSeconds) }},
		{describe("commit_wait_seconds", "For how long nothing has been committed while sessions wait to commit, every five seconds."), func(s replication.Status) float64 { return float64(s.Transactions.CommitWaitSeconds) }},
		{describe("history_list_length", "Undo logs that InnoDB has yet to purge, once a minute."), func(s replication.Status) float64 { return float64(s.Transactions.History) }},
		{describe("lag_seconds", "Seconds behind the primary; -1 when MySQL does not know."), lagValue},
		{describe("other_engine_tables", "Tables of other engines than InnoDB on the primary; -1 where nobody has counted."), otherEngines},
		{describe("tables_without_rows", "Tables that the member came without the rows of; -1 where nobody has looked."), tablesWithoutRows},
	}
}

func otherEngines(s replication.Status) float64 {
	if s.OtherEngines == nil {
		return -1
	}
	return float64(s.OtherEngines.Count())
}

func tablesWithoutRows(s replication.Status) float64 {
	if s.Lacking == nil {
		return -1
	}
	return float64(s.Lacking.Count())
}

func lagValue(s replication.Status) float64 {
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
	gauges []gauge
}

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.state
	for _, gauge := range c.gauges {
		descs <- gauge.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	status := c.agent.Status()
	metrics <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, 1, string(status.State))
	for _, gauge := range c.gauges {
		metrics <- prometheus.MustNewConstMetric(gauge.desc, prometheus.GaugeValue, gauge.value(status))
	}
}
