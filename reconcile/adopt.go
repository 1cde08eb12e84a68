package reconcile

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Claim returns nil if owner may treat object as its child: it controls it, or object is an orphan that carries the labels which owner
// gives its children. Else it returns a *ForeignError.
//
// An orphan is what `kubectl delete --cascade=orphan` leaves behind: garbage collection takes the deleted owner's reference off, so that
// nobody controls the object, and leaves everything else, the entry of ManagerChildren in managedFields included (Kubernetes
// documentation, "Garbage Collection"). What merely looks like a child, a copied manifest for example, lacks that entry.
func Claim(owner, object *unstructured.Unstructured, resource apischema.GroupVersionResource, labels map[string]string) error {
	foreign := foreignness(owner, object, resource)
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
	return madeHere(object)
}

// madeHere says whether the operator has written the object itself: by Client.Apply, or by Client.Create, which is an update in the
// words of managedFields.
func madeHere(object *unstructured.Unstructured) bool {
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

// Adopt makes owner the controller of an object that Claim allows it, exactly as it was read: if it was changed or replaced since, the
// API server's Conflict error is returned. Client.Apply does the same by itself; this is for what is made by Client.Create.
func (c *Client) Adopt(ctx context.Context, owner *unstructured.Unstructured, resource apischema.GroupVersionResource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if metav1.IsControlledBy(object, owner) {
		return object, nil
	}
	if err := c.mayAdopt(ctx, owner); err != nil {
		return nil, err
	}
	references := append(object.GetOwnerReferences(), *metav1.NewControllerRef(owner, owner.GroupVersionKind()))
	adopted, err := c.Patch(ctx, resource, object, map[string]any{metadataField: map[string]any{"ownerReferences": references}})
	if err != nil {
		return nil, err
	}
	logChange(ctx, Updated, adopted, "field", ".metadata.ownerReferences")
	return adopted, nil
}
