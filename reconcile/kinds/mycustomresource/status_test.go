package mycustomresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

// noon is the time of the first pass over the tests' resources.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant, which a time cannot be

func found() decision   { return decision{healthy: true, reason: reasonPodFound, message: "it exists"} }
func missing() decision { return decision{reason: reasonPodNotFound, message: "it does not exist"} }
func unknown() decision {
	return decision{stalled: true, reason: reasonNamespaceNotWatched, message: "the operator cannot know"}
}

// after returns a resource whose status has had these verdicts, one after another, a minute apart.
func after(verdicts ...decision) v1.MyCustomResource {
	resource := v1.MyCustomResource{}
	resource.Generation = 2
	for i, one := range verdicts {
		resource.Status = statusFor(resource, one, noon.Add(time.Duration(i)*time.Minute))
	}
	return resource
}

func condition(name string, status metav1.ConditionStatus, from decision, minutes time.Duration) metav1.Condition {
	return metav1.Condition{
		Type: name, Status: status, Reason: from.reason, Message: from.message, ObservedGeneration: 2,
		LastTransitionTime: metav1.NewTime(noon.Add(minutes * time.Minute)),
	}
}

func TestReported(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		verdicts []decision
		want     v1.MyCustomResourceStatus
	}{
		"the Pod exists": {[]decision{found()}, v1.MyCustomResourceStatus{Healthy: true, Conditions: []metav1.Condition{
			condition(v1.ConditionReady, metav1.ConditionTrue, found(), 0),
		}}},
		"it still does": {[]decision{found(), found()}, v1.MyCustomResourceStatus{Healthy: true, Conditions: []metav1.Condition{
			condition(v1.ConditionReady, metav1.ConditionTrue, found(), 0),
		}}},
		"it is gone": {[]decision{found(), missing()}, v1.MyCustomResourceStatus{Conditions: []metav1.Condition{
			condition(v1.ConditionReady, metav1.ConditionFalse, missing(), 1),
		}}},
		"it is looked for where the operator does not work": {[]decision{found(), unknown()}, v1.MyCustomResourceStatus{Conditions: []metav1.Condition{
			condition(v1.ConditionReady, metav1.ConditionUnknown, unknown(), 1),
			condition(v1.ConditionStalled, metav1.ConditionTrue, unknown(), 1),
		}}},
		"and then where it does": {[]decision{unknown(), found()}, v1.MyCustomResourceStatus{Healthy: true, Conditions: []metav1.Condition{
			condition(v1.ConditionReady, metav1.ConditionTrue, found(), 1),
		}}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			test.want.ObservedGeneration = 2
			same(t, after(test.verdicts...).Status, test.want)
		})
	}
}

// TestReportedKeepsOtherConditions: conditions of other clients stay.
func TestReportedKeepsOtherConditions(t *testing.T) {
	t.Parallel()
	resource := after(missing())
	resource.Status.Conditions = append(resource.Status.Conditions, metav1.Condition{Type: "Approved", Status: metav1.ConditionTrue, Reason: "Checked"})
	if conditions := statusFor(resource, found(), noon).Conditions; len(conditions) != 2 || conditions[0].Type != "Approved" {
		t.Errorf("the conditions are %+v", conditions)
	}
}

func TestTell(t *testing.T) {
	t.Parallel()
	other := unknown()
	other.message = "the operator cannot know about another namespace"
	for story, test := range map[string]struct {
		before v1.MyCustomResource
		now    decision
		want   int
	}{
		"the Pod came":                              {after(missing()), found(), 0},
		"the Pod went":                              {after(found()), missing(), 0},
		"the operator cannot know":                  {after(), unknown(), 1},
		"the operator cannot know any more":         {after(found()), unknown(), 1},
		"the operator could not know before either": {after(unknown()), unknown(), 0},
		"now it cannot know about another":          {after(unknown()), other, 1},
		"the operator can know again":               {after(unknown()), missing(), 0},
		"the resource is new, and all well":         {after(), found(), 0},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if events := eventsFor(test.before.Status, test.now); len(events) != test.want {
				t.Errorf("%d events, want %d: %+v", len(events), test.want, events)
			}
		})
	}
}

// TestReasonsAreDocumented: the document explains every reason that users find in a status.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	reasons.CheckDocumented(t, "../../../docs/mycustomresource.md", reasons.Constants(t, ".", "reason"))
}
