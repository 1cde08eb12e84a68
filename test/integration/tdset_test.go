package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulev1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

func TestTDSetFollowsTheDay(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(0, 0, 0))
	o.opens(t, nil)
	o.operate(t, nil)
	set := o.runs(t, 3, "FollowsSchedule")
	same(t, set.Status.CurrentInterval, "default")
	same(t, o.told(t, "Normal", "Created"), "created Deployment "+hello+" with 3 replicas (interval default)")
	for _, hour := range []struct {
		at       time.Time
		interval string
		replicas int32
	}{
		{officeHour(1, 0, 0), "01:00-07:00", 2}, {officeHour(6, 59, 59), "01:00-07:00", 2}, {officeHour(7, 0, 0), "07:00-09:00", 3}, {officeHour(8, 59, 59), "07:00-09:00", 3},
		{officeHour(9, 0, 0), "09:00-17:00", 5}, {officeHour(17, 0, 0), "17:00-19:00", 3}, {officeHour(19, 0, 0), "19:00-00:00", 2}, {officeHour(23, 59, 59), "19:00-00:00", 2}, {officeHour(24, 0, 0), "default", 3},
	} {
		o.strikes(t, hour.at)
		set = o.runs(t, hour.replicas, "FollowsSchedule")
		same(t, []any{set.Status.CurrentInterval, *set.Status.ScheduledReplicas}, []any{hour.interval, hour.replicas})
	}
	moments(t, "the next change", &set.Status.NextChange.Time, officeHour(25, 0, 0))
	same(t, set.Status.NextChange.Replicas, int32(2))
	same(t, meta.IsStatusConditionTrue(set.Status.Conditions, schedulev1.ConditionAvailable), true)
	same(t, meta.IsStatusConditionFalse(set.Status.Conditions, schedulev1.ConditionProgressing), true)
	same(t, meta.IsStatusConditionFalse(set.Status.Conditions, schedulev1.ConditionDegraded), true)
	same(t, o.revisions(t), 1)
	same(t, o.told(t, "Normal", "Scaled") != "", true)

	t.Log("deleting it cleans up")
	o.remove(t, "tdsets", hello)
	o.gone(t, "tdsets", hello)
	o.gone(t, "deployments", hello)
}

// TestTDSetIsExact lets the clock run over a boundary. No client needs to touch anything, and the operator does not poll for the next
// change. What counts is when the operator sends the new number.
func TestTDSetIsExact(t *testing.T) {
	t.Parallel()
	boundary := officeHour(9, 0, 0)
	o := newOffice(t, boundary.Add(-4*time.Second))
	sent := make(chan time.Time, 100)
	o.opens(t, nil)
	o.operate(t, atScaling(func(*http.Request) *http.Response {
		sent <- o.clock.read()
		return nil
	}))
	o.runs(t, 3, "FollowsSchedule")
	for len(sent) > 0 {
		<-sent
	}
	o.clock.start()
	o.runs(t, 5, "FollowsSchedule")
	late := (<-sent).Sub(boundary)
	if late < 0 || late > 2*time.Second {
		t.Errorf("it was scaled %s after the boundary", late)
	}
	t.Logf("it was scaled %s after the boundary", late)
}

// TestTDSetDoesNotOverwriteWhatItHasNotSeen scales the Deployment in the moment in which the operator writes it for another reason, so that
// it cannot have seen that.
func TestTDSetDoesNotOverwriteWhatItHasNotSeen(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	meddles, scaled := &atomic.Bool{}, make(chan error, 1)
	o.opens(t, nil)
	o.operate(t, atScaling(func(request *http.Request) *http.Response {
		if meddles.CompareAndSwap(true, false) {
			_, err := o.of("deployments").Patch(request.Context(), hello, types.MergePatchType, []byte(`{"spec":{"replicas":8}}`), metav1.PatchOptions{FieldManager: "someone"}, "scale")
			scaled <- err
		}
		return nil
	}))
	o.runs(t, 5, "FollowsSchedule")
	meddles.Store(true)
	o.patch(t, "tdsets", hello, `{"spec":{"container":{"image":"another"}}}`)
	if err := <-scaled; err != nil {
		t.Fatal(err)
	}
	o.runs(t, 8, "ScaledByHand")
	same(t, o.revisions(t), 2)
}

