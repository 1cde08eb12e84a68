package tdset

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// observe reads everything about a TDSet from caches. A cache may be late, and the operator could undo what another client scaled a moment
// ago. So it sets replicas only on the version of the Deployment that it read here (deploymentFor).
func (r *reconciler) observe(set v1.TDSet) (observed, error) {
	seen := observed{now: r.now(), set: set}
	seen.times, seen.problem = readCalendar(set.Spec)
	for _, autoscaler := range r.reader.Cached(autoscalers()).Indexed(indexTarget, keyFor(set.Namespace, set.Name)) {
		switch target := targetOf(autoscaler); {
		case autoscaler.GetDeletionTimestamp() != nil:
		case target.isDeployment():
			seen.autoscaler = autoscaler.GetName()
		case target.isSet():
			seen.setAutoscaler = autoscaler.GetName()
		}
	}
	object, found := r.reader.Cached(deployments()).Get(set.Namespace, set.Name)
	if !found || hasOtherController(object, set) {
		return seen, nil
	}
	var err error
	seen.deployment, err = deploymentOf(object)
	return seen, err
}

// hasOtherController reports whether an object has a controller other than the TDSet.
func hasOtherController(object *unstructured.Unstructured, set v1.TDSet) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID != set.UID
}

// deploymentOf reads a Deployment from the cache.
func deploymentOf(object *unstructured.Unstructured) (*deployment, error) {
	var typed appsv1.Deployment
	if err := schema.Decode(object, &typed); err != nil {
		return nil, err
	}
	found := &deployment{version: object.GetResourceVersion(), replicas: 1, mark: typed.Annotations[annotationScaled],
		paused: typed.Spec.Paused, pods: typed.Status.Replicas, updated: typed.Status.UpdatedReplicas, ready: typed.Status.ReadyReplicas}
	if typed.Spec.Replicas != nil {
		found.replicas = *typed.Spec.Replicas
	}
	found.scaler, _ = object.Object[scalerField].(string)
	status := typed.Status
	found.settled = status.ObservedGeneration >= typed.Generation &&
		status.UpdatedReplicas == found.replicas && status.Replicas == found.replicas && status.AvailableReplicas == found.replicas
	for _, condition := range status.Conditions {
		holds := condition.Status == corev1.ConditionTrue
		switch condition.Type {
		case appsv1.DeploymentAvailable:
			found.available, found.availableReason, found.availableMessage = holds, condition.Reason, condition.Message
		case appsv1.DeploymentProgressing:
			if condition.Status == corev1.ConditionFalse {
				found.stuck = condition.Message
			}
		case appsv1.DeploymentReplicaFailure:
			if holds {
				found.failure = condition.Message
			}
		}
	}
	return found, nil
}

// scalerField is the field of a cached Deployment with the name of the field manager that owns spec.replicas; empty if that is this
// operator. No Deployment of the API has such a field.
const scalerField = "replicasSetBy"

// unknownScaler stands for an unknown client: replicas are set, and no field manager owns them. This operator owns what it sets. A client
// that scales to 0 with the scale subresource owns nothing, because Scale leaves out a 0 (API reference, autoscaling/v1).
const unknownScaler = "another client"

// keepScaler is the transform of the Deployments' cache: of managedFields it keeps only who set the replicas.
func keepScaler(item any) (any, error) {
	if object, ok := item.(*unstructured.Unstructured); ok {
		if _, known := object.Object[scalerField]; !known {
			object.Object[scalerField] = scalerOf(object.GetManagedFields(), hasDefault(object))
		}
	}
	trimmed, err := reconcile.TrimMetadata(item)
	deployment, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	mark, isMarked := deployment.GetAnnotations()[annotationScaled]
	digested, err := reconcile.KeepDigest(append(reconcile.DeploymentStatus(), scalerField, "spec.replicas", "spec.paused")...)(deployment)
	if kept, ok := digested.(*unstructured.Unstructured); ok && isMarked {
		kept.SetAnnotations(map[string]string{annotationScaled: mark})
	}
	return digested, err
}

// hasDefault reports whether a Deployment has the number of replicas that the API server gives if none is set.
func hasDefault(object *unstructured.Unstructured) bool {
	replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return err == nil && found && replicas == 1
}

// scalerOf returns the field manager that last set spec.replicas; empty if this operator did. A default that no manager owns was set by no
// client, and this operator may set it: an earlier operator died before it set a number.
func scalerOf(entries []metav1.ManagedFieldsEntry, isDefault bool) string {
	scaler, when := unknownScaler, time.Time{}
	if isDefault {
		scaler = ""
	}
	for _, entry := range entries {
		if !ownsReplicas(entry) {
			continue
		}
		if entry.Manager == reconcile.ManagerChildren && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return ""
		}
		at := time.Time{}
		if entry.Time != nil {
			at = entry.Time.Time
		}
		if scaler == unknownScaler || scaler == "" || at.After(when) {
			scaler, when = entry.Manager, at
		}
	}
	return scaler
}

// ownsReplicas reports whether a field manager owns spec.replicas.
func ownsReplicas(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Spec struct {
			Replicas *struct{} `json:"f:replicas"`
		} `json:"f:spec"`
	}
	return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec.Replicas != nil
}

// target is what a HorizontalPodAutoscaler scales, in its own namespace.
type target struct {
	group, kind, name string
}

func (t target) isDeployment() bool { return t.group == "apps" && t.kind == "Deployment" }
func (t target) isSet() bool        { return t.group == schema.ScheduleGroup && t.kind == "TDSet" }

func targetOf(autoscaler *unstructured.Unstructured) target {
	named, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	return target{group: apischema.FromAPIVersionAndKind(named["apiVersion"], named["kind"]).Group, kind: named["kind"], name: named["name"]}
}

// indexTarget finds autoscalers by the name of the object that they scale.
const indexTarget = "target"

func targetKey(autoscaler *unstructured.Unstructured) []string {
	return []string{keyFor(autoscaler.GetNamespace(), targetOf(autoscaler).name)}
}

func keyFor(namespace, name string) string {
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

// scaledBy returns the TDSet which an autoscaler scales, directly or through its Deployment, if there is one.
func scaledBy(autoscaler *unstructured.Unstructured, sets reconcile.Lister) []types.NamespacedName {
	target := targetOf(autoscaler)
	if _, found := sets.Get(autoscaler.GetNamespace(), target.name); !found || !target.isDeployment() && !target.isSet() {
		return nil
	}
	return []types.NamespacedName{{Namespace: autoscaler.GetNamespace(), Name: target.name}}
}

// longestName is the longest name of an object of Kubernetes or of this operator. The name of a target has no limit.
const longestName = 253

// keepTarget is the transform of the autoscalers' cache: it keeps only what they scale, if that can be a Deployment or a TDSet.
func keepTarget(item any) (any, error) {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	named := targetOf(object)
	identity, err := reconcile.KeepIdentity(object)
	kept, ok := identity.(*unstructured.Unstructured)
	if err != nil || !ok {
		return identity, err
	}
	if (named.isDeployment() || named.isSet()) && len(named.name) <= longestName {
		// No code reads more of the apiVersion than the group.
		kept.Object["spec"] = map[string]any{"scaleTargetRef": map[string]any{"apiVersion": named.group + "/v1", "kind": named.kind, "name": named.name}}
	}
	return kept, nil
}
