package tdset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

// summary returns the conditions of a status as one line: the first letters of A, P, D and R with their reasons, then Reconciling and
// Stalled if set.
func summary(status v1.TDSetStatus) string {
	words := []string{}
	for _, kind := range []string{v1.ConditionAvailable, v1.ConditionProgressing, v1.ConditionDegraded, v1.ConditionReady, v1.ConditionReconciling, v1.ConditionStalled} {
		found := meta.FindStatusCondition(status.Conditions, kind)
		switch {
		case found == nil:
		case kind == v1.ConditionReconciling || kind == v1.ConditionStalled:
			words = append(words, kind)
		default:
			words = append(words, fmt.Sprintf("%s=%s/%s", kind[:1], found.Status, found.Reason))
		}
	}
	return strings.Join(words, " ")
}

func TestStatusTellsHowATDSetIs(t *testing.T) {
	t.Parallel()
	const served = "A=True/MinimumReplicasAvailable "
	unsettled, late := running(5, markNoon), running(5, markNoon)
	unsettled.settled = false
	late.settled, late.stuck = false, "ReplicaSet \"web-1\" has timed out progressing."
	starved := running(5, markNoon)
	starved.settled, starved.failure = false, "exceeded quota: pods"
	autoscaled, zoneless := at(t, noon, unsettled), at(t, noon, unsettled)
	autoscaled.autoscaler = "cpu"
	zoneless.problem = &report.Problem{Reason: reasonInvalidTimeZone, Message: "no such zone", Stalled: true}
	paused, bringing := running(5, markNoon), running(5, markNoon)
	paused.paused, bringing.paused, bringing.settled, bringing.updated = true, true, false, 0
	crowded := at(t, noon, unsettled)
	crowded.set.Status.Conditions = []metav1.Condition{{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(crowded.now.Add(-lateAfter))}}
	down := running(5, markNoon)
	down.available, down.availableReason = false, "MinimumReplicasUnavailable"
	forbidden := apierrors.NewForbidden(deployments().GroupResource(), "web", errors.New("no"))
	for story, test := range map[string]struct {
		seen    observed
		did     reconcile.Change
		failure error
		want    string
	}{
		"a new TDSet":                      {at(t, noon, nil), reconcile.Created, nil, "A=False/NoDeployment P=True/Updating D=False/Settled R=False/Updating Reconciling"},
		"all is as it should be":           {at(t, noon, running(5, markNoon)), reconcile.Unchanged, nil, served + "P=False/Settled D=False/Settled R=True/FollowsSchedule"},
		"scaled this very moment":          {at(t, evening, running(5, markNoon)), reconcile.Updated, nil, served + "P=True/Updating D=False/Settled R=False/Updating Reconciling"},
		"Pods are on their way":            {at(t, noon, unsettled), reconcile.Unchanged, nil, served + "P=True/Updating D=False/Settled R=False/Updating Reconciling"},
		"too few serve":                    {at(t, noon, down), reconcile.Unchanged, nil, "A=False/MinimumReplicasUnavailable P=False/Settled D=False/Settled R=False/MinimumReplicasUnavailable"},
		"an image that does not start":     {at(t, noon, late), reconcile.Unchanged, nil, served + "P=False/RolloutStuck D=True/RolloutStuck R=False/RolloutStuck Stalled"},
		"a paused roll-out":                {at(t, noon, bringing), reconcile.Unchanged, nil, served + "P=False/RolloutPaused D=True/RolloutPaused R=False/RolloutPaused Stalled"},
		"a pause that stops nothing":       {at(t, noon, paused), reconcile.Unchanged, nil, served + "P=False/Settled D=False/Settled R=True/FollowsSchedule"},
		"no node has room":                 {crowded, reconcile.Unchanged, nil, served + "P=True/Updating D=True/PodsNotReady R=False/PodsNotReady Reconciling"},
		"a quota is used up":               {at(t, noon, starved), reconcile.Unchanged, nil, served + "P=False/PodsNotCreated D=True/PodsNotCreated R=False/PodsNotCreated Stalled"},
		"and it was just changed":          {at(t, noon, starved), reconcile.Updated, nil, served + "P=True/Updating D=True/PodsNotCreated R=False/PodsNotCreated Stalled"},
		"an autoscaler scales":             {autoscaled, reconcile.Unchanged, nil, served + "P=True/Updating D=True/Autoscaled R=False/Autoscaled Stalled"},
		"Pods start in no time zone":       {zoneless, reconcile.Unchanged, nil, served + "P=True/Updating D=True/InvalidTimeZone R=False/InvalidTimeZone Stalled"},
		"a user scaled":                    {at(t, noon, scaled(8, markNoon, "kubectl")), reconcile.Unchanged, nil, served + "P=False/Settled D=True/ScaledByHand R=False/ScaledByHand"},
		"a permission is missing at first": {at(t, noon, nil), reconcile.Unchanged, forbidden, "A=False/NoDeployment P=False/Forbidden D=True/Forbidden R=False/Forbidden Stalled"},
		"a permission is missing later":    {at(t, noon, running(5, markNoon)), reconcile.Unchanged, forbidden, served + "P=False/Settled D=True/Forbidden R=False/Forbidden Stalled"},
		"another owner's Deployment":       {at(t, noon, nil), reconcile.Unchanged, &reconcile.ForeignError{Resource: deployments(), Name: "web"}, "A=False/NoDeployment P=False/ForeignObject D=True/ForeignObject R=False/ForeignObject Stalled"},
		"a predecessor's Deployment":       {at(t, noon, nil), reconcile.Unchanged, &reconcile.ForeignError{Resource: deployments(), Name: "web", Predecessor: true}, "A=False/NoDeployment P=True/Updating D=True/WaitingForPredecessor R=False/WaitingForPredecessor Reconciling"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			made := decide(test.seen)
			found := report.FromError(test.failure)
			if found == nil {
				found = problemOf(test.seen, made)
			}
			status := statusOf(test.seen, made, test.did, found)
			same(t, summary(status), test.want)
			again := test.seen
			again.set.Status, again.now = status, again.now.Add(1)
			same(t, statusOf(again, made, test.did, found), status)
		})
	}
}

