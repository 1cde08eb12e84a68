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
	// ConditionReady is True if the object is as its spec says and serves its purpose.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec; absent or False when the object is as the spec says.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True if the operator cannot continue without a user's help; absent or False otherwise.
	ConditionStalled = "Stalled"
)

// SetCondition adds a condition to a list, or replaces the condition of its type. If the condition's status does not change,
// lastTransitionTime keeps its value. If it changes, lastTransitionTime is the given time, or the current time if none is given. The list
// stays ordered by type. So equal input gives an equal list, and the operator writes a status only if it changed.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition) {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = metav1.Now()
	}
	// The API has whole seconds, in UTC.
	condition.LastTransitionTime = metav1.NewTime(condition.LastTransitionTime.UTC().Truncate(time.Second))
	meta.SetStatusCondition(conditions, condition)
	slices.SortStableFunc(*conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}
