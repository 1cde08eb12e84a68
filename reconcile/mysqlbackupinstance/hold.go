package mysqlbackupinstance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/backup"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// lookForMend is how soon to look again whether somebody has helped.
const lookForMend = time.Minute

// sightBarred and sightRemoval are what the memory sees of an instance that ends: credentials that may not be sent, and a Job that deletes.
const (
	sightBarred  = "barred"
	sightRemoval = "removal"
)

// observeBar looks whether the Secret lets its credentials go to where the data is, unless a Pod deletes it already. Where the operator may not
// read the Secret, the Pod tells.
func (r *reconciler) observeBar(ctx context.Context, instance v1.MySQLBackupInstance, seen *remains) error {
	location := *instance.Status.Location
	if location.Secret == "" || seen.state.Phase == backup.Running || seen.state.Phase == backup.Succeeded {
		r.memory.sights.End(keyOf(instance), sightBarred)
		return nil
	}
	credentials, err := r.secret(ctx, instance.Namespace, location.Secret)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil || !credentials.found {
		return err // a Secret that is missing may come back: the Job that deletes waits for it
	}
	refused := endpointRefused(location.URL, credentials.data)
	if refused == nil {
		r.memory.sights.End(keyOf(instance), sightBarred)
		return nil
	}
	seen.barred = fmt.Sprintf("Secret %q: %v", location.Secret, refused)
	seen.barredFor = r.memory.sights.Waited(keyOf(instance), sightBarred, seen.now)
	return nil
}

// held is the outcome of a pass over an instance that waits for somebody.
func held(instance v1.MySQLBackupInstance, because string, now time.Time) reconcile.Outcome {
	outcome := reconcile.Outcome{Status: departing(instance, problem{backup.ReasonDestinationRefused, because, true}, now), Again: lookForMend}
	before := meta.FindStatusCondition(instance.Status.Conditions, v1.ConditionStalled)
	if before == nil || before.Reason != backup.ReasonDestinationRefused {
		outcome.Events = []reconcile.Event{{Type: reconcile.Warning, Reason: backup.ReasonDestinationRefused, Action: "Delete", Note: because}}
	}
	return outcome
}
