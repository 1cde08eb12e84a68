package integration

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTDSetScaleSubresource(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.opens(t, nil)
	o.operate(t, nil)
	o.runs(t, 5, "FollowsSchedule")

	t.Log("while the schedule decides there is no number to read, and an autoscaler is told so")
	if _, err := o.of("tdsets").Get(t.Context(), hello, metav1.GetOptions{}, "scale"); !apierrors.IsInternalError(err) {
		t.Errorf("reading the scale ends with %v, want an internal error", err)
	}
	o.make(t, "horizontalpodautoscalers", fmt.Sprintf(scalerOf, "schedule.rs/v1", "TDSet"))
	says(t, readyIn(o.runs(t, 5, "Autoscaled").Status.Conditions).Message, "HorizontalPodAutoscaler cpu cannot scale this TDSet while spec.replicas is unset")
	o.remove(t, "horizontalpodautoscalers", "cpu")
	o.runs(t, 5, "FollowsSchedule")

	t.Log("kubectl scale tdset holds a number, whatever the hour")
	o.scales(t, "tdsets", 4)
	set := o.runs(t, 4, "Held")
	same(t, []any{set.Status.CurrentInterval, *set.Status.ScheduledReplicas}, []any{"09:00-17:00", int32(5)})
	o.strikes(t, officeHour(17, 0, 0))
	o.runs(t, 4, "Held")
	scale, err := o.of("tdsets").Get(t.Context(), hello, metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "status", "replicas")
	selector, _, _ := unstructured.NestedString(scale.Object, "status", "selector")
	same(t, replicas, int64(4))
	found, err := o.of("pods").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	same(t, len(found.Items), 4)

	t.Log("an autoscaler of the TDSet is no secret")
	o.make(t, "horizontalpodautoscalers", fmt.Sprintf(scalerOf, "schedule.rs/v1", "TDSet"))
	says(t, readyIn(o.runs(t, 4, "Autoscaled").Status.Conditions).Message, "HorizontalPodAutoscaler cpu sets spec.replicas")
	o.remove(t, "horizontalpodautoscalers", "cpu")
	o.runs(t, 4, "Held")

	t.Log("taken away, the schedule is followed again")
	o.patch(t, "tdsets", hello, `{"spec":{"replicas":null}}`)
	o.runs(t, 3, "FollowsSchedule")
}
