package pulsarconsumer

import (
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// The reasons of the Ready condition. Status, events and docs/pulsarconsumer.md use the same words.
const (
	// reasonReplicasReady: all replicas are ready. Those of the operator's image are then subscribed.
	reasonReplicasReady = "AllReplicasReady"
	// reasonScaledToZero: no consumer runs, because spec.replicas is 0.
	reasonScaledToZero = "ScaledToZero"

	// reasonRollingOut: the operator created or changed the Deployment, and its Pods are being replaced.
	reasonRollingOut = "RollingOut"
	// reasonReplicasNotReady: the Pods are the wanted ones, and some are not ready.
	reasonReplicasNotReady = "ReplicasNotReady"
	// reasonApplyFails: the operator cannot write the Deployment, for a reason that may pass, such as an admission webhook that does not
	// answer.
	reasonApplyFails = "ApplyFails"

	// reasonRolloutStuck: new Pods did not become ready within the Deployment's deadline.
	reasonRolloutStuck = "RolloutStuck"
	// reasonRolloutPaused: a user has paused the Deployment, so a change does not reach the Pods.
	reasonRolloutPaused = "RolloutPaused"
	// reasonPodsRefused: Kubernetes creates no Pods, for example because of a quota or an admission policy.
	reasonPodsRefused = "PodsRefused"
)

// state is the state of a PulsarConsumer.
type state string

const (
	// stateReady: the consumers are as the spec says.
	stateReady state = "ready"
	// stateInProgress: the user only needs to wait.
	stateInProgress state = "on the way"
	// stateStalled: a user must act.
	stateStalled state = "stalled"
)

// decision is what the operator reports about a PulsarConsumer.
type decision struct {
	state           state
	reason, message string
}

// decide returns the state of the consumers. change is what this pass did to the Deployment; now was observed before that.
func decide(consumer v1.PulsarConsumer, change reconcile.Change, now observed) decision {
	workload := "Deployment " + deploymentName(consumer)
	switch {
	case change == reconcile.Awaiting:
		return decision{stateInProgress, reasonRollingOut, workload + " is being deleted by another client, and the operator will create it again"}
	case change != reconcile.Unchanged || !now.exists || !now.current:
		return decision{stateInProgress, reasonRollingOut, workload + " was created or changed; its Pods follow"}
	case now.refused != "":
		return decision{stateStalled, reasonPodsRefused, fmt.Sprintf("Kubernetes creates no Pods for %s: %s: change the quota or the policy that it names", workload, now.refused)}
	case now.paused && now.replicas > now.updated:
		return decision{stateStalled, reasonRolloutPaused, fmt.Sprintf("%[1]s is paused, so changes do not reach its Pods: resume it with kubectl rollout resume deployment/%[2]s", workload, deploymentName(consumer))}
	case now.stuck != "":
		return decision{stateStalled, reasonRolloutStuck, fmt.Sprintf("%s; %s", now.stuck, whereToLook(consumer))}
	}
	return progress(consumer, now)
}

// progress returns how far the Pods are, if no problem stops them.
func progress(consumer v1.PulsarConsumer, now observed) decision {
	wanted := consumer.Spec.Replicas
	switch {
	case now.updated < wanted || now.replicas > now.updated:
		return decision{stateInProgress, reasonRollingOut, fmt.Sprintf("%d of %d replicas are new, and %d old ones are left; %s", now.updated, wanted, now.replicas-now.updated, whereToLook(consumer))}
	case now.replicas > wanted:
		return decision{stateInProgress, reasonRollingOut, fmt.Sprintf("%d replicas are ending", now.replicas-wanted)}
	case now.ready < wanted:
		return decision{stateInProgress, reasonReplicasNotReady, fmt.Sprintf("%d of %d replicas are ready; %s", now.ready, wanted, whereToLook(consumer))}
	case wanted == 0:
		return decision{stateReady, reasonScaledToZero, "spec.replicas is 0: no consumer runs, and the subscription keeps the messages that arrive"}
	}
	return decision{stateReady, reasonReplicasReady, fmt.Sprintf("all %d replicas are ready", wanted)}
}

// whereToLook names the commands that show more.
func whereToLook(consumer v1.PulsarConsumer) string {
	own := "kubectl logs deployment/" + deploymentName(consumer) + " shows what the consumers wait for"
	if consumer.Spec.Image != "" {
		return own + ", and kubectl describe pods -l " + labelInstance + "=" + consumer.Name + " whether their image runs"
	}
	return own
}
