package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
)

// refusal is Kubernetes' refusal to create a Pod: because of a quota that is used up, a security policy or an admission webhook. The
// StatefulSet's status does not report it; the events of its controller do.
type refusal struct{ pod, why string }

// observeRefusal reads the events of the StatefulSet while a Pod is missing that its controller must have tried to create. If the operator
// may not list events, that is no problem of the cluster: the status then only says less.
func (r *reconciler) observeRefusal(ctx context.Context, n names, seen *observed) error {
	missing := missingPods(n, *seen)
	if len(missing) == 0 {
		return nil
	}
	set, found := r.reader.Cached(statefulSets()).Get(n.namespace, n.cluster)
	if !found {
		return nil
	}
	items, err := r.reader.Regarding(ctx, set)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	told := make([]corev1.Event, 0, len(items))
	for i := range items {
		event, err := eventOf(&items[i])
		if err != nil {
			return err
		}
		told = append(told, event)
	}
	if found := findRefusal(missing, told); found != nil {
		seen.refused = found.problem()
		return nil
	}
	return r.observeForeignPod(ctx, n, missing[0], seen)
}

// observeForeignPod checks whether another owner has a Pod with a member's name. The StatefulSet controller does not report that.
func (r *reconciler) observeForeignPod(ctx context.Context, n names, member string, seen *observed) error {
	pod, err := r.reader.Get(ctx, pods(), n.namespace, member)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller == nil || controller.UID != seen.set.UID {
		foreign := &reconcile.ForeignError{Resource: pods(), Namespace: n.namespace, Name: member}
		if controller != nil {
			foreign.Controller = controller.Kind + "/" + controller.Name
			foreign.Predecessor = controller.Kind == "StatefulSet" && controller.Name == n.cluster
		}
		seen.refused = report.FromError(foreign)
	}
	return nil
}

func eventOf(object *unstructured.Unstructured) (corev1.Event, error) {
	var event corev1.Event
	err := schema.Decode(object, &event)
	return event, err
}

// missingPods names the Pods that do not exist although the StatefulSet controller knows that it must create them.
func missingPods(n names, seen observed) []string {
	if seen.set == nil || seen.set.Status.ObservedGeneration < seen.set.Generation {
		return nil
	}
	var missing []string
	for ordinal := range scaleOf(seen) {
		if _, found := seen.pod(n.member(ordinal)); !found {
			missing = append(missing, n.member(ordinal))
		}
	}
	return missing
}

// findRefusal finds the first missing Pod whose latest event reports that the controller could not create it.
func findRefusal(missing []string, told []corev1.Event) *refusal {
	for _, pod := range missing {
		var last corev1.Event
		for _, event := range told {
			about := strings.Contains(event.Message, " Pod "+pod+" ")
			if about && tellsOfPods(event) && !toldAt(event).Before(toldAt(last)) {
				last = event
			}
		}
		if last.Reason == eventNotMade {
			return &refusal{pod: pod, why: refusalCause(last.Message)}
		}
	}
	return nil
}

// eventNotMade and eventMade are the reasons of the events that Kubernetes' controllers write about Pods that they create.
const (
	eventNotMade = "FailedCreate"
	eventMade    = "SuccessfulCreate"
)

func tellsOfPods(event corev1.Event) bool {
	return event.Reason == eventNotMade || event.Reason == eventMade
}

// toldAt returns when an event was reported last, in whichever of its fields that is.
func toldAt(event corev1.Event) time.Time {
	last := event.CreationTimestamp.Time
	if event.Series != nil && event.Series.LastObservedTime.After(last) {
		last = event.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{event.LastTimestamp.Time, event.EventTime.Time} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// refusalCause removes the text that every such message begins with ("create Pod NAME in StatefulSet NAME failed error: ").
func refusalCause(message string) string {
	if _, cause, found := strings.Cut(message, "failed error: "); found {
		return cause
	}
	return message
}

func (r refusal) problem() *report.Problem {
	return &report.Problem{Reason: reasonPodsNotCreated, Message: fmt.Sprintf("Kubernetes does not create Pod %s: %s; fix that, and Kubernetes tries again within minutes", r.pod, r.why), Stalled: true}
}
