package tdset

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want +got):\n%s", diff)
	}
}

// The hours of the tests' days: by the founding document's schedule, 5 replicas run at noon and 3 in the evening.
const (
	noon, evening         = "2026-11-21T12:00:00Z", "2026-11-21T18:00:00Z"
	markNoon, markEvening = "5 since 2026-11-21T09:00:00Z", "3 since 2026-11-21T17:00:00Z"
)

// markNight is the mark in the hour after midnight, if nothing runs then.
const markNight = "0 since 2026-11-21T00:00:00Z"

// at returns what a pass observes of the founding document's TDSet at a time.
func at(t *testing.T, now string, found *deployment) observed {
	t.Helper()
	set := v1.TDSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 3}, Spec: seedSpec("UTC")}
	set.Spec.Container = v1.Container{Image: "crccheck/hello-world", Port: 8000}
	return observed{now: clock(t, now), set: set, times: read(t, set.Spec), deployment: found}
}

// atNight returns what a pass observes in the hour after midnight, for a TDSet with 0 replicas then.
func atNight(t *testing.T, found *deployment) observed {
	t.Helper()
	seen := at(t, "2026-11-21T00:30:00Z", found)
	seen.set.Spec.DefaultReplica = 0
	seen.times = read(t, seen.set.Spec)
	return seen
}

// running returns a Deployment that this operator scaled last, with a mark; scaled returns one that another client scaled since.
func running(replicas int32, mark string) *deployment { return scaled(replicas, mark, "") }

func scaled(replicas int32, mark, by string) *deployment {
	return &deployment{replicas: replicas, mark: mark, scaler: by, settled: true, available: true, availableReason: "MinimumReplicasAvailable", availableMessage: "Deployment has minimum availability.", pods: replicas, updated: replicas, ready: replicas}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	autoscaled := func(seen observed) observed { seen.autoscaler = "web-cpu"; return seen }
	held := func(seen observed, replicas int32) observed { seen.set.Spec.Replicas = &replicas; return seen }
	zoneless := func(seen observed) observed {
		seen.problem = &report.Problem{Reason: reasonInvalidTimeZone}
		return seen
	}
	for story, test := range map[string]struct {
		seen observed
		want string
	}{
		"there is no Deployment":                                  {at(t, noon, nil), "follow: sets 5 for " + markNoon},
		"all is as it should be":                                  {at(t, noon, running(5, markNoon)), "follow: sets 5 for " + markNoon},
		"the schedule changes":                                    {at(t, evening, running(5, markNoon)), "follow: sets 3 for " + markEvening},
		"the schedule was edited":                                 {at(t, noon, running(4, "4 since 2026-11-21T09:00:00Z")), "follow: sets 5 for " + markNoon},
		"a user scales the Deployment":                            {at(t, noon, scaled(8, markNoon, "kubectl")), "yield: sets nothing for " + markNoon},
		"a user scales it to 0":                                   {at(t, noon, scaled(0, markNoon, "kubectl")), "yield: sets nothing for " + markNoon},
		"a user scaled it, and the schedule changes":              {at(t, evening, scaled(8, markNoon, "kubectl")), "follow: sets 3 for " + markEvening},
		"a user scaled it back":                                   {at(t, noon, scaled(5, markNoon, "kubectl")), "follow: sets 5 for " + markNoon},
		"a user removed the mark":                                 {at(t, noon, running(5, "")), "follow: sets 5 for " + markNoon},
		"yesterday's number is the same, but a user scaled since": {at(t, noon, scaled(8, "5 since 2026-11-20T09:00:00Z", "kubectl")), "follow: sets 5 for " + markNoon},
		"an adopted orphan":                                       {at(t, noon, scaled(8, "", "kubectl")), "follow: sets 5 for " + markNoon},

		"an autoscaler comes":                    {autoscaled(at(t, noon, running(5, markNoon))), "autoscaled: sets 5 for autoscaled"},
		"an autoscaler has scaled":               {autoscaled(at(t, noon, scaled(9, "autoscaled", "kube-controller-manager"))), "autoscaled: sets nothing for autoscaled"},
		"an autoscaler, and the schedule moves":  {autoscaled(at(t, evening, scaled(9, "autoscaled", "kube-controller-manager"))), "autoscaled: sets nothing for autoscaled"},
		"an autoscaler has done nothing yet":     {autoscaled(at(t, evening, running(5, "autoscaled"))), "autoscaled: sets 5 for autoscaled"},
		"the autoscaler goes":                    {at(t, noon, scaled(9, "autoscaled", "kube-controller-manager")), "follow: sets 5 for " + markNoon},
		"an autoscaler waits for the Deployment": {autoscaled(at(t, noon, nil)), "follow: sets 5 for " + markNoon},

		"an autoscaler comes by night, when nothing runs": {autoscaled(atNight(t, running(0, markNight))), "autoscaled: sets 0 for autoscaled"},
		"and by day the operator sets the wanted number":  {autoscaled(at(t, noon, running(0, "autoscaled"))), "autoscaled: sets 5 for autoscaled"},
		"also if the Deployment was made by night":        {autoscaled(at(t, noon, running(0, markNight))), "autoscaled: sets 5 for autoscaled"},
		"also if a number is held":                        {held(autoscaled(atNight(t, running(0, "autoscaled"))), 8), "autoscaled: sets 8 for autoscaled"},
		"but a 0 that another client set stays":           {autoscaled(at(t, noon, scaled(0, "autoscaled", unknownScaler))), "autoscaled: sets nothing for autoscaled"},
		"and with an invalid time zone, nothing changes":  {zoneless(autoscaled(at(t, noon, running(0, "autoscaled")))), "autoscaled: sets 0 for autoscaled"},

		"held at a number":                       {held(at(t, noon, running(5, markNoon)), 8), "follow: sets 8 for 8 held"},
		"held at nothing":                        {held(at(t, noon, running(5, markNoon)), 0), "follow: sets 0 for 0 held"},
		"held while the schedule changes":        {held(at(t, evening, running(8, "8 held")), 8), "follow: sets 8 for 8 held"},
		"held, and a user scales the Deployment": {held(at(t, evening, scaled(2, "8 held", "kubectl")), 8), "yield: sets nothing for 8 held"},
		"no longer held":                         {at(t, evening, running(8, "8 held")), "follow: sets 3 for " + markEvening},
		"held, but an autoscaler decides":        {held(autoscaled(at(t, noon, running(5, markNoon))), 8), "autoscaled: sets 5 for autoscaled"},

		"the time zone is invalid":                        {zoneless(at(t, noon, running(4, markEvening))), "keep: sets 4 for " + markEvening},
		"and another client has scaled":                   {zoneless(at(t, noon, scaled(4, markEvening, "kubectl"))), "keep: sets nothing for " + markEvening},
		"and there is no Deployment":                      {zoneless(at(t, noon, nil)), "follow: sets 3 for "},
		"the time zone does not matter for a held number": {held(zoneless(at(t, noon, running(4, markEvening))), 8), "follow: sets 8 for 8 held"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			made, sets := decide(test.seen), "nothing"
			if made.replicas != nil {
				sets = fmt.Sprint(*made.replicas)
			}
			same(t, fmt.Sprintf("%s: sets %s for %s", made.course, sets, made.mark), test.want)
		})
	}
}

