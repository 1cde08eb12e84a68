package pulsarconsumer

import (
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// statusApplied returns the status once the Deployment is as the spec says.
func statusApplied(consumer v1.PulsarConsumer, now observed) v1.PulsarConsumerStatus {
	status := previousStatus(consumer, now)
	status.Server, status.Topic, status.Subscription = consumer.Spec.ServerAddress, consumer.Spec.Topic, consumer.Spec.SubscriptionName
	status.Selector = selectorOf(consumer)
	return status
}

// statusStalled returns the status while the operator cannot make the Deployment match the spec: existing consumers continue with their
// earlier settings.
func statusStalled(consumer v1.PulsarConsumer, now observed, found report.Problem, at time.Time) v1.PulsarConsumerStatus {
	status := previousStatus(consumer, now)
	conditionsOf(&status, at).Problem(found)
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
	conditions := conditionsOf(status, now)
	if found.state == stateReady {
		conditions.Ready(found.reason, found.message)
		return
	}
	conditions.Problem(report.Problem{Reason: found.reason, Message: found.message, Stalled: found.state == stateStalled})
}

func conditionsOf(status *v1.PulsarConsumerStatus, now time.Time) report.Conditions {
	return report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration, Now: now}
}

// eventsFor returns an event if the reason of the Ready condition changed.
func eventsFor(before, after v1.PulsarConsumerStatus) []reconcile.Event {
	return report.Events(report.ActionReconcile, before.Conditions, after.Conditions, reasonApplyFails)
}
