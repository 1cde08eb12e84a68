package tdset

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// stalledInterval is the time before the operator retries what was refused.
const stalledInterval = 15 * time.Second

type reconciler struct {
	reader *reconcile.Reader
	now    func() time.Time
}

// Reconcile makes one pass over one TDSet. A deleted TDSet needs no pass: garbage collection deletes its children.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var set v1.TDSet
	if err := schema.Decode(object, &set); err != nil {
		return reconcile.Outcome{}, err
	}
	if set.DeletionTimestamp != nil {
		return reconcile.Outcome{}, nil
	}
	seen, err := r.observe(set)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	made := decide(seen)
	did, failed := r.act(ctx, client, seen, made)
	if did == reconcile.Created {
		seen, made = withoutDeployment(seen)
	}
	if reconcile.IsNamespaceTerminating(failed.deployment) || reconcile.IsNamespaceTerminating(failed.service) {
		return reconcile.Outcome{}, nil
	}
	found, err := failed.problemAndError()
	if failed.onlyServiceFailed() {
		logr.FromContextOrDiscard(ctx).Error(err, "failed to write Service, retrying", "op", "apply", "every", stalledInterval.String())
		err = nil
	}
	wait := requeueAfter(seen, made)
	switch {
	case found != nil:
		wait = min(wait, stalledInterval)
	case err != nil:
		return reconcile.Outcome{}, err
	default:
		found = problemOf(seen, made)
	}
	status := statusOf(seen, made, did, found)
	return reconcile.Outcome{Status: status, Events: eventsFor(seen, made, did, status), RequeueAfter: wait}, err
}
