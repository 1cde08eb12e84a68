package backup

import (
	"context"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/archive"
)

// RunDelete deletes the backup's data and nothing else; that there is none is success.
func RunDelete(ctx context.Context, env Environment) (Outcome, error) {
	store, err := env.open(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = store.Close() }()
	who := archive.Identity{Namespace: env.Namespace, Cluster: env.Cluster, Instance: env.Instance, UID: env.UID}
	if err := archive.Remove(ctx, store, who); err != nil {
		return Outcome{}, interrupted(ctx, fmt.Errorf("delete the data of backup %s: %w", env.Instance, err))
	}
	env.Log.Info("deleted", "url", store.URL())
	return Outcome{Message: "the data is deleted"}, nil
}
