package reconcile

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Regarding reads from the API server the events about an object that Kubernetes components wrote. They are v1 Events in no particular
// order, at most a few hundred. The Controller's Rules must allow listing events of the core group.
func (c *Client) Regarding(ctx context.Context, object *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	events := c.api.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(object.GetNamespace())
	about := fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID())).String()
	found, err := events.List(ctx, metav1.ListOptions{FieldSelector: about, Limit: listPage})
	if err != nil {
		return nil, fmt.Errorf("list events about %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), served(err))
	}
	return found.Items, nil
}
