package reconcile

import (
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/schema"
)

func podsResource() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// podMetadata is the API server's answer for a Pod to a request for metadata.
func podMetadata(namespace, name, version string) *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{}
	pod.APIVersion, pod.Kind = metadataVersion, metadataKind
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion = namespace, name, types.UID("uid-of-"+namespace+"-"+name), version
	pod.Labels = map[string]string{"app": "web"}
	pod.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", schema.MySQLGroup + "/kept": "yes"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}, {Manager: ManagerChildren, Operation: metav1.ManagedFieldsOperationApply}}
	return pod
}

func TestObjectOfMetadata(t *testing.T) {
	t.Parallel()
	yes := true
	pod := podMetadata("shop", "a-0", "7")
	pod.TypeMeta = metav1.TypeMeta{} // as in a list
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "a", UID: "x", Controller: &yes}}
	object, ok := objectOf(pod)
	if !ok {
		t.Fatal("metadata was not recognised")
	}
	same(t, object.GroupVersionKind(), apischema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"})
	same(t, keyOf(object), types.NamespacedName{Namespace: "shop", Name: "a-0"})
	same(t, object.GetResourceVersion(), "7")
	same(t, object.GetLabels(), map[string]string{"app": "web"})
	same(t, object.GetOwnerReferences(), pod.OwnerReferences)
	if _, err := object.MarshalJSON(); err != nil {
		t.Errorf("it is no JSON object: %v", err)
	}
	if _, ok := objectOf("tombstone"); ok {
		t.Error("a text was taken for an object")
	}
}

func TestTrimMetadataOfMetadata(t *testing.T) {
	t.Parallel()
	pod := podMetadata("shop", "a-0", "7")
	for range 2 { // a transform may be applied twice
		if _, err := TrimMetadata(pod); err != nil {
			t.Fatal(err)
		}
		same(t, pod.Annotations, map[string]string{schema.MySQLGroup + "/kept": "yes"})
		same(t, len(pod.ManagedFields), 0)
		same(t, pod.Labels, map[string]string{"app": "web"})
	}
}

func TestKeepIdentity(t *testing.T) {
	t.Parallel()
	ending := metav1.Now().Rfc3339Copy()
	pod := podMetadata("shop", "a-0", "7")
	pod.DeletionTimestamp = &ending
	whole, _ := objectOf(pod)
	whole.Object["spec"] = map[string]any{"nodeName": "n"}
	for story, item := range map[string]any{"of metadata": pod, "of a whole object": whole} {
		kept := item
		for range 2 {
			var err error
			if kept, err = KeepIdentity(kept); err != nil {
				t.Fatal(err)
			}
		}
		object, _ := objectOf(kept)
		want := map[string]any{"namespace": "shop", "name": "a-0", "uid": "uid-of-shop-a-0", "resourceVersion": "7", "deletionTimestamp": ending.UTC().Format("2006-01-02T15:04:05Z")}
		t.Log(story)
		same(t, object.Object, map[string]any{"apiVersion": metadataVersion, "kind": metadataKind, "metadata": want})
	}
	if got, err := KeepIdentity("not an object"); err != nil || got != "not an object" {
		t.Errorf("another type was not returned unchanged: %v, %v", got, err)
	}
}

func TestWhatIsNews(t *testing.T) {
	t.Parallel()
	pod := func(version string, change func(*metav1.PartialObjectMetadata)) any {
		made := podMetadata("shop", "a-0", version)
		if change != nil {
			change(made)
		}
		return made
	}
	whole := func(version string) any { return child("a", version, nil) }
	for story, test := range map[string]struct {
		before, after any
		want          bool
	}{
		"a watch repeats an object":                      {whole("1"), whole("1"), false},
		"an object has changed":                          {whole("1"), whole("2"), true},
		"a watch repeats metadata":                       {pod("1", nil), pod("1", nil), false},
		"something else than metadata has changed":       {pod("1", nil), pod("2", nil), false},
		"a label has changed":                            {pod("1", nil), pod("2", func(p *metav1.PartialObjectMetadata) { p.Labels["app"] = "db" }), true},
		"it is being deleted":                            {pod("1", nil), pod("2", func(p *metav1.PartialObjectMetadata) { p.DeletionTimestamp = &metav1.Time{} }), true},
		"another has its name":                           {pod("1", nil), pod("2", func(p *metav1.PartialObjectMetadata) { p.UID = "other" }), true},
		"what is no object":                              {"one", "two", false},
		"metadata is watched now, and was not before it": {whole("1"), pod("2", nil), true},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if got := isNews(test.before, test.after); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// A cache of metadata cannot show whether an apply would change anything: the operator asks the API server.
func TestApplyOverMetadataReadsLive(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	live := newObject("v1", "ConfigMap", types.NamespacedName{Namespace: "shop", Name: "a"})
	live.Object["data"] = map[string]any{"key": "value"}
	s.has(live)
	item := podMetadata("shop", "a", "7")
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{ownerIndex: controllerUID})
	if err := store.Add(item); err != nil {
		t.Fatal(err)
	}
	cached := &view{resource: configMaps(), metadataOnly: true, stores: map[string]cache.Indexer{metav1.NamespaceAll: store}}
	s.reader.caches[configMaps()] = cached
	for story, test := range map[string]struct {
		metadataOnly bool
		want         string
	}{
		"a cache of metadata":         {metadataOnly: true, want: "ConfigMap"},
		"a cache that would do, else": {metadataOnly: false, want: metadataKind},
	} {
		cached.metadataOnly = test.metadataOnly
		found, err := s.client(pass{}, nil).current(t.Context(), configMaps(), live)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(story)
		same(t, found.GetKind(), test.want)
	}
}

func TestMetadataWatchesAreSharedWithTheirLike(t *testing.T) {
	t.Parallel()
	watches := newInformers(nil, nil, nil, logr.Discard())
	for _, what := range []Watch{{Resource: podsResource()}, {Resource: podsResource(), MetadataOnly: true}, {Resource: podsResource(), MetadataOnly: true}} {
		if _, err := watches.watch("Probe", what, cache.ResourceEventHandlerFuncs{}); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{}
	for _, member := range watches.ordered() {
		names = append(names, member.key.String())
	}
	same(t, names, []string{"metadata of pods.v1 in all namespaces", "pods.v1 in all namespaces"})
}

// keysOfItems returns the objects' namespaces and names.
func keysOfItems(found []*unstructured.Unstructured) []string {
	keys := []string{}
	for _, object := range found {
		keys = append(keys, keyOf(object).String())
	}
	return keys
}
