package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// probe is the tests' own kind.
func probe() schema.Kind {
	return schema.Kind{Group: "engine.example.com", Version: "v1", Kind: "Probe", Plural: "probes"}
}

const probeDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: probes.engine.example.com}
spec:
  group: engine.example.com
  scope: Namespaced
  names: {kind: Probe, plural: probes, singular: probe, listKind: ProbeList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              phase: {type: string}
              defaulted: {type: string, default: by the API server}
              observedGeneration: {type: integer, format: int64}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, required: [type], properties: {type: {type: string}}, x-kubernetes-preserve-unknown-fields: true}
`

// probeStatus is the status of a Probe.
type probeStatus struct {
	Phase              string             `json:"phase,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func resource(name string) apischema.GroupVersionResource {
	switch name {
	case "statefulsets":
		return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
	case "events":
		return apischema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: name}
	case "roles", "rolebindings":
		return apischema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: name}
	case "customresourcedefinitions":
		return apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: name}
	default:
		return apischema.GroupVersionResource{Version: "v1", Resource: name}
	}
}

// world is a control plane that serves Probes, and a namespace in it.
type world struct {
	*apiserver.Server
	namespace string
}

func newWorld(t *testing.T, server *apiserver.Server) *world {
	t.Helper()
	definition := object(t, probeDefinition)
	_, err := server.Dynamic.Resource(resource("customresourcedefinitions")).Apply(t.Context(), definition.GetName(), definition, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func(ctx context.Context) string {
		if _, err := server.Dynamic.Resource(probe().GVR()).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err.Error()
		}
		return ""
	})
	return &world{Server: server, namespace: server.Namespace(t)}
}

// make makes a Probe.
func (w *world) make(t *testing.T, namespace, name string) {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"generationOf": "one"}}}
	made.SetGroupVersionKind(probe().GVK())
	if _, err := w.Dynamic.Resource(probe().GVR()).Namespace(namespace).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// touch changes a Probe, as a user would, so that it comes to a pass.
func (w *world) touch(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	changes := fmt.Sprintf(`{"spec":{"touched":%q}}`, time.Now().Format(time.RFC3339Nano))
	w.patch(ctx, t, probe().GVR(), name, changes)
}

func (w *world) patch(ctx context.Context, t *testing.T, what apischema.GroupVersionResource, name, changes string) {
	t.Helper()
	_, err := w.Dynamic.Resource(what).Namespace(w.namespace).Patch(ctx, name, "application/merge-patch+json", []byte(changes), metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		t.Error(err)
	}
}

func (w *world) get(ctx context.Context, what apischema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return w.Dynamic.Resource(what).Namespace(w.namespace).Get(ctx, name, metav1.GetOptions{})
}

// phase waits until a Probe's status says so.
func (w *world) phase(t *testing.T, namespace, name, want string) {
	t.Helper()
	apiserver.Eventually(t, func(ctx context.Context) string {
		found, err := w.Dynamic.Resource(probe().GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		phase, _, _ := unstructured.NestedString(found.Object, "status", "phase")
		observed, _, _ := unstructured.NestedInt64(found.Object, "status", "observedGeneration")
		if phase != want || (observed != 0 && observed != found.GetGeneration()) {
			return fmt.Sprintf("probe %s is %q at generation %d, want %q at %d", name, phase, observed, want, found.GetGeneration())
		}
		return ""
	})
}

// told counts the events of the operator, each as "NAME REASON". The namespace has others: the control plane writes events about Services,
// for example if another program changed their Endpoints meanwhile.
func (w *world) told(ctx context.Context) (map[string]int, error) {
	events, err := w.Dynamic.Resource(resource("events")).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, event := range events.Items {
		if event.Object["reportingController"] == reconcile.ManagerChildren {
			regarding, _, _ := unstructured.NestedStringMap(event.Object, "regarding")
			counts[fmt.Sprintf("%s %s", regarding["name"], event.Object["reason"])]++
		}
	}
	return counts, nil
}

// scripted is a Reconciler made of a function.
type scripted func(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error)

// Reconcile implements reconcile.Reconciler.
func (s scripted) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	return s(ctx, client, object)
}

// done is the outcome of a pass that has nothing left to do.
func done(object *unstructured.Unstructured) reconcile.Outcome {
	return reconcile.Outcome{Status: probeStatus{Phase: "Ready", ObservedGeneration: object.GetGeneration()}}
}

