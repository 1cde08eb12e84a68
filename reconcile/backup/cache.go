package backup

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// SlimJob keeps of a Job, on its way into a cache, what Observe and the kinds read.
func SlimJob(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	job, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	keep(job, "spec", "activeDeadlineSeconds", "backoffLimit", "suspend")
	keep(job, "status", "conditions", "active", "succeeded", "failed", "startTime", "completionTime")
	return job, nil
}

// SlimPod keeps of a Pod, on its way into a cache, what Observe reads.
func SlimPod(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	pod, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	pod.SetAnnotations(nil)
	keep(pod, "spec", "nodeName")
	keep(pod, "status", "phase", "reason", "message", "podIP", "startTime", "conditions", "initContainerStatuses", "containerStatuses")
	return pod, nil
}

// keep drops all but some of the fields of a part of an object.
func keep(object *unstructured.Unstructured, part string, fields ...string) {
	all, found := object.Object[part].(map[string]any)
	if !found {
		return
	}
	kept := make(map[string]any, len(fields))
	for _, field := range fields {
		if value, there := all[field]; there {
			kept[field] = value
		}
	}
	object.Object[part] = kept
}
