package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// unseenGeneration is the default of status.observedGeneration in every definition: no operator has seen the object.
const unseenGeneration = -1

// ReasonAccepted is the reason of the Ready condition of a new object of any kind until its first full pass ends.
const ReasonAccepted = "Accepted"

// firstStatus is the status of an object until its first full pass ends. A full pass makes the object's children before it writes the
// status, which would be late if many objects are created at once.
type firstStatus struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// isUnseen reports whether an object is new to every operator: its status is the definition's default, and has nothing else that could be
// lost. Its first pass writes its first status, and nothing else.
func isUnseen(object *unstructured.Unstructured) bool {
	status, _ := object.Object["status"].(map[string]any)
	return len(status) == 1 && status["observedGeneration"] == int64(unseenGeneration) && object.GetDeletionTimestamp() == nil
}

// isUnseen reports the same of the object in the cache, without decoding it.
func (c *controller) isUnseen(key types.NamespacedName) bool {
	small, ok := c.own.item(key.Namespace, key.Name).(*packed)
	return ok && small.unseen
}

// accept is the outcome of the first pass over a new object. The status that it writes triggers the next pass.
func accept(object *unstructured.Unstructured) Outcome {
	first := firstStatus{ObservedGeneration: object.GetGeneration()}
	SetCondition(&first.Conditions, metav1.Condition{
		Type: ConditionReady, Status: metav1.ConditionUnknown, Reason: ReasonAccepted, ObservedGeneration: object.GetGeneration(),
		Message: "the operator has seen the object and will reconcile it",
	})
	return Outcome{Status: first}
}