// operator is a Manager under test, and what it measures.
type operator struct {
	config   reconcile.Config
	registry *prometheus.Registry
	manager  *reconcile.Manager
	requests *recorder
	stop     context.CancelFunc
	ended    chan error
}

// operator makes a Manager for Probes; configure may change how.
func (w *world) operator(t *testing.T, reconciler func(*reconcile.Reader) reconcile.Reconciler, configure func(*reconcile.Config, *reconcile.Controller)) *operator {
	t.Helper()
	o := &operator{registry: prometheus.NewRegistry(), requests: &recorder{}, ended: make(chan error, 1)}
	config := rest.CopyConfig(w.Config)
	config.Wrap(o.requests.around)
	o.config = reconcile.Config{Rest: config, Namespaces: []string{w.namespace}, Registry: o.registry, Logger: testr.NewWithOptions(t, testr.Options{Verbosity: 1}), Identity: t.Name()}
	controller := reconcile.Controller{
		Kind: probe(),
		Watches: []reconcile.Watch{
			{Resource: resource("configmaps"), Selector: "test=engine"},
			{Resource: resource("services"), Selector: "test=engine"},
			{Resource: resource("statefulsets"), Selector: "test=engine"},
		},
		New: reconciler,
	}
	if configure != nil {
		configure(&o.config, &controller)
	}
	manager, err := reconcile.New(o.config, []reconcile.Controller{controller})
	if err != nil {
		t.Fatal(err)
	}
	o.manager = manager
	return o
}

// start runs the Manager until the test ends, or finish.
func (o *operator) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	o.stop = stop
	go func() {
		defer close(o.ended)
		o.ended <- o.manager.Run(ctx)
	}()
	t.Cleanup(func() { o.finish(t) })
}

// finish stops the Manager and waits until it has ended.
func (o *operator) finish(t *testing.T) {
	t.Helper()
	o.stop()
	if err, ok := <-o.ended; ok && err != nil {
		t.Errorf("the manager ended with: %v", err)
	}
}

// measured sums a metric over all series that have these labels.
func (o *operator) measured(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "mysql_operator_"+name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if hasLabels(metric, labels) {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func hasLabels(metric *dto.Metric, labels map[string]string) bool {
	matching := 0
	for _, pair := range metric.GetLabel() {
		want, ok := labels[pair.GetName()]
		if ok && want != pair.GetValue() {
			return false
		}
		if ok {
			matching++
		}
	}
	return matching == len(labels)
}

// passes does something, and waits until so many more passes have ended as result.
func (o *operator) passes(t *testing.T, result string, more float64, after func()) {
	t.Helper()
	labels := map[string]string{"kind": "Probe", "result": result}
	want := o.measured(t, "reconcile_total", labels) + more
	after()
	apiserver.Eventually(t, func(context.Context) string {
		if got := o.measured(t, "reconcile_total", labels); got < want {
			return fmt.Sprintf("%v passes ended as %s, want %v", got, result, want)
		}
		return ""
	})
}

// recorder notes a Manager's writes, and can hold up its watches.
type recorder struct {
	mu            sync.Mutex
	writes, reads []string
	// held ends the path of a resource whose watches stop while gate holds a channel, until that is closed.
	held string
	gate atomic.Pointer[chan struct{}]
}

func (r *recorder) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.note(request)
		response, err := next.RoundTrip(request)
		if err == nil && r.held != "" && strings.HasSuffix(request.URL.Path, r.held) && request.URL.Query().Get("watch") == "true" {
			response.Body = &gated{ReadCloser: response.Body, gate: &r.gate}
		}
		return response, err
	})
}

func (r *recorder) note(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.Method == http.MethodGet {
		r.reads = append(r.reads, request.URL.Path)
	} else {
		r.writes = append(r.writes, request.Method+" "+request.URL.Path)
	}
}

// take returns the writes since it was asked last.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.writes
	r.writes = nil
	return taken
}

// hasRead reports whether an object was read by its name.
func (r *recorder) hasRead(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.reads, path)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}

// gated is a stream that hands nothing on while its gate is shut.
type gated struct {
	io.ReadCloser
	gate *atomic.Pointer[chan struct{}]
}

// Read implements io.Reader.
func (g *gated) Read(into []byte) (int, error) {
	count, err := g.ReadCloser.Read(into)
	if shut := g.gate.Load(); shut != nil {
		<-*shut
	}
	return count, err
}

func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(document, "\t", "  ")))
	if err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON(converted); err != nil {
		t.Fatal(err)
	}
	return made
}
