package mysqlcluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// slimSet keeps of a StatefulSet what this kind reads: of the claims that it is to make only how large the first is.
func slimSet(item any) (any, error) {
	const spec, claims = "spec", "volumeClaimTemplates"
	digested, err := reconcile.KeepDigest("spec.replicas", "spec.volumeClaimTemplates", "status")(item)
	set, ok := digested.(*unstructured.Unstructured)
	if err != nil || !ok {
		return digested, err
	}
	found, _, _ := unstructured.NestedFieldNoCopy(set.Object, spec, claims)
	templates, _ := found.([]any)
	if len(templates) == 0 {
		return set, nil
	}
	path := []string{spec, "resources", "requests", "storage"}
	first, _ := templates[0].(map[string]any)
	size, _, _ := unstructured.NestedString(first, path...)
	kept := map[string]any{}
	if err := unstructured.SetNestedField(kept, size, path...); err != nil {
		return nil, err
	}
	return set, unstructured.SetNestedSlice(set.Object, []any{kept}, spec, claims)
}

// slimPod keeps of a Pod what this kind reads: it is the largest object by far, and most of it says again what the StatefulSet says.
func slimPod(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	pod, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	pod.SetAnnotations(nil)
	keep(pod, "spec", "nodeName")
	keep(pod, "status", "phase", "podIP", "conditions", "containerStatuses", "initContainerStatuses")
	return pod, nil
}

// slimVolume keeps of a claim what this kind reads.
func slimVolume(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	volume, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	volume.SetAnnotations(nil)
	keep(volume, "spec", "resources", "storageClassName")
	keep(volume, "status", "phase", "capacity", "conditions")
	return volume, nil
}

// keep drops all but some of the fields of a part of an object.
func keep(object *unstructured.Unstructured, part string, fields ...string) {
	all, _ := object.Object[part].(map[string]any)
	kept := make(map[string]any, len(fields))
	for _, field := range fields {
		if value, found := all[field]; found {
			kept[field] = value
		}
	}
	object.Object[part] = kept
}
