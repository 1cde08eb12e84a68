package transfer

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// unnamed is the value of marks of earlier builds, which name no schedule.
const unnamed = "true"

// ExpirePatch returns the patch that marks an instance for a schedule's retention. It adds the finalizer, so that the instance stays until
// its data is deleted. The finalizers of others stay.
func ExpirePatch(object *unstructured.Unstructured, schedule types.UID) map[string]any {
	finalizers := object.GetFinalizers()
	if !slices.Contains(finalizers, FinalizerData) {
		finalizers = append(finalizers, FinalizerData)
	}
	return map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{AnnotationExpired: string(schedule)}, "finalizers": finalizers,
	}}
}

// ExpiredBy reports whether retention has marked an instance, and returns the UID of the schedule; empty if the mark has none.
func ExpiredBy(annotations map[string]string) (schedule types.UID, expired bool) {
	value, expired := annotations[AnnotationExpired]
	if value == unnamed {
		value = ""
	}
	return types.UID(value), expired
}

// UnexpirePatch returns the patch that removes the mark. It also removes the finalizer, unless the policy of the instance, or else of its
// schedule, deletes the data with the instance. With a finalizer that stayed, the data would be deleted when a user deletes the instance.
func UnexpirePatch(object *unstructured.Unstructured, schedules v1.DeletionPolicy) map[string]any {
	metadata := map[string]any{"annotations": map[string]any{AnnotationExpired: nil}}
	own, _, _ := unstructured.NestedString(object.Object, "spec", "deletionPolicy")
	if cmp.Or(v1.DeletionPolicy(own), schedules) != v1.DeleteData {
		metadata["finalizers"] = slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == FinalizerData })
	}
	return map[string]any{"metadata": metadata}
}
