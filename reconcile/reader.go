package reconcile

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

// listPage is how many objects one request of a live List asks for. It is small enough to keep memory use low in the operator and the API
// server.
const listPage = 250

// Reader is how a Reconciler reads the API server and the caches. It lasts for a term.
type Reader struct {
	api   dynamic.Interface
	names resourceNames
	// namespaces are those that the operator works in; empty means all.
	namespaces []string
	caches     map[apischema.GroupVersionResource]*view
	server     *serverClock
}

// NewReader returns a Reader without caches, for a program that only reads. Any other request is an error before it is sent.
func NewReader(config *rest.Config) (*Reader, error) {
	only := rest.CopyConfig(config)
	only.Wrap(func(next http.RoundTripper) http.RoundTripper { return readsOnly{next} })
	api, err := dynamic.NewForConfig(only)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return &Reader{api: api, server: &serverClock{now: time.Now}}, nil
}

// readsOnly sends requests that change nothing.
type readsOnly struct{ next http.RoundTripper }

func (r readsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("%s %s: this program only reads", request.Method, request.URL.Path)
	}
	return r.next.RoundTrip(request)
}

// Get reads an object from the API server, for decisions that must not rely on a cache.
func (r *Reader) Get(ctx context.Context, resource apischema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := r.api.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", resource.GroupResource(), namespace, name, served(err))
	}
	return object, nil
}

// List reads from the API server, page by page, the objects of a namespace that a label selector selects (kubectl's form; empty for all).
func (r *Reader) List(ctx context.Context, resource apischema.GroupVersionResource, namespace, selector string) ([]*unstructured.Unstructured, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.api.Resource(resource).Namespace(namespace).List(ctx, options)
	})
	pages.PageSize = listPage

	found := []*unstructured.Unstructured{}
	err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(item runtime.Object) error {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("unexpected type %T", item)
		}
		found = append(found, object)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s in namespace %q: %w", resource.GroupResource(), namespace, served(err))
	}
	return found, nil
}

// Cached reads the cache of a resource: the kind's own or one of the Controller's Watches. For any other resource it panics, because that
// is a bug, and an empty answer could be mistaken for "does not exist". In a live pass, Cached shows what the pass listed from the API
// server. A pass is live if its caches did not show the object's own writes within barrierPatience.
func (r *Reader) Cached(resource apischema.GroupVersionResource) Lister { return r.view(resource) }

// CachedVersion returns UID and resourceVersion of an object as Cached shows it, without decoding it; "" if there is none.
func (r *Reader) CachedVersion(resource apischema.GroupVersionResource, namespace, name string) string {
	return versionOf(r.view(resource).item(namespace, name))
}

// CachedVersions returns the CachedVersion of each object that Indexed returns, sorted by these versions.
func (r *Reader) CachedVersions(resource apischema.GroupVersionResource, index, key string) []string {
	cached := r.view(resource)
	items := cached.items(cached.byIndex(index, key))
	all := make([]string, 0, len(items))
	for _, item := range items {
		all = append(all, versionOf(item))
	}
	slices.Sort(all)
	return all
}

func (r *Reader) view(resource apischema.GroupVersionResource) *view {
	cached, ok := r.caches[resource]
	if !ok {
		panic(fmt.Sprintf("%s is not cached: add it to the controller's Watches", resource.GroupResource()))
	}
	return cached
}

// WorksIn reports whether the caches include a namespace. It is false if the operator was configured to work in other namespaces only. The
// empty string stands for all namespaces.
func (r *Reader) WorksIn(namespace string) bool {
	return len(r.namespaces) == 0 || slices.Contains(r.namespaces, namespace)
}

// ServerTime returns the API server's time: the time in its latest answer plus the time that has passed since. It is zero until an answer
// contains a time. Irreversible actions must not rely on this machine's clock alone: if the two clocks differ, one of them is wrong.
func (r *Reader) ServerTime() time.Time {
	return r.server.read()
}

// Regarding reads from the API server the events about an object that Kubernetes components wrote. They are v1 Events in no particular
// order, at most a few hundred. The Controller's Rules must allow listing events of the core group.
func (r *Reader) Regarding(ctx context.Context, object *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	events := r.api.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(object.GetNamespace())
	about := fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID())).String()
	found, err := events.List(ctx, metav1.ListOptions{FieldSelector: about, Limit: listPage})
	if err != nil {
		return nil, fmt.Errorf("list events about %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), served(err))
	}
	return found.Items, nil
}

// EachEverywhere reads from the API server, page by page, all objects of a resource in the namespaces that the operator works in. It keeps
// at most two pages in memory. An object may come twice.
func (r *Reader) EachEverywhere(ctx context.Context, resource apischema.GroupVersionResource, do func(*unstructured.Unstructured) error) error {
	namespaces := r.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return r.api.Resource(resource).Namespace(namespace).List(ctx, options)
		})
		pages.PageSize, pages.PageBufferSize = listPage, 1
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			object, ok := item.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("unexpected type %T", item)
			}
			return do(object)
		})
		if err != nil {
			return fmt.Errorf("list %s in namespace %q: %w", resource.GroupResource(), namespace, served(err))
		}
	}
	return nil
}
