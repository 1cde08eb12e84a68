package tdset

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// longestWait is the longest time between two passes over a TDSet, even if spec.intervalMint is longer. Timers use another clock than the
// one with the time of day, so they do not notice when that one is set. Such a pass sends no request.
const longestWait = time.Hour

// lateAfter is how long Pods may be in progress before the operator reports a problem. A Deployment gives a rollout the same time
// (Kubernetes documentation, "Deployments", progressDeadlineSeconds). For Pods that it needs after scaling, a Deployment waits without
// limit.
const lateAfter = 10 * time.Minute

// observed is what a pass observed of a TDSet, as plain values.
type observed struct {
	now time.Time
	set v1.TDSet
	// times is the schedule. It is not valid if there is a problem.
	times   calendar
	problem *report.Problem
	// deployment is nil if there is none.
	deployment *deployment
	// autoscaler names the HorizontalPodAutoscaler of the Deployment, holder the one of the TDSet; empty for none.
	autoscaler, setAutoscaler string
}

// deployment has the fields of a Deployment that decisions need.
type deployment struct {
	// version is its metadata.resourceVersion.
	version string
	// replicas is its spec.replicas. scaler is the other client that set it; empty for this operator.
	replicas int32
	scaler   string
	// mark is the annotation that this operator wrote with replicas.
	mark string
	// settled reports whether all Pods match the Deployment, and no others exist.
	settled bool
	// available reports whether enough Pods serve; why and availableMessage are the Deployment's reason and message for that.
	available                         bool
	availableReason, availableMessage string
	// stuck is the Deployment's message for a rollout without progress, failure the one for Pods that it cannot create; empty if there is
	// none.
	stuck, failure string
	// paused reports whether a user has paused its rollouts.
	paused bool
	// pods is the number of Pods, updated the number of them with the latest template, ready the number that serve.
	pods, updated, ready int32
}

// replicasDecider says which client decides the number of replicas.
type replicasDecider string

const (
	// courseFollow: the operator sets the wanted number.
	courseFollow replicasDecider = "follow"
	// courseYield: another client has set another number since. It stays until the operator wants another one.
	courseYield replicasDecider = "yield"
	// courseAutoscaled: a HorizontalPodAutoscaler always sets the number.
	courseAutoscaled replicasDecider = "autoscaled"
	// courseKeep: the wanted number is unknown.
	courseKeep replicasDecider = "keep"
)

// The marks of numbers: held by spec.replicas, from the schedule, or left to an autoscaler.
const (
	markHeld       = "%d held"
	markSince      = "%d since %s"
	markAutoscaled = "autoscaled"
)

// decision is what a pass does about replicas.
type decision struct {
	course replicasDecider
	// turn is what the schedule gives. It is not valid if the schedule cannot be read.
	turn scheduledReplicas
	// wanted is the number of replicas by the schedule or by spec.replicas.
	wanted int32
	// replicas is the number to apply to the Deployment; nil leaves it to the client that set it.
	replicas *int32
	// mark is the reason for the number, for annotationScaled.
	mark string
	// version is the version of the Deployment to set replicas on. It is empty if there is no Deployment, or if replicas is nil.
	version string
}

// decide decides which client sets the replicas, and what the operator must write for that.
func decide(seen observed) decision {
	made, known := wantedReplicas(seen)
	made.replicas = &made.wanted
	found := seen.deployment
	switch {
	case found == nil:
		// A new Deployment starts with the wanted number, even if another client decides it later.
	case seen.autoscaler != "":
		made.course, made.mark = courseAutoscaled, markAutoscaled
		if found.scaler != "" || found.replicas != 0 || !known {
			made.replicas = found.replicasToKeep()
		} // else the operator set the 0, from which an autoscaler does not scale: the operator sets the wanted number
	case !known:
		made.course, made.replicas, made.mark = courseKeep, found.replicasToKeep(), found.mark
	case found.mark == made.mark && found.scaler != "" && found.replicas != made.wanted:
		made.course, made.replicas = courseYield, nil
	}
	if found != nil && made.replicas != nil {
		made.version = found.version
	}
	return made
}

// wantedReplicas returns what the operator would set if no other client did, and whether that is known.
func wantedReplicas(seen observed) (made decision, known bool) {
	made, known = decision{wanted: seen.set.Spec.DefaultReplica, course: courseFollow}, seen.problem == nil
	if known {
		made.turn = seen.times.turnAt(seen.now)
		made.wanted, made.mark = made.turn.replicas, markOf(made.turn)
	}
	if held := seen.set.Spec.Replicas; held != nil {
		made.wanted, made.mark, known = *held, fmt.Sprintf(markHeld, *held), true
	}
	return made, known
}

// withoutDeployment returns what the pass observes and decides after the Deployment turned out to be gone.
func withoutDeployment(seen observed) (observed, decision) {
	seen.deployment = nil
	return seen, decide(seen)
}

// markOf returns a mark that differs for each change of the schedule, also if the number is the same at another time.
func markOf(found scheduledReplicas) string {
	if found.since.IsZero() {
		return fmt.Sprint(found.replicas)
	}
	return fmt.Sprintf(markSince, found.replicas, found.since.UTC().Format(time.RFC3339))
}

// replicasToKeep returns the replicas to apply so that they stay as they are. That is nil if another client set them. If this operator did,
// it is the same number, because the API server removes a field that its only owner no longer applies.
func (d deployment) replicasToKeep() *int32 {
	if d.scaler != "" {
		return nil
	}
	return &d.replicas
}

