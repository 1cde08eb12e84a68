package reconcile

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects from a cache of metadata have the API server's own apiVersion and kind for such objects.
const (
	metadataVersion = "meta.k8s.io/v1"
	metadataKind    = "PartialObjectMetadata"
)

// objectOf returns a cached item as an unstructured object. It decodes a new object at each call, because the cache holds items in a form
// that needs less memory.
func objectOf(item any) (*unstructured.Unstructured, bool) {
	switch item := item.(type) {
	case *unstructured.Unstructured:
		return item, true
	case *packed:
		return item.unpack()
	case *metav1.PartialObjectMetadata:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, false
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetAPIVersion(metadataVersion)
		object.SetKind(metadataKind)
		return object, true
	default:
		return nil, false
	}
}

// KeepIdentity is a Transform for kinds that only need to know whether objects exist. It keeps namespace, name, UID, version, and whether
// the object is being deleted. A kind with Watch.MetadataOnly gets no pass for any other change to such an object.
func KeepIdentity(item any) (any, error) {
	switch item := item.(type) {
	case *metav1.PartialObjectMetadata:
		kept := &metav1.PartialObjectMetadata{}
		keepIdentity(kept, item)
		return kept, nil
	case *unstructured.Unstructured:
		kept := &unstructured.Unstructured{Object: map[string]any{}}
		kept.SetAPIVersion(item.GetAPIVersion())
		kept.SetKind(item.GetKind())
		keepIdentity(kept, item)
		return kept, nil
	default:
		return item, nil
	}
}

func keepIdentity(kept, object metav1.Object) {
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	kept.SetUID(object.GetUID())
	kept.SetResourceVersion(object.GetResourceVersion())
	kept.SetDeletionTimestamp(object.GetDeletionTimestamp())
}

// isNews reports whether an update changed anything. It is false for updates that a watch repeats after an interruption, and, in watches of
// metadata only, for changes outside the metadata.
func isNews(before, after any) bool {
	if was, is := versionOf(before), versionOf(after); was == "" || is == "" || was == is {
		return false
	}
	wasMetadata, old := before.(*metav1.PartialObjectMetadata)
	isMetadata, current := after.(*metav1.PartialObjectMetadata)
	if !old || !current {
		return true
	}
	one, other := wasMetadata.ObjectMeta, isMetadata.ObjectMeta
	one.ResourceVersion, other.ResourceVersion = "", ""
	return !reflect.DeepEqual(one, other)
}
