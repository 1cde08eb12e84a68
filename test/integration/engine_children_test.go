package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// children is all that makes an apply hard to skip: much is defaulted by the API server, even within an atomic field (fieldRef).
const children = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, namespace: NAMESPACE, labels: {test: engine}}
spec:
  replicas: 0
  serviceName: NAME
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      nodeSelector: {disk: ssd}
      securityContext: {runAsNonRoot: true}
      containers:
      - name: main
        image: mysql:latest
        env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: COPY, value: $(POD)}
        ports: [{name: mysql, containerPort: 3306}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}}
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
        volumeMounts: [{name: data, mountPath: /data}, {name: scratch, mountPath: /tmp}]
      volumes:
      - {name: scratch, emptyDir: {sizeLimit: 1024Ki}}
      - {name: secret, secret: {secretName: none, optional: true}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NAMESPACE, labels: {test: engine}}
spec: {selector: {app: NAME}, ports: [{name: mysql, port: 3306}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NAMESPACE, labels: {test: engine}}
data: {my.cnf: "[mysqld]\n", empty: ""}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: NAMESPACE, labels: {test: engine}}
data: {key: c2VjcmV0}
`

// family applies the children of every Probe.
func family(t *testing.T) func(*reconcile.Reader) reconcile.Reconciler {
	t.Helper()
	return simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		named := strings.NewReplacer("NAMESPACE", owner.GetNamespace(), "NAME", owner.GetName()).Replace(children)
		for document := range strings.SplitSeq(named, "---") {
			if _, err := client.Apply(ctx, object(t, document)); err != nil {
				return reconcile.Outcome{}, err
			}
		}
		outcome := done(owner)
		outcome.Events = []reconcile.Event{{Type: reconcile.Normal, Reason: "Settled", Note: "all children are as desired"}}
		return outcome, nil
	})
}

func TestEngineSteadyStateMakesNoWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	running := w.operator(t, family(t), nil)
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	apiserver.Eventually(t, func(ctx context.Context) string {
		told, err := w.told(ctx)
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]int{"a Settled": 1}, told)
	})
	running.requests.take()

	// A change of someone else's concern starts passes, which find nothing to do.
	for day := range 3 {
		running.passes(t, "done", 1, func() {
			w.patch(t.Context(), t, resource("configmaps"), "a", fmt.Sprintf(`{"metadata":{"annotations":{"example.com/seen":"day %d"}}}`, day))
		})
	}
	if writes := running.requests.take(); len(writes) > 0 {
		t.Errorf("in a steady state these writes were made: %v", writes)
	}
}

func TestEngineStartsAnewWithoutWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	before := w.operator(t, family(t), nil)
	before.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	before.finish(t)

	after := w.operator(t, family(t), nil)
	after.passes(t, "done", 1, func() { after.start(t) })
	// Defaults within what is owned as a whole, such as the StatefulSet's claims, make no write. In the status the definition defaults a
	// field: only the API server can say that an apply changes nothing, and is asked once in a process's life. The event is told once in a
	// process's life, too.
	want := []string{
		"PATCH /apis/engine.example.com/v1/namespaces/" + w.namespace + "/probes/a/status",
		"POST /apis/events.k8s.io/v1/namespaces/" + w.namespace + "/events",
	}
	if diff := cmp.Diff(want, after.requests.take()); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
}

func TestEngineHealsDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	w.operator(t, family(t), nil).start(t)
	w.phase(t, w.namespace, "a", "Ready")

	w.patch(t.Context(), t, resource("statefulsets"), "a", `{"spec":{"replicas":3},"metadata":{"labels":{"test":null}}}`)
	w.patch(t.Context(), t, resource("configmaps"), "a", `{"data":{"my.cnf":"broken"}}`)
	if err := w.Dynamic.Resource(resource("services")).Namespace(w.namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func(ctx context.Context) string {
		set, err := w.get(ctx, resource("statefulsets"), "a")
		if err != nil {
			return err.Error()
		}
		replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		if replicas != 0 || set.GetLabels()["test"] != "engine" {
			return fmt.Sprintf("the StatefulSet has %d replicas and labels %v", replicas, set.GetLabels())
		}
		settings, err := w.get(ctx, resource("configmaps"), "a")
		if err != nil {
			return err.Error()
		}
		if text, _, _ := unstructured.NestedString(settings.Object, "data", "my.cnf"); text != "[mysqld]\n" {
			return fmt.Sprintf("the ConfigMap says %q", text)
		}
		if _, err := w.get(ctx, resource("services"), "a"); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestEngineRemovesWhatIsNotDesiredAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	var second atomic.Bool
	w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		settings := map[string]any{"kept": "yes", "dropped": "soon"}
		if second.Load() {
			delete(settings, "dropped")
		}
		made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": settings}}
		made.SetNamespace(owner.GetNamespace())
		made.SetName("a")
		made.SetLabels(map[string]string{"test": "engine"})
		_, err := client.Apply(ctx, made)
		return done(owner), err
	}), nil).start(t)
	w.phase(t, w.namespace, "a", "Ready")
	w.patch(t.Context(), t, resource("configmaps"), "a", `{"data":{"theirs":"stays"}}`)

	second.Store(true)
	w.touch(t.Context(), t, "a")
	apiserver.Eventually(t, func(ctx context.Context) string {
		found, err := w.get(ctx, resource("configmaps"), "a")
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]any{"kept": "yes", "theirs": "stays"}, found.Object["data"])
	})
}

func TestEngineLeavesForeignObjectsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	foreign := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {theirs: precious}}")
	before, err := w.Dynamic.Resource(resource("configmaps")).Namespace(w.namespace).Create(t.Context(), foreign, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.make(t, w.namespace, "a")
	w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		desired := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {test: engine}}, data: {ours: new}}")
		desired.SetNamespace(owner.GetNamespace())
		_, err := client.Apply(ctx, desired)
		var refused *reconcile.ForeignError
		if !errors.As(err, &refused) {
			return reconcile.Outcome{}, fmt.Errorf("apply over a foreign object: %w", err)
		}
		return reconcile.Outcome{Status: probeStatus{Phase: refused.Error()}}, nil
	}), nil).start(t)

	w.phase(t, w.namespace, "a", "configmaps "+w.namespace+"/a exists already and was not made by this operator: delete or rename it, or choose another name")
	after, err := w.get(t.Context(), resource("configmaps"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, after.Object); diff != "" {
		t.Errorf("the foreign object was changed (-before +after):\n%s", diff)
	}
}

func TestEngineMakesNewChildrenWithOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	running := w.operator(t, family(t), nil)
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	if path := "/api/v1/namespaces/" + w.namespace + "/configmaps/a"; running.requests.hasRead(path) {
		t.Errorf("the operator has read %s before it made it", path)
	}
	want := "PATCH /api/v1/namespaces/" + w.namespace + "/configmaps/a"
	if writes := running.requests.take(); count(writes, want) != 1 {
		t.Errorf("want %q once in %v", want, writes)
	}
}

// Something that the caches do not show is under a child's name: the operator tries to make the child once, not in every pass.
func TestEngineTriesATakenNameOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	foreign := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {theirs: precious}}")
	configs := w.Dynamic.Resource(resource("configmaps")).Namespace(w.namespace)
	if _, err := configs.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.make(t, w.namespace, "a")
	running := w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		desired := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {test: engine}}, data: {ours: new}}")
		desired.SetNamespace(owner.GetNamespace())
		_, err := client.Apply(ctx, desired)
		if _, isForeign := errors.AsType[*reconcile.ForeignError](err); isForeign {
			return reconcile.Outcome{Status: probeStatus{Phase: "Foreign"}}, nil
		}
		return done(owner), err
	}), nil)
	running.start(t)
	w.phase(t, w.namespace, "a", "Foreign")
	for range 3 {
		running.passes(t, "done", 1, func() { w.touch(t.Context(), t, "a") })
	}
	want := "PATCH /api/v1/namespaces/" + w.namespace + "/configmaps/a"
	if writes := running.requests.take(); count(writes, want) != 1 {
		t.Errorf("want %q once in %v", want, writes)
	}

	if err := configs.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.touch(t.Context(), t, "a")
	w.phase(t, w.namespace, "a", "Ready")
}

func count(all []string, wanted string) (found int) {
	for _, one := range all {
		if one == wanted {
			found++
		}
	}
	return found
}

func TestEngineSetsFieldsOnWhatItDoesNotOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	theirs := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, labels: {test: engine}}, data: {theirs: precious}}")
	if _, err := w.Dynamic.Resource(resource("configmaps")).Namespace(w.namespace).Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.make(t, w.namespace, "a")
	running := w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		label := func(name string) (reconcile.Change, error) {
			fields := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {role: primary}}}")
			fields.SetNamespace(owner.GetNamespace())
			fields.SetName(name)
			return client.ApplyFields(ctx, "mysql-operator-role", fields)
		}
		if _, err := label("absent"); !apierrors.IsNotFound(err) {
			return reconcile.Outcome{}, fmt.Errorf("label what does not exist: %w", err)
		}
		change, err := label("theirs")
		if err != nil {
			return reconcile.Outcome{}, err
		}
		outcome := done(owner)
		outcome.Events = []reconcile.Event{{Reason: "Labelled", Note: string(change)}}
		return outcome, nil
	}), nil)
	running.start(t)
	w.phase(t, w.namespace, "a", "Ready")
	found, err := w.get(t.Context(), resource("configmaps"), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	if found.GetLabels()["role"] != "primary" || len(found.GetOwnerReferences()) != 0 {
		t.Errorf("labels %v and owners %v: want the role and no owner", found.GetLabels(), found.GetOwnerReferences())
	}
	running.requests.take()
	w.touch(t.Context(), t, "a")
	w.phase(t, w.namespace, "a", "Ready")
	for _, write := range running.requests.take() {
		if strings.Contains(write, "configmaps/theirs") {
			t.Errorf("labelled again, though nothing changed: %s", write)
		}
	}
}

func TestEngineDeletesOnlyWhatItRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		made := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: passing, labels: {test: engine}}}")
		made.SetNamespace(owner.GetNamespace())
		created, err := client.Create(ctx, made)
		if err != nil {
			return reconcile.Outcome{}, err
		}
		if _, err := client.Create(ctx, made); !apierrors.IsAlreadyExists(err) {
			return reconcile.Outcome{}, fmt.Errorf("create what exists: %w", err)
		}
		changed, err := client.Patch(ctx, resource("configmaps"), created, map[string]any{"data": map[string]any{"a": "b"}})
		if err != nil {
			return reconcile.Outcome{}, err
		}
		if err := client.Delete(ctx, resource("configmaps"), created); !apierrors.IsConflict(err) {
			return reconcile.Outcome{}, fmt.Errorf("delete what was changed since it was read: %w", err)
		}
		if err := client.Delete(ctx, resource("configmaps"), changed); err != nil {
			return reconcile.Outcome{}, err
		}
		return done(owner), client.Delete(ctx, resource("configmaps"), changed)
	}), nil).start(t)
	w.phase(t, w.namespace, "a", "Ready")
}

func TestEngineMakesWhatBelongsToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		made := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: lasting, labels: {test: engine}}}")
		made.SetNamespace(owner.GetNamespace())
		if _, err := client.CreateUnowned(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Outcome{}, err
		}
		return done(owner), nil
	}), nil).start(t)
	w.phase(t, w.namespace, "a", "Ready")

	found, err := w.Dynamic.Resource(resource("configmaps")).Namespace(w.namespace).Get(t.Context(), "lasting", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owners := found.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("garbage collection would take it with its owner: %v", owners)
	}
}

func TestEngineReadsItsOwnWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Shared(t))
	w.make(t, w.namespace, "a")
	shut := make(chan struct{})
	var running *operator
	running = w.operator(t, simply(func(ctx context.Context, client *reconcile.Client, owner *unstructured.Unstructured) (reconcile.Outcome, error) {
		if len(client.Cached(resource("configmaps")).Owned(owner.GetUID())) > 0 {
			return done(owner), nil
		}
		running.requests.gate.Store(&shut)
		// A decision that must be made once, from a cache. Names of their own show how often it was made.
		made := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {test: engine}}}")
		made.SetNamespace(owner.GetNamespace())
		made.SetName(fmt.Sprintf("made-at-%d", owner.GetGeneration()))
		_, err := client.Create(ctx, made)
		return reconcile.Outcome{}, err
	}), nil)
	running.requests.held = "/configmaps"
	running.passes(t, "done", 1, func() { running.start(t) })

	running.passes(t, "cache_behind", 2, func() { w.touch(t.Context(), t, "a") })
	close(shut)
	w.phase(t, w.namespace, "a", "Ready")
	made, err := w.Dynamic.Resource(resource("configmaps")).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "test=engine"})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Items) != 1 {
		t.Errorf("the decision was made %d times, want once", len(made.Items))
	}
}
