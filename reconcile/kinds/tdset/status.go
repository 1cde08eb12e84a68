package tdset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// The reasons of the conditions. Status, events and docs/tdset.md use the same words.
const (
	reasonFollowsSchedule = "FollowsSchedule"
	reasonHeld            = "Held"
	reasonUpdating        = "Updating"
	reasonSettled         = "Settled"
	reasonUnavailable     = "Unavailable"
	reasonNoDeployment    = "NoDeployment"

	reasonScaledByHand    = "ScaledByHand"
	reasonAutoscaled      = "Autoscaled"
	reasonInvalidTimeZone = "InvalidTimeZone"
	reasonRolloutStuck    = "RolloutStuck"
	reasonRolloutPaused   = "RolloutPaused"
	reasonPodsNotReady    = "PodsNotReady"
	reasonPodsNotCreated  = "PodsNotCreated"
	reasonApplyFails      = "ApplyFails"
)

// The reasons of events that report what the operator did.
const (
	reasonCreated = "Created"
	reasonScaled  = "Scaled"
)

// statusOf returns the whole status of a TDSet after a pass: did is the change of its Deployment, found its problem.
func statusOf(seen observed, made decision, did reconcile.Change, found *report.Problem) v1.TDSetStatus {
	status := v1.TDSetStatus{
		ObservedGeneration: seen.set.Generation,
		Conditions:         slices.Clone(seen.set.Status.Conditions),
		Selector:           selectorOf(seen.set),
	}
	if seen.problem == nil {
		scheduled := made.turn.replicas
		status.CurrentInterval, status.ScheduledReplicas = seen.times.nameOf(made.turn.interval), &scheduled
		if !made.turn.change.IsZero() {
			status.NextChange = &v1.Change{Time: metav1.NewTime(made.turn.change.UTC()), Replicas: made.turn.next}
		}
	}
	if seen.deployment != nil {
		status.Replicas, status.ReadyReplicas = seen.deployment.pods, seen.deployment.ready
	}
	available, progressing := availability(seen), progress(seen, did, found)
	conditions := report.Conditions{List: &status.Conditions, Generation: status.ObservedGeneration, Now: seen.now}
	degraded := degradation(found)
	for _, condition := range []metav1.Condition{available, progressing, degraded, readiness(seen, available, progressing, found)} {
		conditions.Set(condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	stalled := found != nil && found.Stalled
	conditions.SetIf(progressing.Status == metav1.ConditionTrue && !stalled, v1.ConditionReconciling, progressing.Reason, progressing.Message)
	conditions.SetIf(stalled, v1.ConditionStalled, degraded.Reason, degraded.Message)
	return status
}

// availability returns the condition Available, as the Deployment reports it.
func availability(seen observed) metav1.Condition {
	found := seen.deployment
	switch {
	case found == nil:
		return condition(v1.ConditionAvailable, false, reasonNoDeployment, "there is no Deployment yet")
	case found.availableReason == "":
		return condition(v1.ConditionAvailable, false, reasonUnavailable, "Kubernetes has not processed the Deployment yet")
	default:
		return condition(v1.ConditionAvailable, found.available, found.availableReason, found.availableMessage)
	}
}

// progress returns the condition Progressing: whether Pods are being started, replaced or ended. A Deployment that changed a moment ago is
// in progress.
func progress(seen observed, did reconcile.Change, found *report.Problem) metav1.Condition {
	changed := did == reconcile.Created || did == reconcile.Updated || did == reconcile.Awaiting
	switch {
	case !changed && found != nil && stopsProgress(seen, *found):
		return condition(v1.ConditionProgressing, false, found.Reason, found.Message)
	case changed || seen.deployment == nil:
		return condition(v1.ConditionProgressing, true, reasonUpdating, "Pods are being started, replaced or ended")
	case !seen.deployment.settled:
		return condition(v1.ConditionProgressing, true, reasonUpdating, "Pods are being started, replaced or ended: "+howMany(seen))
	default:
		return condition(v1.ConditionProgressing, false, reasonSettled, "all Pods match the Deployment")
	}
}

// stopsProgress reports whether a problem stops Pods from being started, replaced or ended.
func stopsProgress(seen observed, found report.Problem) bool {
	return found.Stalled && (seen.deployment == nil || slices.Contains([]string{reasonRolloutStuck, reasonRolloutPaused, reasonPodsNotCreated}, found.Reason))
}

func degradation(found *report.Problem) metav1.Condition {
	if found != nil {
		return condition(v1.ConditionDegraded, true, found.Reason, found.Message)
	}
	return condition(v1.ConditionDegraded, false, reasonSettled, "nothing prevents the TDSet from matching its spec")
}

// readiness returns the condition Ready, which sums up the others.
func readiness(seen observed, available, progressing metav1.Condition, found *report.Problem) metav1.Condition {
	switch {
	case found != nil:
		return condition(v1.ConditionReady, false, found.Reason, found.Message)
	case progressing.Status == metav1.ConditionTrue:
		return condition(v1.ConditionReady, false, progressing.Reason, progressing.Message)
	case available.Status != metav1.ConditionTrue:
		return condition(v1.ConditionReady, false, available.Reason, available.Message)
	case seen.set.Spec.Replicas != nil:
		return condition(v1.ConditionReady, true, reasonHeld, "runs the number of replicas in spec.replicas, not in the schedule: remove spec.replicas to follow the schedule again")
	default:
		return condition(v1.ConditionReady, true, reasonFollowsSchedule, "runs the number of replicas in the schedule")
	}
}

func condition(kind string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// eventsFor returns the events for what the operator did and what went wrong.
func eventsFor(seen observed, made decision, did reconcile.Change, after v1.TDSetStatus) []reconcile.Event {
	events := []reconcile.Event{}
	switch {
	case did == reconcile.Created:
		note := fmt.Sprintf("created Deployment %s with %d replicas (%s)", seen.set.Name, *made.replicas, originOfReplicas(seen, made))
		events = append(events, reconcile.Event{Type: reconcile.Normal, Reason: reasonCreated, Action: "Create", Note: note})
	case did == reconcile.Updated && seen.deployment != nil && made.replicas != nil && seen.deployment.replicas != *made.replicas:
		note := fmt.Sprintf("scaled Deployment %s from %d to %d replicas (%s)", seen.set.Name, seen.deployment.replicas, *made.replicas, originOfReplicas(seen, made))
		events = append(events, reconcile.Event{Type: reconcile.Normal, Reason: reasonScaled, Action: "Scale", Note: note})
	}
	was := meta.FindStatusCondition(seen.set.Status.Conditions, v1.ConditionDegraded)
	is := meta.FindStatusCondition(after.Conditions, v1.ConditionDegraded)
	isBad, wasBad := is.Status == metav1.ConditionTrue, was != nil && was.Status == metav1.ConditionTrue
	switch {
	case isBad && (!wasBad || was.Reason != is.Reason):
		events = append(events, reconcile.Event{Type: reconcile.Warning, Reason: is.Reason, Action: "Reconcile", Note: is.Message})
	case wasBad && !isBad:
		events = append(events, reconcile.Event{Type: reconcile.Normal, Reason: is.Reason, Action: "Reconcile", Note: is.Message})
	}
	return events
}

// originOfReplicas returns the origin of a number of replicas.
func originOfReplicas(seen observed, made decision) string {
	switch {
	case seen.set.Spec.Replicas != nil:
		return "spec.replicas"
	case seen.problem != nil:
		return "spec.defaultReplica"
	default:
		return "interval " + seen.times.nameOf(made.turn.interval)
	}
}
