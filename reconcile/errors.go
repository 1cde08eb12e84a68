package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// IsNamespaceTerminating says whether an object could not be created because its namespace is being deleted. Nothing is wrong then,
// and nothing is to be done: the owner will be deleted as well.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// RightsRemedy is for the messages of kinds that are served when asked for: it names the command that prints the rights which an operator
// needs. Without the operator's own --kinds that would print those of the default kinds.
const RightsRemedy = "mysql-operator manifests rbac --kinds=… prints what it needs, given the operator's own --kinds"

// IsGone says whether the API server answered that the object does not exist. An API server that does not serve the resource, because it
// is being upgraded for example, also answers with the code 404, but its answer names no object: nothing is known of the object then.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unservedError replaces the error of an API server that does not serve the resource. It is no NotFound error for apierrors.IsNotFound, so
// that no caller of Client can take it for "the object does not exist".
type unservedError struct {
	answer string
}

func (e *unservedError) Error() string {
	return "the API server does not serve this resource: " + e.answer + "; its definition is missing, or the API server is starting or being upgraded"
}

// served returns the error of a request as callers of Client get it.
func served(err error) error {
	if apierrors.IsNotFound(err) && !IsGone(err) {
		return &unservedError{answer: err.Error()}
	}
	return err
}

// IsUnavailable says whether the API server could not be reached or was not able to answer: a matter of the cluster, not of the
// object that happened to ask. The end of the pass's own time is not that.
func IsUnavailable(err error) bool {
	if apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) {
		return true
	}
	if apierrors.IsTooManyRequests(err) {
		// The Eviction API says the same of a Pod that must not go now.
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
	return fmt.Sprintf("A mistake in the operator stopped its work on this object: %v. It will be tried again; other objects are not affected. The operator's log has the details.", panicked.value)
}
