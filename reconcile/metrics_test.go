package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/schema"
)

// TestKindsMeasureTheirObjects reads a kind's own metric while its objects are created and deleted.
func TestKindsMeasureTheirObjects(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	count := func(objects Lister) prometheus.Collector {
		options := prometheus.GaugeOpts{Name: MetricsPrefix + "things", Help: "Things there are."}
		return prometheus.NewGaugeFunc(options, func() float64 { return float64(len(slices.Collect(objects.All()))) })
	}
	kind := schema.Kind{Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things"}
	m, err := New(Config{Rest: &rest.Config{Host: "localhost"}, Registry: registry}, []Controller{{Kind: kind, Metrics: count}})
	if err != nil {
		t.Fatal(err)
	}
	measures := func(want string) {
		t.Helper()
		expected := "# HELP mysql_operator_things Things there are.\n# TYPE mysql_operator_things gauge\nmysql_operator_things " + want + "\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(expected), "mysql_operator_things"); err != nil {
			t.Error(err)
		}
	}
	store := m.controllers[0].own.stores[metav1.NamespaceAll]
	thing := newObject("example.com/v1", "Thing", types.NamespacedName{Namespace: "shop", Name: "one"})
	measures("0")
	if err := store.Add(thing); err != nil {
		t.Fatal(err)
	}
	measures("1")
	if err := store.Delete(thing); err != nil {
		t.Fatal(err)
	}
	measures("0")
}

// TestKindsCannotMeasureTheSame: two metrics of one name are refused, and the error names the kind.
func TestKindsCannotMeasureTheSame(t *testing.T) {
	t.Parallel()
	leader := func(Lister) prometheus.Collector {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricsPrefix + "leader", Help: "Another leader."})
	}
	kind := schema.Kind{Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things"}
	_, err := New(Config{Rest: &rest.Config{Host: "localhost"}}, []Controller{{Kind: kind, Metrics: leader}})
	if err == nil || !strings.Contains(err.Error(), "register metrics of Thing: ") {
		t.Errorf("got %v, want a refusal that names the kind", err)
	}
}
