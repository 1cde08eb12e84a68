package cluster

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestPhasesOfTakeoversAreMeasured: each once, and none whose beginning this process has not seen.
func TestPhasesOfTakeoversAreMeasured(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_785_553_445, 0)
	ended := v1.NewMicroTime(began.Add(3 * time.Second))
	runs := func(epoch int64, primary, former string, takeovers ...v1.Takeover) v1.MySQLClusterStatus {
		return v1.MySQLClusterStatus{Epoch: epoch, Primary: primary, FormerPrimary: former, Takeovers: takeovers}
	}
	open, complete := v1.Takeover{Epoch: 2, From: "db-0"}, v1.Takeover{Epoch: 2, From: "db-0", To: "db-1", CompletionTime: &ended}
	failing := func(epoch int64, at time.Duration) v1.MySQLClusterStatus {
		failed := v1.NewMicroTime(began.Add(at))
		return runs(2, "", "db-0", v1.Takeover{Epoch: epoch, From: "db-0", FailureTime: &failed})
	}
	fails := failing(2, -2500*time.Millisecond)
	const stopAlone = `
			mysql_operator_takeover_phase_seconds_sum{phase="stop"} 1
			mysql_operator_takeover_phase_seconds_count{phase="stop"} 1`
	led, stops, promotes, leads := runs(1, "db-0", ""), runs(2, "", "db-0", open), runs(2, "db-1", "", open), runs(2, "db-1", "", complete)
	for name, test := range map[string]struct {
		saw  []v1.MySQLClusterStatus
		want string
	}{
		"from the beginning": {[]v1.MySQLClusterStatus{led, led, stops, stops, promotes, promotes, leads, leads}, `
			mysql_operator_takeover_phase_seconds_sum{phase="promote"} 2
			mysql_operator_takeover_phase_seconds_count{phase="promote"} 1
			mysql_operator_takeover_phase_seconds_sum{phase="stop"} 2
			mysql_operator_takeover_phase_seconds_count{phase="stop"} 1`},
		"another operator began": {[]v1.MySQLClusterStatus{stops, promotes, leads}, ""},
		"a user removes it":      {[]v1.MySQLClusterStatus{led, stops, promotes, runs(2, "db-1", "")}, stopAlone},
		"it never ends":          {[]v1.MySQLClusterStatus{led, stops, stops}, ""},
		"it is known when the primary failed": {[]v1.MySQLClusterStatus{led, fails, fails, promotes, leads}, `
			mysql_operator_takeover_phase_seconds_sum{phase="detect"} 2.5
			mysql_operator_takeover_phase_seconds_count{phase="detect"} 1
			mysql_operator_takeover_phase_seconds_sum{phase="promote"} 1
			mysql_operator_takeover_phase_seconds_count{phase="promote"} 1
			mysql_operator_takeover_phase_seconds_sum{phase="stop"} 2
			mysql_operator_takeover_phase_seconds_count{phase="stop"} 1`},
		"the status write with which it begins fails once": {[]v1.MySQLClusterStatus{led, fails, led, fails, promotes}, `
			mysql_operator_takeover_phase_seconds_sum{phase="detect"} 4.5
			mysql_operator_takeover_phase_seconds_count{phase="detect"} 1` + stopAlone},
		"by a clock that is ahead":    {[]v1.MySQLClusterStatus{led, failing(2, time.Second), promotes}, stopAlone},
		"that of the takeover before": {[]v1.MySQLClusterStatus{led, failing(1, -time.Hour), promotes}, stopAlone},
		"no member is chosen yet":     {[]v1.MySQLClusterStatus{led, fails}, ""},
	} {
		seconds, known := takeoverSeconds(), newMemory()
		for i, after := range test.saw[1:] {
			cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "1"}, Status: test.saw[i]}
			known.measureTakeover(seconds, cluster, after, began.Add(time.Duration(i)*time.Second))
		}
		got := sums(t, seconds)
		if want := strings.Join(strings.FieldsFunc(test.want, func(r rune) bool { return r == '\n' || r == '\t' }), " "); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// sums are the sums and counts of a histogram.
func sums(t *testing.T, from prometheus.Collector) string {
	t.Helper()
	text, err := testutil.CollectAndFormat(from, expfmt.TypeTextPlain, "mysql_operator_takeover_phase_seconds")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.Contains(line, "_sum") || strings.Contains(line, "_count") {
			found = append(found, line)
		}
	}
	return strings.Join(found, " ")
}

// shelf is a cache that a test fills.
type shelf []*unstructured.Unstructured

// Get implements reconcile.Lister.
func (s shelf) Get(string, string) (*unstructured.Unstructured, bool) { return nil, false }

// All implements reconcile.Lister.
func (s shelf) All() iter.Seq[*unstructured.Unstructured] { return slices.Values(s) }

// Owned implements reconcile.Lister.
func (s shelf) Owned(types.UID) []*unstructured.Unstructured { return nil }

// Indexed implements reconcile.Lister.
func (s shelf) Indexed(string, string) []*unstructured.Unstructured { return nil }

// TestMetricsSayWhetherAReplicaCouldTakeOver: one series for each cluster for which that is known.
func TestMetricsSayWhetherAReplicaCouldTakeOver(t *testing.T) {
	t.Parallel()
	var clusters shelf
	for name, status := range map[string]metav1.ConditionStatus{"able": metav1.ConditionTrue, "unable": metav1.ConditionFalse, "new": ""} {
		cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if status != "" {
			cluster.Status.Conditions = []metav1.Condition{{Type: conditionFailoverReady, Status: status}}
		}
		content, err := schema.Encode(cluster)
		if err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, &unstructured.Unstructured{Object: content})
	}
	want := `
# HELP mysql_operator_failover_ready 1 if a replica could take over from the primary.
# TYPE mysql_operator_failover_ready gauge
mysql_operator_failover_ready{cluster="able",namespace="shop"} 1
mysql_operator_failover_ready{cluster="unable",namespace="shop"} 0
`
	if err := testutil.CollectAndCompare(newCollector(clusters, takeoverSeconds()), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
