package agent

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// scrape reads all metrics of an agent, by name and labels, without their prefix.
func scrape(t *testing.T, a *Agent) map[string]string {
	t.Helper()
	answer := httptest.NewRecorder()
	a.metricsHandler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("the answer is %d: %s", answer.Code, answer.Body)
	}
	found := map[string]string{}
	for line := range strings.Lines(answer.Body.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, isOurs := strings.CutPrefix(name, prefix); isOurs {
			found[name] = value
		}
	}
	return found
}

// TestMetricsTellWhatIsKnown: each value has its own metric, and unknown values are reported as unknown.
func TestMetricsTellWhatIsKnown(t *testing.T) {
	t.Parallel()
	a := newAgent(t, newLayout(t), memberState())
	want := map[string]string{
		`state{state="Starting"}`: "1", "writable": "0", "acknowledging": "0", "acks_enforced": "0", "ack_clients": "0", "epoch": "0", "unapplied_transactions": "0",
		"disk_size_bytes": "0", "disk_free_bytes": "0", "prepared_transactions": "0", "oldest_transaction_seconds": "0", "commit_wait_seconds": "0", "commit_delay_seconds": "0", "history_list_length": "0",
		"lag_seconds": "-1", "other_engine_tables": "-1", "tables_without_rows": "-1", "tables_without_primary_key": "-1",
		"memory_budget_bytes": "0", "memory_used_bytes": "0", "mysqld_starts": "0", "open_files_limit": "0", "open_files_wanted": "0",
		`alarms_total{result="arrived"}`: "0", `alarms_total{result="failed"}`: "0",
	}
	if diff := cmp.Diff(want, scrape(t, a)); diff != "" {
		t.Errorf("of a member that has just started (-want +got):\n%s", diff)
	}

	keyless, lag, tables := int64(3), int64(7), replication.Tables{Named: []replication.Table{{Schema: "shop", Name: "log"}}, More: 1}
	a.SetMemoryBudget(1000)
	a.mu.Lock()
	a.diskSeen = time.Now()
	a.status.State, a.status.Writable, a.status.Acknowledging, a.status.AcksEnforced, a.status.AckClients = replication.StateWriting, true, true, 1, 2
	a.status.Held.Epoch, a.status.LagSeconds, a.status.OtherEngines, a.status.TablesWithoutRows = 4, &lag, &tables, &replication.Tables{}
	a.status.Disk = replication.Disk{Size: 2000, Free: 500}
	a.status.Transactions = replication.Transactions{Prepared: 5, OldestSeconds: 6, CommitWaitSeconds: 8, History: 9}
	a.measured.mysqld, a.measured.wantedFiles, a.measured.keyless = mysqld.Measured{Memory: 900, OpenFiles: 1024}, 5000, &keyless
	a.measured.commitDelay = 20 * time.Millisecond
	a.measured.files = map[fileKind]int64{filesBinaryLog: 10, filesData: 11}
	a.mysqld.Starts = 3
	a.alarms.arrived, a.alarms.failed = 1, 2
	a.mu.Unlock()
	want = map[string]string{
		`state{state="Writing"}`: "1", "writable": "1", "acknowledging": "1", "acks_enforced": "1", "ack_clients": "2", "epoch": "4", "unapplied_transactions": "0",
		"disk_size_bytes": "2000", "disk_free_bytes": "500", "prepared_transactions": "5", "oldest_transaction_seconds": "6", "commit_wait_seconds": "8", "commit_delay_seconds": "0.02", "history_list_length": "9",
		"lag_seconds": "7", "other_engine_tables": "2", "tables_without_rows": "0", "tables_without_primary_key": "3",
		"memory_budget_bytes": "1000", "memory_used_bytes": "900", "mysqld_starts": "3", "open_files_limit": "1024", "open_files_wanted": "5000",
		`disk_used_bytes{kind="binary_log"}`: "10", `disk_used_bytes{kind="data"}`: "11",
		`alarms_total{result="arrived"}`: "1", `alarms_total{result="failed"}`: "2",
	}
	if diff := cmp.Diff(want, scrape(t, a)); diff != "" {
		t.Errorf("of a primary (-want +got):\n%s", diff)
	}

	a.mu.Lock()
	a.diskSeen = time.Now().Add(-2 * diskFor)
	a.forgetMeasures()
	a.mu.Unlock()
	silent := scrape(t, a)
	if _, told := silent[`disk_used_bytes{kind="data"}`]; told || silent["disk_size_bytes"] != "0" || silent["memory_used_bytes"] != "0" || silent["open_files_limit"] != "0" {
		t.Errorf("for a member whose storage hangs and whose mysqld does not answer the metrics are %v", silent)
	}
}

// TestMetricsAreDocumented: the users' table has every name, whole or as the end of a name after an earlier one.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Metrics\n")
	if !found {
		t.Fatal("docs/clusters.md has no chapter on metrics")
	}
	for name := range scrape(t, newAgent(t, newLayout(t), memberState())) {
		name, _, _ = strings.Cut(name, "{")
		whole, rest := "`"+prefix+name, "`…_"+name+"`"
		if !strings.Contains(table, whole+"`") && !strings.Contains(table, whole+"{") && !strings.Contains(table, rest) {
			t.Errorf("docs/clusters.md does not mention %s%s", prefix, name)
		}
	}
	for _, kind := range fileKinds() {
		if !strings.Contains(table, "`"+string(kind)+"`") {
			t.Errorf("docs/clusters.md does not mention files of the kind %s", kind)
		}
	}
}
