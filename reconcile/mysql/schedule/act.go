package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// maxSwept bounds how many instances one pass marks or deletes; their changes start the next pass.
const maxSwept = 20

// passResult is what a pass did.
type passResult struct {
	// at is the time for which there is an instance now; zero if none was needed, or its creation failed.
	at time.Time
	// made is the name of the created instance; empty if it existed already. taken is the name if the instance does not belong to the
	// schedule.
	made, taken string
	// ended are the instances to be replaced. expired are the backups whose deletion has begun.
	ended, expired []string
}

// make creates the instance that the decision requires.
func (r *reconciler) make(ctx context.Context, client *reconcile.Client, seen observed, found decision) (passResult, error) {
	did := passResult{}
	if len(found.replace) > 0 {
		// The reason to end backups is spec.concurrencyPolicy, which must still be current.
		if err := client.CheckUnchanged(ctx); err != nil {
			return did, err
		}
	}
	for _, name := range found.replace {
		if err := r.replace(ctx, client, seen.schedule, name); err != nil {
			return did, err
		}
		did.ended = append(did.ended, name)
	}
	wanted := desired(seen.schedule, found.make)
	_, err := client.CreateUnowned(ctx, wanted)
	switch {
	case err == nil:
		did.at, did.made = found.make, wanted.Name
		logr.FromContextOrDiscard(ctx).Info("backup scheduled", "op", "schedule", "child", wanted.Kind+"/"+wanted.Name)
		return did, nil
	case apierrors.IsAlreadyExists(err):
		return r.found(ctx, did, seen.schedule, found.make)
	}
	return did, err
}

// found reads the object that already has the name. Usually an operator created it and then crashed.
func (r *reconciler) found(ctx context.Context, did passResult, schedule v1.MySQLBackupSchedule, at time.Time) (passResult, error) {
	name := instanceName(schedule.Name, at)
	object, err := r.reader.Get(ctx, instances(), schedule.Namespace, name)
	if apierrors.IsNotFound(err) {
		// It existed, and only that matters.
		did.at = at
		return did, nil
	}
	if err != nil {
		return did, err
	}
	var typed v1.MySQLBackupInstance
	if err := schema.Decode(object, &typed); err != nil {
		return did, err
	}
	did.at = at
	if !isOf(schedule.Name, typed) {
		did.taken = name
	}
	return did, nil
}

// replace marks an instance as replaced. An instance that is gone needs no mark.
func (r *reconciler) replace(ctx context.Context, client *reconcile.Client, schedule v1.MySQLBackupSchedule, name string) error {
	object, err := r.reader.Get(ctx, instances(), schedule.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, instances(), object, map[string]any{"metadata": map[string]any{"annotations": map[string]any{transfer.AnnotationReplaced: "true"}}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// clear marks and deletes what retention requires by the API server's data. The caches only showed that there is something to do.
func (r *reconciler) clear(ctx context.Context, client *reconcile.Client, seen observed, did *passResult) error {
	live, objects, err := r.observeLive(ctx, client, seen)
	if err != nil {
		return err
	}
	asked := retain(live)
	var failures []error
	each := func(names []string, act func(*unstructured.Unstructured) error) {
		for _, name := range names[:min(len(names), maxSwept)] {
			if err := act(objects[name]); err != nil && !apierrors.IsNotFound(err) {
				failures = append(failures, err)
			}
		}
	}
	each(asked.toUnmark, func(object *unstructured.Unstructured) error {
		_, err := client.Patch(ctx, instances(), object, transfer.UnexpirePatch(object, seen.schedule.Spec.DeletionPolicy))
		return err
	})
	each(asked.toMark, func(object *unstructured.Unstructured) error {
		_, err := client.Patch(ctx, instances(), object, transfer.ExpirePatch(object, seen.schedule.UID))
		return err
	})
	each(asked.remove, func(object *unstructured.Unstructured) error {
		err := remove(ctx, client, object, "expired")
		if err == nil {
			did.expired = append(did.expired, object.GetName())
		}
		return err
	})
	each(asked.toDeleteFailed, func(object *unstructured.Unstructured) error {
		return remove(ctx, client, object, "failed")
	})
	return errors.Join(failures...)
}

func remove(ctx context.Context, client *reconcile.Client, object *unstructured.Unstructured, why string) error {
	if err := client.Delete(ctx, instances(), object); err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("backup deleted", "op", "retain", "child", object.GetKind()+"/"+object.GetName(), "reason", why)
	return nil
}

// desired is the instance for a time. It has a copy of the schedule's current settings, so that its spec stays correct after the schedule
// changes or is deleted.
func desired(schedule v1.MySQLBackupSchedule, at time.Time) v1.MySQLBackupInstance {
	labels := transfer.Labels(schedule.Spec.Cluster)
	labels[v1.LabelBackupSchedule] = schedule.Name
	labels[v1.LabelBackupCluster] = transfer.LabelValue(schedule.Spec.Cluster)
	return v1.MySQLBackupInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: instances().GroupVersion().String(), Kind: kindInstance},
		ObjectMeta: metav1.ObjectMeta{Name: instanceName(schedule.Name, at), Namespace: schedule.Namespace, Labels: labels},
		Spec: v1.MySQLBackupInstanceSpec{
			Schedule: schedule.Name, Cluster: schedule.Spec.Cluster, BackupSettings: schedule.Spec.BackupSettings,
		},
	}
}

const kindInstance = "MySQLBackupInstance"
