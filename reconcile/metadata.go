package reconcile

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What comes out of a cache of metadata says that it is no more than that, in the API server's own words.
const (
	metadataVersion = "meta.k8s.io/v1"
	metadataKind    = "PartialObjectMetadata"
)

// objectOf returns what a cache holds as everybody reads it: a new object each time, since the cache holds it in a form that takes less
// memory.
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

// KeepIdentity is a Transform for kinds that need to know of objects no more than whether they exist: namespace, name, UID, version, and
// whether it is being deleted. Of any other change to such an object a kind with Watch.MetadataOnly hears nothing.
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

// isNews says whether an update says anything new: not what a watch repeats after an interruption, nor, where metadata is all that is
// watched, a change of something else.
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
