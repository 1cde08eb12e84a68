package objects

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
)

const (
	// pageSize is how many objects are requested at once. It bounds the memory of a check.
	pageSize = 250
	// maxRestarts is how often a list may start again because its continue token has expired.
	maxRestarts = 3
)

// Checker checks existing objects before an update of their definition. It needs the permission to list them, and writes nothing.
type Checker struct {
	// Client reads the objects.
	Client dynamic.Interface
	// Namespaces are the only ones to check; empty means all. Cluster-scoped objects are always checked.
	Namespaces []string
	// PageSize is how many objects are read at once, 250 if 0. A smaller page takes less memory.
	PageSize int64
	// Convert does what the conversion webhook of a definition does: it returns the object in another API version ("group/version").
	// Without it, objects of a definition with a webhook are checked only in the version that they are read in.
	Convert func(object *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error)
}

// New returns a checker that reads with the permissions of the configuration. It does not change the configuration. Only the API server
// throttles it.
func New(config *rest.Config) (Checker, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	own.WarningHandler, own.WarningHandlerWithContext = rest.NoWarnings{}, nil // warnings that a version is deprecated do not matter here
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return Checker{}, fmt.Errorf("make a client for custom resources: %w", err)
	}
	return Checker{Client: client}, nil
}

// Check returns what the target would do to the objects of the existing definition. The target must contain all versions that objects are
// stored in, as the API server demands. After an error the result is unknown, and the caller must not treat the update as harmless.
//
// An existing definition that is not established has no objects. If it is established but not served, Check returns an error, because
// perhaps this API server has not caught up. The error of a missing permission names it, and apierrors.IsForbidden is true for it.
func (c Checker) Check(ctx context.Context, existing, target *apiextensionsv1.CustomResourceDefinition) (crds.Objects, error) {
	examiner, err := newExaminer(existing, target, c.Convert)
	if err != nil {
		return crds.Objects{}, err
	}
	reading := objectCheck{Checker: c, examiner: examiner, established: isEstablished(existing)}
	reading.resource = schema.GroupVersionResource{Group: existing.Spec.Group, Version: examiner.from, Resource: existing.Spec.Names.Plural}
	namespaces := []string{metav1.NamespaceAll}
	if existing.Spec.Scope == apiextensionsv1.NamespaceScoped && len(c.Namespaces) > 0 {
		namespaces = c.Namespaces
	}
	total := tally{}
	for _, namespace := range namespaces {
		found, err := reading.namespace(ctx, namespace)
		if err != nil {
			return crds.Objects{}, err
		}
		total.join(found)
	}
	objects := crds.Objects{Seen: total.seen, Harmed: total.harmed, Findings: total.findings}
	if namespaces[0] != metav1.NamespaceAll {
		objects.Namespaces = namespaces
	}
	return objects, nil
}

// objectCheck is one check of all objects of a definition.
type objectCheck struct {
	Checker
	examiner    examiner
	resource    schema.GroupVersionResource
	established bool
}

// namespace checks the objects of one namespace, or of all.
func (r objectCheck) namespace(ctx context.Context, namespace string) (tally, error) {
	found, next := tally{}, ""
	for restarts := 0; ; {
		page, err := r.list(ctx, namespace, next)
		if apierrors.IsResourceExpired(err) && restarts < maxRestarts {
			restarts++
			if next = continueToken(err); next == "" {
				found = tally{}
			}
			continue
		}
		if apierrors.IsNotFound(err) && !r.established {
			return tally{}, nil
		}
		if err != nil {
			return tally{}, r.explain(namespace, err)
		}
		if err := r.examine(ctx, page, &found); err != nil {
			return tally{}, fmt.Errorf("check objects of %s: %w", r.resource.GroupResource(), err)
		}
		former := next
		if next = page.GetContinue(); next == "" {
			return found, nil
		}
		if next == former {
			return tally{}, r.explain(namespace, errors.New("the API server returned the same page twice"))
		}
	}
}

func (r objectCheck) list(ctx context.Context, namespace, next string) (*unstructured.UnstructuredList, error) {
	options := metav1.ListOptions{Limit: pageSize, Continue: next}
	if r.PageSize > 0 {
		options.Limit = r.PageSize
	}
	if namespace == metav1.NamespaceAll {
		return r.Client.Resource(r.resource).List(ctx, options)
	}
	return r.Client.Resource(r.resource).Namespace(namespace).List(ctx, options)
}

func (r objectCheck) examine(ctx context.Context, page *unstructured.UnstructuredList, found *tally) error {
	for at := range page.Items {
		finding := r.examiner.examine(ctx, &page.Items[at])
		page.Items[at].Object = nil // free the memory of an object before the rest of its page is checked
		if err := ctx.Err(); err != nil {
			return err // the result of an interrupted rule is unknown
		}
		found.add(finding)
	}
	return nil
}

// continueToken returns the token to continue an expired list after the last object, with the current state of the objects
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#the-resourceversion-parameter); empty if the list must start again.
func continueToken(err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// explain adds the context to an error of the API server.
func (r objectCheck) explain(namespace string, err error) error {
	where := "in all namespaces"
	if namespace != metav1.NamespaceAll {
		where = "in namespace " + namespace
	}
	resource := r.resource.GroupResource()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("list %s %s: the account does not have the permission \"list\" on %s %s: grant it, or check the objects by hand: %w", resource, where, resource, where, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("list %s %s: the definition is established, but version %s is not served: the API server has not caught up, or a client has just removed it: "+
			"try again: %w", resource, where, r.resource.Version, err)
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("list %s %s: the list expired %d times before its end: try again when the API server is less busy: %w", resource, where, maxRestarts+1, err)
	default:
		return fmt.Errorf("list %s %s: %w", resource, where, err)
	}
}

func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