// TestTDSetTellsWhatCannotBeWritten: while an admission webhook does not answer, the schedule is not followed, and nothing says that it is.
func TestTDSetTellsWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	broken := &atomic.Bool{}
	o.opens(t, nil)
	o.operate(t, atScaling(func(request *http.Request) *http.Response {
		if broken.Load() {
			return brokenWebhook(request)
		}
		return nil
	}))
	o.runs(t, 5, "FollowsSchedule")
	broken.Store(true)
	o.strikes(t, officeHour(17, 0, 0))
	set := o.runs(t, 5, "ApplyFails")
	says(t, readyIn(set.Status.Conditions).Message, "cannot write the Deployment", "webhook")
	same(t, *set.Status.ScheduledReplicas, int32(3))
	same(t, meta.FindStatusCondition(set.Status.Conditions, schedulev1.ConditionStalled) == nil, true)
	o.told(t, "Warning", "ApplyFails")
	broken.Store(false)
	o.runs(t, 3, "FollowsSchedule")
}

func TestTDSetAtRestWritesNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.opens(t, map[string]any{"service": map[string]any{"port": int64(80)}})
	operator := o.operate(t, nil)
	o.runs(t, 5, "FollowsSchedule")
	o.considers(t)
	before := len(operator.wire.written())
	for minute := range 5 {
		o.strikes(t, officeHour(12, minute+1, 0))
	}
	if writes := operator.wire.written()[before:]; len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
	t.Logf("to get there it wrote %d times: %v", before, operator.wire.written())
}

func TestTDSetLeavesManualScalingAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.opens(t, nil)
	operator := o.operate(t, nil)
	o.runs(t, 5, "FollowsSchedule")

	t.Log("a user scales the Deployment: the operator reports the number, and leaves it")
	o.scales(t, "deployments", 8)
	set := o.runs(t, 8, "ScaledByHand")
	says(t, readyIn(set.Status.Conditions).Message, "someone has set", "to 8, and 5 are wanted", "kubectl scale tdset "+hello+" --replicas=8")
	same(t, meta.IsStatusConditionTrue(set.Status.Conditions, schedulev1.ConditionDegraded), true)
	o.told(t, "Warning", "ScaledByHand")
	before := len(operator.wire.written())
	o.strikes(t, officeHour(16, 59, 59))
	if writes := operator.wire.written()[before:]; len(writes) > 0 {
		t.Errorf("it is fought, or reported over and over: %v", writes)
	}

	t.Log("meanwhile everything else is seen to")
	o.patch(t, "tdsets", hello, `{"spec":{"container":{"image":"another"}}}`)
	soon(t, func(ctx context.Context) string {
		deployment, err := o.deployment(ctx)
		if err != nil || deployment.Spec.Template.Spec.Containers[0].Image != "another" || *deployment.Spec.Replicas != 8 {
			return fmt.Sprintf("the Deployment is not rolled, or scaled: %+v %v", deployment.Spec, err)
		}
		return ""
	})
	o.runs(t, 8, "ScaledByHand")
	same(t, o.revisions(t), 2)

	t.Log("the schedule's next change takes over")
	o.strikes(t, officeHour(17, 0, 0))
	o.runs(t, 3, "FollowsSchedule")

	t.Log("whoever scales back what he scaled has no trouble")
	o.scales(t, "deployments", 0)
	o.runs(t, 0, "ScaledByHand")
	o.scales(t, "deployments", 3)
	o.runs(t, 3, "FollowsSchedule")
}

const scalerOf = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: cpu}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: %s, kind: %s, name: " + hello + "}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}"

func TestTDSetYieldsToAnAutoscaler(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.opens(t, nil)
	operator := o.operate(t, nil)
	o.runs(t, 5, "FollowsSchedule")
	o.make(t, "horizontalpodautoscalers", fmt.Sprintf(scalerOf, "apps/v1", "Deployment"))
	set := o.runs(t, 5, "Autoscaled")
	says(t, readyIn(set.Status.Conditions).Message, "HorizontalPodAutoscaler cpu scales Deployment "+hello)
	same(t, meta.IsStatusConditionTrue(set.Status.Conditions, schedulev1.ConditionStalled), true)

	t.Log("it scales, the day continues, and the operator does not fight it")
	o.scales(t, "deployments", 7)
	o.runs(t, 7, "Autoscaled")
	o.strikes(t, officeHour(17, 0, 0))
	soon(t, func(ctx context.Context) string {
		set, err := o.set(ctx)
		if err != nil || *set.Status.ScheduledReplicas != 3 {
			return fmt.Sprintf("the schedule says %d, want 3 (%v)", *set.Status.ScheduledReplicas, err)
		}
		return ""
	})
	o.runs(t, 7, "Autoscaled")
	before := len(operator.wire.written())
	o.considers(t)
	if writes := operator.wire.written()[before:]; len(writes) > 0 {
		t.Errorf("beside an autoscaler it writes: %v", writes)
	}

	t.Log("it goes: the schedule is followed again, at once")
	o.remove(t, "horizontalpodautoscalers", "cpu")
	o.runs(t, 3, "FollowsSchedule")
}

