package reconcile

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: db-config, namespace: shop, labels: {app.kubernetes.io/instance: db}}
data: {my.cnf: "[mysqld]"}
`

// digesting returns a Client of a pass over holder whose cache of ConfigMaps keeps digests, and the methods of the requests to its API
// server.
func digesting(t *testing.T, holder, live *unstructured.Unstructured) (client *Client, requests *[]string) {
	t.Helper()
	requests = &[]string{}
	kept, err := KeepDigest()(live.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	client = clientOf(t, holder, func(answer http.ResponseWriter, request *http.Request) {
		*requests = append(*requests, request.Method)
		answer.Header().Set("Content-Type", "application/json")
		document, _ := live.MarshalJSON()
		_, _ = answer.Write(document)
	}, kept)
	return client, requests
}

// clientOf returns a Client of a pass over holder, with a cache that holds the given ConfigMaps.
func clientOf(t *testing.T, holder *unstructured.Unstructured, answers http.HandlerFunc, cached ...any) *Client {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	m, err := New(Config{Rest: &rest.Config{Host: server.URL}, Registry: prometheus.NewRegistry()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{ownerIndex: controllerUID})
	for _, item := range cached {
		if err := store.Update(item); err != nil {
			t.Fatal(err)
		}
	}
	caches := map[apischema.GroupVersionResource]*view{configMaps(): {
		resource: configMaps(), selector: labels.Everything(), stores: map[string]cache.Indexer{metav1.NamespaceAll: store},
	}}
	return &Client{
		Reader: &Reader{api: m.api, names: m.names, caches: caches}, journal: newJournal(caches, time.Now),
		pass: pass{key: owner(), uid: "1"}, owner: holder,
	}
}

func TestApplyByDigest(t *testing.T) {
	t.Parallel()
	holder := ownerAt("1", "1")
	desired := parse(t, settings)
	desired.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(holder, holder.GroupVersionKind())})
	edit := func(t *testing.T, live *unstructured.Unstructured) {
		t.Helper()
		put(t, live.Object, "skip-grant-tables", "data", "my.cnf")
	}
	tests := map[string]struct {
		others func(*testing.T, *unstructured.Unstructured)
		want   []string
	}{
		"nothing changed: nothing is sent":             {want: []string{}},
		"a user changed it: the operator reverts that": {others: edit, want: []string{"GET", "PATCH"}},
		"a user added a field that the operator does not own": {others: func(t *testing.T, live *unstructured.Unstructured) {
			t.Helper()
			put(t, live.Object, "x", "data", "other")
		}, want: []string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := applyAs(t, desired, test.others)
			live.SetUID("child")
			live.SetResourceVersion("5")
			client, requests := digesting(t, holder, live)
			if _, err := client.Apply(t.Context(), parse(t, settings)); err != nil {
				t.Fatal(err)
			}
			same(t, *requests, test.want)
		})
	}
}

// TestApplyByDigestLeavesWhatAnotherTook: only the API server shows that the child has another controller by now.
func TestApplyByDigestLeavesWhatAnotherTook(t *testing.T) {
	t.Parallel()
	holder, other := ownerAt("1", "1"), ownerAt("2", "1")
	desired := parse(t, settings)
	desired.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(holder, holder.GroupVersionKind())})
	seen := applyAs(t, desired, func(t *testing.T, live *unstructured.Unstructured) {
		t.Helper()
		put(t, live.Object, "[mysqld]\nport=1", "data", "my.cnf")
	})
	seen.SetUID("child")
	live := seen.DeepCopy()
	live.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other, other.GroupVersionKind())})
	client, requests := digesting(t, holder, seen)
	*seen = *live
	if _, err := client.Apply(t.Context(), parse(t, settings)); !isForeign(err) {
		t.Errorf("got %v, want that the object is foreign", err)
	}
	same(t, *requests, []string{"GET"})
}

// TestIsApplied: IsApplied reports what an apply would do, and changes nothing.
func TestIsApplied(t *testing.T) {
	t.Parallel()
	holder := ownerAt("1", "1")
	desired := parse(t, settings)
	desired.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(holder, holder.GroupVersionKind())})
	mark(desired)
	live := applyAs(t, desired, nil)
	live.SetUID("child")
	live.SetResourceVersion("5")
	other := parse(t, settings)
	put(t, other.Object, "[mysqld]\nport=1", "data", "my.cnf")
	stranger := ownerAt("2", "1")
	for name, test := range map[string]struct {
		owner, desired *unstructured.Unstructured
		lives, want    bool
		requests       []string
	}{
		"as it is: the cache shows it":                   {holder, parse(t, settings), false, true, []string{}},
		"another one: the API server is asked":           {holder, other, false, false, []string{"GET"}},
		"of another owner":                               {stranger, parse(t, settings), false, false, []string{"GET"}},
		"in a pass that does not trust the cache":        {holder, parse(t, settings), true, true, []string{"GET"}},
		"in such a pass, another one than the cache has": {holder, other, true, false, []string{"GET"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, requests := digesting(t, test.owner, live)
			client.pass.live = test.lives
			got, err := client.IsApplied(t.Context(), test.desired)
			if err != nil || got != test.want {
				t.Errorf("it is applied: %t (%v), want %t", got, err, test.want)
			}
			same(t, *requests, test.requests)
		})
	}
}

func TestNothingIsAppliedWhereNothingIs(t *testing.T) {
	t.Parallel()
	server := &creating{}
	if got, err := clientOf(t, ownerAt("1", "1"), server.ServeHTTP).IsApplied(t.Context(), parse(t, settings)); got || err != nil {
		t.Errorf("it is applied: %t (%v)", got, err)
	}
}

// If the API server stores an object in another form than the applied one, the operator applies it once, and not with every pass.
func TestApplyByDigestRemembersWhatIsStored(t *testing.T) {
	t.Parallel()
	holder := ownerAt("1", "1")
	stored := parse(t, settings)
	stored.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(holder, holder.GroupVersionKind())})
	put(t, stored.Object, "changed by an admission plugin", "data", "my.cnf")
	live := applyAs(t, stored, nil)
	live.SetUID("child")
	live.SetResourceVersion("5")
	client, requests := digesting(t, holder, live)
	for range 3 {
		if _, err := client.Apply(t.Context(), parse(t, settings)); err != nil {
			t.Fatal(err)
		}
	}
	same(t, *requests, []string{"GET", "PATCH"})
}

// One tenant's objects do not fill the memory of all: 250 KB of annotations on 1,000 objects, 1 MiB in each of 250 ConfigMaps with the
// operator's labels.
func TestCachesStaySmallWhateverTenantsWrite(t *testing.T) { //nolint:paralleltest // it measures memory
	note, data := strings.Repeat("n", 250_000), strings.Repeat("d", 1<<20)
	keepDigest := KeepDigest()
	kept := []any{}
	before := heap()
	for range 1000 {
		object := ownerAt("1", "1")
		object.SetAnnotations(map[string]string{"evil.example.com/note": strings.Clone(note), "kubectl.kubernetes.io/last-applied-configuration": strings.Clone(note)})
		trimmed, err := TrimMetadata(object)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, trimmed)
	}
	forged := applyAs(t, parse(t, settings), nil)
	for range 250 {
		for _, config := range []*unstructured.Unstructured{child("a", "1", nil), forged.DeepCopy()} {
			config.Object["data"] = map[string]any{"my.cnf": strings.Clone(data)}
			digested, err := keepDigest(config)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, digested)
		}
	}
	grown := (heap() - before) >> 10
	t.Logf("%d objects with 1 GiB of content take %d KiB", len(kept), grown)
	if grown > 8<<10 {
		t.Errorf("%d objects take %d KiB, want less than 8 MiB", len(kept), grown)
	}
	runtime.KeepAlive(kept)
}

func heap() int64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

func TestKeepDigestKeepsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	live := applyAs(t, parse(t, set), nil)
	live.SetUID("u")
	live.SetResourceVersion("7")
	keepDigest := KeepDigest("spec.replicas", "status.replicas")
	kept, err := keepDigest(live)
	if err != nil {
		t.Fatal(err)
	}
	again, err := keepDigest(kept)
	if err != nil {
		t.Fatal(err)
	}
	object, _ := again.(*unstructured.Unstructured)
	same(t, object.Object["spec"], any(map[string]any{"replicas": int64(2)}))
	same(t, object.GetUID(), live.GetUID())
	same(t, object.GetLabels(), live.GetLabels())
	same(t, object.GetOwnerReferences(), live.GetOwnerReferences())
	same(t, isAppliedByOperator(object), true)
	object.DeepCopy() // panics if the content is not JSON
}
