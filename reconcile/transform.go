package reconcile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/mysql-operator/mysql-operator/schema"
)

// The limits of what a cache keeps of an object's metadata, whoever wrote them: one tenant's objects must not fill the memory that all
// clusters need. Lengths are in bytes.
const (
	maxAnnotations      = 16
	maxAnnotationLength = 1024
	maxLabels           = 64
	maxFinalizers       = 16
	maxOwnerLength      = 1024
)

// TrimMetadata removes unread metadata from an object before it is cached: the managedFields of others (often more than half of an object's
// memory), the annotations of others, and labels beyond the first maxLabels. The entries of the operator's own field managers stay, because
// Client.Apply and Client.ApplyFields need them to find out whether a write would change anything. From objects with only metadata, all
// managedFields are removed, because they are not enough for that. Annotations stay if the operator applied them, or if their names begin
// with an API group of the operator's or the object's own. Anything but an unstructured object or metadata is returned as it is.
func TrimMetadata(item any) (any, error) {
	switch object := item.(type) {
	case *unstructured.Unstructured:
		trimManagedFields(object)
		trimAnnotations(object, object.GroupVersionKind().Group, appliedAnnotations(object))
		trimLabels(object)
	case *metav1.PartialObjectMetadata:
		if len(object.ManagedFields) > 0 { // else the object may be in the cache already, where others read it
			object.SetManagedFields(nil)
		}
		trimAnnotations(object, object.GroupVersionKind().Group, nil)
		trimLabels(object)
	}
	return item, nil
}

// TrimChild is TrimMetadata for objects whose finalizers the operator does not write. It also removes all owners except the controller, and
// finalizers beyond the first maxFinalizers.
func TrimChild(item any) (any, error) {
	if object, ok := item.(*unstructured.Unstructured); ok {
		if owners := object.GetOwnerReferences(); len(owners) > 0 {
			object.SetOwnerReferences(controllerOf(object))
		}
		if finalizers := object.GetFinalizers(); len(finalizers) > maxFinalizers {
			object.SetFinalizers(finalizers[:maxFinalizers])
		}
	}
	return TrimMetadata(item)
}

// controllerOf returns the controller among the owners of an object. It returns none if the reference is longer than any valid one.
func controllerOf(object metav1.Object) []metav1.OwnerReference {
	controller := metav1.GetControllerOf(object)
	if controller == nil || len(controller.APIVersion)+len(controller.Kind)+len(controller.Name)+len(controller.UID) > maxOwnerLength {
		return nil
	}
	return []metav1.OwnerReference{*controller}
}

// trimAnnotations does not write to the object if there is nothing to remove: the object may be in the cache already.
func trimAnnotations(object metav1.Object, group string, applied sets.Set[string]) {
	annotations := object.GetAnnotations()
	names := slices.Sorted(maps.Keys(annotations))
	// Annotations that the operator applied come first: the operator reads them again, whatever others write under similar names.
	slices.SortStableFunc(names, func(one, other string) int { return order(applied.Has(one)) - order(applied.Has(other)) })
	kept := map[string]string{}
	for _, name := range names {
		domain, _, _ := strings.Cut(name, "/")
		isOwn := domain == schema.MySQLGroup || domain == schema.ScheduleGroup || group != "" && domain == group
		if (isOwn || applied.Has(name)) && len(kept) < maxAnnotations {
			kept[name] = cut(annotations[name], maxAnnotationLength)
		}
	}
	if !maps.Equal(kept, annotations) {
		object.SetAnnotations(kept)
	}
}

// order is the sort key of an item: 0 if it must come first, else 1.
func order(isFirst bool) int {
	if isFirst {
		return 0
	}
	return 1
}

// trimLabels reduces the labels of an object with too many to the recommended labels of Kubernetes and the operator's own.
func trimLabels(object metav1.Object) {
	set := object.GetLabels()
	if len(set) <= maxLabels {
		return
	}
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		domain, _, _ := strings.Cut(name, "/")
		if (domain == "app.kubernetes.io" || domain == schema.MySQLGroup) && len(kept) < maxLabels {
			kept[name] = set[name]
		}
	}
	object.SetLabels(kept)
}

// appliedAnnotations returns the names of the annotations that the operator applied.
func appliedAnnotations(object *unstructured.Unstructured) sets.Set[string] {
	applied := sets.Set[string]{}
	metadata, _ := object.Object[metadataField].(map[string]any)
	entries, _ := metadata[managedFieldsField].([]any)
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		manager, _ := entry["manager"].(string)
		owned, _ := ownedBy(object, manager)
		fields, _ := owned["f:"+metadataField].(map[string]any)
		annotations, _ := fields["f:annotations"].(map[string]any)
		for name := range annotations {
			applied.Insert(strings.TrimPrefix(name, "f:"))
		}
	}
	return applied
}

// trimManagedFields keeps the entries of the operator's own field managers, with their fields as one JSON text. As the tree of small maps
// that the API server sends, they would be the largest part of most cached objects. Any client may write under such a manager's name, so
// entries beyond maxOwnFields are removed. The operator then applies its own fields again, which removes the other client's fields.
func trimManagedFields(object *unstructured.Unstructured) {
	metadata, _ := object.Object[metadataField].(map[string]any)
	if entries, _ := metadata[managedFieldsField].([]any); len(entries) == 0 {
		return
	}
	kept, left := make([]any, 0, 1), maxOwnFields
	for _, entry := range ownEntries(object) {
		if tree, isTree := entry[fieldsField].(map[string]any); isTree {
			text, err := json.Marshal(tree)
			if err != nil {
				continue
			}
			entry[fieldsField] = string(text)
		}
		text, _ := entry[fieldsField].(string)
		if size := len(text) + restOfEntry; size <= left {
			left -= size
			kept = append(kept, entry)
		}
	}
	metadata[managedFieldsField] = kept
}

const (
	// maxOwnFields limits what is kept of managedFields, in bytes; restOfEntry is an upper bound for an entry without its fields.
	maxOwnFields = 32 << 10
	restOfEntry  = 512
)

// ownEntries returns the managedFields entries of what the operator's field managers applied, those of ManagerChildren first.
func ownEntries(object *unstructured.Unstructured) []map[string]any {
	metadata, _ := object.Object[metadataField].(map[string]any)
	present, _ := metadata[managedFieldsField].([]any)
	entries := make([]map[string]any, 0, 1)
	for _, item := range present {
		if entry, ok := item.(map[string]any); ok && !isForeignEntry(entry) {
			entries = append(entries, entry)
		}
	}
	slices.SortStableFunc(entries, func(one, other map[string]any) int {
		return cmp.Compare(rankOf(one), rankOf(other))
	})
	return entries
}

func rankOf(entry map[string]any) int {
	if entry["manager"] == ManagerChildren {
		return 0
	}
	return 1
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

// isOwnManager reports whether a field manager is one of the operator's.
func isOwnManager(manager string) bool {
	return manager == ManagerChildren || strings.HasPrefix(manager, ManagerChildren+"-")
}