func TestTDSetWhileTheOperatorWasDown(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.opens(t, nil)
	first := o.operate(t, nil)
	o.runs(t, 5, "FollowsSchedule")

	t.Log("a user scales, and another changes the image and the time zone")
	first.finish(t)
	o.scales(t, "deployments", 8)
	o.patch(t, "tdsets", hello, `{"spec":{"container":{"image":"another","port":9000},"service":{}}}`)
	second := o.operate(t, nil)
	o.runs(t, 8, "ScaledByHand")
	same(t, o.revisions(t), 2)
	ports, _, _ := unstructured.NestedSlice(o.get(t, "services", hello).Object, "spec", "ports")
	says(t, fmt.Sprint(ports), "port:9000", "targetPort:app")

	t.Log("the day continues without an operator")
	second.finish(t)
	o.clock.set(officeHour(20, 0, 0))
	third := o.operate(t, nil)
	o.runs(t, 2, "FollowsSchedule")

	t.Log("a whole day passes, and a user has scaled: the number is the same, the day is not")
	third.finish(t)
	o.scales(t, "deployments", 8)
	o.clock.set(officeHour(44, 0, 0))
	o.operate(t, nil)
	o.runs(t, 2, "FollowsSchedule")

	t.Log("in Tokyo it is morning")
	o.patch(t, "tdsets", hello, `{"spec":{"timeZone":"Asia/Tokyo"}}`)
	o.runs(t, 2, "FollowsSchedule")
	o.patch(t, "tdsets", hello, `{"spec":{"timeZone":"Pacific/Auckland"}}`)
	o.runs(t, 5, "FollowsSchedule")
	o.patch(t, "tdsets", hello, `{"spec":{"timeZone":"Pacific/Atlantis"}}`)
	says(t, readyIn(o.runs(t, 5, "InvalidTimeZone").Status.Conditions).Message, `there is no time zone "Pacific/Atlantis"`)
}

