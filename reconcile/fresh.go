package reconcile

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
)

// CheckUnchanged reads the pass's own object from the API server, and returns nil if its spec is still the one that the pass uses. A pass
// calls it before it deletes anything because of that spec: the cache may be behind. If the object was changed, replaced or deleted since,
// the error is a Conflict (apierrors.IsConflict). The object's next pass then begins when the cache shows what CheckUnchanged read.
func (c *Client) CheckUnchanged(ctx context.Context, object *unstructured.Unstructured) error {
	return c.unchanged(ctx, object, "deleted nothing, because the spec may be out of date")
}

// mayAdopt reads the owner from the API server before it becomes the controller of an orphan. An owner that is gone or being deleted must
// adopt nothing: garbage collection deletes the objects of an owner that does not exist, and "kubectl delete --cascade=orphan" makes
// orphans. Kubernetes' own controllers check in the same way (pkg/controller/controller_ref_manager.go, RecheckDeletionTimestamp).
func (c *Client) mayAdopt(ctx context.Context, owner *unstructured.Unstructured) error {
	return c.unchanged(ctx, owner, "adopted nothing, because the owner may be out of date")
}

// unchanged returns a Conflict if an object differs from the one that the pass uses. The error begins with undone, which says what the
// operator did not do.
func (c *Client) unchanged(ctx context.Context, object *unstructured.Unstructured, undone string) error {
	resource := c.names.resourceFor(object.GroupVersionKind())
	live, err := c.Get(ctx, resource, object.GetNamespace(), object.GetName())
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	why := changeSince(object, live)
	if why == "" {
		return nil
	}
	if live != nil {
		c.journal.wrote(ctx, resource, live)
	}
	return fmt.Errorf("%s: %w", undone, apierrors.NewConflict(resource.GroupResource(), object.GetName(), errors.New(why)))
}

// changeSince describes how an object on the API server differs from the one that a pass uses; live is nil if it is gone. The generation
// counts the changes of a spec.
func changeSince(object, live *unstructured.Unstructured) string {
	switch {
	case live == nil:
		return "it no longer exists"
	case live.GetUID() != object.GetUID():
		return "it was deleted and created again"
	case live.GetDeletionTimestamp() != nil && object.GetDeletionTimestamp() == nil:
		return "it is being deleted"
	case live.GetGeneration() != object.GetGeneration():
		return fmt.Sprintf("its generation is now %d, not %d", live.GetGeneration(), object.GetGeneration())
	}
	return ""
}

// EachEverywhere reads from the API server, page by page, all objects of a resource in the namespaces that the operator works in. It keeps
// at most two pages in memory. An object may come twice.
func (c *Client) EachEverywhere(ctx context.Context, resource apischema.GroupVersionResource, do func(*unstructured.Unstructured) error) error {
	namespaces := c.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Resource(resource).Namespace(namespace).List(ctx, options)
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
