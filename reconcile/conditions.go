package reconcile

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions that every kind has, with the meaning that kstatus (sigs.k8s.io/cli-utils), Helm and Flux give them.
const (
	// ConditionReady is True when the object is as its spec says and serves its purpose.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator is on the way to what the spec says; absent or False when it is there.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when the operator cannot go on without a person's help; absent or False otherwise.
	ConditionStalled = "Stalled"
)

// SetCondition puts a condition into a list, in place of one of its type. lastTransitionTime stays what it was unless the condition's
// status changes; then it is the one given, or the current time if none is given. The list stays ordered by type. So equal input gives
// an equal list, and a status is only written when it says something new.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition) {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = metav1.Now()
	}
	// The API has whole seconds, in UTC.
	condition.LastTransitionTime = metav1.NewTime(condition.LastTransitionTime.UTC().Truncate(time.Second))
	meta.SetStatusCondition(conditions, condition)
	slices.SortStableFunc(*conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}