func TestTDSetAndOthersObjects(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.make(t, "deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: "+hello+", labels: {mine: mine}}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}")
	o.make(t, "services", "{apiVersion: v1, kind: Service, metadata: {name: "+hello+"}, spec: {selector: {a: b}, ports: [{port: 1}]}}")
	o.opens(t, nil)
	o.operate(t, nil)
	foreign := func(words ...string) {
		t.Helper()
		soon(t, func(ctx context.Context) string {
			set, err := o.set(ctx)
			if err != nil {
				return err.Error()
			}
			ready := readyIn(set.Status.Conditions)
			for _, word := range append(words, "exists already") {
				if ready.Reason != "ForeignObject" || !strings.Contains(ready.Message, word) {
					return fmt.Sprintf("Ready is %s: %s", ready.Reason, ready.Message)
				}
			}
			return ""
		})
	}
	foreign("deployments.apps")
	if found := o.get(t, "deployments", hello); len(found.GetOwnerReferences()) > 0 || found.GetLabels()["mine"] != "mine" {
		t.Errorf("the Deployment of another client was taken over: %v", found.Object)
	}
	o.remove(t, "deployments", hello)
	o.considers(t)
	o.patch(t, "tdsets", hello, `{"spec":{"service":{"port":80}}}`)
	foreign("services")
	o.remove(t, "services", hello)
	o.patch(t, "tdsets", hello, `{"spec":{"service":{"port":81}}}`)
	o.runs(t, 5, "FollowsSchedule")

	t.Log("a Service that the spec no longer asks for goes; one of another client under the name stays")
	same(t, len(o.get(t, "services", hello).GetOwnerReferences()), 1)
	o.patch(t, "tdsets", hello, `{"spec":{"service":null}}`)
	o.gone(t, "services", hello)
	o.make(t, "services", "{apiVersion: v1, kind: Service, metadata: {name: "+hello+", labels: {app.kubernetes.io/name: tdset, app.kubernetes.io/managed-by: mysql-operator}}, spec: {selector: {a: b}, ports: [{port: 1}]}}")
	o.considers(t)
	o.get(t, "services", hello)

	t.Log("what another client does to the Deployment is healed, and a deleted one is made again")
	o.patch(t, "deployments", hello, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"other"}]}}}}`)
	soon(t, func(ctx context.Context) string {
		deployment, err := o.deployment(ctx)
		if err != nil || deployment.Spec.Template.Spec.Containers[0].Image != "crccheck/hello-world" {
			return fmt.Sprintf("the image is not healed: %v", err)
		}
		return ""
	})
	o.remove(t, "deployments", hello)
	o.runs(t, 5, "FollowsSchedule")
}

// TestTDSetDeletesNoServiceByAnOldSpec: the operator hears late that a Service is asked for. Another operator has made it.
func TestTDSetDeletesNoServiceByAnOldSpec(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeHour(12, 0, 0))
	o.opens(t, nil)
	late := newLaggard("tdsets")
	behind := o.operate(t, late.slow)
	o.runs(t, 5, "FollowsSchedule")
	behind.restful(t)
	late.lag()
	measured := operator{registry: behind.registry}
	conflicts := func() float64 {
		return measured.measured(t, "reconcile_total", map[string]string{"result": "conflict"})
	}
	before := conflicts()
	o.operate(t, nil)
	o.patch(t, "tdsets", hello, `{"spec":{"service":{"port":80}}}`)
	soon(t, func(context.Context) string {
		if conflicts() == before {
			return "no pass of the operator that is behind has noticed that the spec is another by now"
		}
		return ""
	})
	made := o.get(t, "services", hello)
	late.catchUp()
	o.considers(t)
	if found := o.get(t, "services", hello); found.GetUID() != made.GetUID() || found.GetDeletionTimestamp() != nil {
		t.Error("the Service that is asked for was deleted")
	}
}

// TestTDSetSurvivesEveryCrash kills the operator at each write of a day's beginning, once before the API server has got it and once before
// the operator has got the answer. Whoever takes over ends what was begun, and does nothing twice.
func TestTDSetSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	writes := newOffice(t, officeHour(8, 0, 0)).morning(t, 0, false).wire.written()
	if len(writes) < 6 {
		t.Fatalf("a morning takes more writes than these: %v", writes)
	}
	survivesCrashes(t, crashesUpTo(len(writes)), func(t *testing.T, at crash) bool {
		return newOffice(t, officeHour(8, 0, 0)).morning(t, at.write, at.sent).wire.isDead()
	})
}

// morning makes a TDSet at 8, changes its image, and lets it become 9. An operator that dies has a successor.
func (o *office) morning(t *testing.T, deadly int, sent bool) *operating {
	t.Helper()
	first := o.operate(t, nil)
	first.wire.dieAt(deadly, sent)
	o.opens(t, map[string]any{"service": map[string]any{}})
	current := first
	relieved := func() {
		if current == first && first.wire.isDead() {
			first.finish(t)
			current = o.operate(t, nil)
		}
	}
	reaches := func(replicas int32, image string) {
		t.Helper()
		soon(t, func(ctx context.Context) string {
			relieved()
			set, err := o.set(ctx)
			if err != nil {
				return err.Error()
			}
			deployment, err := o.deployment(ctx)
			switch {
			case apierrors.IsNotFound(err):
				return "there is no Deployment"
			case err != nil:
				return err.Error()
			case deployment.Spec.Template.Spec.Containers[0].Image != image || *deployment.Spec.Replicas != replicas || set.Status.ReadyReplicas != replicas || readyIn(set.Status.Conditions).Reason != "FollowsSchedule":
				return fmt.Sprintf("%d replicas are not reached with image %s: %+v", replicas, image, set.Status)
			}
			return ""
		})
	}
	reaches(3, "crccheck/hello-world")
	o.patch(t, "tdsets", hello, `{"spec":{"container":{"image":"another"},"schedulingConfig":[{"startTime":9,"endTime":17,"replica":5}]}}`)
	reaches(3, "another")
	o.clock.set(officeHour(9, 0, 0))
	o.patch(t, "tdsets", hello, `{"metadata":{"annotations":{"touched":"yes"}}}`)
	reaches(5, "another")
	same(t, o.revisions(t), 2)
	o.get(t, "services", hello)
	return first
}