func TestStatusTellsTheSchedule(t *testing.T) {
	t.Parallel()
	seen := at(t, noon, running(5, markNoon))
	status := statusOf(seen, decide(seen), reconcile.Unchanged, nil)
	five := int32(5)
	status.Conditions = nil
	same(t, status, v1.TDSetStatus{
		ObservedGeneration: 3, CurrentInterval: "09:00-17:00", ScheduledReplicas: &five, Replicas: 5, ReadyReplicas: 5,
		NextChange: &v1.Change{Time: metav1.NewTime(clock(t, "2026-11-21T17:00:00Z")), Replicas: 3},
		Selector:   "app.kubernetes.io/instance=web,app.kubernetes.io/managed-by=mysql-operator,app.kubernetes.io/name=tdset",
	})

	held := int32(8)
	seen.set.Spec.Replicas, seen.deployment = &held, running(8, "8 held")
	status = statusOf(seen, decide(seen), reconcile.Unchanged, nil)
	same(t, *status.ScheduledReplicas, int32(5))
	same(t, summary(status), "A=True/MinimumReplicasAvailable P=False/Settled D=False/Settled R=True/Held")

	seen.setAutoscaler = "cpu"
	made := decide(seen)
	same(t, problemOf(seen, made).Reason, reasonAutoscaled)
}

// TestADeploymentMadeAfreshIsToldAsSuch: a user deleted the Deployment after the pass saw that another client had scaled it.
func TestADeploymentMadeAfreshIsToldAsSuch(t *testing.T) {
	t.Parallel()
	seen, made := withoutDeployment(at(t, noon, scaled(8, markNoon, "kubectl")))
	found := problemOf(seen, made)
	events := eventsFor(seen, made, reconcile.Created, statusOf(seen, made, reconcile.Created, found))
	if found != nil || len(events) != 1 || events[0].Note != "created Deployment web with 5 replicas (interval 09:00-17:00)" {
		t.Errorf("problem %+v, events %+v", found, events)
	}
}

