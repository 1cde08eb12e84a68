package pulsarconsumer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// observed is what a pass observed of the Deployment.
type observed struct {
	// exists is false while the cache does not have the Deployment, and while it is being deleted.
	exists bool
	// current reports whether the Deployment's controller has observed its latest change.
	current bool
	// paused reports whether a user has paused its rollout.
	paused bool
	// replicas is the number of its Pods, updated the number with the latest template, ready the number that are ready.
	replicas, updated, ready int32
	// refused is why its controller cannot create Pods, stuck why a rollout makes no progress; empty if there is no such problem.
	refused, stuck string
}

// observe reads the Deployment from the cache.
func (r *reconciler) observe(consumer v1.PulsarConsumer, owner *unstructured.Unstructured) (observed, error) {
	object, found := r.reader.Cached(deployments()).Get(consumer.Namespace, deploymentName(consumer))
	if !found || object.GetDeletionTimestamp() != nil || !metav1.IsControlledBy(object, owner) {
		return observed{}, nil
	}
	var typed appsv1.Deployment
	if err := schema.Decode(object, &typed); err != nil {
		return observed{}, err
	}
	return seenOf(typed), nil
}

// deadlineExceeded is the reason of the condition Progressing after a rollout gave up (Kubernetes documentation, "Deployments").
const deadlineExceeded = "ProgressDeadlineExceeded"

func seenOf(typed appsv1.Deployment) observed {
	now := observed{
		exists:   true,
		current:  typed.Status.ObservedGeneration >= typed.Generation,
		paused:   typed.Spec.Paused,
		replicas: typed.Status.Replicas, updated: typed.Status.UpdatedReplicas, ready: typed.Status.ReadyReplicas,
	}
	for _, condition := range typed.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			now.refused = condition.Message
		case condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse && condition.Reason == deadlineExceeded:
			now.stuck = condition.Message
		}
	}
	return now
}
