package reconcile

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/schema"
)

// resourceNames maps kinds whose plural may be irregular to their resources.
type resourceNames map[apischema.GroupVersionKind]apischema.GroupVersionResource

// resourceFor returns the resource of a kind: from the given names, else by the rule that all of Kubernetes' own kinds follow (lower case,
// English plural). So writing an object needs no discovery request.
func (n resourceNames) resourceFor(kind apischema.GroupVersionKind) apischema.GroupVersionResource {
	if resource, ok := n[kind]; ok {
		return resource
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}

// child returns an unstructured copy of a desired object of any form, with the pass's object as its controller.
func (c *Client) child(object any) (*unstructured.Unstructured, error) {
	desired, err := toUnstructured(object)
	if err != nil {
		return nil, err
	}
	if c.owner == nil {
		return nil, fmt.Errorf("own %s %s/%s: the owner no longer exists", desired.GetKind(), desired.GetNamespace(), desired.GetName())
	}
	if desired.GetNamespace() != c.owner.GetNamespace() {
		return nil, fmt.Errorf("own %s %s/%s: its owner is in namespace %q: an owner must be in the same namespace",
			desired.GetKind(), desired.GetNamespace(), desired.GetName(), c.owner.GetNamespace())
	}
	reference := *metav1.NewControllerRef(c.owner, c.owner.GroupVersionKind())
	desired.SetOwnerReferences([]metav1.OwnerReference{reference})
	return desired, nil
}

// toUnstructured copies a desired object: unstructured, apply configuration or API type.
func toUnstructured(object any) (*unstructured.Unstructured, error) {
	desired, ok := object.(*unstructured.Unstructured)
	if ok && desired != nil {
		desired = desired.DeepCopy()
	} else {
		content, err := schema.Encode(object)
		if err != nil {
			return nil, err
		}
		desired = &unstructured.Unstructured{Object: content}
	}
	if desired.GetAPIVersion() == "" || desired.GetKind() == "" || desired.GetName() == "" {
		return nil, fmt.Errorf("encode %T: %w", object, errUnnamed)
	}
	return desired, nil
}

// metadataField is the field of an object's metadata.
const metadataField = "metadata"

// versionField is the field of an object's API version.
const versionField = "apiVersion"

// newObject makes an object with only its apiVersion, kind and name.
func newObject(apiVersion, kind string, key types.NamespacedName) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetNamespace(key.Namespace)
	made.SetName(key.Name)
	return made
}

var errUnnamed = errors.New("apiVersion, kind and metadata.name must be set")
