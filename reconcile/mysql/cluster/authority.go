package cluster

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

// The CAs of a cluster, with their keys, are in a Secret of the operator's own namespace. So a client that may read Secrets in the
// cluster's namespace cannot sign in the cluster's name. That Secret cannot have an owner there; HandleDeletion deletes it.

// annotationTold, on that Secret, is when the members got the newest CA, annotationClientsTold when clients got it, as RFC 3339.
const (
	annotationTold        = children.Prefix + "members-told"
	annotationClientsTold = children.Prefix + "clients-told"
)

// home is the operator's own namespace, and how to read it.
type home struct {
	reader    reader
	namespace string
}

func (r *reconciler) home() home { return home{r.reader, r.operator.Home} }

// reader reads the API server. It cannot write.
type reader interface {
	Get(ctx context.Context, resource apischema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	List(ctx context.Context, resource apischema.GroupVersionResource, namespace, selector string) ([]*unstructured.Unstructured, error)
}

// readAuthorities returns the CAs that the operator keeps for a cluster, and the Secret as it was read; both are nil if there is no Secret.
// A Secret that is damaged, or that belongs to an earlier cluster of that name, has no CAs.
func (h home) readAuthorities(ctx context.Context, n children.Names, cluster types.UID) (agent.Authorities, *unstructured.Unstructured, error) {
	found, err := h.reader.Get(ctx, children.Secrets(), h.namespace, n.AuthoritySecret())
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if found.GetLabels()[children.LabelManagedBy] != children.ManagedBy || found.GetLabels()[children.LabelClusterUID] == "" {
		return nil, nil, &reconcile.ForeignError{Resource: children.Secrets(), Namespace: h.namespace, Name: n.AuthoritySecret()}
	}
	if found.GetLabels()[children.LabelClusterUID] != string(cluster) {
		return nil, found, nil
	}
	content, err := children.SecretData(found)
	if err != nil {
		return nil, nil, err
	}
	held, err := agent.ReadAuthorities(content)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("the cluster's CA is damaged, creating a new one", "secret", h.namespace+"/"+n.AuthoritySecret(), "error", err.Error())
	}
	return held, found, nil
}

// writeAuthorities replaces the CAs that were read.
func (r *reconciler) writeAuthorities(ctx context.Context, client *reconcile.Client, n children.Names, held agent.Authorities, read *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := held.Data()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{children.LabelManagedBy: children.ManagedBy, children.LabelClusterUID: string(client.Owner().GetUID())}
	if read == nil {
		return client.CreateUnowned(ctx, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: n.AuthoritySecret(), Namespace: r.operator.Home, Labels: labels},
			Type:       corev1.SecretTypeOpaque, Data: data,
		})
	}
	metadata := map[string]any{"labels": labels, "annotations": map[string]any{annotationTold: nil, annotationClientsTold: nil}}
	return client.Patch(ctx, children.Secrets(), read, map[string]any{"metadata": metadata, "data": encoded(data)})
}

// noteTold records in one of these annotations when members or clients got the newest CA.
func (r *reconciler) noteTold(ctx context.Context, client *reconcile.Client, read *unstructured.Unstructured, annotation string, at time.Time) (*unstructured.Unstructured, error) {
	told := map[string]any{annotation: at.UTC().Format(time.RFC3339)}
	return client.Patch(ctx, children.Secrets(), read, map[string]any{"metadata": map[string]any{"annotations": told}})
}

// readDistribution returns that time; zero if it is not recorded.
func readDistribution(secret *unstructured.Unstructured, annotation string) time.Time {
	if secret == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, secret.GetAnnotations()[annotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// encoded returns the data of a Secret in the form that a patch needs.
func encoded(data map[string][]byte) map[string]any {
	changes := map[string]any{}
	for key, value := range data {
		changes[key] = base64.StdEncoding.EncodeToString(value)
	}
	return changes
}

// HandleDeletion implements reconcile.DeletionHandler: it deletes the Secret with the CAs of a deleted cluster. If it is not certain that
// the cluster is gone, the Secret stays.
func (r *reconciler) HandleDeletion(ctx context.Context, client *reconcile.Client, key types.NamespacedName) error {
	n := children.Names{Namespace: key.Namespace, Cluster: key.Name}
	if !r.reader.WorksIn(n.Namespace) {
		return nil
	}
	secret, err := r.reader.Get(ctx, children.Secrets(), r.operator.Home, n.AuthoritySecret())
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || secret.GetLabels()[children.LabelManagedBy] != children.ManagedBy || secret.GetLabels()[children.LabelClusterUID] == "" {
		return err
	}
	_, err = r.reader.Get(ctx, r.resource, n.Namespace, n.Cluster)
	switch {
	case apierrors.IsNotFound(err):
		return client.Delete(ctx, children.Secrets(), secret)
	case apierrors.IsForbidden(err):
		logr.FromContextOrDiscard(ctx).Info("cannot check whether the cluster is gone, keeping its CA", "error", err.Error())
		return nil
	}
	return err // a new cluster of this name writes the Secret again in its own passes
}

// ListDeleted implements reconcile.DeletionHandler: it returns the clusters that have a Secret with CAs.
func (r *reconciler) ListDeleted(ctx context.Context) ([]types.NamespacedName, error) {
	found, err := r.reader.List(ctx, children.Secrets(), r.operator.Home, children.LabelManagedBy+"="+children.ManagedBy+","+children.LabelClusterUID)
	if err != nil {
		return nil, err
	}
	left := make([]types.NamespacedName, 0, len(found))
	for _, one := range found {
		if namespace, cluster, ok := agent.ClusterOf(one.GetName()); ok {
			left = append(left, types.NamespacedName{Namespace: namespace, Name: cluster})
		}
	}
	return left, nil
}
