package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/mycustomresource"
)

func TestMyCustomResourceFollowsTheWalkThrough(t *testing.T) {
	t.Parallel()
	f := newFriends(t)
	f.operate()
	f.seek("my-custom-resource-01", "name: funny-joe")
	f.seek("my-custom-resource-02", "name: jumpy-jane")
	f.is("my-custom-resource-01", false, "PodNotFound")
	f.is("my-custom-resource-02", false, "PodNotFound")

	began := time.Now()
	f.pod(f.home, "funny-joe")
	f.is("my-custom-resource-01", true, "PodFound")
	came := time.Since(began)
	f.is("my-custom-resource-02", false, "PodNotFound")

	began = time.Now()
	f.home.remove(t, "pods", "funny-joe")
	f.is("my-custom-resource-01", false, "PodNotFound")
	t.Logf("told %s after the Pod came, %s after it went", came, time.Since(began))

	t.Log("the same for the second")
	f.pod(f.home, "jumpy-jane")
	f.is("my-custom-resource-02", true, "PodFound")
	f.is("my-custom-resource-01", false, "PodNotFound")
	if events := f.events(); len(events) > 0 {
		t.Errorf("the walk-through shows no events, there are %v", events)
	}
	resource, err := f.home.Dynamic.Resource(myCustomResources().GVR()).Namespace(f.home.namespace).Get(t.Context(), "my-custom-resource-01", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, _ := unstructured.NestedMap(resource.Object, "status"); status["Healthy"] != nil {
		t.Errorf("the walk-through shows no Healthy without the Pod, this is there: %v", status)
	}
}

// events are the reasons of those about MyCustomResources.
func (f *friends) events() []string {
	f.t.Helper()
	found, err := f.home.of("events").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	reasons := []string{}
	for _, event := range found.Items {
		if kind, _, _ := unstructured.NestedString(event.Object, "regarding", "kind"); kind == "MyCustomResource" {
			reasons = append(reasons, fmt.Sprint(event.Object["reason"]))
		}
	}
	return reasons
}

func TestMyCustomResourceLooksInNamespaces(t *testing.T) {
	t.Parallel()
	f := newFriends(t)
	operator := f.operate()
	f.seek("anywhere", "name: joe")
	f.seek("home", "name: joe, namespace: "+f.home.namespace)
	f.seek("away", "name: joe, namespace: "+f.away.namespace)
	f.is("home", false, "PodNotFound")
	same(t, f.is("away", false, "PodNotFound"), fmt.Sprintf("no Pod named %q exists in namespace %q", "joe", f.away.namespace))
	same(t, f.is("anywhere", false, "PodNotFound"), `no Pod named "joe" exists in the namespaces that the operator works in (--namespaces)`)

	t.Log("a Pod elsewhere counts for who looks everywhere, or there")
	f.pod(f.away, "joe")
	f.is("anywhere", true, "PodFound")
	f.is("away", true, "PodFound")
	f.is("home", false, "PodNotFound")

	t.Log("a second one changes nothing for who looks everywhere, nor that the first goes")
	f.pod(f.home, "joe")
	f.is("home", true, "PodFound")
	before, err := f.read(t.Context(), "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	f.away.remove(t, "pods", "joe")
	f.is("away", false, "PodNotFound")
	f.quiet(operator)
	after, err := f.read(t.Context(), "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	same(t, after, before)

	t.Log("who is told to look for another does")
	f.respec("anywhere", `{"name":"jane"}`)
	f.is("anywhere", false, "PodNotFound")
	f.respec("anywhere", fmt.Sprintf(`{"name":"joe","namespace":%q}`, f.home.namespace))
	f.is("anywhere", true, "PodFound")
	f.respec("anywhere", `{"namespace":"kube-system"}`)
	message := f.is("anywhere", false, "NamespaceNotWatched")
	if !strings.Contains(message, `does not work in namespace "kube-system"`) || !strings.Contains(message, "--namespaces") {
		t.Errorf("the message does not say what to do: %q", message)
	}
	soon(t, func(context.Context) string {
		if events := f.events(); len(events) != 1 || events[0] != "NamespaceNotWatched" {
			return fmt.Sprintf("there are the events %v, want one NamespaceNotWatched", events)
		}
		return ""
	})
	f.respec("anywhere", `{"namespace":null}`)
	f.is("anywhere", true, "PodFound")
	if resource, err := f.read(t.Context(), "anywhere"); err != nil || len(resource.Status.Conditions) != 1 {
		t.Errorf("conditions %+v, error %v; want Ready and no other", resource.Status.Conditions, err)
	}
}

// quiet waits until an operator has dealt with everything that was changed before: what is made now is dealt with later.
func (f *friends) quiet(operator *operating) {
	f.t.Helper()
	mark := fmt.Sprintf("mark-%.0f", operator.passes(f.t))
	f.seek(mark, "name: "+mark)
	f.is(mark, false, "PodNotFound")
	for _, where := range []*place{f.home, f.away} {
		f.pod(where, mark)
		f.is(mark, true, "PodFound")
		where.remove(f.t, "pods", mark)
		f.is(mark, false, "PodNotFound")
	}
}

// A Pod that is being deleted exists until it is gone.
func TestMyCustomResourceWhoseFriendIsLeaving(t *testing.T) {
	t.Parallel()
	f := newFriends(t)
	operator := f.operate()
	f.seek("m", "name: joe")
	f.pod(f.away, "joe")
	f.is("m", true, "PodFound")
	f.away.patch(t, "pods", "joe", `{"metadata":{"finalizers":["example.com/wait"]}}`)
	f.away.remove(t, "pods", "joe")
	f.quiet(operator)
	f.is("m", true, "PodFound")
	f.away.patch(t, "pods", "joe", `{"metadata":{"finalizers":null}}`)
	f.is("m", false, "PodNotFound")
}

// At rest nothing is written, and what happens to Pods beside coming and going is not even noticed.
func TestMyCustomResourceAtRest(t *testing.T) {
	t.Parallel()
	f := newFriends(t)
	reads := &podReads{}
	operator := f.operate(func(config *reconcile.Config) { config.Rest.Wrap(reads.around) })
	f.seek("m", "name: joe")
	f.seek("last", "name: last")
	f.pod(f.home, "joe")
	f.is("m", true, "PodFound")
	f.is("last", false, "PodNotFound")
	f.quiet(operator)

	passes, writes := operator.restful(t), len(operator.wire.written())
	for i := range 20 {
		f.home.patch(t, "pods", "joe", fmt.Sprintf(`{"status":{"message":"step %d"}}`, i), "status")
		f.home.patch(t, "pods", "joe", fmt.Sprintf(`{"metadata":{"labels":{"step":"%d"}}}`, i))
		f.pod(f.home, fmt.Sprintf("stranger-%d", i))
	}
	f.pod(f.home, "last")
	f.is("last", true, "PodFound")
	same(t, operator.wire.written()[writes:], []string{"PATCH /apis/poc.test.domain/v1/namespaces/" + f.home.namespace + "/mycustomresources/last/status"})
	// Two of them are for the last Pod: because it came, and because that was written.
	if made := operator.restful(t) - passes; made > 2 {
		t.Errorf("%v passes were made, for 60 changes that concern no resource and one that does", made)
	}

	accepted := reads.all()
	if len(accepted) == 0 {
		t.Fatal("the operator has not asked for Pods")
	}
	for _, accept := range accepted {
		// An API server answers in the first form that it knows.
		if first, _, _ := strings.Cut(accept, ","); !strings.Contains(first, "as=PartialObjectMetadata") {
			t.Errorf("the operator asks for whole Pods: it accepts %s", accept)
		}
	}
}

// What happens while no operator is there is told by the next.
func TestMyCustomResourceNoticesWhatChangedWhileTheOperatorWasDown(t *testing.T) {
	t.Parallel()
	f := newFriends(t)
	first := f.operate()
	f.seek("comes", "name: joe")
	f.seek("goes", "name: jane")
	f.seek("changes", "name: jane")
	f.pod(f.away, "jane")
	f.is("comes", false, "PodNotFound")
	f.is("goes", true, "PodFound")
	f.is("changes", true, "PodFound")
	first.finish(t)

	f.pod(f.home, "joe")
	f.away.remove(t, "pods", "jane")
	f.respec("changes", `{"name":"joe"}`)
	f.seek("new", "name: joe")
	f.operate()
	f.is("comes", true, "PodFound")
	f.is("goes", false, "PodNotFound")
	f.is("changes", true, "PodFound")
	f.is("new", true, "PodFound")
}

// TestMyCustomResourceSurvivesEveryCrash kills the operator at each of its writes, once before the API server has got it and once before
// the operator has got the answer. There is one write for each change: the status. The next operator ends what was begun.
func TestMyCustomResourceSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	f := newFriends(t)
	f.seek("m", "name: joe")
	f.operateOnce(func() { f.is("m", false, "PodNotFound") })
	for _, sent := range []bool{false, true} {
		for _, healthy := range []bool{true, false} {
			dying := f.operate()
			dying.wire.dieAt(1, sent)
			reason := "PodNotFound"
			if healthy {
				reason = "PodFound"
				f.pod(f.away, "joe")
			} else {
				f.away.remove(t, "pods", "joe")
			}
			soon(t, func(context.Context) string {
				if !dying.wire.isDead() {
					return "the operator lives"
				}
				return ""
			})
			dying.finish(t)
			if resource, err := f.read(t.Context(), "m"); err != nil || resource.Status.Healthy != (healthy == sent) {
				t.Errorf("after a crash at the write (sent: %t) Healthy is %t, error %v", sent, resource.Status.Healthy, err)
			}
			next := f.operate()
			f.is("m", healthy, reason)
			next.finish(t)
			if writes := next.wire.written(); sent && len(writes) > 0 {
				t.Errorf("it was all told, and the next operator writes %v", writes)
			}
		}
	}
}

// operateOnce has an operator work until something holds.
func (f *friends) operateOnce(until func()) {
	f.t.Helper()
	operator := f.operate()
	until()
	operator.finish(f.t)
}

// One operator for all namespaces, as an installation usually has it. It would look after other tests' resources as well, so it has the
// control plane for itself: tests that are parallel wait for those that are not.
//
//nolint:paralleltest // see above
func TestMyCustomResourceInAllNamespaces(t *testing.T) {
	f := newFriends(t)
	f.home.operate(t, func(config *reconcile.Config) {
		f.home.omnipotent(config)
		config.Namespaces = nil
	}, mycustomresource.Controller(myCustomResources()))
	f.seek("m", "name: joe")
	f.seek("elsewhere", "name: joe, namespace: kube-system")
	same(t, f.is("m", false, "PodNotFound"), `no Pod named "joe" exists`)
	same(t, f.is("elsewhere", false, "PodNotFound"), `no Pod named "joe" exists in namespace "kube-system"`)
	f.pod(f.away, "joe")
	f.is("m", true, "PodFound")
	f.away.remove(t, "pods", "joe")
	f.is("m", false, "PodNotFound")
}
