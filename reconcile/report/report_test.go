package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

func TestProblemsThatErrorsStandFor(t *testing.T) {
	t.Parallel()
	deployments := apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	terminating := apierrors.NewForbidden(deployments.GroupResource(), "web", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	own := Problem{Reason: "Own", Message: "what a kind says itself"}
	for story, test := range map[string]struct {
		err     error
		reason  string
		says    string
		stalled bool
	}{
		"no error":                       {nil, "", "", false},
		"another owner's object":         {&reconcile.ForeignError{Resource: deployments, Namespace: "shop", Name: "web"}, "ForeignObject", "delete or rename it", true},
		"an object of a deleted owner":   {&reconcile.ForeignError{Resource: deployments, Predecessor: true}, "WaitingForPredecessor", "wait until", false},
		"a permission is missing":        {apierrors.NewForbidden(deployments.GroupResource(), "web", errors.New("no")), "Forbidden", "mysql-operator manifests rbac prints the permissions", true},
		"the API server refuses it":      {apierrors.NewInvalid(deployments.GroupVersion().WithKind("Deployment").GroupKind(), "web", nil), "Rejected", "web", true},
		"the request is wrong":           {apierrors.NewBadRequest("no such field"), "Rejected", "no such field; change the spec", true},
		"the API server times out":       {apierrors.NewServerTimeout(deployments.GroupResource(), "patch", 1), "", "", false},
		"the namespace is being deleted": {terminating, "", "", false},
		"a problem of the kind's own":    {fmt.Errorf("look at the image: %w", own.Err()), "Own", "what a kind says itself", false},
		"an error of an unknown type":    {errors.New("disk on fire"), "", "", false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			found := FromError(test.err)
			if found == nil {
				found = &Problem{}
			}
			if found.Reason != test.reason || found.Stalled != test.stalled || !strings.Contains(found.Message, test.says) {
				t.Errorf("found %+v, want %q saying %q, stalled: %t", found, test.reason, test.says, test.stalled)
			}
		})
	}
}

func TestConditionsFollowAnObject(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	list := []metav1.Condition{}
	conditions := func(later time.Duration) Conditions { return Conditions{&list, 7, noon.Add(later)} }
	type told struct {
		status metav1.ConditionStatus
		reason string
		since  time.Duration
	}
	check := func(step string, want map[string]told) {
		t.Helper()
		got := map[string]told{}
		for _, one := range list {
			got[one.Type] = told{one.Status, one.Reason, one.LastTransitionTime.Sub(noon)}
			if one.ObservedGeneration != 7 {
				t.Errorf("%s: condition %s is of generation %d", step, one.Type, one.ObservedGeneration)
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(told{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}

	conditions(0).Problem(Problem{Reason: "Creating", Message: "waiting for a Pod"})
	check("it begins", map[string]told{"Ready": {"False", "Creating", 0}, "Reconciling": {"True", "Creating", 0}})
	conditions(time.Minute).Problem(Problem{Reason: "Full", Message: "raise the quota", Stalled: true})
	check("it stalls", map[string]told{"Ready": {"False", "Full", 0}, "Stalled": {"True", "Full", time.Minute}})
	conditions(2 * time.Minute).Problem(Problem{Reason: "Fuller", Message: "raise the quota", Stalled: true})
	check("it is still stalled", map[string]told{"Ready": {"False", "Fuller", 0}, "Stalled": {"True", "Fuller", time.Minute}})
	conditions(3*time.Minute).Ready("Serving", "all is well")
	check("it is ready", map[string]told{"Ready": {"True", "Serving", 3 * time.Minute}})
	conditions(4*time.Minute).SetIf(true, "Extra", "Because", "")
	conditions(5*time.Minute).SetIf(false, "Extra", "Because", "")
	check("a condition came and went", map[string]told{"Ready": {"True", "Serving", 3 * time.Minute}})
}

func TestEventsAreForChanges(t *testing.T) {
	t.Parallel()
	creating := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Creating", Message: "waiting"}}
	waitsLonger := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Creating", Message: "still waiting"}}
	failing := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Failing", Message: "retries"}}
	stalled := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Full", Message: "raise it"}, {Type: "Stalled", Status: metav1.ConditionTrue}}
	for story, test := range map[string]struct {
		before, after []metav1.Condition
		want          []reconcile.Event
	}{
		"no condition":        {nil, nil, nil},
		"the first condition": {nil, creating, []reconcile.Event{{Type: reconcile.Normal, Reason: "Creating", Action: "Reconcile", Note: "waiting"}}},
		"another message":     {creating, waitsLonger, nil},
		"a user must act":     {creating, stalled, []reconcile.Event{{Type: reconcile.Warning, Reason: "Full", Action: "Reconcile", Note: "raise it"}}},
		"a reason that warns": {creating, failing, []reconcile.Event{{Type: reconcile.Warning, Reason: "Failing", Action: "Reconcile", Note: "retries"}}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, Events(ActionReconcile, test.before, test.after, "Failing")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBriefTextsFitAStatus(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short":        "short",
		"no UTF-8\xff": "no UTF-8",
		"three ééé":    "three é…", // the cut goes through a letter
	} {
		if got := Brief(text, 9); got != want {
			t.Errorf("Brief(%q) = %q, want %q", text, got, want)
		}
	}
}
