package restore

import (
	"context"
	"errors"
	"slices"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/claims"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// ErrOutdated reports that the live cluster does not want the restore that a pass has read: another operator may have completed it.
var ErrOutdated = errors.New("the cluster's restore has changed since this pass read it; the operator looks again")

// Act carries out one step. If another operator has created the same object a moment ago, it has created it the same.
func (r Restorer) Act(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen Observed, step Step) error {
	n := children.NamesOf(cluster)
	switch step.act {
	case actWatch, actRecord:
		return nil
	case actMakeClaim:
		if err := r.confirm(ctx, client); err != nil {
			return err
		}
		_, err := client.CreateUnowned(ctx, children.FirstClaim(n, cluster))
		return transfer.IgnoreExists(err)
	case actGrowClaim:
		return claims.Grow(ctx, client, *seen.claim, children.WantedStorage(cluster))
	case actMakeJob:
		if err := r.confirm(ctx, client); err != nil {
			return err
		}
		_, err := client.Create(ctx, jobOf(*seen.order, step.Status.Attempts, seen.inputs))
		if err := transfer.IgnoreExists(err); err != nil {
			return err
		}
		return r.askVersion(ctx, client, seen.server)
	case actAskVersion:
		if err := r.confirm(ctx, client); err != nil {
			return err
		}
		return r.askVersion(ctx, client, seen.server)
	case actDropVersion:
		return client.Delete(ctx, transfer.Jobs(), seen.server.jobObject)
	case actDropJob:
		return client.Delete(ctx, transfer.Jobs(), seen.jobObject)
	}
	return nil
}

// askVersion creates the Job that asks the cluster's image for its version, unless it exists. It runs in parallel with the Job that
// restores.
func (r Restorer) askVersion(ctx context.Context, client *reconcile.Client, server versionCheck) error {
	if server.job != nil {
		return nil
	}
	_, err := client.Create(ctx, transfer.VersionJob(server.order))
	return transfer.IgnoreExists(err)
}

// confirm reads the cluster live before the operator creates something for its restore: another operator may have completed it.
func (r Restorer) confirm(ctx context.Context, client *reconcile.Client) error {
	owner := client.Owner()
	live, err := r.Reader.Get(ctx, r.Clusters, owner.GetNamespace(), owner.GetName())
	if err != nil {
		return err
	}
	var cluster v1.MySQLCluster
	if err := schema.Decode(live, &cluster); err != nil {
		return err
	}
	if live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil || !IsWanted(cluster) || !HasBegun(cluster.Status) {
		return ErrOutdated
	}
	return nil
}

// Abandon ends a restore whose cluster no longer starts from a backup. It deletes the Jobs first, and nothing else happens until their Pods
// have ended. done reports whether they have.
func (r Restorer) Abandon(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) (done bool, err error) {
	n := children.NamesOf(cluster)
	for _, name := range []string{n.RestoreJob(), n.VersionJob()} {
		job, err := r.jobs(n).Get(ctx, client, name)
		if err != nil {
			return false, err
		}
		if job != nil {
			return false, client.Delete(ctx, transfer.Jobs(), job)
		}
	}
	return r.HaveEnded(ctx, cluster)
}

// HaveEnded reports whether no Pod restores a backup to this cluster, or to an earlier one of the same name and with the same volume.
func (r Restorer) HaveEnded(ctx context.Context, cluster v1.MySQLCluster) (bool, error) {
	left, err := r.jobs(children.NamesOf(cluster)).Pods(ctx)
	return transfer.CountActive(slices.DeleteFunc(left, transfer.IsVersionPod)) == 0, err
}

// FreeVolume deletes the Job of a completed restore if another container of its Pod keeps running: otherwise the first member could not use
// the volume. It runs after the status has the restore's report, and in each pass until the cluster has a primary.
func (r Restorer) FreeVolume(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) error {
	seen := Observed{now: r.Now()}
	err := r.observeJob(ctx, client, children.NamesOf(cluster), nil, &seen)
	if foreign := (*reconcile.ForeignError)(nil); errors.As(err, &foreign) {
		return nil
	}
	if err == nil && (seen.job == nil || !seen.state.Lingers || seen.job.DeletionTimestamp != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return client.Delete(ctx, transfer.Jobs(), seen.jobObject)
}

// Tidy deletes the Jobs of a restore when its cluster is Ready: until then their logs may be useful.
func (r Restorer) Tidy(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) error {
	n := children.NamesOf(cluster)
	for _, name := range []string{n.VersionJob(), n.RestoreJob()} {
		job, err := r.jobs(n).Get(ctx, client, name)
		if foreign := (*reconcile.ForeignError)(nil); errors.As(err, &foreign) {
			continue
		}
		if err == nil && job != nil {
			err = client.Delete(ctx, transfer.Jobs(), job)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
