package tdset

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// longestWait is how long nobody looks at a TDSet whose time has not come, whatever its own longest time between checks. Timers run by
// another clock than the one that tells the time of day, so they do not notice that it was set. Such a look asks the API server nothing.
const longestWait = time.Hour

// lateAfter is how long Pods may be on their way before that is told as a problem. It is what a Deployment gives a roll-out (Kubernetes
// documentation, "Deployments", progressDeadlineSeconds); Pods that scaling has asked for a Deployment waits for without end.
const lateAfter = 10 * time.Minute

// problem is something that keeps a TDSet from what its spec says.
type problem struct {
	reason, message string
	// stalled says that it does not pass without somebody's help.
	stalled bool
}

// look is what a pass sees of a TDSet: plain values.
type look struct {
	now time.Time
	set v1.TDSet
	// times is the schedule; of no use with a problem.
	times   calendar
	problem *problem
	// deployment is nil if there is none.
	deployment *deployment
	// autoscaler names the HorizontalPodAutoscaler that scales the Deployment, holder the one that scales the TDSet; empty for none.
	autoscaler, holder string
}

// deployment is what matters of a Deployment.
type deployment struct {
	// version is its metadata.resourceVersion.
	version string
	// replicas is its spec.replicas, and scaler who else than this operator has set it; empty for this operator.
	replicas int32
	scaler   string
	// mark says for what this operator has set replicas last.
	mark string
	// settled says that all Pods are as the Deployment wants them, and no others are there.
	settled bool
	// available says that enough Pods serve; why and whyLong what the Deployment has to say about that.
	available    bool
	why, whyLong string
	// stuck and failure are what the Deployment says of a roll-out that does not get on, and of Pods that cannot be made; empty if it does
	// not.
	stuck, failure string
	// paused says that somebody has paused its roll-outs.
	paused bool
	// pods is how many Pods there are, updated how many of them are of the latest template, ready how many serve.
	pods, updated, ready int32
}

// course is who decides how many replicas run.
type course string

const (
	// courseFollow: what is wanted is set.
	courseFollow course = "follow"
	// courseYield: somebody has set another number since. It stays until another one is wanted.
	courseYield course = "yield"
	// courseAutoscaled: a HorizontalPodAutoscaler sets the number, all the time.
	courseAutoscaled course = "autoscaled"
	// courseKeep: nobody knows what is wanted.
	courseKeep course = "keep"
)

// The marks of what is not a schedule's number.
const (
	markHeld       = "%d held"
	markSince      = "%d since %s"
	markAutoscaled = "autoscaled"
)

// decision is what a pass has to do about replicas.
type decision struct {
	course course
	// turn is what the schedule says; of no use if the schedule cannot be read.
	turn turn
	// wanted is how many replicas are to run, by the schedule or by spec.replicas.
	wanted int32
	// replicas is what to say of the Deployment's replicas; nil for nothing, which leaves them to who set them.
	replicas *int32
	// mark says what for.
	mark string
	// version is that of the Deployment for which replicas are meant; empty where there is none, or nothing is said of replicas.
	version string
}

// decide says who decides how many replicas run, and what has to be written for that.
func decide(seen look) decision {
	made, known := aim(seen)
	made.replicas = &made.wanted
	found := seen.deployment
	switch {
	case found == nil:
		// A new Deployment begins with what is wanted, also where somebody else is going to decide.
	case seen.autoscaler != "":
		made.course, made.mark = courseAutoscaled, markAutoscaled
		if found.scaler != "" || found.replicas != 0 || !known {
			made.replicas = found.kept()
		} // else the 0 is ours, at which an autoscaler does nothing: it is given something to begin with
	case !known:
		made.course, made.replicas, made.mark = courseKeep, found.kept(), found.mark
	case found.mark == made.mark && found.scaler != "" && found.replicas != made.wanted:
		made.course, made.replicas = courseYield, nil
	}
	if found != nil && made.replicas != nil {
		made.version = found.version
	}
	return made
}

