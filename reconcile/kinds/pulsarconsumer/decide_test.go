package pulsarconsumer

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// aConsumer returns a PulsarConsumer with three replicas and without labels.
func aConsumer(changes ...func(*v1.PulsarConsumer)) v1.PulsarConsumer {
	consumer := v1.PulsarConsumer{
		TypeMeta:   metav1.TypeMeta{APIVersion: "pulsar.pulsarconsumer.krvarma.com/v1", Kind: "PulsarConsumer"},
		ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", Generation: 4},
		Spec:       v1.PulsarConsumerSpec{ServerAddress: "pulsar://localhost:6650", Topic: "my-topic", SubscriptionName: "my-subscription", Replicas: 3},
	}
	for _, change := range changes {
		change(&consumer)
	}
	return consumer
}

func withReplicas(count int32) func(*v1.PulsarConsumer) {
	return func(c *v1.PulsarConsumer) { c.Spec.Replicas = count }
}

func withImage(image string) func(*v1.PulsarConsumer) {
	return func(c *v1.PulsarConsumer) { c.Spec.Image = image }
}

func TestDecide(t *testing.T) {
	t.Parallel()
	whole := observed{exists: true, current: true, replicas: 3, updated: 3, ready: 3}
	but := func(change func(*observed)) observed {
		changed := whole
		change(&changed)
		return changed
	}
	for story, test := range map[string]struct {
		consumer v1.PulsarConsumer
		change   reconcile.Change
		now      observed
		want     state
		reason   string
		says     string
	}{
		"as it should be": {aConsumer(), reconcile.Unchanged, whole, stateReady, reasonReplicasReady, "all 3 replicas are ready"},
		"just made":       {aConsumer(), reconcile.Created, observed{}, stateInProgress, reasonRollingOut, "orders-deployment was created"},
		"just changed, and the pass saw the old state":     {aConsumer(), reconcile.Updated, whole, stateInProgress, reasonRollingOut, "was created or changed"},
		"the cache does not have it yet":                   {aConsumer(), reconcile.Unchanged, observed{}, stateInProgress, reasonRollingOut, "was created or changed"},
		"its controller has not observed the change yet":   {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.current = false }), stateInProgress, reasonRollingOut, "was created or changed"},
		"another client is deleting it":                    {aConsumer(), reconcile.Awaiting, observed{}, stateInProgress, reasonRollingOut, "will create it again"},
		"one Pod is being replaced":                        {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.replicas, s.updated = 4, 2 }), stateInProgress, reasonRollingOut, "2 of 3 replicas are new, and 2 old ones are left"},
		"the broker is away":                               {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.ready = 0 }), stateInProgress, reasonReplicasNotReady, "0 of 3 replicas are ready; kubectl logs deployment/orders-deployment"},
		"the user's image does not start":                  {aConsumer(withImage("mine")), reconcile.Unchanged, but(func(s *observed) { s.ready = 1 }), stateInProgress, reasonReplicasNotReady, "kubectl describe pods -l app.kubernetes.io/instance=orders"},
		"the rollout gave up":                              {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.ready, s.stuck = 0, "ReplicaSet x has timed out progressing." }), stateStalled, reasonRolloutStuck, "timed out progressing.; kubectl logs"},
		"a quota prevents Pods":                            {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.replicas, s.updated, s.ready, s.refused = 1, 1, 1, "exceeded quota: small" }), stateStalled, reasonPodsRefused, "exceeded quota: small: change the quota"},
		"a quota prevents Pods for ten minutes":            {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.updated, s.refused, s.stuck = 1, "exceeded quota: small", "timed out" }), stateStalled, reasonPodsRefused, "exceeded quota"},
		"paused in mid-rollout":                            {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.paused, s.updated = true, 1 }), stateStalled, reasonRolloutPaused, "kubectl rollout resume deployment/orders-deployment"},
		"paused once as many new ones as wanted are there": {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.paused, s.replicas = true, 5 }), stateStalled, reasonRolloutPaused, "kubectl rollout resume deployment/orders-deployment"},
		"paused, scaled in, and two are ending":            {aConsumer(withReplicas(1)), reconcile.Unchanged, but(func(s *observed) { s.paused = true }), stateInProgress, reasonRollingOut, "2 replicas are ending"},
		"paused, and scaled out a moment ago":              {aConsumer(withReplicas(5)), reconcile.Unchanged, but(func(s *observed) { s.paused = true }), stateInProgress, reasonRollingOut, "3 of 5 replicas are new"},
		"paused at rest":                                   {aConsumer(), reconcile.Unchanged, but(func(s *observed) { s.paused = true }), stateReady, reasonReplicasReady, ""},
		"scaled in, and two are ending":                    {aConsumer(withReplicas(1)), reconcile.Unchanged, whole, stateInProgress, reasonRollingOut, "2 replicas are ending"},
		"scaled to 0":                                      {aConsumer(withReplicas(0)), reconcile.Unchanged, observed{exists: true, current: true}, stateReady, reasonScaledToZero, "spec.replicas is 0"},
		"scaled to 0, Pods are ending":                     {aConsumer(withReplicas(0)), reconcile.Unchanged, whole, stateInProgress, reasonRollingOut, "3 replicas are ending"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got := decide(test.consumer, test.change, test.now)
			if got.state != test.want || got.reason != test.reason || !strings.Contains(got.message, test.says) {
				t.Errorf("decided %+v, want %s %s saying %q", got, test.want, test.reason, test.says)
			}
		})
	}
}

func TestWhatIsSeenOfADeployment(t *testing.T) {
	t.Parallel()
	typed := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	typed.Spec.Paused = true
	typed.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 6, Replicas: 5, UpdatedReplicas: 4, ReadyReplicas: 3,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out"},
		},
	}
	want := observed{exists: true, paused: true, replicas: 5, updated: 4, ready: 3, refused: "exceeded quota", stuck: "timed out"}
	if got := seenOf(typed); got != want {
		t.Errorf("saw %+v, want %+v", got, want)
	}

	typed.Status.ObservedGeneration = 7
	typed.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionFalse, Message: "was"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "DeploymentPaused", Message: "paused"},
	}
	want = observed{exists: true, current: true, paused: true, replicas: 5, updated: 4, ready: 3}
	if got := seenOf(typed); got != want {
		t.Errorf("saw %+v, want %+v", got, want)
	}
}
