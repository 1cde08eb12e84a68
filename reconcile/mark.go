package reconcile

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

// mark adds an annotation with a digest of the desired content to a desired child. With it, an operator that has just started knows that
// the same content was applied last, without applying it again. Only objects with a spec have fields for which that matters.
func mark(desired *unstructured.Unstructured) {
	if _, hasSpec := desired.Object["spec"]; !hasSpec {
		return
	}
	canonicalise(desired)
	unstructured.RemoveNestedField(desired.Object, metadataField, "annotations", schema.AppliedAnnotation)
	annotations := desired.GetAnnotations()
	if len(annotations) == 0 {
		desired.SetAnnotations(nil)
		annotations = map[string]string{}
	}
	annotations[schema.AppliedAnnotation] = wantedDigest(desired)
	desired.SetAnnotations(annotations)
}

func markOf(object *unstructured.Unstructured) string {
	return object.GetAnnotations()[schema.AppliedAnnotation]
}

// isMarkedAlike reports whether a live object has the same mark as the desired one, and the manager of owned owns that mark.
func isMarkedAlike(desired, live *unstructured.Unstructured, owned ownership) bool {
	metadata, _ := owned["f:"+metadataField].(map[string]any)
	annotations, _ := metadata["f:annotations"].(map[string]any)
	_, isOwned := annotations["f:"+schema.AppliedAnnotation]
	return isOwned && markOf(desired) != "" && markOf(desired) == markOf(live)
}

// covers reports whether a value has everything that is desired; it may have more fields. The API server omits empty values.
func covers(value, desired any) bool {
	if value == nil && isEmpty(desired) {
		return true
	}
	switch wanted := desired.(type) {
	case map[string]any:
		present, ok := value.(map[string]any)
		if !ok {
			return false
		}
		for field, inner := range wanted {
			if !covers(present[field], inner) {
				return false
			}
		}
		return true
	case []any:
		present, ok := value.([]any)
		if !ok || len(present) != len(wanted) {
			return false
		}
		for at := range wanted {
			if !covers(present[at], wanted[at]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(value, desired)
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}
