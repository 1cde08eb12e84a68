package reconcile

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
)

// seeker returns a kind whose objects look for Pods by name.
func seeker(name string) Controller {
	return Controller{
		Kind:    schema.Kind{Group: "test.example.com", Version: "v1", Kind: name, Plural: name + "s"},
		Indices: map[string]IndexFunc{"wanted": wantedName},
		Watches: []Watch{{
			Resource: podsResource(), MetadataOnly: true, Transform: KeepIdentity,
			Indices: map[string]IndexFunc{"name": func(pod *unstructured.Unstructured) []string { return []string{pod.GetName()} }},
			Owners:  seekersOf,
		}},
	}
}

func wantedName(object *unstructured.Unstructured) []string {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "name")
	return []string{name}
}

func seekersOf(pod *unstructured.Unstructured, seekers Lister) []types.NamespacedName {
	concerned := []types.NamespacedName{}
	for _, object := range seekers.Indexed("wanted", pod.GetName()) {
		concerned = append(concerned, keyOf(object))
	}
	return concerned
}

// hall is a running kind whose caches a test fills.
type hall struct {
	*controller
	pods    cache.Indexer
	handler cache.ResourceEventHandler
	queue   queue
}

func newHall(tb testing.TB, seekers int) *hall {
	tb.Helper()
	spec := seeker("seeker")
	c, err := newController(spec, newInformers(nil, nil, nil, logr.Discard()), logr.Discard())
	if err != nil {
		tb.Fatal(err)
	}
	h := &hall{controller: c, pods: c.caches[podsResource()].stores[metav1.NamespaceAll]}
	h.handler = c.handler(func(pod *unstructured.Unstructured) []types.NamespacedName { return seekersOf(pod, c.own) })
	h.queue = c.open(nil, nil, func(types.NamespacedName) {})
	tb.Cleanup(c.close)
	for i := range seekers {
		object := newObject("test.example.com/v1", "seeker", types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("seeker-%d", i)})
		object.Object["spec"] = map[string]any{"name": fmt.Sprintf("friend-%d", i)}
		if err := c.own.stores[metav1.NamespaceAll].Add(object); err != nil {
			tb.Fatal(err)
		}
	}
	return h
}

// fill adds Pods that no object looks for.
func (h *hall) fill(tb testing.TB, pods int) {
	tb.Helper()
	for i := range pods {
		if err := h.pods.Add(identity(tb, podMetadata(fmt.Sprintf("namespace-%d", i%100), fmt.Sprintf("pod-%d", i), "1"))); err != nil {
			tb.Fatal(err)
		}
	}
}

func identity(tb testing.TB, pod *metav1.PartialObjectMetadata) any {
	tb.Helper()
	kept, err := KeepIdentity(pod)
	if err != nil {
		tb.Fatal(err)
	}
	return kept
}

// event is one Pod's life in a watch: it is created, something changes that the cache does not keep, and it is deleted. After its creation
// and its deletion, a pass reads the cache.
func (h *hall) event(tb testing.TB, name string, concerns int) {
	tb.Helper()
	came, changed := identity(tb, podMetadata("shop", name, "5")), identity(tb, podMetadata("shop", name, "6"))
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	must(h.pods.Add(came))
	h.handler.OnAdd(came, false)
	h.pass(tb, name, concerns, 1)
	must(h.pods.Update(changed))
	h.handler.OnUpdate(came, changed)
	if h.queue.Len() != 0 {
		tb.Fatal("a change outside the watched fields queued an object")
	}
	must(h.pods.Delete(changed))
	h.handler.OnDelete(changed)
	h.pass(tb, name, concerns, 0)
}

func (h *hall) pass(tb testing.TB, name string, concerns, pods int) {
	tb.Helper()
	if queued := h.queue.Len(); queued != concerns {
		tb.Fatalf("%d objects are queued, want %d", queued, concerns)
	}
	for range concerns {
		key, _ := h.queue.Get()
		if found := len(h.caches[podsResource()].Indexed("name", name)); found != pods {
			tb.Fatalf("%d Pods are found, want %d", found, pods)
		}
		h.queue.Done(key)
	}
}

