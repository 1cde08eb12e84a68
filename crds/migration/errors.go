package migration

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ChangedError says that a definition changed while its objects were rewritten. This does no harm; run the migration again.
type ChangedError struct {
	// Definition is its name, Difference a description of what changed.
	Definition, Difference string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("migrate objects of definition %s: the definition changed meanwhile: %s: its objects must be rewritten again", e.Definition, e.Difference)
}

// Refusal is an object whose rewriting the API server refused.
type Refusal struct {
	Namespace, Name string
	// Cause is the API server's answer.
	Cause error
}

func (r Refusal) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s: %v", r.Name, r.Cause)
	}
	return fmt.Sprintf("%s/%s: %v", r.Namespace, r.Name, r.Cause)
}

// RefusedError says that objects could not be rewritten, because the schema or an admission policy no longer accepts them as they are. The
// versions that they may be stored in stay in status.storedVersions.
type RefusedError struct {
	// Definition is its name, To the storage version, From the versions that objects may be stored in.
	Definition, To string
	From           []string
	// Count is the number of refused objects; Refusals are the first of them.
	Count    int
	Refusals []Refusal
	// GivenUp says that the API server refused every object, so that the run ended before it tried all.
	GivenUp bool
}

// refusalsKept bounds RefusedError.Refusals.
const refusalsKept = 20

func (e *RefusedError) Error() string {
	lines := []string{}
	for _, refusal := range e.Refusals {
		lines = append(lines, refusal.String())
	}
	if more := e.Count - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	objects := fmt.Sprintf("the API server refuses %d objects as they are", e.Count)
	if e.GivenUp {
		objects = fmt.Sprintf("the API server refuses each of the first %d objects", e.Count)
	}
	return fmt.Sprintf("migrate objects of definition %s to %s: %s: correct or delete them, or grant the missing permission; until then version %s cannot be dropped: %s",
		e.Definition, e.To, objects, strings.Join(e.From, ", "), strings.Join(lines, " | "))
}

// isTransient reports whether the same request may succeed a moment later: another client wrote at the same time, or the API server is
// starting, busy or unreachable.
func isTransient(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500 || isUnrouted(err)
	}
	// There was no answer, or only a part of one.
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isUnrouted reports whether the API server does not know the resource, in contrast to a missing object: it is starting, or the definition
// was deleted. If this counted as a deleted object, every object would look deleted.
func isUnrouted(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isRefusal reports whether the API server understood the request and does not accept the resulting object.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !isTransient(err)
}
