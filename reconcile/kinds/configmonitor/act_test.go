package configmonitor

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

func withCause(err *apierrors.StatusError, cause metav1.CauseType) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	return fmt.Errorf("evict pod shop/a: %w", err)
}

func TestProblemOf(t *testing.T) {
	t.Parallel()
	deployments := apischema.GroupResource{Group: "apps", Resource: "deployments"}
	for story, test := range map[string]struct {
		err  error
		want string
	}{
		"nothing failed":                 {nil, ""},
		"a permission is missing":        {apierrors.NewForbidden(deployments, "web", errors.New("no")), report.ReasonForbidden},
		"one of several failures":        {errors.Join(errors.New("unknown"), fmt.Errorf("restart: %w", apierrors.NewForbidden(deployments, "web", nil))), report.ReasonForbidden},
		"the namespace is being deleted": {withCause(apierrors.NewForbidden(deployments, "web", errors.New("ends")), corev1.NamespaceTerminatingCause), ""},
		"an admission policy refuses":    {apierrors.NewBadRequest("denied the request"), report.ReasonRejected},
		"two budgets for one Pod":        {apierrors.NewInternalError(errors.New("more than one PodDisruptionBudget")), report.ReasonRejected},
		"another client was faster":      {apierrors.NewConflict(deployments, "web", errors.New("changed")), ""},
		"something unknown":              {errors.New("unknown"), ""},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got := ""
			if found := problemOf(test.err); found != nil {
				got = found.Reason
			}
			same(t, got, test.want)
		})
	}
}

func TestOnlyABudgetHoldsBack(t *testing.T) {
	t.Parallel()
	if !isBlockedByBudget(withCause(apierrors.NewTooManyRequests("cannot evict", 0), policyv1.DisruptionBudgetCause)) {
		t.Error("a PodDisruptionBudget was not recognised")
	}
	if isBlockedByBudget(apierrors.NewTooManyRequests("try later", 1)) || isBlockedByBudget(nil) {
		t.Error("a busy API server was taken for a PodDisruptionBudget")
	}
}
