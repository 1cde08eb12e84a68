package mover

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// RunDelete deletes the backup's data and nothing else. It succeeds if there is no data. With UnfinishedOnly, it deletes only an unfinished
// backup, and refuses if there is a manifest.
func RunDelete(ctx context.Context, env Environment) (protocol.Outcome, error) {
	store, err := env.open(ctx)
	if err != nil {
		return protocol.Outcome{}, retryInvalid(err)
	}
	defer func() { _ = store.Close() }()
	who := archive.Identity{Namespace: env.Namespace, Cluster: env.Cluster, Instance: env.Instance, UID: env.UID}
	remove := archive.Remove
	if env.UnfinishedOnly {
		remove = archive.RemoveUnfinished
	}
	if err := remove(ctx, store, who); err != nil {
		return protocol.Outcome{}, interrupted(ctx, retryInvalid(fmt.Errorf("delete the data of backup %s: %w", env.Instance, err)))
	}
	env.Log.Info("deleted", "url", store.URL())
	return protocol.Outcome{Message: "the data is deleted"}, nil
}

// retryInvalid makes an invalid destination an error that is retried. A user may be about to complete the Secret, and after the last
// attempt the operator gives the data up. A backup can be made again later, but no user would find data that was left in place.
func retryInvalid(err error) error {
	if store, ok := errors.AsType[*destination.StoreError](err); ok && store.Kind == destination.KindInvalid {
		return retry(protocol.ReasonDestinationRefused, "%w", err)
	}
	return err
}
