package mycustomresource

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

// statusFor returns the status for a verdict.
func statusFor(resource v1.MyCustomResource, found decision, now time.Time) v1.MyCustomResourceStatus {
	status := v1.MyCustomResourceStatus{
		Healthy:            found.healthy,
		ObservedGeneration: resource.Generation,
		Conditions:         slices.Clone(resource.Status.Conditions),
	}
	condition := metav1.Condition{
		Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: found.reason, Message: found.message,
		ObservedGeneration: resource.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case found.healthy:
		condition.Status = metav1.ConditionTrue
	case found.stalled:
		condition.Status = metav1.ConditionUnknown
	}
	reconcile.SetCondition(&status.Conditions, condition)
	if !found.stalled {
		meta.RemoveStatusCondition(&status.Conditions, v1.ConditionStalled)
		return status
	}
	condition.Type, condition.Status = v1.ConditionStalled, metav1.ConditionTrue
	reconcile.SetCondition(&status.Conditions, condition)
	return status
}

// eventsFor returns an event if a user must act. It returns none when the Pod is created or deleted: the status and the Pod's own events report
// that.
func eventsFor(before v1.MyCustomResourceStatus, found decision) []reconcile.Event {
	was := meta.FindStatusCondition(before.Conditions, v1.ConditionReady)
	if !found.stalled || was != nil && was.Reason == found.reason && was.Message == found.message {
		return nil
	}
	return []reconcile.Event{{Type: reconcile.Warning, Reason: found.reason, Action: "Reconcile", Note: found.message}}
}
