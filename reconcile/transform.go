package reconcile

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TrimMetadata drops what nobody reads from an object on its way into a cache: the managedFields of others (often more than half of
// an object's memory) and kubectl's copy of the last applied configuration. The entries of the operator's own field managers stay,
// because Client.Apply and Client.ApplyFields tell by them whether a write would change anything. Anything but an unstructured
// object is returned as it is.
func TrimMetadata(item any) (any, error) {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	if entries := object.GetManagedFields(); len(entries) > 0 {
		object.SetManagedFields(slices.DeleteFunc(entries, isForeignEntry))
	}
	annotations := object.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		object.SetAnnotations(annotations)
	}
	return object, nil
}

func isForeignEntry(entry metav1.ManagedFieldsEntry) bool {
	return !isOwnManager(entry.Manager) || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != ""
}

// isOwnManager says whether a field manager is one of the operator's.
func isOwnManager(manager string) bool {
	return manager == ManagerChildren || strings.HasPrefix(manager, ManagerChildren+"-")
}
