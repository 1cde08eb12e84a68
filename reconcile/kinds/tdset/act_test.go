package tdset

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// applies stands in for an API server, with one answer for each apply; it records the replicas asked for.
type applies struct {
	answers []answer
	asked   []string
}

type answer struct {
	did reconcile.Change
	err error
}

func (a *applies) Apply(_ context.Context, desired any) (reconcile.Change, error) {
	asked := "nothing"
	if wanted, ok := desired.(*appsv1ac.DeploymentApplyConfiguration); ok && wanted.Spec.Replicas != nil {
		asked = fmt.Sprint(*wanted.Spec.Replicas)
	}
	a.asked = append(a.asked, asked)
	given := a.answers[len(a.asked)-1]
	return given.did, given.err
}

func TestADeploymentIsNeverMadeWithoutItsReplicas(t *testing.T) {
	t.Parallel()
	failed := errors.New("the API server is gone")
	byHand := func(t *testing.T) observed { t.Helper(); return at(t, noon, scaled(8, markNoon, "kubectl")) }
	for story, test := range map[string]struct {
		seen    observed
		answers []answer
		asked   []string
		did     reconcile.Change
		err     error
	}{
		"there is none":                   {at(t, noon, nil), []answer{{reconcile.Created, nil}}, []string{"5"}, reconcile.Created, nil},
		"a user has scaled it":            {byHand(t), []answer{{reconcile.Unchanged, nil}}, []string{"nothing"}, reconcile.Unchanged, nil},
		"and it was deleted a moment ago": {byHand(t), []answer{{reconcile.Created, nil}, {reconcile.Updated, nil}}, []string{"nothing", "5"}, reconcile.Created, nil},
		"and the second apply fails":      {byHand(t), []answer{{reconcile.Created, nil}, {reconcile.Unchanged, failed}}, []string{"nothing", "5"}, reconcile.Created, failed},
		"it cannot be made":               {byHand(t), []answer{{reconcile.Unchanged, failed}}, []string{"nothing"}, reconcile.Unchanged, failed},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			server := &applies{answers: test.answers}
			did, err := applyDeployment(t.Context(), server, test.seen, decide(test.seen))
			same(t, server.asked, test.asked)
			same(t, did, test.did)
			if !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
		})
	}
}

func TestWhatBecomesOfFailures(t *testing.T) {
	t.Parallel()
	webhook := apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	conflict := apierrors.NewConflict(deployments().GroupResource(), "web", errors.New("changed"))
	unavailable := apierrors.NewServiceUnavailable("starting")
	foreign := &reconcile.ForeignError{Resource: services(), Name: "web"}
	forbidden := apierrors.NewForbidden(deployments().GroupResource(), "web", errors.New("no"))
	for story, test := range map[string]struct {
		failed   failures
		reason   string
		err      error
		punctual bool
	}{
		"all went well":                                                 {failures{}, "", nil, false},
		"a webhook is down":                                             {failures{deployment: webhook}, reasonApplyFails, webhook, false},
		"one for Services":                                              {failures{service: webhook}, reasonApplyFails, webhook, true},
		"the pass took too long":                                        {failures{deployment: context.DeadlineExceeded}, reasonApplyFails, context.DeadlineExceeded, false},
		"the Deployment was changed meanwhile":                          {failures{deployment: conflict}, "", conflict, false},
		"the API server is unavailable":                                 {failures{deployment: unavailable, service: unavailable}, "", unavailable, false},
		"the operator stops":                                            {failures{deployment: fmt.Errorf("apply: %w", context.Canceled)}, "", context.Canceled, false},
		"a permission is missing":                                       {failures{deployment: forbidden}, report.ReasonForbidden, nil, false},
		"a Service has another owner":                                   {failures{service: foreign}, report.ReasonForeignObject, nil, false},
		"and the Deployment was changed meanwhile":                      {failures{deployment: conflict, service: foreign}, report.ReasonForeignObject, conflict, false},
		"and a webhook for Deployments is down":                         {failures{deployment: webhook, service: foreign}, report.ReasonForeignObject, webhook, false},
		"a permission is missing, and the webhook for Services is down": {failures{deployment: forbidden, service: webhook}, report.ReasonForbidden, webhook, false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			found, err := test.failed.problemAndError()
			reason := ""
			if found != nil {
				reason = found.Reason
			}
			same(t, reason, test.reason)
			same(t, test.failed.onlyServiceFailed(), test.punctual)
			if !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
		})
	}
}
