package reconcile

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// barrier is a journal over a cache of ConfigMaps, with a cache and a clock that the test controls.
type barrier struct {
	*journal
	store cache.Indexer
	clock time.Time
}

func configMaps() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func owner() types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: "owner"}
}

func newBarrier(t *testing.T, namespace, selector string) *barrier {
	t.Helper()
	selects, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	b := &barrier{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{ownerIndex: controllerUID}), clock: time.Unix(1000, 0)}
	cached := &view{resource: configMaps(), selector: selects, stores: map[string]cache.Indexer{namespace: b.store}}
	b.journal = newJournal(map[apischema.GroupVersionResource]*view{configMaps(): cached}, func() time.Time { return b.clock })
	return b
}

func (b *barrier) see(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		if err := b.store.Update(object); err != nil {
			t.Fatal(err)
		}
	}
}

func child(name, version string, set map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace("shop")
	object.SetName(name)
	object.SetUID(types.UID("uid-" + name))
	object.SetResourceVersion(version)
	object.SetLabels(set)
	return object
}

func TestBarrierHoldsUntilTheCacheShowsTheWrite(t *testing.T) {
	t.Parallel()
	b := newBarrier(t, metav1.NamespaceAll, "")
	current := pass{key: owner(), uid: "1"}
	b.see(t, child("a", "9", nil))

	b.wrote(current, configMaps(), child("a", "10", nil))
	if _, waiting := b.pending(owner(), "1"); !waiting {
		t.Fatal("the cache is at 9, 10 was written: the next pass must wait")
	}
	b.see(t, child("b", "11", nil))
	if missing, waiting := b.pending(owner(), "1"); waiting {
		t.Errorf("the cache has seen everything up to 11, yet the pass waits for %+v", missing)
	}
}

func TestBarrierHoldsUntilADeletionShows(t *testing.T) {
	t.Parallel()
	b := newBarrier(t, metav1.NamespaceAll, "")
	current := pass{key: owner(), uid: "1"}
	b.see(t, child("a", "9", nil))
	b.deleted(current, configMaps(), child("a", "9", nil))
	if _, waiting := b.pending(owner(), "1"); !waiting {
		t.Fatal("the cache still shows the deleted object: the next pass must wait")
	}

	ending := child("a", "12", nil)
	ending.SetDeletionTimestamp(&metav1.Time{Time: b.clock})
	b.see(t, ending)
	if _, waiting := b.pending(owner(), "1"); waiting {
		t.Error("the cache shows that the object is being deleted, yet the pass waits")
	}
}

func TestBarrierDoesNotWaitForWhatTheCacheWillNeverShow(t *testing.T) {
	t.Parallel()
	secrets := apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	tests := map[string]struct {
		namespace, selector string
		resource            apischema.GroupVersionResource
		uid                 types.UID
	}{
		"a resource that is not watched":                {resource: secrets, uid: "1"},
		"an object the selector leaves out":             {resource: configMaps(), selector: "app=db", uid: "1"},
		"a namespace that is not watched":               {resource: configMaps(), namespace: "elsewhere", uid: "1"},
		"what an earlier object of the same name wrote": {resource: configMaps(), uid: "2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBarrier(t, test.namespace, test.selector)
			b.wrote(pass{key: owner(), uid: "1"}, test.resource, child("a", "10", nil))
			if missing, waiting := b.pending(owner(), test.uid); waiting {
				t.Errorf("the pass waits for %+v", missing)
			}
		})
	}
}

func TestBarrierHasPatienceForHalfAMinute(t *testing.T) {
	t.Parallel()
	b := newBarrier(t, metav1.NamespaceAll, "")
	b.wrote(pass{key: owner(), uid: "1"}, configMaps(), child("a", "10", nil))
	missing, _ := b.pending(owner(), "1")
	b.clock = b.clock.Add(barrierPatience)
	if b.overdue(missing) {
		t.Error("patience ended early")
	}
	b.clock = b.clock.Add(time.Second)
	if !b.overdue(missing) {
		t.Error("patience did not end")
	}
	if _, waiting := b.pending(owner(), "1"); !waiting {
		t.Error("the cache still lags, and the write is not waited for any more: the next pass would see less than the last")
	}
	b.see(t, child("a", "10", nil))
	if missing, waiting := b.pending(owner(), "1"); waiting {
		t.Errorf("the cache has caught up, yet the pass waits for %+v", missing)
	}
}

func TestBarrierRemembersAnObjectOnce(t *testing.T) {
	t.Parallel()
	b := newBarrier(t, metav1.NamespaceAll, "")
	current := pass{key: owner(), uid: "1"}
	for version := range 100 {
		b.wrote(current, configMaps(), child("a", fmt.Sprint(10+version), nil))
	}
	b.wrote(current, configMaps(), child("b", "12", nil))
	if held := len(b.records[owner()].writes); held != 2 {
		t.Errorf("%d writes of two objects are remembered while the cache lags", held)
	}
	b.see(t, child("b", "12", nil))
	if missing, waiting := b.pending(owner(), "1"); !waiting || missing.name != "a" {
		t.Errorf("the last write of a is version 109 and not shown: waiting %v for %+v", waiting, missing)
	}
}

// A member's Pod is created again and again: only what was applied to the last one counts.
func TestTheJournalRemembersAChildOnce(t *testing.T) {
	t.Parallel()
	b := newBarrier(t, metav1.NamespaceAll, "")
	current := pass{key: owner(), uid: "1"}
	pod := func(life int) *unstructured.Unstructured {
		made := child("db-0", "10", nil)
		made.SetUID(types.UID(fmt.Sprint("life-", life)))
		return made
	}
	to := appliedTo{manager: ManagerChildren + "-role", child: nameOf(configMaps(), pod(0))}
	for life := range 100 {
		made := appliedAs(pod(life).GetUID(), "d", "s")
		if last, _ := b.lastApplied(current, to); last == made {
			t.Fatalf("something was applied to a Pod that was made a moment ago, in life %d", life)
		}
		b.remember(current, to, made)
		last, _ := b.lastApplied(current, to)
		same(t, last == made, true)
	}
	same(t, len(b.records[owner()].applied), 1)
	b.deleted(current, configMaps(), pod(99))
	same(t, len(b.records[owner()].applied), 0)
}

func TestViewReadsOneStoreForEachNamespace(t *testing.T) {
	t.Parallel()
	stores := map[string]cache.Indexer{}
	for _, namespace := range []string{"b", "a"} {
		stores[namespace] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{ownerIndex: controllerUID})
		for _, name := range []string{"y", "x"} {
			object := child(name, "1", nil)
			object.SetNamespace(namespace)
			yes := true
			object.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID("owner-of-" + name), Controller: &yes}})
			if err := stores[namespace].Add(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	cached := &view{resource: configMaps(), selector: labels.Everything(), stores: stores}

	same(t, names(cached.listed("")), []string{"a/x", "a/y", "b/x", "b/y"})
	same(t, names(cached.listed("b")), []string{"b/x", "b/y"})
	same(t, names(cached.Owned("owner-of-y")), []string{"a/y", "b/y"})
	if _, found := cached.Get("a", "x"); !found {
		t.Error("a/x is not found")
	}
	if _, found := cached.Get("c", "x"); found {
		t.Error("something was found in a namespace that is not watched")
	}
}

func names(objects []*unstructured.Unstructured) []string {
	found := []string{}
	for _, object := range objects {
		found = append(found, keyOf(object).String())
	}
	return found
}
