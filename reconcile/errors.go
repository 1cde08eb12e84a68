package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// IsNamespaceTerminating reports whether an object could not be created because its namespace is being deleted. This needs no action: the
// owner will be deleted as well.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsGone reports whether the API server answered that the object does not exist. An API server that does not serve the resource, for
// example during an upgrade, also answers with code 404, but its answer names no object. It says nothing about the object.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unservedError replaces the error of an API server that does not serve the resource. apierrors.IsNotFound is false for it, so no caller of
// Client can mistake it for "the object does not exist".
type unservedError struct {
	answer string
}

func (e *unservedError) Error() string {
	return "the API server does not serve this resource: " + e.answer + "; its definition is missing, or the API server is starting or being upgraded"
}

// served returns a request's error in the form that callers of Client get.
func served(err error) error {
	if apierrors.IsNotFound(err) && !IsGone(err) {
		return &unservedError{answer: err.Error()}
	}
	return err
}

// IsUnavailable reports whether the API server could not be reached or could not answer. This is a problem of the Kubernetes cluster, not
// of one object. It is false if the pass's own time ended.
func IsUnavailable(err error) bool {
	if apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) {
		return true
	}
	if apierrors.IsTooManyRequests(err) {
		// The Eviction API answers with the same code if a PodDisruptionBudget forbids the eviction.
		return !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
	}
	var request *url.Error
	if !errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	var operation *net.OpError
	return errors.As(err, &operation) || utilnet.IsConnectionRefused(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// panicError reports that a pass panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("reconcile: panic: %v", e.value)
}

func panicNote(panicked *panicError) string {
	return fmt.Sprintf("A bug in the operator stopped a pass over this object: %v. The operator will retry; other objects are not affected. The operator's log has the details.", panicked.value)
}

// recoverPanic calls work, and turns a panic in it into an error.
func recoverPanic(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	return work()
}