// TestProblemsSayWhatToDo: each problem names its objects, and a command or a field.
func TestProblemsSayWhatToDo(t *testing.T) {
	t.Parallel()
	autoscaled := at(t, noon, running(5, markNoon))
	autoscaled.autoscaler = "cpu"
	idle := atNight(t, running(0, "autoscaled"))
	idle.autoscaler = "cpu"
	stopped := at(t, noon, scaled(0, "autoscaled", unknownScaler))
	stopped.autoscaler = "cpu"
	unread := at(t, noon, running(5, markNoon))
	unread.setAutoscaler = "cpu"
	holding := unread
	eight := int32(8)
	holding.set.Spec.Replicas, holding.deployment = &eight, running(8, "8 held")
	byHand := at(t, noon, scaled(8, markNoon, "kubectl"))
	for _, test := range []struct {
		seen  observed
		words []string
	}{
		{byHand, []string{"kubectl has set", "to 8, and 5 are wanted", "kubectl scale deployment web --replicas=5", "kubectl scale tdset web --replicas=8"}},
		{autoscaled, []string{"HorizontalPodAutoscaler cpu scales Deployment web", "delete the HorizontalPodAutoscaler, or use it with a Deployment"}},
		{holding, []string{"HorizontalPodAutoscaler cpu sets spec.replicas", "delete it and remove spec.replicas"}},
		{unread, []string{"HorizontalPodAutoscaler cpu cannot scale this TDSet while spec.replicas is unset", "kubectl scale tdset web --replicas=5", "delete the HorizontalPodAutoscaler"}},
		{idle, []string{"HorizontalPodAutoscaler cpu", "starts when the schedule reaches a number above 0"}},
		{stopped, []string{"another client has set", "HorizontalPodAutoscaler cpu does not scale from 0", "kubectl scale deployment web --replicas=5"}},
	} {
		found := problemOf(test.seen, decide(test.seen))
		if found == nil {
			t.Errorf("no problem is reported, want one with %q", test.words)
			continue
		}
		for _, words := range test.words {
			if !strings.Contains(found.Message, words) {
				t.Errorf("%q does not say %q", found.Message, words)
			}
		}
	}
	missing := report.FromError(apierrors.NewForbidden(deployments().GroupResource(), "web", errors.New("no"))).Message
	if says := "give it the operator's --kinds"; !strings.Contains(missing, says) {
		t.Errorf("%q does not say %q: without --kinds the command prints the permissions of the MySQL kinds only", missing, says)
	}
}

func TestTell(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		seen  observed
		did   reconcile.Change
		want  []string
		again bool
	}{
		"made":                        {seen: at(t, noon, nil), did: reconcile.Created, want: []string{"Normal Created created Deployment web with 5 replicas (interval 09:00-17:00)"}},
		"scaled":                      {seen: at(t, evening, running(5, markNoon)), did: reconcile.Updated, want: []string{"Normal Scaled scaled Deployment web from 5 to 3 replicas (interval 17:00-19:00)"}},
		"changed, and not scaled":     {seen: at(t, noon, running(5, markNoon)), did: reconcile.Updated, want: []string{}},
		"nothing happened":            {seen: at(t, noon, running(5, markNoon)), did: reconcile.Unchanged, want: []string{}},
		"a user scaled":               {seen: at(t, noon, scaled(8, markNoon, "kubectl")), did: reconcile.Unchanged, want: []string{"Warning ScaledByHand"}},
		"which is reported once":      {seen: at(t, noon, scaled(8, markNoon, "kubectl")), did: reconcile.Unchanged, want: []string{}, again: true},
		"the schedule has taken over": {seen: at(t, evening, scaled(8, markNoon, "kubectl")), did: reconcile.Updated, want: []string{"Normal Scaled scaled Deployment web from 8 to 3 replicas (interval 17:00-19:00)", "Normal Settled"}, again: true},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if test.again {
				before := test.seen
				before.now, before.deployment = clock(t, noon), scaled(8, markNoon, "kubectl")
				made := decide(before)
				test.seen.set.Status = statusOf(before, made, reconcile.Unchanged, problemOf(before, made))
			}
			made := decide(test.seen)
			events := eventsFor(test.seen, made, test.did, statusOf(test.seen, made, test.did, problemOf(test.seen, made)))
			got := []string{}
			for index, event := range events {
				said := fmt.Sprintf("%s %s %s", event.Type, event.Reason, event.Note)
				if index < len(test.want) && strings.HasPrefix(said, test.want[index]) {
					said = test.want[index]
				}
				got = append(got, said)
			}
			same(t, got, test.want)
		})
	}
}

// TestReasonsAreDocumented: the document explains every reason that users find in a status.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	reasons.CheckDocumented(t, "../../../docs/tdset.md", reasons.Constants(t, ".", "reason"))
	reasons.CheckDocumented(t, "../../../docs/tdset.md", reasons.Constants(t, "../../report", "Reason"))
}
