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
	// pageSize is how many objects are asked for at once: what the memory of a check is bounded by.
	pageSize = 250
	// maxRestarts is how often a list may begin anew because the API server forgot where it was.
	maxRestarts = 3
)

// Checker looks at existing objects before their definition is updated. It needs the right to list them, and writes nothing.
type Checker struct {
	// Client reads the objects.
	Client dynamic.Interface
	// Namespaces are the only ones to look at; empty means all. Objects without a namespace are looked at in any case.
	Namespaces []string
	// PageSize is how many objects are read at once, 250 if 0. Less takes less memory.
	PageSize int64
	// Convert does what the conversion webhook of a definition does: it returns the object in another API version ("group/version").
	// Without it, objects of a definition with a webhook are looked at only in the version they are read in.
	Convert func(object *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error)
}

// New returns a checker that reads with the rights of the configuration, which is not changed. Nothing throttles it but the API server.
func New(config *rest.Config) (Checker, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	own.WarningHandler, own.WarningHandlerWithContext = rest.NoWarnings{}, nil // that a version is deprecated is no news here
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return Checker{}, fmt.Errorf("make a client for custom resources: %w", err)
	}
	return Checker{Client: client}, nil
}

// Check tells what would become of the objects of the existing definition under the target. The target must contain, as the API server
// demands, all versions that objects are stored in. Every error means that nobody knows: it must not be taken for harmless.
//
// An existing definition that is not established has no objects. One that is and yet is not served is an error, because the API server
// asked may only be behind. A missing right is an error that names it, and for which apierrors.IsForbidden is true.
func (c Checker) Check(ctx context.Context, existing, target *apiextensionsv1.CustomResourceDefinition) (crds.Objects, error) {
	examiner, err := newExaminer(existing, target, c.Convert)
	if err != nil {
		return crds.Objects{}, err
	}
	reading := reading{Checker: c, examiner: examiner, established: isEstablished(existing)}
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

// reading is one run through the objects of a definition.
type reading struct {
	Checker
	examiner    examiner
	resource    schema.GroupVersionResource
	established bool
}

// namespace looks at the objects of one namespace, or of all of them.
func (r reading) namespace(ctx context.Context, namespace string) (tally, error) {
	found, next := tally{}, ""
	for restarts := 0; ; {
		page, err := r.list(ctx, namespace, next)
		if apierrors.IsResourceExpired(err) && restarts < maxRestarts {
			restarts++
			if next = resumption(err); next == "" {
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
			return tally{}, r.explain(namespace, errors.New("the API server offered the same page twice"))
		}
	}
}

func (r reading) list(ctx context.Context, namespace, next string) (*unstructured.UnstructuredList, error) {
	options := metav1.ListOptions{Limit: pageSize, Continue: next}
	if r.PageSize > 0 {
		options.Limit = r.PageSize
	}
	if namespace == metav1.NamespaceAll {
		return r.Client.Resource(r.resource).List(ctx, options)
	}
	return r.Client.Resource(r.resource).Namespace(namespace).List(ctx, options)
}

func (r reading) examine(ctx context.Context, page *unstructured.UnstructuredList, found *tally) error {
	for at := range page.Items {
		finding := r.examiner.examine(ctx, &page.Items[at])
		page.Items[at].Object = nil // what was looked at need not wait for the rest of its page
		if err := ctx.Err(); err != nil {
			return err // a rule that was interrupted said nothing
		}
		found.add(finding)
	}
	return nil
}

// resumption returns the token with which an expired list goes on after the last object seen, at the state of now
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#the-resourceversion-parameter); empty if it has to begin anew.
func resumption(err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// explain gives an error of the API server its context.
func (r reading) explain(namespace string, err error) error {
	where := "in all namespaces"
	if namespace != metav1.NamespaceAll {
		where = "in namespace " + namespace
	}
	resource := r.resource.GroupResource()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("list %s %s: the account lacks the right \"list\" on %s %s: grant it, or look after the objects by hand: %w", resource, where, resource, where, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("list %s %s: the definition is established, but version %s is not served: the API server is behind, or somebody removed it just now: "+
			"try again: %w", resource, where, r.resource.Version, err)
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("list %s %s: the API server forgot the list %d times before its end: try again when it is less busy: %w", resource, where, maxRestarts+1, err)
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
