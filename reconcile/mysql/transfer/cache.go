package transfer

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// SlimJob keeps only those fields of a Job in a cache that Observe and the kinds read.
func SlimJob(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	job, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	reconcile.Keep(job, append(reconcile.Conditions(), "spec.activeDeadlineSeconds", "status.succeeded", "status.failed")...)
	return job, nil
}
