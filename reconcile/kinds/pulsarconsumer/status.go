package pulsarconsumer

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// statusApplied returns the status once the Deployment is as the spec says.
func statusApplied(consumer v1.PulsarConsumer, now observed) v1.PulsarConsumerStatus {
	status := previousStatus(consumer, now)
	status.Server, status.Topic, status.Subscription = consumer.Spec.ServerAddress, consumer.Spec.Topic, consumer.Spec.SubscriptionName
	status.Selector = selectorOf(consumer)
	return status
}

// statusStalled returns the status while the operator cannot make the Deployment match the spec: existing consumers continue with their earlier
// settings.
func statusStalled(consumer v1.PulsarConsumer, now observed, found decision, at time.Time) v1.PulsarConsumerStatus {
	status := previousStatus(consumer, now)
	setConditions(&status, found, at)
	return status
}

// previousStatus returns the previous status with what is true after any pass: generation and counts.
func previousStatus(consumer v1.PulsarConsumer, now observed) v1.PulsarConsumerStatus {
	status := consumer.Status
	status.ObservedGeneration = consumer.Generation
	status.Replicas, status.ReadyReplicas = now.replicas, now.ready
	status.Conditions = slices.Clone(consumer.Status.Conditions)
	return status
}

// setConditions sets the conditions from a verdict.
func setConditions(status *v1.PulsarConsumerStatus, found decision, now time.Time) {
	ready := metav1.ConditionFalse
	if found.state == stateReady {
		ready = metav1.ConditionTrue
	}
	set := func(kind string, value metav1.ConditionStatus) {
		reconcile.SetCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: found.reason, Message: found.message,
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
		})
	}
	set(reconcile.ConditionReady, ready)
	for kind, is := range map[string]state{reconcile.ConditionReconciling: stateInProgress, reconcile.ConditionStalled: stateStalled} {
		if found.state == is {
			set(kind, metav1.ConditionTrue)
			continue
		}
		meta.RemoveStatusCondition(&status.Conditions, kind)
	}
}

// eventsFor returns an event if the reason of the Ready condition changed.
func eventsFor(before, after v1.PulsarConsumerStatus) []reconcile.Event {
	was := meta.FindStatusCondition(before.Conditions, reconcile.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, reconcile.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return nil
	}
	kind := reconcile.Normal
	if meta.IsStatusConditionTrue(after.Conditions, reconcile.ConditionStalled) || is.Reason == reasonApplyFails {
		kind = reconcile.Warning
	}
	return []reconcile.Event{{Type: kind, Reason: is.Reason, Action: "Reconcile", Note: is.Message}}
}
