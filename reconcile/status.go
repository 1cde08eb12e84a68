package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

// writeStatus makes status the object's whole status, if it is not already. It sends one server-side apply to the status subresource. The
// resourceVersion that the pass began with is a precondition (apierrors.IsConflict if the object was changed since).
func (c *Client) writeStatus(ctx context.Context, status any) error {
	object := c.owner
	desired, err := schema.Encode(status)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	present, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	if desired == nil || sameStatus(desired, present) {
		return nil
	}

	resource := c.names.resourceFor(object.GroupVersionKind())
	to, wanted := appliedTo{manager: ManagerStatus, child: nameOf(resource, object)}, digest(desired)
	if last, ok := c.journal.lastApplied(c.pass, to); ok && last == appliedAs(object.GetUID(), wanted, digest(present)) {
		// The definition defaults part of this status: writing it again would change nothing.
		return nil
	}
	written, err := c.resource(resource, object).ApplyStatus(ctx, object.GetName(), statusDocument(object, desired), metav1.ApplyOptions{FieldManager: ManagerStatus, Force: true})
	if err != nil {
		return fmt.Errorf("write the status: %w", served(err))
	}
	stored, _, _ := unstructured.NestedMap(written.Object, "status")
	c.journal.remember(c.pass, to, appliedAs(written.GetUID(), wanted, digest(stored)))
	c.journal.wrote(c.pass, resource, written)
	return nil
}

func statusDocument(object *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	document := newObject(object.GetAPIVersion(), object.GetKind(), keyOf(object))
	document.SetUID(object.GetUID())
	document.SetResourceVersion(object.GetResourceVersion())
	document.Object["status"] = status
	return document
}

// sameStatus reports whether two statuses are equal. Conditions are a map by type, so their order does not count: the API server has its
// own order.
func sameStatus(desired, present map[string]any) bool {
	return reflect.DeepEqual(withSortedConditions(desired), withSortedConditions(present))
}

func withSortedConditions(status map[string]any) map[string]any {
	copied := make(map[string]any, len(status))
	maps.Copy(copied, status)
	conditions, ok := status["conditions"].([]any)
	if !ok {
		return copied
	}
	copied["conditions"] = slices.SortedStableFunc(slices.Values(conditions), func(a, b any) int {
		return cmp.Compare(conditionType(a), conditionType(b))
	})
	return copied
}

func conditionType(condition any) string {
	fields, _ := condition.(map[string]any)
	name, _ := fields["type"].(string)
	return name
}
