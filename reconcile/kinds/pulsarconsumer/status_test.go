package pulsarconsumer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

func TestStatusTellsWhatTheConsumersWereGiven(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	consumer := aConsumer()
	now := observed{exists: true, current: true, replicas: 3, updated: 3, ready: 2}
	status := statusApplied(consumer, now)
	setConditions(&status, decide(consumer, reconcile.Unchanged, now), noon)
	if status.Server != "pulsar://localhost:6650" || status.Topic != "my-topic" || status.Subscription != "my-subscription" || status.Replicas != 3 || status.ReadyReplicas != 2 {
		t.Errorf("the status is %+v", status)
	}
	if status.Selector != "app.kubernetes.io/instance=orders,app.kubernetes.io/managed-by=mysql-operator,app.kubernetes.io/name=pulsar-consumer" || status.ObservedGeneration != 4 {
		t.Errorf("the selector is %q, the generation %d", status.Selector, status.ObservedGeneration)
	}
	if !meta.IsStatusConditionFalse(status.Conditions, "Ready") || !meta.IsStatusConditionTrue(status.Conditions, "Reconciling") {
		t.Errorf("the conditions are %+v", status.Conditions)
	}

	t.Log("all become ready: a condition that ended is gone, and one event reports it")
	consumer.Status = status
	now.ready = 3
	after := statusApplied(consumer, now)
	setConditions(&after, decide(consumer, reconcile.Unchanged, now), noon.Add(time.Minute))
	if !meta.IsStatusConditionTrue(after.Conditions, "Ready") || len(after.Conditions) != 1 {
		t.Errorf("the conditions are %+v", after.Conditions)
	}
	if len(consumer.Status.Conditions) != 2 {
		t.Error("the status of before was changed")
	}
	if diff := cmp.Diff([]reconcile.Event{{Type: "Normal", Reason: "AllReplicasReady", Action: "Reconcile", Note: "all 3 replicas are ready"}}, eventsFor(status, after)); diff != "" {
		t.Errorf("unexpected events (-want +got):\n%s", diff)
	}

	t.Log("at rest nothing moves, however late it is")
	consumer.Status = after
	again := statusApplied(consumer, now)
	setConditions(&again, decide(consumer, reconcile.Unchanged, now), noon.Add(time.Hour))
	if diff := cmp.Diff(after, again); diff != "" {
		t.Errorf("the status moves at rest (-before +after):\n%s", diff)
	}
	if events := eventsFor(after, again); len(events) != 0 {
		t.Errorf("unexpected events %v", events)
	}
}

func TestAProblemKeepsWhatTheConsumersWereGiven(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	taken := report.Problem{Reason: report.ReasonForeignObject, Message: "taken", Stalled: true}
	consumer := aConsumer()
	consumer.Status = statusApplied(aConsumer(), observed{exists: true, replicas: 3, ready: 3})
	consumer.Spec.Topic = "another"
	status := statusStalled(consumer, observed{exists: true, replicas: 3, ready: 1}, taken, noon)
	if status.Topic != "my-topic" {
		t.Errorf("the status reports what the operator has not done: %+v", status)
	}
	if status.Replicas != 3 || status.ReadyReplicas != 1 {
		t.Errorf("%d replicas, of which %d are ready, want 3 and 1: those that there are", status.Replicas, status.ReadyReplicas)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, "Stalled") {
		t.Errorf("the conditions are %+v", status.Conditions)
	}
	if events := eventsFor(consumer.Status, status); len(events) != 1 || events[0].Type != reconcile.Warning {
		t.Errorf("unexpected events %v", events)
	}

	t.Log("a user deletes the Deployment: no consumer runs, and the status reports that")
	consumer.Status = status
	if status = statusStalled(consumer, observed{}, taken, noon); status.Replicas != 0 || status.ReadyReplicas != 0 {
		t.Errorf("%d replicas, of which %d are ready, and there is no Deployment", status.Replicas, status.ReadyReplicas)
	}
}

// TestReasonsAreDocumented: the document explains every reason that users find in a status.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	reasons.CheckDocumented(t, "../../../docs/pulsarconsumer.md", reasons.Constants(t, ".", "reason"))
	reasons.CheckDocumented(t, "../../../docs/pulsarconsumer.md", reasons.Constants(t, "../../report", "Reason"))
}