// aim returns what is wanted, as if nobody else set replicas, and whether that is known.
func aim(seen look) (made decision, known bool) {
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

// afresh is what a pass sees and decides after a Deployment that it had seen turned out to be gone.
func afresh(seen look) (look, decision) {
	seen.deployment = nil
	return seen, decide(seen)
}

// markOf tells a number of the schedule's from any other, also from the same number at another time.
func markOf(found turn) string {
	if found.since.IsZero() {
		return fmt.Sprint(found.replicas)
	}
	return fmt.Sprintf(markSince, found.replicas, found.since.UTC().Format(time.RFC3339))
}

// kept is what to say of replicas so that they stay as they are: nothing if they are somebody else's; the same if they are ours, because a
// field that its only owner does not apply any more is taken away.
func (d deployment) kept() *int32 {
	if d.scaler != "" {
		return nil
	}
	return &d.replicas
}

// again returns how long to wait until something is to be done that no change of an object tells.
func again(seen look, made decision) time.Duration {
	wait := longestWait
	if minutes := seen.set.Spec.IntervalMint; minutes != nil {
		wait = min(wait, time.Duration(*minutes)*time.Minute)
	}
	if until := made.turn.until; !until.IsZero() {
		wait = min(wait, until.Sub(seen.now))
	}
	if left := lateAfter - underway(seen); left > 0 && left < lateAfter {
		wait = min(wait, left)
	}
	return wait
}

// underway returns for how long Pods have been on their way; 0 if they are not.
func underway(seen look) time.Duration {
	since := meta.FindStatusCondition(seen.set.Status.Conditions, v1.ConditionProgressing)
	if since == nil || since.Status != metav1.ConditionTrue || seen.deployment == nil || seen.deployment.settled {
		return 0
	}
	return seen.now.Sub(since.LastTransitionTime.Time)
}

// problemOf returns what keeps a TDSet from what its spec says, the worst of it; nil for nothing.
func problemOf(seen look, made decision) *problem {
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
		return &problem{reasonAutoscaled, autoscaled(seen, made), true}
	case made.course == courseYield:
		return &problem{reasonScaledByHand, scaledByHand(name, *found, made), false}
	case seen.holder != "" && seen.set.Spec.Replicas == nil:
		return &problem{reasonAutoscaled, fmt.Sprintf("HorizontalPodAutoscaler %s cannot scale this TDSet while spec.replicas is unset, and the schedule is followed: kubectl scale tdset %s --replicas=%d once, and it scales instead of the schedule, or delete the HorizontalPodAutoscaler", seen.holder, name, max(made.wanted, 1)), true}
	case seen.holder != "":
		return &problem{reasonAutoscaled, fmt.Sprintf("HorizontalPodAutoscaler %s sets spec.replicas, so the schedule is not followed: delete it and take spec.replicas away, or leave it and use a Deployment instead", seen.holder), true}
	case underway(seen) >= lateAfter:
		return &problem{reasonPodsNotReady, fmt.Sprintf("for more than %.0f minutes %s: the nodes may have no room, or the Pods do not become ready", lateAfter.Minutes(), howMany(seen)), false}
	}
	return nil
}

// problemWithPods says what keeps a Deployment from having the Pods it wants.
func problemWithPods(name string, found deployment) *problem {
	switch {
	case found.failure != "":
		return &problem{reasonPodsNotCreated, fmt.Sprintf("Deployment %s cannot make its Pods: %s", name, found.failure), true}
	case found.paused && found.pods > found.updated:
		return &problem{reasonRolloutPaused, fmt.Sprintf("Deployment %[1]s is paused, so that what changed does not reach its Pods: kubectl rollout resume deployment/%[1]s", name), true}
	case found.stuck != "":
		return &problem{reasonRolloutStuck, fmt.Sprintf("the roll-out of Deployment %s does not get on: %s; look at its Pods, correct spec.container", name, found.stuck), true}
	}
	return nil
}

// howMany says how many Pods serve, and where to see what the others wait for.
func howMany(seen look) string {
	return fmt.Sprintf("%d Pods serve where %d are wanted, and kubectl get pods -l %s shows what they wait for", seen.deployment.ready, seen.deployment.replicas, selectorOf(seen.set))
}

// autoscaled tells what an autoscaler does: of 0 replicas nothing, unless it may scale to 0 itself (Kubernetes documentation, "Horizontal
// Pod Autoscaling", "Implicit maintenance-mode deactivation").
func autoscaled(seen look, made decision) string {
	name, found := seen.set.Name, seen.deployment
	switch {
	case found.replicas != 0 || found.scaler == "" && *made.replicas != 0:
		return fmt.Sprintf("HorizontalPodAutoscaler %s scales Deployment %s, so the schedule does not: delete the one or the other", seen.autoscaler, name)
	case found.scaler == "":
		return fmt.Sprintf("HorizontalPodAutoscaler %s is to scale Deployment %s, so the schedule does not; of 0 replicas it scales none, and begins when the schedule comes to a number above 0: delete the one or the other", seen.autoscaler, name)
	default:
		return fmt.Sprintf("%s has set the replicas of Deployment %s to 0, from which HorizontalPodAutoscaler %s scales no more unless its minReplicas are 0, and the schedule does not scale beside it: kubectl scale deployment %[2]s --replicas=%[4]d, or delete the HorizontalPodAutoscaler", found.scaler, name, seen.autoscaler, max(made.wanted, 1))
	}
}

func scaledByHand(name string, found deployment, made decision) string {
	return fmt.Sprintf("%s has set the replicas of Deployment %[2]s to %[3]d, where %[4]d are wanted; they stay so until another number is: to have it back now, kubectl scale deployment %[2]s --replicas=%[4]d; to keep %[3]d, kubectl scale tdset %[2]s --replicas=%[3]d", found.scaler, name, found.replicas, made.wanted)
}
