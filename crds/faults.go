package crds

import (
	"errors"
	"fmt"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// RefusedError says that this program cannot work with a definition as it is, and must not change it.
type RefusedError struct {
	// Name is the definition's name.
	Name string
	// Plan begins with the refusal. Its message ends with what the user can do.
	Plan Plan
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("use definition %s: %s", e.Name, e.Plan.Decision().Message)
}

// ForbiddenError says that the operator does not have a permission on a definition.
type ForbiddenError struct {
	// Name is the definition's name, Verb the missing permission (RBAC verb on customresourcedefinitions).
	Name, Verb string
	cause      error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s definition %s: the operator's account does not have the permission %q on customresourcedefinitions.apiextensions.k8s.io, name %s: "+
		"grant it (mysql-operator manifests rbac | kubectl apply -f -), or apply the definitions by hand "+
		"(mysql-operator manifests crds | kubectl apply --server-side -f -) and start with --crds=check: %v", e.Verb, e.Name, e.Verb, e.Name, e.cause)
}

func (e *ForbiddenError) Unwrap() error {
	return e.cause
}

// explain adds the context to an error of the API server.
func explain(verb, name string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return &ForbiddenError{Name: name, Verb: verb, cause: err}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s definition %s: the API server does not accept the operator's credentials; check its service account token or --kubeconfig: %w", verb, name, err)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%s definition %s: this Kubernetes does not accept it; it must be version 1.30 or later: %w", verb, name, err)
	default:
		return fmt.Errorf("%s definition %s: %w", verb, name, err)
	}
}

// isTransient reports whether the same request may succeed a moment later: the API server is starting, busy or unreachable.
func isTransient(err error) bool {
	if apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) {
		return true
	}
	if utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) {
		return true
	}
	var network net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || (errors.As(err, &network) && network.Timeout())
}

// unservedIsUnavailable replaces the error of an API server that does not serve definitions at the moment, for example because it is
// starting. Its answer has the status code of a definition that does not exist. A caller that misread it would report a deletion, and
// create the definition again.
func unservedIsUnavailable(err error) error {
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return apierrors.NewServiceUnavailable("the API server does not serve definitions at the moment: " + err.Error())
	}
	return err
}
