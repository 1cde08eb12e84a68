package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// aVanishedPrimary is what explain finds while nothing answers for the primary of a cluster of three.
func aVanishedPrimary() mysqlcluster.Explanation {
	at := metav1.NewTime(time.Date(2026, 8, 1, 3, 4, 5, 0, time.UTC))
	ended := v1.NewMicroTime(at.Add(-time.Hour + 3*time.Second))
	accepted := replication.Version{Epoch: 2, Revision: 9}
	return mysqlcluster.Explanation{
		Namespace: "shop", Name: "db", Time: at,
		Record: replication.Record{Epoch: 2, Revision: 9, Primary: "db-1", InSync: []string{"db-0", "db-1", "db-2"}, RequiredAcks: 1, LeaseLasts: 6 * time.Second},
		Limits: mysqlcluster.Limits{NotReadySeconds: 10, UnreachableSeconds: 5, IsReplacedUnreachable: true, ContinuesWithoutReplicas: true, GracePeriodSeconds: 10},
		Members: []replication.Evidence{
			{Name: "db-0", Role: "in sync", Answers: true, IsWitness: true, State: replication.StateCatchingUp, Message: "the receiver cannot connect", QuietSeconds: 3, IsAcknowledging: true, ToApply: 12, Accepted: accepted, AcceptedAs: replication.RoleReplica},
			{Name: "db-1", Role: "primary", Unreachable: "no route to host", IsRunning: true},
			{Name: "db-2", Role: "in sync", Answers: true, State: replication.StateCatchingUp, QuietSeconds: 3, Lacks: 2, Accepted: accepted, AcceptedAs: replication.RoleReplica, IsForgetful: true},
		},
		Verdicts: []replication.Verdict{{Rule: replication.RuleLost, Checks: []replication.Check{
			{What: "its agent does not answer", Holds: true}, {What: "the operator has asked it in vain", NeededSeconds: 2, IsMemory: true},
			{What: "enough replicas in sync have got nothing from it", Seconds: 3, NeededSeconds: 5},
		}}},
		Next:       mysqlcluster.Next{Changes: true, Seconds: 2, What: "another member takes over from db-1 in epoch 3", Reason: replication.ReasonReplacingPrimary, Message: "another member takes over from db-1: it does not answer"},
		Takeover:   replication.Takeover{To: "db-0", Deferred: "db-0, which has everything, has not applied all of it yet", Seconds: 13, UntilThen: "its lease of 6 seconds must end", Loses: "no acknowledged commit"},
		Readiness:  mysqlcluster.Readiness{Reason: replication.ReasonReplicasCatchUp, Message: "each replica has to apply what it received first"},
		Takeovers:  []v1.Takeover{{Epoch: 2, From: "db-0", To: "db-1", StartTime: v1.NewMicroTime(at.Add(-time.Hour)), CompletionTime: &ended}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "PrimaryDown", LastTransitionTime: metav1.NewTime(at.Add(-2 * time.Second))}},
		Unknown:    []string{"for how long db-1 has not answered the operator"},
	}
}

const explained = `MySQLCluster shop/db at 2026-08-01 03:04:05Z

RECORD 2.9 (epoch.revision)
  primary db-1
  in sync: db-0, db-1, db-2; joining: none
  commits need 1 acknowledgements; the primary's lease lasts 6s
  spec: notReadySeconds 10, unreachableSeconds 5, whenPrimaryUnreachable Replace, whenPrimaryCrashes Replace, whenReplicasLost Continue after 10 s

MEMBER  ROLE     ANSWERS  STATE       QUIET  ACKS   TO-APPLY  LACKS  ALONE  ACCEPTED     LEASE  NOTES
db-0    in sync  yes      CatchingUp  3s     gives  12        0      0      2.9 Replica  -      counts
db-1    primary  no       -           -      -      -         -      -      -            -      Kubernetes says that its agent runs
db-2    in sync  yes      CatchingUp  3s     -      0         2      0      2.9 Replica  -      may have lost what it acknowledged
  db-0: the receiver cannot connect
  db-1: no route to host

HAS THE PRIMARY FAILED?
  nothing answers for it: not yet
    yes  its agent does not answer
    ?    the operator has asked it in vain: must be so for 2 s; only the running operator knows for how long it is
    no   enough replicas in sync have got nothing from it: for 3 s of 5

WHAT THE OPERATOR DOES NEXT, IF NOTHING CHANGES
  in 2 s at the latest: another member takes over from db-1 in epoch 3
  ReplacingPrimary: another member takes over from db-1: it does not answer

IF ANOTHER MEMBER TOOK OVER NOW
  who: db-0
  deferred: db-0, which has everything, has not applied all of it yet
  how long: about 13 s at most after the operator has begun
  waits for: its lease of 6 seconds must end
  loses: no acknowledged commit

FAILOVER READY
  ReplicasCatchUp: each replica has to apply what it received first

THE STATUS SAYS
  Ready is False since 03:04:03Z: PrimaryDown
  takeover of epoch 2 from db-0 to db-1 began 1h0m0s ago; it took over in 3s

ONLY THE RUNNING OPERATOR KNOWS
  for how long db-1 has not answered the operator
`

func TestExplanationIsPrinted(t *testing.T) {
	t.Parallel()
	printed := func(change func(*mysqlcluster.Explanation)) string {
		var out strings.Builder
		e := aVanishedPrimary()
		change(&e)
		if err := printExplanation(&out, e); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if diff := cmp.Diff(explained, printed(func(*mysqlcluster.Explanation) {})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for want, change := range map[string]func(*mysqlcluster.Explanation){
		"  nothing: the cluster is paused":                                      func(e *mysqlcluster.Explanation) { e.Idle = "the cluster is paused" },
		"  nothing: it keeps the record":                                        func(e *mysqlcluster.Explanation) { e.Next.Changes = false },
		"  now: another member takes over":                                      func(e *mysqlcluster.Explanation) { e.Next.Seconds = 0 },
		"  if the data of the other members is lost for good: kubectl annotate": func(e *mysqlcluster.Explanation) { e.Next.Force = "kubectl annotate" },
		"  what you may do: kubectl annotate":                                   func(e *mysqlcluster.Explanation) { e.Next.Command = "kubectl annotate" },
		"  no primary: another member takes over from db-1":                     func(e *mysqlcluster.Explanation) { e.Record.Primary, e.Record.FormerPrimary = "", "db-1" },
		"  applies first: what it has received; it is 12 s behind\n  how long: about 13 s at most after the operator has begun and that is applied\n": func(e *mysqlcluster.Explanation) {
			e.Takeover.BehindSeconds = 12
		},
		"  none may: TooFewReplicas: one must answer": func(e *mysqlcluster.Explanation) {
			e.Takeover = replication.Takeover{Reason: replication.ReasonTooFewReplicas, Problem: "one must answer"}
		},
	} {
		if got := printed(change); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
