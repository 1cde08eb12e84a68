package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// simply makes a Reconciler of a function.
func simply(pass scripted) func(*reconcile.Reader) reconcile.Reconciler {
	return func(*reconcile.Reader) reconcile.Reconciler { return pass }
}

func TestEngineWritesTheStatusOfWhatItSaw(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	var meanwhile sync.Once
	running := w.operator(t, simply(func(ctx context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		// The user changes the spec while the first pass is under way.
		meanwhile.Do(func() { w.touch(ctx, t, object.GetName()) })
		outcome := done(object)
		conditions := []metav1.Condition{}
		reconcile.SetCondition(&conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "Fine", LastTransitionTime: metav1.NewTime(time.Unix(100, 0))})
		reconcile.SetCondition(&conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.NewTime(time.Unix(100, 0))})
		slices.Reverse(conditions)
		outcome.Status = probeStatus{Phase: "Ready", ObservedGeneration: object.GetGeneration(), Conditions: conditions}
		return outcome, nil
	}), nil)
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	if got := running.measured(t, "reconcile_total", map[string]string{"result": "conflict"}); got < 1 {
		t.Error("the status of a spec that was changed meanwhile was not refused")
	}

	running.passes(t, "done", 1, func() {
		w.patch(t.Context(), t, probe().GVR(), "a", `{"metadata":{"annotations":{"example.com/seen":"yes"}}}`)
	})
	written := 0
	for _, write := range running.requests.take() {
		if strings.HasSuffix(write, "/probes/a/status") {
			written++
		}
	}
	if refused := int(running.measured(t, "api_requests_total", map[string]string{"code": "409"})); written-refused != 1 {
		t.Errorf("the status was written %d times, want once", written-refused)
	}
}

func TestEngineContainsPanicsToTheirObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	var broken atomic.Bool
	broken.Store(true)
	running := w.operator(t, simply(func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		if object.GetName() == "bad" && broken.Load() {
			panic("a bug in the kind")
		}
		return done(object), nil
	}), nil)
	running.start(t)
	w.make(t, w.namespace, "bad")
	w.make(t, w.namespace, "good")
	w.phase(t, w.namespace, "good", "Ready")
	apiserver.Eventually(t, func(ctx context.Context) string {
		if got := running.measured(t, "reconcile_panics_total", map[string]string{"kind": "Probe"}); got < 3 {
			return fmt.Sprintf("%v panics, want it tried again", got)
		}
		told, err := w.told(ctx)
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]int{"bad Panicked": 1}, told)
	})
	broken.Store(false)
	w.phase(t, w.namespace, "bad", "Ready")
}

func TestEngineDoesNotLetASlowObjectDelayOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	slow := make(chan struct{})
	running := w.operator(t, simply(func(ctx context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		if strings.HasPrefix(object.GetName(), "slow") {
			select {
			case <-slow:
			case <-ctx.Done():
			}
		}
		return done(object), ctx.Err()
	}), func(config *reconcile.Config, _ *reconcile.Controller) { config.Workers = 1 })
	running.start(t)
	w.make(t, w.namespace, "slow-1")
	w.make(t, w.namespace, "slow-2")
	w.make(t, w.namespace, "quick")
	w.phase(t, w.namespace, "quick", "Ready")
	close(slow)
	w.phase(t, w.namespace, "slow-1", "Ready")
	w.phase(t, w.namespace, "slow-2", "Ready")
}

func TestEngineBoundsAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	var passes atomic.Int32
	running := w.operator(t, simply(func(ctx context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		if passes.Add(1) > 2 {
			return done(object), nil
		}
		<-ctx.Done()
		return reconcile.Outcome{Status: probeStatus{Phase: "Waiting"}}, ctx.Err()
	}), func(config *reconcile.Config, _ *reconcile.Controller) { config.PassTimeout = 100 * time.Millisecond })
	running.start(t)
	w.make(t, w.namespace, "a")
	w.phase(t, w.namespace, "a", "Ready")
	if got := running.measured(t, "reconcile_total", map[string]string{"result": "failed"}); got < 1 {
		t.Error("no pass failed, though the first two never ended by themselves")
	}
}

func TestEngineNeverRunsTwoPassesOverOneObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	var active, overlaps, passes atomic.Int32
	running := w.operator(t, simply(func(ctx context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		if active.Add(1) > 1 {
			overlaps.Add(1)
		}
		defer active.Add(-1)
		// Other changes arrive while the pass is under way.
		for range 3 {
			if passes.Load() < 20 {
				w.touch(ctx, t, object.GetName())
			}
		}
		passes.Add(1)
		return reconcile.Outcome{RequeueAfter: time.Millisecond}, nil
	}), nil)
	running.start(t)
	w.make(t, w.namespace, "a")
	apiserver.Eventually(t, func(context.Context) string {
		if passes.Load() < 20 {
			return fmt.Sprintf("%d passes, want 20", passes.Load())
		}
		return ""
	})
	if overlaps.Load() > 0 {
		t.Errorf("%d passes over the object overlapped", overlaps.Load())
	}
}

// remembering is a Reconciler that is told which objects are gone.
type remembering struct {
	scripted
	mu   sync.Mutex
	gone map[types.NamespacedName]bool
}

// Forget implements reconcile.Forgetter.
func (r *remembering) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone[key] = true
}

func (r *remembering) forgotten() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.gone))
}

func TestEngineForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	memory := &remembering{gone: map[types.NamespacedName]bool{}, scripted: func(_ context.Context, _ *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
		return done(object), nil
	}}
	running := w.operator(t, func(*reconcile.Reader) reconcile.Reconciler { return memory }, nil)
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	apiserver.Eventually(t, func(context.Context) string {
		if got := running.measured(t, "objects", map[string]string{"kind": "Probe", "state": "Ready"}); got != 1 {
			return fmt.Sprintf("the metrics count %v Ready Probes, want 1", got)
		}
		return ""
	})
	if err := w.Dynamic.Resource(probe().GVR()).Namespace(w.namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func(context.Context) string {
		return cmp.Diff([]types.NamespacedName{{Namespace: w.namespace, Name: "a"}}, memory.forgotten())
	})
}

func TestEngineKeepsQuietInANamespaceThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	// A finalizer keeps the namespace, and the Probe, on its way out.
	w.patch(t.Context(), t, probe().GVR(), "a", `{"metadata":{"finalizers":["engine.example.com/test"]}}`)
	t.Cleanup(func() {
		_, _ = w.Dynamic.Resource(probe().GVR()).Namespace(w.namespace).Patch(context.WithoutCancel(t.Context()), "a", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	if err := w.Dynamic.Resource(resource("namespaces")).Delete(t.Context(), w.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var quiet atomic.Int32
	w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		desired := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, labels: {test: engine}}}")
		desired.SetNamespace(owner.GetNamespace())
		_, err := client.Apply(ctx, desired)
		if reconcile.IsNamespaceTerminating(err) {
			quiet.Add(1)
		}
		return reconcile.Outcome{}, err
	}), nil).start(t)
	apiserver.Eventually(t, func(context.Context) string {
		if quiet.Load() == 0 {
			return "creating in a namespace that ends was not recognised as such"
		}
		return ""
	})
}
