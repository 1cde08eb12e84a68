package transfer

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

// Kubernetes refuses to create a Pod because of a quota, a security policy, an admission webhook or a missing service account. Only the
// events of the Pod's controller report that.

// eventNotMade and eventMade are the reasons of the events that Kubernetes' controllers write about Pods that they create.
const (
	eventNotMade = "FailedCreate"
	eventMade    = "SuccessfulCreate"
)

// JobRefusal returns why Kubernetes creates no Pod for a Job, from the events of the Job. It is empty if the events do not report that, or
// if Kubernetes has created a Pod since.
func JobRefusal(told []unstructured.Unstructured) (string, error) {
	events, err := DecodeEvents(told)
	if err != nil {
		return "", err
	}
	message, _ := LastRefusal(events)
	return strings.TrimPrefix(message, "Error creating: "), nil
}

// DecodeEvents decodes events of the API server.
func DecodeEvents(told []unstructured.Unstructured) ([]corev1.Event, error) {
	events := make([]corev1.Event, len(told))
	for i := range told {
		if err := schema.Decode(&told[i], &events[i]); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// LastRefusal returns the latest message of a controller that it could not create a Pod. refused is false if there is none, or if the
// controller has created a Pod since.
func LastRefusal(events []corev1.Event) (message string, refused bool) {
	var last corev1.Event
	for _, event := range events {
		isAboutPods := event.Reason == eventNotMade || event.Reason == eventMade
		if isAboutPods && !toldAt(event).Before(toldAt(last)) {
			last = event
		}
	}
	if last.Reason != eventNotMade {
		return "", false
	}
	return last.Message, true
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
