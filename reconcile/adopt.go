package reconcile

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// CheckOwnership returns nil if the pass's object may treat object as its child. That is so if it controls object, or if object is an
// orphan with the labels that it gives its children. Otherwise CheckOwnership returns a *ForeignError.
//
// `kubectl delete --cascade=orphan` leaves orphans. Garbage collection removes the deleted owner's reference, so that no controller owns
// the object. It leaves everything else, including the entry of ManagerChildren in managedFields (Kubernetes documentation, "Garbage
// Collection"). An object that only looks like a child, for example a copied manifest, does not have that entry.
func (c *Client) CheckOwnership(object *unstructured.Unstructured, resource apischema.GroupVersionResource, labels map[string]string) error {
	return CheckOwnership(c.owner, object, resource, labels)
}

// CheckOwnership is Client.CheckOwnership for any object that may own.
func CheckOwnership(owner, object *unstructured.Unstructured, resource apischema.GroupVersionResource, labels map[string]string) error {
	foreign := checkController(owner, object, resource)
	if foreign != nil && isOrphan(object, labels) {
		return nil
	}
	return foreign
}

func isOrphan(object *unstructured.Unstructured, labels map[string]string) bool {
	if metav1.GetControllerOfNoCopy(object) != nil || len(labels) == 0 {
		return false
	}
	present := object.GetLabels()
	for name, value := range labels {
		if present[name] != value {
			return false
		}
	}
	return isAppliedByOperator(object)
}

// isAppliedByOperator reports whether the operator wrote the object itself, by Client.Apply or by Client.Create. Create appears as an
// update in managedFields.
func isAppliedByOperator(object *unstructured.Unstructured) bool {
	metadata, _ := object.Object[metadataField].(map[string]any)
	entries, _ := metadata[managedFieldsField].([]any)
	for _, item := range entries {
		entry, ok := item.(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if ok && entry["manager"] == ManagerChildren && subresource == "" {
			return true
		}
	}
	return false
}

// Adopt makes the pass's object the controller of an object that CheckOwnership allows it to take. If the object was changed or replaced
// since it was read, Adopt returns the API server's Conflict error. Client.Apply adopts without this call; Adopt is for objects made by
// Client.Create.
func (c *Client) Adopt(ctx context.Context, resource apischema.GroupVersionResource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if metav1.IsControlledBy(object, c.owner) {
		return object, nil
	}
	if err := c.mayAdopt(ctx); err != nil {
		return nil, err
	}
	references := append(object.GetOwnerReferences(), *metav1.NewControllerRef(c.owner, c.owner.GroupVersionKind()))
	adopted, err := c.Patch(ctx, resource, object, map[string]any{metadataField: map[string]any{"ownerReferences": references}})
	if err != nil {
		return nil, err
	}
	logChange(ctx, Updated, adopted, "field", ".metadata.ownerReferences")
	return adopted, nil
}
