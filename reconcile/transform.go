package reconcile

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TrimMetadata drops what nobody reads from an object on its way into a cache: the managedFields of others (often more than half of
// an object's memory) and kubectl's copy of the last applied configuration. The entries of the operator's own field managers stay,
// because Client.Apply and Client.ApplyFields tell by them whether a write would change anything; of metadata alone nobody can tell
// that, so that there none stays. Anything but an unstructured object or metadata is returned as it is.
func TrimMetadata(item any) (any, error) {
	switch object := item.(type) {
	case *unstructured.Unstructured:
		trimManagedFields(object)
		trimAnnotations(object)
	case *metav1.PartialObjectMetadata:
		if len(object.ManagedFields) > 0 { // else it may be in the cache already, where others read it
			object.SetManagedFields(nil)
		}
		trimAnnotations(object)
	}
	return item, nil
}

func trimAnnotations(object metav1.Object) {
	annotations := object.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		object.SetAnnotations(annotations)
	}
}

// trimManagedFields keeps the entries of the operator's own field managers, and of those the fields as one JSON text: as the tree of
// small maps that they arrive in they would be the largest part of most cached objects.
func trimManagedFields(object *unstructured.Unstructured) {
	metadata, _ := object.Object[metadataField].(map[string]any)
	entries, _ := metadata[managedFieldsField].([]any)
	if len(entries) == 0 {
		return
	}
	kept := make([]any, 0, 1)
	for _, item := range entries {
		entry, ok := item.(map[string]any)
		if !ok || isForeignEntry(entry) {
			continue
		}
		if tree, isTree := entry[fieldsField].(map[string]any); isTree {
			text, err := json.Marshal(tree)
			if err != nil {
				continue
			}
			entry[fieldsField] = string(text)
		}
		kept = append(kept, entry)
	}
	metadata[managedFieldsField] = kept
}

const (
	managedFieldsField = "managedFields"
	fieldsField        = "fieldsV1"
)

func isForeignEntry(entry map[string]any) bool {
	manager, _ := entry["manager"].(string)
	subresource, _ := entry["subresource"].(string)
	return !isOwnManager(manager) || entry["operation"] != string(metav1.ManagedFieldsOperationApply) || subresource != ""
}

// isOwnManager says whether a field manager is one of the operator's.
func isOwnManager(manager string) bool {
	return manager == ManagerChildren || strings.HasPrefix(manager, ManagerChildren+"-")
}
