// Package report has the words in which every kind reports on its objects: problems, conditions, and the events that follow from them.
package report

import (
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// The reasons that FromError gives.
const (
	// ReasonForeignObject: an object with a name that the owner needs belongs to another owner, or to none.
	ReasonForeignObject = "ForeignObject"
	// ReasonPredecessor: such an object belongs to a deleted owner of the same name. Garbage collection will remove it.
	ReasonPredecessor = "WaitingForPredecessor"
	// ReasonForbidden: a permission is missing, or a quota or an admission policy forbids a request.
	ReasonForbidden = "Forbidden"
	// ReasonRejected: the API server refuses a request as invalid.
	ReasonRejected = "Rejected"
)

// ActionReconcile is the action of events about the object as a whole.
const ActionReconcile = "Reconcile"

// LongestMessage limits, in bytes, the message of a condition, and other texts in a status that repeat what other programs wrote. The API
// server accepts no message of more than 32,768 characters.
const LongestMessage = 4096

// LongestWord limits, in bytes, a single word in a status that repeats what another program wrote, such as a version.
const LongestWord = 128

// Problem is why an object is not as its spec says.
type Problem struct {
	// Reason is a constant in CamelCase, the same in conditions, events and the documentation.
	Reason string
	// Message says what is wrong with which object, and what the user can do.
	Message string
	// Stalled reports whether the operator needs a user: the problem does not end without one.
	Stalled bool
}

// Err returns the problem as an error, for functions that return errors. FromError returns the problem again.
func (p Problem) Err() error { return &problemError{p} }

type problemError struct{ problem Problem }

func (e *problemError) Error() string { return e.problem.Message }

// FromError returns the problem that an error stands for. It is nil for errors that a user cannot or need not fix.
func FromError(err error) *Problem {
	if known, ok := errors.AsType[*problemError](err); ok {
		return &known.problem
	}
	foreign, isForeign := errors.AsType[*reconcile.ForeignError](err)
	switch {
	case isForeign && foreign.Predecessor:
		return &Problem{Reason: ReasonPredecessor, Message: foreign.Error()}
	case isForeign:
		return &Problem{Reason: ReasonForeignObject, Message: foreign.Error(), Stalled: true}
	case err == nil, reconcile.IsNamespaceTerminating(err):
		return nil
	case apierrors.IsForbidden(err):
		return &Problem{Reason: ReasonForbidden, Message: err.Error() + "; grant the permission (" + reconcile.PermissionRemedy(err) + "), or remove what forbids it", Stalled: true}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &Problem{Reason: ReasonRejected, Message: err.Error() + "; change the spec, or the policy that rejects it", Stalled: true}
	}
	return nil
}

// Conditions writes the conditions of one object in one pass.
type Conditions struct {
	// List is the list in the object's new status, which begins with the conditions of the previous one.
	List *[]metav1.Condition
	// Generation is the object's metadata.generation, for which the conditions hold.
	Generation int64
	// Now is the time of changes; zero is the current time.
	Now time.Time
}

// Set sets a condition. Its message is cut at 4,096 bytes.
func (c Conditions) Set(kind string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(c.List, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: Brief(message, LongestMessage),
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(c.Now),
	})
}

// SetIf sets a condition to True if it holds, and removes it otherwise.
func (c Conditions) SetIf(holds bool, kind, reason, message string) {
	if !holds {
		c.Remove(kind)
		return
	}
	c.Set(kind, metav1.ConditionTrue, reason, message)
}

// Ready reports an object that is as its spec says.
func (c Conditions) Ready(reason, message string) {
	c.Set(reconcile.ConditionReady, metav1.ConditionTrue, reason, message)
	c.Remove(reconcile.ConditionReconciling, reconcile.ConditionStalled)
}

// Remove removes conditions.
func (c Conditions) Remove(kinds ...string) {
	for _, kind := range kinds {
		meta.RemoveStatusCondition(c.List, kind)
	}
}

// Problem reports an object that is not as its spec says.
func (c Conditions) Problem(found Problem) {
	c.Set(reconcile.ConditionReady, metav1.ConditionFalse, found.Reason, found.Message)
	c.Progress(found)
}

// Progress sets Reconciling or Stalled: the operator continues, or waits for a user.
func (c Conditions) Progress(found Problem) {
	c.SetIf(!found.Stalled, reconcile.ConditionReconciling, found.Reason, found.Message)
	c.SetIf(found.Stalled, reconcile.ConditionStalled, found.Reason, found.Message)
}

// Changed returns the Ready condition of a new status if its status or reason is another than before; nil otherwise.
func Changed(before, after []metav1.Condition) *metav1.Condition {
	was := meta.FindStatusCondition(before, reconcile.ConditionReady)
	is := meta.FindStatusCondition(after, reconcile.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
		return nil
	}
	return is
}

// Events returns the event of a Ready condition that changed. It is a warning if the object is stalled, or if its reason is one of
// warnings. action is what the operator was doing.
func Events(action string, before, after []metav1.Condition, warnings ...string) []reconcile.Event {
	is := Changed(before, after)
	if is == nil {
		return nil
	}
	kind := reconcile.Normal
	if meta.IsStatusConditionTrue(after, reconcile.ConditionStalled) || slices.Contains(warnings, is.Reason) {
		kind = reconcile.Warning
	}
	return []reconcile.Event{{Type: kind, Reason: is.Reason, Action: action, Note: is.Message}}
}

// Brief makes a text of another program fit for a status: valid UTF-8, and no longer than so many bytes.
func Brief(text string, longest int) string {
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
