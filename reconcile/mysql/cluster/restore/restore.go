// Package restore restores a backup to the volume of a cluster's first member, before the cluster has members.
//
// A cluster that starts from a backup first gets the claim of its first member, and a Job whose Pod restores to that claim's volume. The
// operator creates the StatefulSet, which takes the claim over, only when status.restore is Completed. Before it creates the claim or the
// Job, status.restore says Running: from then on, it must not take an empty database for the restored one. In the end, the content of the
// volume decides. The Pod looks there first, so repeating a step does no harm.
//
// A pass observes (Restorer.Observe), decides (Decide) and acts (Restorer.Act). The kind writes the status that a Step has. It reads
// everything live: restores are rare, and what follows cannot be undone.
package restore

import (
	"fmt"
	"time"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// ReasonCreatingMembers is why a cluster is not Ready whose backup is restored, and whose members do not serve yet.
const ReasonCreatingMembers = "CreatingMembers"

// Restorer restores clusters.
type Restorer struct {
	// Reader reads from the API server.
	Reader *reconcile.Reader
	// Clusters is the resource of MySQLClusters.
	Clusters apischema.GroupVersionResource
	// Image is the operator's own image, for the Pods that restore.
	Image string
	// Now is the clock.
	Now func() time.Time
	// Ended records since when this process has seen that Jobs have ended.
	Ended *transfer.Stopwatch
}

// jobs reads the Jobs of a cluster's restore.
func (r Restorer) jobs(n children.Names) transfer.ClusterJobs {
	return transfer.ClusterJobs{Reader: r.Reader, Namespace: n.Namespace, Cluster: n.Cluster}
}

// IsWanted reports whether a cluster must still be restored: it should start from a backup, has no primary yet, and the data is not there.
func IsWanted(cluster v1.MySQLCluster) bool {
	return startsFromBackup(cluster) && !cluster.Status.HadPrimary() && !IsCompleted(cluster.Status)
}

func startsFromBackup(cluster v1.MySQLCluster) bool {
	return cluster.Spec.FromBackup != "" || cluster.Spec.FromBackupURL != ""
}

// IsCompleted reports whether the data of a backup is on the first member's volume.
func IsCompleted(status v1.MySQLClusterStatus) bool {
	return status.Restore != nil && status.Restore.Phase == v1.RestoreCompleted
}

// HasBegun reports whether the operator has created something for a restore, so that there may be data, or a part of it.
func HasBegun(status v1.MySQLClusterStatus) bool {
	return status.Restore != nil && status.Restore.Phase != v1.RestorePending
}

// IsAbandoned reports whether a restore that is not complete is no longer wanted.
func IsAbandoned(cluster v1.MySQLCluster) bool {
	return cluster.Status.Restore != nil && !startsFromBackup(cluster) && !cluster.Status.HadPrimary() && !IsCompleted(cluster.Status)
}

// GiveUp returns a cluster whose restore was given up: the status reports it as failed if it had begun.
func GiveUp(cluster v1.MySQLCluster) v1.MySQLCluster {
	if !HasBegun(cluster.Status) {
		cluster.Status.Restore = nil
		return cluster
	}
	failed := *cluster.Status.Restore
	failed.Phase, failed.Progress = v1.RestoreFailed, nil
	cluster.Status.Restore = &failed
	return cluster
}

// PreventEmptyPrimary prevents a member with a new data directory from becoming the first primary of a cluster for which a restore has
// begun: it would be taken for the restored data. In this case the volume was exchanged, or the restore never wrote anything. record is the
// record of truth that the decision follows.
func PreventEmptyPrimary(cluster v1.MySQLCluster, members []replication.Member, record replication.Record, decision replication.Decision) replication.Decision {
	if cluster.Status.HadPrimary() || !HasBegun(cluster.Status) || decision.Record.Primary == "" {
		return decision
	}
	for _, member := range members {
		if member.Name == decision.Record.Primary && member.Status != nil && member.Status.Origin == replication.OriginMember {
			return decision
		}
	}
	claim, from := children.NamesOf(cluster).Claim(0), "the backup"
	if cluster.Status.Restore.URL != "" {
		from = cluster.Status.Restore.URL
	}
	return replication.Decision{Record: record, Scale: decision.Scale, ReadFromPrimary: decision.ReadFromPrimary, Note: &replication.Note{
		Reason: protocol.ReasonRestoreFailed, Blocked: true,
		Message: fmt.Sprintf("the volume of %s is empty, although it should have the data of %s: the operator does not use an empty database instead. Delete this MySQLCluster and claim %s, and apply it with the backup to restore from, or without one to start empty", claim, from, claim),
	}}
}
