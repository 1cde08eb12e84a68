package schedule

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// helpEvery is the requeue time after a refusal.
const helpEvery = 15 * time.Second

type reconciler struct {
	reader *reconcile.Reader
	now    func() time.Time
	// sources are the backups that all clusters are restored from, as the API server has them.
	sources sharedRequest[[]restoreSource]
}

func newReconciler(reader *reconcile.Reader, now func() time.Time) *reconciler {
	made := &reconciler{reader: reader, now: now}
	made.sources.list = made.listSources
	return made
}

// Reconcile makes one pass over one schedule.
func (r *reconciler) Reconcile(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured) (reconcile.Outcome, error) {
	var schedule v1.MySQLBackupSchedule
	if err := schema.Decode(object, &schedule); err != nil {
		return reconcile.Outcome{}, err
	}
	if schedule.DeletionTimestamp != nil {
		return reconcile.Outcome{}, nil
	}
	seen, err := r.observe(schedule)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	found, cleared := decide(seen), retain(seen)
	did, failure := r.act(ctx, client, &seen, &found, cleared)
	refused := report.FromError(failure)
	status := statusOf(seen, found, did, refused)
	outcome := reconcile.Outcome{Status: status, Events: eventsOf(seen, found, did, status), RequeueAfter: requeueAfter(seen.now, found.next, cleared.next)}
	if refused != nil {
		outcome.RequeueAfter = requeueAfter(seen.now, seen.now.Add(helpEvery), found.next)
		return outcome, nil
	}
	if reconcile.IsNamespaceTerminating(failure) {
		return reconcile.Outcome{}, nil
	}
	return outcome, failure
}

// act creates the instance and cleans up. If one of the two fails, the other is done anyway. Before it creates, it decides again on the API
// server's own data.
func (r *reconciler) act(ctx context.Context, client *reconcile.Client, seen *observed, found *decision, cleared cleanup) (passResult, error) {
	did := passResult{}
	var making, clearing error
	if !found.make.IsZero() {
		making = r.decideLive(ctx, seen, found)
	}
	if making == nil && !found.make.IsZero() {
		did, making = r.make(ctx, client, *seen, *found)
	}
	if !cleared.isEmpty() {
		clearing = r.clear(ctx, client, *seen, &did)
	}
	return did, errors.Join(making, clearing)
}

// decideLive decides again whether to create an instance, based on the API server's instances. The caches may be missing what the previous
// leader created. Those instances have other names than the new one, so that no name conflict would reveal them.
func (r *reconciler) decideLive(ctx context.Context, seen *observed, found *decision) error {
	made, err := r.instancesOf(ctx, seen.schedule)
	if err != nil {
		return err
	}
	if err := seen.read(made); err != nil {
		return err
	}
	*found = decide(*seen)
	return nil
}
