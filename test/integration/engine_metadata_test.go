package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// A kind whose children are watched by their metadata alone: it hears of what happens to the metadata, finds owners in it, and applies
// children as ever, though the cache cannot tell what is in them.
func TestEngineWatchesMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	var passes atomic.Int32
	running := w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		defer passes.Add(1)
		for _, child := range client.Cached(resource("configmaps")).Owned(owner.GetUID()) {
			if child.Object["data"] != nil || child.GetKind() != "PartialObjectMetadata" {
				t.Errorf("the cache holds more than metadata: %v", child.Object)
			}
		}
		_, err := client.Apply(ctx, metadataChild(t, owner))
		return done(owner), err
	}), func(_ *reconcile.Config, controller *reconcile.Controller) {
		controller.Watches = []reconcile.Watch{{Resource: resource("configmaps"), Selector: "test=engine", MetadataOnly: true}}
	})
	running.start(t)
	w.make(t, w.namespace, "a")
	w.phase(t, w.namespace, "a", "Ready")
	first := w.child(t, "first", "")

	t.Log("a child that is deleted comes back")
	if err := w.Dynamic.Resource(resource("configmaps")).Namespace(w.namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := w.child(t, "first", first)

	t.Log("a change of its metadata is noticed, and whatever else was changed is healed then")
	w.patch(t.Context(), t, resource("configmaps"), "a", `{"data":{"text":"of another client"}}`)
	before := passes.Load()
	w.patch(t.Context(), t, resource("configmaps"), "a", `{"metadata":{"annotations":{"example.com/seen":"yes"}}}`)
	apiserver.Eventually(t, func(context.Context) string {
		if passes.Load() == before {
			return "no pass was made"
		}
		return ""
	})
	if again := w.child(t, "first", ""); again != second {
		t.Errorf("the child was made again, as %s instead of %s", again, second)
	}

	t.Log("at rest nothing is written")
	running.requests.take()
	running.passes(t, "done", 1, func() { w.touch(t.Context(), t, "a") })
	for _, write := range running.requests.take() {
		if write != "PATCH /apis/engine.example.com/v1/namespaces/"+w.namespace+"/probes/a/status" { // its generation has changed
			t.Errorf("at rest it writes %s", write)
		}
	}
}

func metadataChild(t *testing.T, owner *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	made := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {test: engine}}, data: {text: first}}")
	made.SetNamespace(owner.GetNamespace())
	made.SetName(owner.GetName())
	return made
}

// child waits for a ConfigMap "a" with this text and another UID than the one given, and returns its UID.
func (w *world) child(t *testing.T, text string, not types.UID) types.UID {
	t.Helper()
	var uid types.UID
	apiserver.Eventually(t, func(ctx context.Context) string {
		found, err := w.get(ctx, resource("configmaps"), "a")
		if err != nil {
			return err.Error()
		}
		uid = found.GetUID()
		if says, _, _ := unstructured.NestedString(found.Object, "data", "text"); says != text || uid == not {
			return fmt.Sprintf("it says %q and is %s", says, uid)
		}
		return ""
	})
	return uid
}

// Whom a change concerns is found by an index, in all namespaces of the operator.
func TestEngineFindsByIndices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	second := w.Namespace(t)
	running := w.operator(t, simply(func(_ context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		phase := "Alone"
		if len(client.Cached(resource("configmaps")).Indexed("name", object.GetName())) > 0 {
			phase = "Together"
		}
		return reconcile.Outcome{Status: probeStatus{Phase: phase}}, nil
	}), func(config *reconcile.Config, controller *reconcile.Controller) {
		config.Namespaces = []string{w.namespace, second}
		byName := map[string]reconcile.IndexFunc{"name": func(object *unstructured.Unstructured) []string { return []string{object.GetName()} }}
		controller.Indices = byName
		controller.Watches = []reconcile.Watch{{
			Resource: resource("configmaps"), MetadataOnly: true, Indices: byName,
			Owners: func(child *unstructured.Unstructured, probes reconcile.Lister) []types.NamespacedName {
				concerned := []types.NamespacedName{}
				for _, one := range probes.Indexed("name", child.GetName()) {
					concerned = append(concerned, types.NamespacedName{Namespace: one.GetNamespace(), Name: one.GetName()})
				}
				return concerned
			},
		}}
	})
	running.start(t)
	w.make(t, w.namespace, "a")
	w.make(t, second, "a")
	w.make(t, w.namespace, "b")
	for name, namespace := range map[string]string{"a": w.namespace, "b": w.namespace} {
		w.phase(t, namespace, name, "Alone")
	}
	configMaps := w.Dynamic.Resource(resource("configmaps")).Namespace(second)
	if _, err := configMaps.Create(t.Context(), object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.phase(t, w.namespace, "a", "Together")
	w.phase(t, second, "a", "Together")
	if err := configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.phase(t, w.namespace, "a", "Alone")
	w.phase(t, second, "a", "Alone")
	w.phase(t, w.namespace, "b", "Alone")
}
