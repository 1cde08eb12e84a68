package transfer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Jobs is the resource of Jobs.
func Jobs() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
}

// ClusterJobs reads the Jobs that restore a cluster or ask its image, and their Pods. It reads them from the API server, because they are
// rare.
type ClusterJobs struct {
	Reader             *reconcile.Reader
	Namespace, Cluster string
}

// Get returns the Job of that name; nil if there is none. A Job of another owner is an error.
func (j ClusterJobs) Get(ctx context.Context, client *reconcile.Client, name string) (*unstructured.Unstructured, error) {
	job, err := j.Reader.Get(ctx, Jobs(), j.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no Job, and no error in looking for one
	}
	if err != nil {
		return nil, err
	}
	return job, client.CheckOwnership(job, Jobs(), Labels(j.Cluster))
}

// Pods returns the Pods of all these Jobs.
func (j ClusterJobs) Pods(ctx context.Context) ([]corev1.Pod, error) {
	pods := apischema.GroupVersionResource{Version: "v1", Resource: "pods"}
	items, err := j.Reader.List(ctx, pods, j.Namespace, Selector+","+LabelRestore+"="+LabelValue(j.Cluster))
	if err != nil {
		return nil, err
	}
	all := make([]corev1.Pod, len(items))
	for i, item := range items {
		if err := schema.Decode(item, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Refusal reads the events of a Job that has no Pod: nothing else reports a quota, a policy or a missing ServiceAccount. It returns an
// empty text if there is no such event.
func (j ClusterJobs) Refusal(ctx context.Context, job *unstructured.Unstructured) (string, error) {
	told, err := j.Reader.Regarding(ctx, job)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	return JobRefusal(told)
}

// IgnoreExists returns nil instead of the error that an object exists already: another operator has created it the same.
func IgnoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
