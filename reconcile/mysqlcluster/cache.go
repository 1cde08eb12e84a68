package mysqlcluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// slimPod keeps of a Pod what this kind reads: it is the largest object by far, and most of it says again what the StatefulSet says.
func slimPod(item any) (any, error) {
	trimmed, err := reconcile.TrimMetadata(item)
	pod, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	pod.SetAnnotations(nil)
	spec, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	status, _, _ := unstructured.NestedMap(pod.Object, "status")
	kept := map[string]any{}
	for _, field := range []string{"phase", "podIP", "conditions", "containerStatuses", "initContainerStatuses"} {
		if value, found := status[field]; found {
			kept[field] = value
		}
	}
	pod.Object["spec"] = map[string]any{"nodeName": spec}
	pod.Object["status"] = kept
	return pod, nil
}
