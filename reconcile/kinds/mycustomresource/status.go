package mycustomresource

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

// statusFor returns the status for a verdict.
func statusFor(resource v1.MyCustomResource, found decision, now time.Time) v1.MyCustomResourceStatus {
	status := v1.MyCustomResourceStatus{
		Healthy:            found.healthy,
		ObservedGeneration: resource.Generation,
		Conditions:         slices.Clone(resource.Status.Conditions),
	}
	ready := metav1.ConditionFalse
	switch {
	case found.healthy:
		ready = metav1.ConditionTrue
	case found.stalled:
		ready = metav1.ConditionUnknown
	}
	conditions := report.Conditions{List: &status.Conditions, Generation: resource.Generation, Now: now}
	conditions.Set(v1.ConditionReady, ready, found.reason, found.message)
	conditions.SetIf(found.stalled, v1.ConditionStalled, found.reason, found.message)
	return status
}

// eventsFor returns an event if a user must act. It returns none when the Pod is created or deleted: the status and the Pod's own events
// report that.
func eventsFor(before v1.MyCustomResourceStatus, found decision) []reconcile.Event {
	was := meta.FindStatusCondition(before.Conditions, v1.ConditionReady)
	if !found.stalled || was != nil && was.Reason == found.reason && was.Message == found.message {
		return nil
	}
	return []reconcile.Event{{Type: reconcile.Warning, Reason: found.reason, Action: "Reconcile", Note: found.message}}
}