// TestAYearOfChanges lets the clock run for a year from one announced pass to the next, as the engine does. Now and then a user scales by
// hand. The operator carries out each change of the schedule once, at its exact second, and writes nothing in between.
func TestAYearOfChanges(t *testing.T) {
	t.Parallel()
	seen := at(t, "2026-01-01T00:00:00Z", nil)
	seen.set.Spec.TimeZone = "Europe/Berlin"
	seen.times = read(t, seen.set.Spec)
	end := seen.now.AddDate(1, 0, 0)
	writes, looks, yields := 0, 0, 0
	for ; seen.now.Before(end); looks++ {
		made := decide(seen)
		_, wanted := oracle(seen.set.Spec, seen.times.zone, seen.now)
		_, before := oracle(seen.set.Spec, seen.times.zone, seen.now.Add(-time.Second))
		wrote := seen.deployment == nil || seen.deployment.mark != made.mark || made.replicas != nil && seen.deployment.scaler != ""
		switch {
		case wrote && before == wanted && seen.deployment != nil:
			t.Fatalf("at %s %s is written, without a change of the schedule", seen.now, made.mark)
		case !wrote && before != wanted:
			t.Fatalf("at %s %d replicas come after %d, and nothing is written", seen.now, wanted, before)
		case made.replicas != nil && *made.replicas != wanted:
			t.Fatalf("at %s %d replicas are set, not %d", seen.now, *made.replicas, wanted)
		}
		if wrote {
			writes++
			seen.deployment = running(*made.replicas, made.mark)
		}
		if made.course == courseYield {
			yields++
		}
		if wrote && writes%7 == 0 {
			seen.deployment.replicas, seen.deployment.scaler = 20, "kubectl"
		}
		seen.now = seen.now.Add(requeueAfter(seen, made))
	}
	if writes < 365*5 || looks > 366*24+writes || yields == 0 {
		t.Errorf("a year took %d writes and %d looks, of which %d yielded", writes, looks, yields)
	}
	t.Logf("a year took %d writes and %d looks, of which %d yielded", writes, looks, yields)
}

func TestAgain(t *testing.T) {
	t.Parallel()
	often, seldom := int32(5), int32(1440)
	for story, test := range map[string]struct {
		now     string
		minutes *int32
		want    time.Duration
	}{
		"nothing comes for hours":                 {"2026-11-21T12:00:00Z", nil, time.Hour},
		"checked every five minutes":              {"2026-11-21T12:00:00Z", &often, 5 * time.Minute},
		"checked once a day: that is the longest": {"2026-11-21T12:00:00Z", &seldom, time.Hour},
		"a change comes before that":              {"2026-11-21T16:58:00.5Z", &often, 2*time.Minute - 500*time.Millisecond},
		"a change comes in a moment":              {"2026-11-21T16:59:59.999Z", nil, time.Millisecond},
		"and has come: the next one":              {"2026-11-21T17:00:00Z", nil, time.Hour},
		"one comes before the hour is over":       {"2026-11-21T18:30:00Z", &seldom, 30 * time.Minute},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			seen := at(t, test.now, nil)
			seen.set.Spec.IntervalMint = test.minutes
			same(t, requeueAfter(seen, decide(seen)), test.want)
		})
	}
	late := at(t, noon, running(5, markNoon))
	late.deployment.settled = false
	for minutes, want := range map[int]time.Duration{4: 6 * time.Minute, 10: time.Hour, 20: time.Hour} {
		since := metav1.NewTime(late.now.Add(-time.Duration(minutes) * time.Minute))
		late.set.Status.Conditions = []metav1.Condition{{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue, LastTransitionTime: since}}
		same(t, requeueAfter(late, decide(late)), want)
	}
}
