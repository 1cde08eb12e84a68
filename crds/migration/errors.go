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

// ChangedError says that a definition changed while its objects were rewritten. What was done does no harm; run the migration again.
type ChangedError struct {
	// Definition is its name, Difference what changed, in words.
	Definition, Difference string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("migrate objects of definition %s: the definition changed meanwhile: %s: its objects have to be rewritten anew", e.Definition, e.Difference)
}

// Refusal is an object that the API server did not let be rewritten.
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

// RefusedError says that objects could not be rewritten, because the schema or an admission policy no longer accepts them as they are.
// The versions they may be stored in stay in status.storedVersions.
type RefusedError struct {
	// Definition is its name, To the version the objects were to be stored in, From those they may be stored in.
	Definition, To string
	From           []string
	// Count is how many there are; Refusals are the first of them.
	Count    int
	Refusals []Refusal
	// GivenUp says that nothing but refusals came, so that not all objects were tried.
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
	objects := fmt.Sprintf("%d objects are refused as they are", e.Count)
	if e.GivenUp {
		objects = fmt.Sprintf("each of the first %d objects is refused", e.Count)
	}
	return fmt.Sprintf("migrate objects of definition %s to %s: %s: correct or delete them, or grant what is missing; until then %s cannot be dropped: %s",
		e.Definition, e.To, objects, strings.Join(e.From, ", "), strings.Join(lines, " | "))
}

// isPassing says that the same request may succeed a moment later: somebody else wrote at the same time, or the API server is starting,
// busy or out of reach.
func isPassing(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500 || isUnrouted(err)
	}
	// No answer at all, or half of one.
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isUnrouted says that the API server does not know the resource, in contrast to an object that is not there: it is starting, or the
// definition is gone. Taken for a deleted object, it would make every object look deleted.
func isUnrouted(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isRefusal says that the API server understood the request and does not accept what the object would be.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !isPassing(err)
}
