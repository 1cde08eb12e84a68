package configmonitor

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// cachedConfig returns the monitor's ConfigMap as the cache has it.
func (r *reconciler) cachedConfig(monitor v1.ConfigMonitor) (config, error) {
	name := monitor.Spec.ConfigMapName()
	object, found := r.reader.Cached(configMaps()).Get(monitor.Namespace, name)
	if !found {
		return config{name: name}, nil
	}
	return configFrom(object)
}

// liveConfig returns the monitor's ConfigMap as the API server has it.
func (r *reconciler) liveConfig(ctx context.Context, monitor v1.ConfigMonitor) (config, error) {
	name := monitor.Spec.ConfigMapName()
	object, err := r.reader.Get(ctx, configMaps(), monitor.Namespace, name)
	if apierrors.IsNotFound(err) {
		return config{name: name}, nil
	}
	if err != nil {
		return config{}, err
	}
	return configFrom(object)
}

// runningPods returns the Pods that the monitor selects by all of its labels, each with its origin.
func (r *reconciler) runningPods(ctx context.Context, monitor v1.ConfigMonitor) ([]pod, error) {
	objects, err := r.reader.List(ctx, pods(), monitor.Namespace, selectorOf(monitor).String())
	if err != nil {
		return nil, err
	}
	sets := map[types.UID]parent{}
	running := make([]pod, 0, len(objects))
	for _, object := range objects {
		var typed corev1.Pod
		if err := schema.Decode(object, &typed); err != nil {
			return nil, err
		}
		controller, set := metav1.GetControllerOf(&typed), parent{}
		if isA(controller, "apps", kindReplicaSet) {
			if set, err = r.replicaSet(ctx, monitor.Namespace, controller, sets); err != nil {
				return nil, err
			}
		}
		one := podFrom(typed)
		one.origin = originOf(controller, set)
		running = append(running, one)
	}
	return running, nil
}

// replicaSet returns what originOf needs of a Pod's ReplicaSet. known has the ReplicaSets that this pass has read.
func (r *reconciler) replicaSet(ctx context.Context, namespace string, set *metav1.OwnerReference, known map[types.UID]parent) (parent, error) {
	if found, ok := known[set.UID]; ok {
		return found, nil
	}
	object, err := r.reader.Get(ctx, apps("replicasets"), namespace, set.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return parent{}, err
	}
	found := parent{}
	if err == nil && object.GetUID() == set.UID {
		found = parent{exists: true, controller: metav1.GetControllerOf(object)}
	}
	known[set.UID] = found
	return found, nil
}

func podFrom(typed corev1.Pod) pod {
	one := pod{name: typed.Name, uid: typed.UID, labels: typed.Labels, ending: typed.DeletionTimestamp != nil}
	one.ended = typed.Status.Phase == corev1.PodSucceeded || typed.Status.Phase == corev1.PodFailed
	for _, condition := range typed.Status.Conditions {
		if condition.Type == corev1.PodReady {
			one.ready = condition.Status == corev1.ConditionTrue
		}
	}
	return one
}

func selectorOf(monitor v1.ConfigMonitor) labels.Selector {
	return labels.SelectorFromSet(monitor.Spec.PodSelector)
}

// siblings returns the plans of other monitors of the same ConfigMap for its current version. Reading them from the cache is enough: a
// monitor acts on its plan only when the cache has it.
func (r *reconciler) siblings(monitor v1.ConfigMonitor, now config) ([]sibling, error) {
	found := []sibling{}
	for _, object := range r.reader.Cached(r.resource).Indexed(indexConfigMap, keyFor(monitor.Namespace, now.name)) {
		if object.GetUID() == monitor.UID {
			continue
		}
		var other v1.ConfigMonitor
		if err := schema.Decode(object, &other); err != nil {
			return nil, err
		}
		restart := other.Status.LastRestart
		// With the same generation, the plan was made with the current selector.
		if restart == nil || restart.Hash != now.hash || restart.ConfigMapResourceVersion != now.version || restart.Generation != other.Generation {
			continue
		}
		planned := map[types.UID]bool{}
		for _, entry := range restart.Workloads {
			planned[entry.UID] = true
		}
		found = append(found, sibling{selector: selectorOf(other), planned: planned})
	}
	return found, nil
}

// observe reads the workloads of the plan that are not done yet.
func (r *reconciler) observe(ctx context.Context, monitor v1.ConfigMonitor) (observed, error) {
	restart := monitor.Status.LastRestart
	seen := observed{now: r.now(), hash: restart.Hash, rollouts: map[types.UID]rollout{}}
	evicts := false
	for _, entry := range restart.Workloads {
		if isDone(entry) {
			continue
		}
		if entry.Kind == kindPod {
			evicts = true
			continue
		}
		if err := r.observeRollout(ctx, monitor, entry, seen); err != nil {
			return seen, err
		}
	}
	if !evicts {
		return seen, nil
	}
	var err error
	seen.pods, err = r.runningPods(ctx, monitor)
	return seen, err
}

// observeRollout reads one workload. It records nothing for one that is gone or is being deleted.
func (r *reconciler) observeRollout(ctx context.Context, monitor v1.ConfigMonitor, entry v1.RestartedWorkload, seen observed) error {
	object, err := r.reader.Get(ctx, workloadResource(entry.Kind), monitor.Namespace, entry.Name)
	if apierrors.IsNotFound(err) || err == nil && (object.GetUID() != entry.UID || object.GetDeletionTimestamp() != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	found, err := rolloutOf(object, entry.Kind, stampKey(monitor.Status.ObservedConfigMap))
	if err != nil {
		return err
	}
	seen.rollouts[entry.UID] = found
	return nil
}

func workloadResource(kind string) apischema.GroupVersionResource {
	switch kind {
	case kindStatefulSet:
		return apps("statefulsets")
	case kindDaemonSet:
		return apps("daemonsets")
	default:
		return apps("deployments")
	}
}

func rolloutOf(object *unstructured.Unstructured, kind, key string) (rollout, error) {
	switch kind {
	case kindStatefulSet:
		var set appsv1.StatefulSet
		err := schema.Decode(object, &set)
		return rolloutOfStatefulSet(set, key), err
	case kindDaemonSet:
		var set appsv1.DaemonSet
		err := schema.Decode(object, &set)
		return rolloutOfDaemonSet(set, key), err
	default:
		var deployment appsv1.Deployment
		err := schema.Decode(object, &deployment)
		return rolloutOfDeployment(deployment, key), err
	}
}