// TestAnEventCostsNoMoreAmongManyObjects measures allocations, which are the same on every machine: listing a cache allocates memory for
// every object in it.
func TestAnEventCostsNoMoreAmongManyObjects(t *testing.T) { //nolint:paralleltest // it counts what all allocate
	cost := func(pods, seekers int) uint64 {
		h := newHall(t, seekers)
		h.fill(t, pods)
		const rounds = 200
		h.event(t, "friend-7", 1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			h.event(t, "friend-7", 1)
			h.event(t, "stranger", 0)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / rounds
	}
	few, many := cost(100, 10), cost(20000, 2000)
	t.Logf("%d bytes an event among 100 Pods and 10 that look for one, %d among 20000 and 2000", few, many)
	if many > few+few/2 {
		t.Errorf("an event allocates %d bytes among 20000 Pods and %d among 100: it costs more the more there are", many, few)
	}
}

// BenchmarkEvent is the life of a Pod that an object looks for, with its two passes. The cost grows neither with the number of Pods nor
// with the number of objects that look for others.
func BenchmarkEvent(b *testing.B) {
	for _, pods := range []int{1000, 10000, 100000} {
		for _, seekers := range []int{10, 1000} {
			b.Run(fmt.Sprintf("pods=%d/objects=%d", pods, seekers), func(b *testing.B) {
				h := newHall(b, seekers)
				h.fill(b, pods)
				b.ReportAllocs()
				for b.Loop() {
					h.event(b, "friend-7", 1)
				}
			})
		}
	}
}

// BenchmarkMetadataCache reports how much memory a Pod takes in a cache of identities, including its two indices.
func BenchmarkMetadataCache(b *testing.B) {
	const pods = 100000
	for b.Loop() {
		h := newHall(b, 0)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		h.fill(b, pods)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/pods, "B/object")
		runtime.KeepAlive(h)
	}
}

func TestIndexed(t *testing.T) {
	t.Parallel()
	h := newHall(t, 3)
	for _, namespace := range []string{"shop", "bank"} {
		if err := h.pods.Add(podMetadata(namespace, "joe", "1")); err != nil {
			t.Fatal(err)
		}
	}
	same(t, keysOfItems(h.caches[podsResource()].Indexed("name", "joe")), []string{"bank/joe", "shop/joe"})
	same(t, keysOfItems(h.caches[podsResource()].Indexed("name", "jane")), []string{})
	same(t, keysOfItems(h.own.Indexed("wanted", "friend-1")), []string{"shop/seeker-1"})
	err := recoverPanic(func() error {
		h.own.Indexed("unheard-of", "x")
		return nil
	})
	if err == nil {
		t.Error("an index that no kind declared was answered")
	}
}

// Kinds that share a watch have separate indices, even under the same name.
func TestIndicesOfKindsThatShareAWatch(t *testing.T) {
	t.Parallel()
	watches := newInformers(nil, nil, nil, logr.Discard())
	watch := func(kind string, keys IndexFunc) *view {
		what := Watch{Resource: podsResource(), MetadataOnly: true, Indices: map[string]IndexFunc{"it": keys}}
		cached, err := watches.watch(kind, what, cache.ResourceEventHandlerFuncs{})
		if err != nil {
			t.Fatal(err)
		}
		return cached
	}
	byName := watch("A", func(pod *unstructured.Unstructured) []string { return []string{pod.GetName()} })
	byLabel := watch("B", func(pod *unstructured.Unstructured) []string { return []string{pod.GetLabels()["app"]} })
	broken := watch("C", func(*unstructured.Unstructured) []string { panic("a bug in the kind") })
	if len(watches.members) != 1 {
		t.Fatalf("%d watches, want one for all", len(watches.members))
	}
	if err := byName.stores[metav1.NamespaceAll].Add(podMetadata("shop", "joe", "1")); err != nil {
		t.Fatal(err)
	}
	same(t, len(byName.Indexed("it", "joe")), 1)
	same(t, len(byName.Indexed("it", "web")), 0)
	same(t, len(byLabel.Indexed("it", "web")), 1)
	same(t, len(broken.Indexed("it", "joe")), 0)
}

func TestWhereAnOperatorWorks(t *testing.T) {
	t.Parallel()
	everywhere, somewhere := &Reader{}, &Reader{namespaces: []string{"bank", "shop"}}
	if !everywhere.WorksIn("") || !everywhere.WorksIn("shop") {
		t.Error("an operator of all namespaces works in all and each")
	}
	if somewhere.WorksIn("") || somewhere.WorksIn("home") || !somewhere.WorksIn("shop") {
		t.Error("an operator of two namespaces works in these, not in all nor in others")
	}
}
