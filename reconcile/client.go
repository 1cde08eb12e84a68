package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
)

// listPage is how many objects one request of a live List asks for. It is small enough to keep memory use low in the operator and the API
// server.
const listPage = 250

// Client is how a Reconciler accesses the API server. The client remembers every write made with a pass's context. The object's next pass
// begins only when the caches show these writes.
type Client struct {
	api   dynamic.Interface
	names resourceNames
	// namespaces are those that the operator works in; empty means all.
	namespaces []string
	caches     map[apischema.GroupVersionResource]*view
	server     *serverClock
	journal    *journal
	teller     *eventWriter
}

// Get reads an object from the API server, for decisions that must not rely on a cache.
func (c *Client) Get(ctx context.Context, resource apischema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := c.api.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", resource.GroupResource(), namespace, name, served(err))
	}
	return object, nil
}

// List reads from the API server, page by page, the objects of a namespace that a label selector selects (kubectl's form; empty for all).
func (c *Client) List(ctx context.Context, resource apischema.GroupVersionResource, namespace, selector string) ([]*unstructured.Unstructured, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.api.Resource(resource).Namespace(namespace).List(ctx, options)
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
func (c *Client) Cached(resource apischema.GroupVersionResource) Lister { return c.view(resource) }

// CachedVersion returns UID and resourceVersion of an object as Cached shows it, without decoding it; "" if there is none.
func (c *Client) CachedVersion(resource apischema.GroupVersionResource, namespace, name string) string {
	return versionOf(c.view(resource).item(namespace, name))
}

// CachedVersions returns the CachedVersion of each object that Indexed returns, sorted by these versions.
func (c *Client) CachedVersions(resource apischema.GroupVersionResource, index, key string) []string {
	cached := c.view(resource)
	items := cached.items(cached.byIndex(index, key))
	all := make([]string, 0, len(items))
	for _, item := range items {
		all = append(all, versionOf(item))
	}
	slices.Sort(all)
	return all
}

func (c *Client) view(resource apischema.GroupVersionResource) *view {
	cached, ok := c.caches[resource]
	if !ok {
		panic(fmt.Sprintf("%s is not cached: add it to the controller's Watches", resource.GroupResource()))
	}
	return cached
}

// WorksIn reports whether the caches include a namespace. It is false if the operator was configured to work in other namespaces only. The
// empty string stands for all namespaces.
func (c *Client) WorksIn(namespace string) bool {
	return len(c.namespaces) == 0 || slices.Contains(c.namespaces, namespace)
}

// ServerTime returns the API server's time: the time in its latest answer plus the time that has passed since. It is zero until an answer
// contains a time. Irreversible actions must not rely on this machine's clock alone: if the two clocks differ, one of them is wrong.
func (c *Client) ServerTime() time.Time {
	return c.server.read()
}

// WriteEvent writes an event about an object, and returns when the API server has stored it. Use it for what users must learn before the
// operator gives something up for good, such as a finalizer. If the API server does not accept the event for about three seconds, Tell
// returns an error and the caller must not continue. It does not write again an identical event of the object's last pass. Use
// Outcome.Events for all other events.
func (c *Client) WriteEvent(ctx context.Context, object *unstructured.Unstructured, event Event) error {
	if err := c.teller.writeNow(ctx, object, event); err != nil {
		return fmt.Errorf("send event about %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// Create makes a new object controlled by owner. If an object of that name exists, Create leaves it as it is and returns the API server's
// AlreadyExists error (apierrors.IsAlreadyExists). Use it for what must never be overwritten, such as generated passwords. object may be
// unstructured, an apply configuration, or any API type. If owner is nil, the object has no owner and outlives the resource that it was
// made for: volumes, backups.
func (c *Client) Create(ctx context.Context, owner *unstructured.Unstructured, object any) (*unstructured.Unstructured, error) {
	desired, resource, err := c.child(owner, object)
	if err != nil {
		return nil, err
	}
	created, err := c.resource(resource, desired).Create(ctx, desired, metav1.CreateOptions{FieldManager: ManagerChildren})
	if err != nil {
		return nil, fmt.Errorf("create %s %s/%s: %w", resource.GroupResource(), desired.GetNamespace(), desired.GetName(), served(err))
	}
	c.journal.wrote(ctx, resource, created)
	return created, nil
}

// Delete deletes exactly the given object as it was read. If it was changed or replaced since, Delete deletes nothing and returns the API
// server's Conflict error. An object that is already gone is no error. Dependents are deleted in the background.
func (c *Client) Delete(ctx context.Context, resource apischema.GroupVersionResource, object *unstructured.Unstructured) error {
	uid, version, propagation := object.GetUID(), object.GetResourceVersion(), metav1.DeletePropagationBackground
	err := c.resource(resource, object).Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &propagation,
	})
	if IsGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", resource.GroupResource(), object.GetNamespace(), object.GetName(), served(err))
	}
	c.journal.deleted(ctx, resource, object)
	return nil
}

// Patch changes fields of exactly the given object as it was read, by a JSON merge patch (RFC 7386: null removes). If the object was
// changed or replaced since, Patch changes nothing and returns the API server's Conflict error. changes is not modified.
func (c *Client) Patch(ctx context.Context, resource apischema.GroupVersionResource, object *unstructured.Unstructured, changes map[string]any) (*unstructured.Unstructured, error) {
	document, err := json.Marshal(withPreconditions(changes, object))
	if err != nil {
		return nil, fmt.Errorf("encode the patch of %s %s/%s: %w", resource.GroupResource(), object.GetNamespace(), object.GetName(), err)
	}
	options := metav1.PatchOptions{FieldManager: ManagerChildren}
	patched, err := c.resource(resource, object).Patch(ctx, object.GetName(), types.MergePatchType, document, options)
	if err != nil {
		return nil, fmt.Errorf("patch %s %s/%s: %w", resource.GroupResource(), object.GetNamespace(), object.GetName(), served(err))
	}
	c.journal.wrote(ctx, resource, patched)
	return patched, nil
}

// Evict deletes a Pod through the Eviction API (policy/v1), which refuses with TooManyRequests (apierrors.IsTooManyRequests) while a
// PodDisruptionBudget forbids it. Evict deletes only the given Pod, not another of the same name. A Pod that is already gone is no error.
func (c *Client) Evict(ctx context.Context, pod *unstructured.Unstructured) error {
	pods := apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
	eviction := newObject("policy/v1", "Eviction", keyOf(pod))
	eviction.Object["deleteOptions"] = map[string]any{"preconditions": map[string]any{"uid": string(pod.GetUID())}}
	_, err := c.resource(pods, pod).Create(ctx, eviction, metav1.CreateOptions{}, "eviction")
	if IsGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("evict pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), served(err))
	}
	c.journal.deleted(ctx, pods, pod)
	return nil
}

func (c *Client) resource(resource apischema.GroupVersionResource, object *unstructured.Unstructured) dynamic.ResourceInterface {
	return c.api.Resource(resource).Namespace(object.GetNamespace())
}

// withPreconditions returns changes with the UID and resourceVersion that the patched object must have.
func withPreconditions(changes map[string]any, object *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{}
	if given, ok := changes[metadataField].(map[string]any); ok {
		maps.Copy(metadata, given)
	}
	metadata["uid"] = string(object.GetUID())
	metadata["resourceVersion"] = object.GetResourceVersion()

	patch := maps.Clone(changes)
	if patch == nil {
		patch = map[string]any{}
	}
	patch[metadataField] = metadata
	return patch
}
