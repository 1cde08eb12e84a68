package tdset

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// applies is an API server of sorts, with answers for one apply after the other; it notes the replicas asked for.
type applies struct {
	answers []answer
	asked   []string
}

type answer struct {
	did reconcile.Change
	err error
}

func (a *applies) Apply(_ context.Context, _ *unstructured.Unstructured, desired any) (reconcile.Change, error) {
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
	failed := errors.New("the API server has gone")
	byHand := func(t *testing.T) look { t.Helper(); return at(t, noon, scaled(8, markNoon, "kubectl")) }
	for story, test := range map[string]struct {
		seen    look
		answers []answer
		asked   []string
		did     reconcile.Change
		err     error
	}{
		"there is none":                   {at(t, noon, nil), []answer{{reconcile.Created, nil}}, []string{"5"}, reconcile.Created, nil},
		"somebody has scaled it":          {byHand(t), []answer{{reconcile.Unchanged, nil}}, []string{"nothing"}, reconcile.Unchanged, nil},
		"and it was deleted a moment ago": {byHand(t), []answer{{reconcile.Created, nil}, {reconcile.Updated, nil}}, []string{"nothing", "5"}, reconcile.Created, nil},
		"and the second apply fails":      {byHand(t), []answer{{reconcile.Created, nil}, {reconcile.Unchanged, failed}}, []string{"nothing", "5"}, reconcile.Created, failed},
		"it cannot be made":               {byHand(t), []answer{{reconcile.Unchanged, failed}}, []string{"nothing"}, reconcile.Unchanged, failed},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			server := &applies{answers: test.answers}
			did, err := applyDeployment(t.Context(), server, nil, test.seen, decide(test.seen))
			same(t, server.asked, test.asked)
			same(t, did, test.did)
			if !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
		})
	}
}
