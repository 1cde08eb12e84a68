package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// The versions that monitors are written in.
const (
	v1 = "v1"
	v2 = "v2" // of nextRelease only
)

// monitors are ConfigMonitors that a client writes without a pause while operators start and stop.
type monitors struct {
	*place
	client dynamic.Interface
	// second says what is to become of requests in v2.
	second atomic.Value
	// written is what was acknowledged, by name; failures are requests that had to succeed and did not.
	written  map[string]monitor
	failures []string
	number   int
}

// The values of monitors.second.
const (
	notServed = "not served" // v2 is not asked
	mayAppear = "may appear" // v2 is asked, and may not be served yet, but no other answer is good
	mustServe = "must serve"
)

// monitor is what a client wrote, in either version.
type monitor struct {
	App, Round string
	// Keys and Batch can be said in v2 only.
	Keys  []string
	Batch int64
}

func (p *place) newMonitors() *monitors {
	p.t.Helper()
	config, err := p.kubectl.Rest()
	if err != nil {
		p.t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	m := &monitors{place: p, client: client, written: map[string]monitor{}}
	m.second.Store(notServed)
	return m
}

func (m *monitors) in(version string) dynamic.ResourceInterface {
	return m.client.Resource(schema.GroupVersionResource{Group: "magalix.com", Version: version, Resource: "configmonitors"}).Namespace(m.namespace)
}

// write writes until the function it returns is called.
func (m *monitors) write() (stop func()) {
	const pause = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(m.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ticker := time.NewTicker(pause); ctx.Err() == nil; {
			m.number++
			m.writeOne(ctx, fmt.Sprintf("m-%04d", m.number))
			select {
			case <-ctx.Done():
				ticker.Stop()
			case <-ticker.C:
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// writeOne makes a monitor in one version and changes it in the other.
func (m *monitors) writeOne(ctx context.Context, name string) {
	second := m.second.Load().(string)
	first, then := v1, v2
	if m.number%2 == 0 && second != notServed {
		first, then = v2, v1
	}
	wrote := monitor{App: name}
	if !m.request(ctx, first, second, func(ctx context.Context) error {
		_, err := m.in(first).Create(ctx, wrote.object(first, name, &wrote, int64(m.number)), metav1.CreateOptions{})
		return err
	}) {
		return
	}
	m.written[name] = wrote
	if then == v2 && second == notServed {
		return
	}
	patch, changed := wrote.patch(then, int64(m.number))
	if m.request(ctx, then, second, func(ctx context.Context) error {
		_, err := m.in(then).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}) {
		m.written[name] = changed
	} else {
		delete(m.written, name) // either of the two may be stored
	}
}

// request reports whether a request succeeded. It records a request that failed and must not fail.
func (m *monitors) request(ctx context.Context, version, second string, send func(context.Context) error) bool {
	// A request that was sent is waited for, also when the writing ends.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 40*time.Second)
	defer cancel()
	err := send(sending)
	if err != nil && (version == v1 || second == mustServe || !apierrors.IsNotFound(err)) {
		m.failures = append(m.failures, fmt.Sprintf("%s: %v", version, err))
	}
	return err == nil
}

// object is the monitor as a client makes it in a version; wrote becomes what that says.
func (monitor) object(version, name string, wrote *monitor, number int64) *unstructured.Unstructured {
	spec := map[string]any{"configMap": "settings", "podSelector": map[string]any{"app": name}}
	if version == v2 {
		wrote.Keys, wrote.Batch = []string{"k" + name}, number
		spec = map[string]any{
			"source":  map[string]any{"name": "settings", "keys": []any{wrote.Keys[0]}},
			"targets": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": name}}, "batch": number},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "magalix.com/" + version, "kind": "ConfigMonitor", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// patch changes what the version can say.
func (w monitor) patch(version string, number int64) ([]byte, monitor) {
	spec := map[string]any{"podSelector": map[string]any{"round": "second"}}
	if version == v2 {
		w.Batch = number
		spec = map[string]any{"targets": map[string]any{"batch": number}}
	} else {
		w.Round = "second"
	}
	body, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return body, w
}

// intact compares what was acknowledged with what a version says now. v1 cannot say all of it.
func (m *monitors) intact(version string) {
	m.t.Helper()
	ctx, cancel := m.context(changeLimit)
	defer cancel()
	list, err := m.in(version).List(ctx, metav1.ListOptions{})
	if err != nil {
		m.t.Fatalf("list in %s: %v", version, err)
	}
	want, got := map[string]monitor{}, map[string]monitor{}
	for name, wrote := range m.written {
		if version == v1 {
			wrote.Keys, wrote.Batch = nil, 0
		}
		want[name] = wrote
	}
	for i := range list.Items {
		if name := list.Items[i].GetName(); m.written[name].App != "" {
			got[name] = read(&list.Items[i], version)
		}
	}
	if len(want) == 0 {
		m.t.Error("nothing was written")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("%d monitors were written; in %s they say (-want +got):\n%s", len(want), version, diff)
	}
}

func read(object *unstructured.Unstructured, version string) monitor {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, fields...)
		return value
	}
	if version == v1 {
		return monitor{App: text("spec", "podSelector", "app"), Round: text("spec", "podSelector", "round")}
	}
	labels := []string{"spec", "targets", "selector", "matchLabels"}
	seen := monitor{App: text(append(labels, "app")...), Round: text(append(labels, "round")...)}
	seen.Keys, _, _ = unstructured.NestedStringSlice(object.Object, "spec", "source", "keys")
	seen.Batch, _, _ = unstructured.NestedInt64(object.Object, "spec", "targets", "batch")
	return seen
}

// writtenIn2 is the name of a monitor that says what only v2 can.
func (m *monitors) writtenIn2() string {
	m.t.Helper()
	for name, wrote := range m.written {
		if wrote.Batch > 0 {
			return name
		}
	}
	m.t.Fatal("no monitor was written in v2")
	return ""
}

// allWell reports what had to succeed and did not.
func (m *monitors) allWell(during string) {
	m.t.Helper()
	if len(m.failures) > 0 {
		m.t.Errorf("%s, of %d monitors written %d requests failed: %q", during, m.number, len(m.failures), m.failures[:min(5, len(m.failures))])
	}
	m.failures = nil
	m.t.Logf("%s: %d monitors written", during, m.number)
}
