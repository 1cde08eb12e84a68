package pulsarconsumer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// terminating returns the API server's error in a namespace that is being deleted.
func terminating() error {
	err := apierrors.NewForbidden(deployments().GroupResource(), "orders-deployment", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// TestWhatBecomesOfFailures: the status reports a failed write, also while the operator retries.
func TestWhatBecomesOfFailures(t *testing.T) {
	t.Parallel()
	resource := deployments().GroupResource()
	webhook := apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	conflict := apierrors.NewConflict(resource, "orders-deployment", errors.New("changed"))
	unavailable := apierrors.NewServiceUnavailable("starting")
	going, gone := terminating(), &reconcile.ForeignError{Resource: deployments(), Name: "orders-deployment", Predecessor: true}
	for story, test := range map[string]struct {
		failed error
		// reason is the reported reason, in the status and in an event of this type; empty for no report.
		reason, event string
		kind          string
		// err is the error returned to the engine.
		err error
	}{
		"a webhook is down":                    {webhook, reasonApplyFails, reconcile.Warning, reconcile.ConditionReconciling, webhook},
		"the pass took too long":               {context.DeadlineExceeded, reasonApplyFails, reconcile.Warning, reconcile.ConditionReconciling, context.DeadlineExceeded},
		"a predecessor's Deployment is there":  {gone, report.ReasonPredecessor, reconcile.Normal, reconcile.ConditionReconciling, gone},
		"a permission is missing":              {apierrors.NewForbidden(resource, "orders-deployment", errors.New("no")), report.ReasonForbidden, reconcile.Warning, reconcile.ConditionStalled, nil},
		"the Deployment was changed meanwhile": {conflict, "", "", "", conflict},
		"the API server is unavailable":        {unavailable, "", "", "", unavailable},
		"the operator stops":                   {fmt.Errorf("apply: %w", context.Canceled), "", "", "", context.Canceled},
		"the namespace is being deleted":       {going, "", "", "", going},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			consumer := aConsumer()
			consumer.Status = statusApplied(aConsumer(), observed{exists: true, replicas: 3, ready: 3})
			consumer.Spec.Topic = "another"
			r := &reconciler{now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }}
			outcome, err := r.failed(consumer, observed{exists: true, replicas: 3, ready: 2}, test.failed)
			if !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
			if test.reason == "" {
				if outcome.Status != nil || len(outcome.Events) != 0 {
					t.Errorf("reported %+v", outcome)
				}
				return
			}
			status, ok := outcome.Status.(v1.PulsarConsumerStatus)
			ready := meta.FindStatusCondition(status.Conditions, reconcile.ConditionReady)
			if !ok || ready == nil || ready.Reason != test.reason || ready.Status != metav1.ConditionFalse || !meta.IsStatusConditionTrue(status.Conditions, test.kind) {
				t.Fatalf("the status is %+v, want %s, %s", outcome.Status, test.reason, test.kind)
			}
			if status.Topic != "my-topic" || status.ReadyReplicas != 2 || status.ObservedGeneration != 4 {
				t.Errorf("the status reports what the operator has not done: %+v", status)
			}
			if len(outcome.Events) != 1 || outcome.Events[0].Type != test.event || outcome.Events[0].Reason != test.reason {
				t.Errorf("the events are %+v", outcome.Events)
			}

			t.Log("the next attempt is like that one: nothing moves")
			consumer.Status = status
			again, _ := r.failed(consumer, observed{exists: true, replicas: 3, ready: 2}, test.failed)
			if len(again.Events) != 0 {
				t.Errorf("reported again: %+v", again.Events)
			}
		})
	}
}