// requeueAfter returns how long to wait until something is due that no change of an object announces.
func requeueAfter(seen observed, made decision) time.Duration {
	wait := longestWait
	if minutes := seen.set.Spec.IntervalMint; minutes != nil {
		wait = min(wait, time.Duration(*minutes)*time.Minute)
	}
	if until := made.turn.until; !until.IsZero() {
		wait = min(wait, until.Sub(seen.now))
	}
	if left := lateAfter - progressingFor(seen); left > 0 && left < lateAfter {
		wait = min(wait, left)
	}
	return wait
}

// progressingFor returns for how long Pods have been in progress; 0 if they are not.
func progressingFor(seen observed) time.Duration {
	since := meta.FindStatusCondition(seen.set.Status.Conditions, v1.ConditionProgressing)
	if since == nil || since.Status != metav1.ConditionTrue || seen.deployment == nil || seen.deployment.settled {
		return 0
	}
	return seen.now.Sub(since.LastTransitionTime.Time)
}

// problemOf returns the worst problem that prevents a TDSet from matching its spec; nil for none.
func problemOf(seen observed, made decision) *report.Problem {
	name, found := seen.set.Name, seen.deployment
	if found != nil {
		if halted := problemWithPods(name, *found); halted != nil {
			return halted
		}
	}
	switch {
	case seen.problem != nil:
		return seen.problem
	case made.course == courseAutoscaled:
		return &report.Problem{Reason: reasonAutoscaled, Message: autoscaled(seen, made), Stalled: true}
	case made.course == courseYield:
		return &report.Problem{Reason: reasonScaledByHand, Message: scaledByHand(name, *found, made)}
	case seen.setAutoscaler != "" && seen.set.Spec.Replicas == nil:
		return &report.Problem{Reason: reasonAutoscaled, Message: fmt.Sprintf("HorizontalPodAutoscaler %s cannot scale this TDSet while spec.replicas is unset, so the operator follows the schedule: run kubectl scale tdset %s --replicas=%d once to let it scale instead, or delete the HorizontalPodAutoscaler", seen.setAutoscaler, name, max(made.wanted, 1)), Stalled: true}
	case seen.setAutoscaler != "":
		return &report.Problem{Reason: reasonAutoscaled, Message: fmt.Sprintf("HorizontalPodAutoscaler %s sets spec.replicas, so the operator does not follow the schedule: delete it and remove spec.replicas, or keep it and use a Deployment instead of the TDSet", seen.setAutoscaler), Stalled: true}
	case progressingFor(seen) >= lateAfter:
		return &report.Problem{Reason: reasonPodsNotReady, Message: fmt.Sprintf("for more than %.0f minutes, %s; the nodes may have no room, or the Pods do not become ready", lateAfter.Minutes(), howMany(seen))}
	}
	return nil
}

// problemWithPods returns what prevents a Deployment from having the Pods it wants.
func problemWithPods(name string, found deployment) *report.Problem {
	switch {
	case found.failure != "":
		return &report.Problem{Reason: reasonPodsNotCreated, Message: fmt.Sprintf("Deployment %s cannot create its Pods: %s", name, found.failure), Stalled: true}
	case found.paused && found.pods > found.updated:
		return &report.Problem{Reason: reasonRolloutPaused, Message: fmt.Sprintf("Deployment %[1]s is paused, so changes do not reach its Pods: resume it with kubectl rollout resume deployment/%[1]s", name), Stalled: true}
	case found.stuck != "":
		return &report.Problem{Reason: reasonRolloutStuck, Message: fmt.Sprintf("the rollout of Deployment %s makes no progress: %s; look at its Pods, and correct spec.container", name, found.stuck), Stalled: true}
	}
	return nil
}

// howMany returns how many Pods serve, and where to see what the others wait for.
func howMany(seen observed) string {
	return fmt.Sprintf("%d Pods serve and %d are wanted; kubectl get pods -l %s shows what they wait for", seen.deployment.ready, seen.deployment.replicas, selectorOf(seen.set))
}

// autoscaled describes what an autoscaler does. From 0 replicas it does not scale, unless it may scale to 0 itself (Kubernetes
// documentation, "Horizontal Pod Autoscaling", "Implicit maintenance-mode deactivation").
func autoscaled(seen observed, made decision) string {
	name, found := seen.set.Name, seen.deployment
	switch {
	case found.replicas != 0 || found.scaler == "" && *made.replicas != 0:
		return fmt.Sprintf("HorizontalPodAutoscaler %s scales Deployment %s, so the schedule does not: delete the HorizontalPodAutoscaler, or use it with a Deployment instead of the TDSet", seen.autoscaler, name)
	case found.scaler == "":
		return fmt.Sprintf("HorizontalPodAutoscaler %s targets Deployment %s, so the schedule does not scale it; the HorizontalPodAutoscaler cannot scale from 0 replicas, and starts when the schedule reaches a number above 0: delete the HorizontalPodAutoscaler, or use it with a Deployment instead of the TDSet", seen.autoscaler, name)
	default:
		return fmt.Sprintf("%s has set the replicas of Deployment %s to 0; HorizontalPodAutoscaler %s does not scale from 0 unless its minReplicas is 0, and while it exists the schedule does not scale: run kubectl scale deployment %[2]s --replicas=%[4]d, or delete the HorizontalPodAutoscaler", found.scaler, name, seen.autoscaler, max(made.wanted, 1))
	}
}

func scaledByHand(name string, found deployment, made decision) string {
	return fmt.Sprintf("%s has set the replicas of Deployment %[2]s to %[3]d, and %[4]d are wanted; the operator leaves the number until it wants another: to get %[4]d now, run kubectl scale deployment %[2]s --replicas=%[4]d; to keep %[3]d, run kubectl scale tdset %[2]s --replicas=%[3]d", found.scaler, name, found.replicas, made.wanted)
}
