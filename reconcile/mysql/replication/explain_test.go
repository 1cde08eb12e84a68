package replication

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vanished is a cluster whose primary db-0 has not answered, and from which the replicas have got nothing for so many seconds.
func vanished(t *testing.T, quiet int) *story {
	t.Helper()
	s := unreachable(t, 3, 1, 0)
	for ordinal := 1; ordinal < 3; ordinal++ {
		s.c.Members[ordinal].Status.SourceSilentFor = seconds(quiet)
	}
	return s
}

// starting is the same cluster if Kubernetes may start the primary again. patient is one whose user gives it time to do so.
func starting(s *story) *story { return s.with(func(c *Cluster) { c.Members[0].IsRunning = false }) }

func patient(s *story) *story {
	return starting(s).with(func(c *Cluster) { c.Limits.RestartsCrashed = true })
}

func TestOutlook(t *testing.T) {
	t.Parallel()
	quietDown := downPrimary(t, 3, 1)
	quietDown.c.Members[0].Status.UnansweredFor = 4 * time.Second
	waited := patient(vanished(t, 2)).with(func(c *Cluster) { c.Members[0].UnheardFor = 29 * time.Second })
	for name, test := range map[string]struct {
		story   *story
		changes bool
		after   int
		reason  Reason
	}{
		"a healthy cluster stays as it is":                                 {healthy(t, 3, 1), false, 0, ""},
		"mysqld is down for 4 of 10 seconds":                               {quietDown, true, 6, ReasonReplacingPrimary},
		"its volume has stood still for 4 of 10 seconds":                   {onVolumes(t, 3, 1, standsFor(4*time.Second)), true, 6, ReasonReplacingPrimary},
		"its volume has returned errors for 1 of 3 seconds":                {onVolumes(t, 3, 1, failingFor(time.Second)), true, 2, ReasonReplacingPrimary},
		"its volume is full, and commits have hung for 20 of 30 seconds":   {onVolumes(t, 3, 1, fullFor(20)), true, 10, ReasonReplacingPrimary},
		"its volume has failed for long, and it has just taken over":       {onVolumes(t, 3, 1, failingFor(time.Minute)).with(func(c *Cluster) { c.SinceTakeover = 50 * time.Second }), true, 10, ReasonReplacingPrimary},
		"mysqld is down for long enough":                                   {downPrimary(t, 3, 1), true, 0, ReasonReplacingPrimary},
		"nothing answers, and the replicas have waited for 1 of 2 seconds": {vanished(t, 1), true, 1, ReasonReplacingPrimary},
		"nothing answers, and the Pod may be starting":                     {starting(vanished(t, 2)), true, 1, ReasonReplacingPrimary},
		"the same, and the user gives it time":                             {patient(vanished(t, 2)), true, 30, ReasonReplacingPrimary},
		"this operator has waited already":                                 {waited, true, 1, ReasonReplacingPrimary},
		"the operator cannot reach the primary, and the replicas hear it":  {vanished(t, 0), false, 0, ReasonPrimaryDown},
		"no acknowledgements were required":                                {downPrimary(t, 3, 0), false, 0, ReasonPrimaryDown},
		"the others are fenced, and the lease must end":                    {awaiting(t, 3, 1, 0), true, roundUp(Record{LeaseLasts: ShortLease}.leaseLimit()), ReasonReplacingPrimary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := test.story.c
			got := c.Outlook(Decide)
			if got.Changes != test.changes || got.After != seconds(test.after) || got.Record.Equal(c.Record) == test.changes {
				t.Errorf("the record changes: %t after %s to %+v", got.Changes, got.After, got.Record)
			}
			if reason := reasonOf(got.Note); reason != test.reason {
				t.Errorf("the reason is %q, want %q", reason, test.reason)
			}
			if d := Decide(c.lasting(got.After - time.Second)); test.after > 0 && !d.Record.Equal(c.Record) {
				t.Error("it changes sooner")
			}
		})
	}
}

func reasonOf(note *Note) Reason {
	if note == nil {
		return ""
	}
	return note.Reason
}

