package reconcile

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CheckUnchanged reads the pass's own object from the API server, and returns nil if its spec is still the one that the pass uses. A pass
// calls it before it deletes anything because of that spec: the cache may be behind. If the object was changed, replaced or deleted since,
// the error is a Conflict (apierrors.IsConflict). The object's next pass then begins when the cache shows what CheckUnchanged read.
func (c *Client) CheckUnchanged(ctx context.Context) error {
	return c.unchanged(ctx, "deleted nothing, because the spec may be out of date")
}

// mayAdopt reads the pass's object from the API server before it becomes the controller of an orphan. An owner that is gone or being
// deleted must adopt nothing: garbage collection deletes the objects of an owner that does not exist, and "kubectl delete --cascade=orphan"
// makes orphans. Kubernetes' own controllers check in the same way (pkg/controller/controller_ref_manager.go, RecheckDeletionTimestamp).
func (c *Client) mayAdopt(ctx context.Context) error {
	return c.unchanged(ctx, "adopted nothing, because the owner may be out of date")
}

// unchanged returns a Conflict if the pass's object has changed. The error begins with undone, which says what the operator did not do.
func (c *Client) unchanged(ctx context.Context, undone string) error {
	object := c.owner
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
		c.journal.wrote(c.pass, resource, live)
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
