package restore

import (
	"cmp"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// A restore is complete when its data is on the volume, and the operator knows that the cluster's image can start it. Another Job asks the
// image while the first one restores (transfer.VersionJob). If spec.image changes, the operator asks again, and the restored data stays.

// restored decides about a Job that has restored the backup to the volume.
func restored(cluster v1.MySQLCluster, seen Observed, status v1.RestoreStatus) Step {
	if seen.state.Outcome.Used {
		return complete(cluster, seen, status) // a cluster may have upgraded the data since, and the image may fit it
	}
	act, found := decideVersion(cluster, seen, cmp.Or(seen.state.Outcome.ServerVersion, seen.dataVersion))
	switch {
	case found == nil:
		return complete(cluster, seen, status)
	case found.Stalled && act == actWatch:
		return waitWithoutJob(status, *found)
	}
	return Step{act, status, *found}
}

// decideVersion decides how to learn the version of the cluster's image, and what to report meanwhile; nil if the image can start the data.
// made is the MySQL release that the data is of; empty if unknown.
func decideVersion(cluster v1.MySQLCluster, seen Observed, made string) (action, *report.Problem) {
	server, image := seen.server, cluster.Spec.Image
	asks := underWay(fmt.Sprintf("restoring %s; asking image %q for its version", sourceOf(cluster), image))
	switch {
	case server.job == nil:
		return actAskVersion, &asks
	case server.job.DeletionTimestamp != nil:
		return actWatch, &asks
	case server.job.Annotations[transfer.AnnotationOrder] != transfer.Hash(server.order):
		return actDropVersion, &asks
	case server.version != "":
		return actWatch, versionMismatch(cluster, server.version, made)
	case server.state.Phase == transfer.Succeeded, server.state.Phase == transfer.Failed:
		if server.ended >= transfer.AskAgain {
			return actDropVersion, &asks
		}
		return actWatch, &report.Problem{Reason: protocol.ReasonVersionMismatch, Message: fmt.Sprintf("spec.image: mysqld of image %q did not report its version: %s; kubectl logs job/%s shows more. Change spec.image; the operator asks the same image again within minutes", image, server.state.Message, server.job.Name), Stalled: true}
	case server.refused != "":
		return actWatch, &report.Problem{Reason: protocol.ReasonPodsNotCreated, Message: fmt.Sprintf("Kubernetes does not create the Pod of Job %s: %s; fix that, and Kubernetes tries again within minutes", server.job.Name, server.refused), Stalled: true}
	case server.state.Reason == protocol.ReasonImagePullFailed:
		return actWatch, &report.Problem{Reason: protocol.ReasonImagePullFailed, Message: server.state.Message + "; check spec.image, and that the node may pull it", Stalled: true}
	case server.state.Message != "":
		asks.Message += ": " + server.state.Message
	}
	return actWatch, &asks
}

// versionMismatch says why an image cannot start the data; nil if it can.
func versionMismatch(cluster v1.MySQLCluster, image, made string) *report.Problem {
	if made == "" {
		return nil // restored by an operator that did not record it
	}
	if err := agent.CanStart(image, made); err != nil {
		return &report.Problem{Reason: protocol.ReasonVersionMismatch, Message: fmt.Sprintf("spec.image cannot start %s: %v", sourceOf(cluster), err), Stalled: true}
	}
	return nil
}
