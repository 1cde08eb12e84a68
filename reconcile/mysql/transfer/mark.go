package transfer

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// unnamed is the value of marks that earlier builds made: they name no schedule.
const unnamed = "true"

// Expiring marks an instance for a schedule's retention, and has its end wait until its data is gone. The finalizers of others stay.
func Expiring(object *unstructured.Unstructured, schedule types.UID) map[string]any {
	finalizers := object.GetFinalizers()
	if !slices.Contains(finalizers, FinalizerData) {
		finalizers = append(finalizers, FinalizerData)
	}
	return map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{AnnotationExpired: string(schedule)}, "finalizers": finalizers,
	}}
}

// ExpiredBy says whether retention has marked an instance, and the UID of the schedule that did; empty if the mark does not tell.
func ExpiredBy(annotations map[string]string) (schedule types.UID, expired bool) {
	value, expired := annotations[AnnotationExpired]
	if value == unnamed {
		value = ""
	}
	return types.UID(value), expired
}

// Sparing takes the mark back, and with it the finalizer, unless the data goes with the instance by policy: its own, or else its
// schedule's. A finalizer that stayed would take the data along when somebody deletes the instance by hand.
func Sparing(object *unstructured.Unstructured, schedules v1.DeletionPolicy) map[string]any {
	metadata := map[string]any{"annotations": map[string]any{AnnotationExpired: nil}}
	own, _, _ := unstructured.NestedString(object.Object, "spec", "deletionPolicy")
	if cmp.Or(v1.DeletionPolicy(own), schedules) != v1.DeleteData {
		metadata["finalizers"] = slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == FinalizerData })
	}
	return map[string]any{"metadata": metadata}
}
