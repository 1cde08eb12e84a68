package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Client is how one pass over one object reads and writes. The engine remembers every write: the object's next pass begins only when the
// caches show these writes. Do not use a Client after its pass.
type Client struct {
	*Reader
	pass    pass
	journal *journal
	teller  *eventWriter
	// owner is the pass's object; nil if it is gone (DeletionHandler). The engine compares the status with it.
	owner *unstructured.Unstructured
}

// Owner returns the pass's object as the pass began; nil if it is gone (DeletionHandler). Do not change it: the engine compares the status
// with it.
func (c *Client) Owner() *unstructured.Unstructured { return c.owner }

// WriteEvent writes an event about the pass's object, and returns when the API server has stored it. Use it for what users must learn
// before the operator gives something up for good, such as a finalizer. If the API server does not accept the event for about three
// seconds, WriteEvent returns an error and the caller must not continue. It does not write again an identical event of the object's last
// pass. Use Outcome.Events for all other events.
func (c *Client) WriteEvent(ctx context.Context, event Event) error {
	if err := c.teller.writeNow(ctx, c.owner, event); err != nil {
		return fmt.Errorf("send event about %s %s/%s: %w", c.owner.GetKind(), c.owner.GetNamespace(), c.owner.GetName(), err)
	}
	return nil
}

// Create makes a new object that the pass's object controls. If an object of that name exists, Create leaves it as it is and returns the
// API server's AlreadyExists error (apierrors.IsAlreadyExists). Use it for what must never be overwritten, such as generated passwords.
// object may be unstructured, an apply configuration, or any API type.
func (c *Client) Create(ctx context.Context, object any) (*unstructured.Unstructured, error) {
	desired, err := c.child(object)
	if err != nil {
		return nil, err
	}
	return c.createNew(ctx, desired)
}

// CreateUnowned does what Create does, for an object without an owner. The object outlives the resource that it was made for: a volume or
// a backup.
func (c *Client) CreateUnowned(ctx context.Context, object any) (*unstructured.Unstructured, error) {
	desired, err := toUnstructured(object)
	if err != nil {
		return nil, err
	}
	return c.createNew(ctx, desired)
}

func (c *Client) createNew(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource := c.names.resourceFor(desired.GroupVersionKind())
	created, err := c.resource(resource, desired).Create(ctx, desired, metav1.CreateOptions{FieldManager: ManagerChildren})
	if err != nil {
		return nil, fmt.Errorf("create %s %s/%s: %w", resource.GroupResource(), desired.GetNamespace(), desired.GetName(), served(err))
	}
	c.journal.wrote(c.pass, resource, created)
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
	c.journal.deleted(c.pass, resource, object)
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
	c.journal.wrote(c.pass, resource, patched)
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
	c.journal.deleted(c.pass, pods, pod)
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