// TestVerdictsGiveEvidence: each check that fails is named, and the message of a verdict is there if and only if all hold.
func TestVerdictsGiveEvidence(t *testing.T) {
	t.Parallel()
	failing := func(s *story) []string {
		var all []string
		for _, verdict := range s.c.Verdicts() {
			isReached := true
			for _, check := range verdict.Checks {
				if !check.Holds {
					all, isReached = append(all, string(verdict.Rule)+": "+check.What), false
				}
			}
			if isReached != (verdict.Message != "") {
				t.Errorf("%s: the checks are %+v, and the message is %q", verdict.Rule, verdict.Checks, verdict.Message)
			}
		}
		return all
	}
	for name, test := range map[string]struct {
		story *story
		want  []string
	}{
		"a healthy cluster": {healthy(t, 3, 1), []string{
			"mysqld fails: its mysqld does not answer the agent", "its container restarts: its agent reports that", "cut off from the replicas: it hears fewer replicas than must acknowledge",
			"its volume fails: its volume stands still, fails, or is full while commits hang",
			"nothing answers for it: its agent does not answer", "its agent is away: its agent does not answer"}},
		"mysqld hangs, and one replica hears it": {hungPrimary(t, 1, time.Minute), []string{
			"mysqld fails: enough replicas in sync have got nothing from it", "its container restarts: its agent reports that", "cut off from the replicas: its mysqld is open to replicas",
			"its volume fails: its volume stands still, fails, or is full while commits hang",
			"nothing answers for it: its agent does not answer", "its agent is away: its agent does not answer"}},
		"nothing answers, and there is no lease": {healthy(t, 3, 1).lost(0), []string{
			"mysqld fails: its agent answers", "its container restarts: its agent answers", "cut off from the replicas: its agent answers", "its volume fails: its agent answers", "nothing answers for it: it has a lease",
			"nothing answers for it: enough replicas in sync have got nothing from it"}},
		"its container restarts, and the user gives it time": {patient(stoppedPrimary(t, 3, 1)), []string{
			"mysqld fails: its mysqld has not been ready", "its container restarts: spec.failover.whenPrimaryCrashes is Replace", "cut off from the replicas: its mysqld is open to replicas",
			"its volume fails: its volume stands still, fails, or is full while commits hang",
			"nothing answers for it: its agent does not answer", "its agent is away: its agent does not answer"}},
		"no primary": {healthy(t, 3, 1).with(func(c *Cluster) { c.Record.Primary = "" }), nil},
	} {
		if diff := cmp.Diff(test.want, failing(test.story)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	lost := patient(vanished(t, 3)).c.primaryLost()
	at := slices.IndexFunc(lost.Checks, func(check Check) bool { return check.IsMemory })
	if at < 0 || lost.Checks[at].NeededSeconds != 30 || lost.Checks[at+1].Seconds != 3 || lost.Checks[at+1].NeededSeconds != 2 {
		t.Errorf("the checks are %+v", lost.Checks)
	}
}

func TestTakeover(t *testing.T) {
	t.Parallel()
	behind := downPrimary(t, 3, 1)
	behind.c.Members[1].Status.Received = gtids(t, "A:1-12")
	ahead := healthy(t, 3, 1).hears(0, StateWriting, enforces(1, 2), wasPrimary, has("A:1-14"))
	ahead.c.Members[0].Status.ServerUUID = uuidA
	for name, test := range map[string]struct {
		story    *story
		to       string
		reason   Reason
		seconds  int
		deferred string
		loses    string
	}{
		"a healthy cluster":                  {healthy(t, 3, 1), "db-1", "", int(takingOver.Seconds()), "", "nothing: the other members have all that db-0 has"},
		"the primary has more":               {ahead, "db-1", "", int(takingOver.Seconds()), "", "4 transactions that only db-0 has, and that no client was told had succeeded"},
		"its lease must end":                 {vanished(t, 3), "db-1", "", roundUp(Record{LeaseLasts: ShortLease}.leaseLimit() + takingOver), "", "db-0 does not say"},
		"it has no lease":                    {healthy(t, 3, 1).lost(0), "db-1", "", 0, "", "db-0 does not say"},
		"the best replica has more to apply": {behind, "db-1", "", int(takingOver.Seconds()), "db-1, which has everything, has not applied all", "db-0 does not say"},
		"no acknowledgement was required":    {downPrimary(t, 3, 0), "", ReasonCommitsNotReplicated, 0, "", "not known: acknowledged commits may be on db-0 alone"},
		"too few answer":                     {downPrimary(t, 3, 1).lost(1), "", ReasonTooFewReplicas, 0, "", "db-0 does not say"},
		"the next primary can be chosen":     {fencedFromDown(t, 3, 1), "db-1", "", int(takingOver.Seconds()), "", "db-0 does not say"},
		"one is not fenced yet":              {fencedFromDown(t, 3, 1).hears(2, StateReplicating, acking), "", ReasonReplacingPrimary, 0, "", "db-0 does not say"},
		"a new cluster":                      {wanting(t, 3), "", ReasonWaitingForMembers, 0, "", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.story.c.Takeover()
			if got.To != test.to || got.Reason != test.reason || got.Seconds != test.seconds || (got.To == "") != (got.Problem != "") {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.Deferred, test.deferred) || (got.Deferred == "") != (test.deferred == "") || !strings.Contains(got.Loses, test.loses) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	s := healthy(t, 3, 1).hears(2, StateReplicating, acking, func(t *testing.T, s *Status) {
		t.Helper()
		s.Executed, s.Received, s.IsForgetful = gtids(t, "A:1-7"), gtids(t, "A:1-9"), true
		s.IsRestarting = true
	}).silent(0)
	got := s.c.Evidence()
	if got[0].Answers || got[0].Role != "primary" || !got[1].IsWitness || got[1].Alone != 1 {
		t.Errorf("the evidence is %+v", got)
	}
	if two := got[2]; two.IsWitness || !two.IsForgetful || !two.IsRestarting || got[1].IsRestarting || two.ToApply != 2 || two.Lacks != 1 || two.Alone != 0 || two.Accepted != s.c.Record.Version() {
		t.Errorf("the evidence of db-2 is %+v", two)
	}
}
