package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/tdset"
	"github.com/mysql-operator/mysql-operator/schema"
	schedulev1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

func tdSets() schema.Kind {
	return schema.Kind{Group: schema.ScheduleGroup, Version: "v1", Kind: "TDSet", Plural: "tdsets"}
}

// office is a namespace in which TDSets are served, with a kubelet of sorts. The tests set its operator's clock.
type office struct {
	*place
	clock *handClock
}

// hello is the name of the founding document's TDSet.
const hello = "tdset-hello-world"

// officeHour is a time of the day on which the tests play.
func officeHour(hour, minute, second int) time.Time {
	return time.Date(2026, time.November, 21, hour, minute, second, 0, time.UTC)
}

func newOffice(t *testing.T, now time.Time) *office {
	t.Helper()
	o := &office{place: newPlace(t, pool.Shared(t), tdSets()), clock: &handClock{now: now}}
	o.grant(t, rulesOf(tdset.Controller(tdSets())))
	startKubelet(t, &shop{Server: o.Server, t: t, namespace: o.namespace})
	return o
}

// opens makes the founding document's TDSet, as the sample has it, with these fields of its spec changed.
func (o *office) opens(t *testing.T, changes map[string]any) {
	t.Helper()
	content, err := os.ReadFile("../../deploy/samples/tdset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made := object(t, string(content))
	for field, value := range changes {
		if err := unstructured.SetNestedField(made.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.of("tdsets").Create(t.Context(), made, metav1.CreateOptions{FieldManager: "user"}); err != nil {
		t.Fatal(err)
	}
}

func (o *office) operate(t *testing.T, configure func(*reconcile.Config)) *operating {
	t.Helper()
	return o.place.operate(t, configure, tdset.ControllerAt(tdSets(), o.clock.read))
}

// atScaling makes a configuration of an operator that has something done before the API server gets a write of the Deployment. A response
// is the answer in its place.
func atScaling(does func(request *http.Request) *http.Response) func(*reconcile.Config) {
	return func(config *reconcile.Config) {
		config.Rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method != http.MethodGet && strings.HasSuffix(request.URL.Path, "/deployments/"+hello) {
					if answer := does(request); answer != nil {
						return answer, nil
					}
				}
				return next.RoundTrip(request)
			})
		})
	}
}

// brokenWebhook is what an API server answers whose admission webhook does not.
func brokenWebhook(request *http.Request) *http.Response {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: failed calling webhook \"policy.example.com\": connection refused","reason":"InternalError","code":500}`
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), Request: request,
	}
}

// strikes sets the clock, and returns when a whole pass was made by it.
func (o *office) strikes(t *testing.T, at time.Time) {
	t.Helper()
	o.clock.set(at)
	o.considers(t)
}

// considers returns when a pass that began after this was called has ended: passes over one TDSet follow each other.
func (o *office) considers(t *testing.T) {
	t.Helper()
	for range 2 {
		before := o.clock.looked()
		o.patch(t, "tdsets", hello, fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now().Format(time.RFC3339Nano)))
		soon(t, func(context.Context) string {
			if o.clock.looked() == before {
				return "the operator does not look at the clock"
			}
			return ""
		})
	}
}

// set reads the TDSet; strictly, so that a status that the definition does not know is a failure.
func (o *office) set(ctx context.Context) (schedulev1.TDSet, error) {
	var set schedulev1.TDSet
	found, err := o.of("tdsets").Get(ctx, hello, metav1.GetOptions{})
	if err != nil {
		return set, err
	}
	err = schema.DecodeStrict(found, &set)
	return set, err
}

func (o *office) deployment(ctx context.Context) (appsv1.Deployment, error) {
	var deployment appsv1.Deployment
	found, err := o.of("deployments").Get(ctx, hello, metav1.GetOptions{})
	if err != nil {
		return deployment, err
	}
	err = schema.Decode(found, &deployment)
	return deployment, err
}

// runs waits until so many replicas are asked of the Deployment and serve, and the TDSet's Ready condition gives this reason for the spec
// as it is now.
func (o *office) runs(t *testing.T, replicas int32, reason string) schedulev1.TDSet {
	t.Helper()
	var set schedulev1.TDSet
	soon(t, func(ctx context.Context) string {
		var err error
		if set, err = o.set(ctx); err != nil {
			return err.Error()
		}
		deployment, err := o.deployment(ctx)
		if err != nil {
			return err.Error()
		}
		ready := readyIn(set.Status.Conditions)
		if *deployment.Spec.Replicas != replicas || set.Status.ReadyReplicas != replicas || set.Status.Replicas != replicas || ready.Reason != reason || set.Status.ObservedGeneration != set.Generation {
			return fmt.Sprintf("%d replicas are asked for, want %d, and %s; status %+v", *deployment.Spec.Replicas, replicas, reason, set.Status)
		}
		return ""
	})
	return set
}

// scales sets the replicas of something as kubectl scale does.
func (o *office) scales(t *testing.T, what string, replicas int) {
	t.Helper()
	o.patch(t, what, hello, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas), "scale")
}

// told waits for an event about the TDSet and returns its note.
func (o *office) told(t *testing.T, kind, reason string) string {
	t.Helper()
	note := ""
	soon(t, func(ctx context.Context) string {
		events, err := o.of("events").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, event := range events.Items {
			about, _, _ := unstructured.NestedString(event.Object, "regarding", "kind")
			if about == "TDSet" && event.Object["type"] == kind && event.Object["reason"] == reason {
				note, _, _ = unstructured.NestedString(event.Object, "note")
				return ""
			}
		}
		return fmt.Sprintf("there is no event %s %s among %d", kind, reason, len(events.Items))
	})
	return note
}

// revisions is how many ReplicaSets the Deployment has made.
func (o *office) revisions(t *testing.T) int {
	t.Helper()
	found, err := o.of("replicasets").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Items)
}
