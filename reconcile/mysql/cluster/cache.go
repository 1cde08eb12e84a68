package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

// slimSet keeps only what this kind reads of a StatefulSet: of its volume claims only their size, of its Pods only their images.
func slimSet() cache.TransformFunc {
	slim := reconcile.KeepDigest("spec.replicas", "spec.updateStrategy.rollingUpdate.partition", "spec.volumeClaimTemplates.spec.resources.requests.storage",
		"spec.template.spec.containers.name", "spec.template.spec.containers.image",
		"status.observedGeneration", "status.currentRevision", "status.updateRevision")
	return func(item any) (any, error) {
		digested, err := slim(item)
		whole, ok := item.(*unstructured.Unstructured)
		kept, isKept := digested.(*unstructured.Unstructured)
		if err != nil || !ok || !isKept {
			return digested, err
		}
		if image, found := whole.GetAnnotations()[children.AnnotationImage]; found {
			kept.SetAnnotations(map[string]string{children.AnnotationImage: image})
		}
		return kept, nil
	}
}

// slimService keeps only what this kind reads of a Service: the member that it selects.
func slimService(item any) (any, error) {
	digested, err := reconcile.KeepDigest()(item)
	whole, ok := item.(*unstructured.Unstructured)
	kept, isKept := digested.(*unstructured.Unstructured)
	if err != nil || !ok || !isKept {
		return digested, err
	}
	path := []string{"spec", "selector", children.LabelPod}
	if member, found, err := unstructured.NestedString(whole.Object, path...); found && err == nil {
		return kept, unstructured.SetNestedField(kept.Object, member, path...)
	}
	return kept, nil
}

// slimVolume keeps only what this kind reads of a claim.
func slimVolume(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	volume, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	volume.SetAnnotations(nil)
	reconcile.Keep(volume, "spec.resources.requests.storage", "spec.storageClassName", "status.phase")
	return volume, nil
}
