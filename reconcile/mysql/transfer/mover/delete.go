package mover

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// RunDelete deletes the backup's data and nothing else; that there is none is success. Of a failed backup it may be told to delete only
// what was never finished: then that there is a manifest is refused.
func RunDelete(ctx context.Context, env Environment) (transfer.Outcome, error) {
	store, err := env.open(ctx)
	if err != nil {
		return transfer.Outcome{}, repeated(err)
	}
	defer func() { _ = store.Close() }()
	who := archive.Identity{Namespace: env.Namespace, Cluster: env.Cluster, Instance: env.Instance, UID: env.UID}
	remove := archive.Remove
	if env.UnfinishedOnly {
		remove = archive.RemoveUnfinished
	}
	if err := remove(ctx, store, who); err != nil {
		return transfer.Outcome{}, interrupted(ctx, repeated(fmt.Errorf("delete the data of backup %s: %w", env.Instance, err)))
	}
	env.Log.Info("deleted", "url", store.URL())
	return transfer.Outcome{Message: "the data is deleted"}, nil
}

// repeated has what is malformed tried again: the Secret may be in the making, and the data is given up with the last attempt. A backup may
// be made another time; nobody looks for data that was left.
func repeated(err error) error {
	if store, ok := errors.AsType[*destination.StoreError](err); ok && store.Kind == destination.KindInvalid {
		return retry(transfer.ReasonDestinationRefused, "%w", err)
	}
	return err
}
