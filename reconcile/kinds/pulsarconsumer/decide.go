package pulsarconsumer

import (
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// The reasons of the Ready condition. Status, events and docs/pulsarconsumer.md use the same words.
const (
	// reasonReplicasReady: all replicas are ready; those of the operator's image are subscribed then.
	reasonReplicasReady = "AllReplicasReady"
	// reasonScaledToZero: nobody consumes, which is what was asked for.
	reasonScaledToZero = "ScaledToZero"

	// reasonRollingOut: the Deployment was made or changed, and its Pods are being replaced.
	reasonRollingOut = "RollingOut"
	// reasonReplicasNotReady: the Pods are those that are wanted, and some are not ready.
	reasonReplicasNotReady = "ReplicasNotReady"
	// reasonPredecessor: the Deployment of that name is that of a deleted resource, and goes.
	reasonPredecessor = "WaitingForPredecessor"
	// reasonApplyFails: the Deployment cannot be written for a reason that may pass, such as an admission webhook that does not answer.
	reasonApplyFails = "ApplyFails"

	// reasonRolloutStuck: new Pods do not become ready in the time that a Deployment has.
	reasonRolloutStuck = "RolloutStuck"
	// reasonRolloutPaused: somebody has paused the Deployment, so that a change does not reach the Pods.
	reasonRolloutPaused = "RolloutPaused"
	// reasonPodsRefused: Kubernetes makes no Pods: a quota, an admission policy.
	reasonPodsRefused = "PodsRefused"
	// reasonNameTaken: there is a Deployment of that name which is not this resource's.
	reasonNameTaken = "NameTaken"
	reasonForbidden = "Forbidden"
	reasonRejected  = "Rejected"
)

// state is where a PulsarConsumer can be.
type state string

const (
	// stateReady: it is as the spec says.
	stateReady state = "ready"
	// stateOnTheWay: waiting is enough.
	stateOnTheWay state = "on the way"
	// stateStalled: a person is needed.
	stateStalled state = "stalled"
)

// verdict is what is to be said of a PulsarConsumer.
type verdict struct {
	state           state
	reason, message string
}

// decide says how it is with the consumers. change is what this pass did to the Deployment; what was seen of it is older.
func decide(consumer v1.PulsarConsumer, change reconcile.Change, now seen) verdict {
	workload := "Deployment " + deploymentName(consumer)
	switch {
	case change == reconcile.Awaiting:
		return verdict{stateOnTheWay, reasonRollingOut, workload + " is being deleted by somebody and will be made again"}
	case change != reconcile.Unchanged || !now.exists || !now.current:
		return verdict{stateOnTheWay, reasonRollingOut, workload + " was made or changed; its Pods follow"}
	case now.refused != "":
		return verdict{stateStalled, reasonPodsRefused, fmt.Sprintf("Kubernetes makes no Pods for %s: %s: change the quota or the policy it names", workload, now.refused)}
	case now.paused && now.replicas > now.updated:
		return verdict{stateStalled, reasonRolloutPaused, fmt.Sprintf("%[1]s is paused, so that what changed does not reach its Pods: kubectl rollout resume deployment/%[2]s", workload, deploymentName(consumer))}
	case now.stuck != "":
		return verdict{stateStalled, reasonRolloutStuck, fmt.Sprintf("%s; %s", now.stuck, look(consumer))}
	}
	return progress(consumer, now)
}

// progress says how far the Pods are where nothing is in their way.
func progress(consumer v1.PulsarConsumer, now seen) verdict {
	wanted := consumer.Spec.Replicas
	switch {
	case now.updated < wanted || now.replicas > now.updated:
		return verdict{stateOnTheWay, reasonRollingOut, fmt.Sprintf("%d of %d replicas are new, and %d old ones are left; %s", now.updated, wanted, now.replicas-now.updated, look(consumer))}
	case now.replicas > wanted:
		return verdict{stateOnTheWay, reasonRollingOut, fmt.Sprintf("%d replicas are ending", now.replicas-wanted)}
	case now.ready < wanted:
		return verdict{stateOnTheWay, reasonReplicasNotReady, fmt.Sprintf("%d of %d replicas are ready; %s", now.ready, wanted, look(consumer))}
	case wanted == 0:
		return verdict{stateReady, reasonScaledToZero, "spec.replicas is 0: nobody consumes, and the subscription keeps what arrives"}
	}
	return verdict{stateReady, reasonReplicasReady, fmt.Sprintf("all %d replicas are ready", wanted)}
}

// look says where a person finds out more.
func look(consumer v1.PulsarConsumer) string {
	own := "kubectl logs deployment/" + deploymentName(consumer) + " tells what the consumers wait for"
	if consumer.Spec.Image != "" {
		return own + ", kubectl describe pods -l " + labelInstance + "=" + consumer.Name + " whether their image runs"
	}
	return own
}
