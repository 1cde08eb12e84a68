package replication

import (
	"strings"
	"testing"
)

func TestFailoverSaysWhoWouldTakeOver(t *testing.T) {
	t.Parallel()
	const rebuildsLater = "db-2 has errant transactions, which would spread if it took over. Do not rebuild it while the primary takes no writes"
	stories := map[string]struct {
		story  *story
		reason Reason
		says   string
	}{
		"both replicas could": {healthy(t, 3, 1), ReasonReplicaCanTakeOver, "db-1 or db-2 takes over about 2 seconds after mysqld of db-0 crashes, or 12 after it fails otherwise"},
		"also if nothing answers": {
			healthy(t, 3, 1).with(func(c *Cluster) { c.Record.LeaseLasts, c.WantsLease = ShortLease, true }), ReasonReplicaCanTakeOver, "or 5 after nothing answers for it any more; no acknowledged commit is lost"},
		"not then, by the user's choice": {healthy(t, 3, 1), ReasonReplicaCanTakeOver, "the cluster waits, because spec.failover.whenPrimaryUnreachable is Wait"},
		"not then, because of its kernel": {
			healthy(t, 3, 1).with(func(c *Cluster) { c.WantsLease, c.Members[0].Status.Lease = true, &Lease{IsImpossible: true} }), ReasonReplicaCanTakeOver, "sock_diag"},
		"it stays so while the primary is": {downPrimary(t, 3, 1), ReasonReplicaCanTakeOver, "db-1 or db-2"},
		"the primary delays commits, because they lag": {
			healthy(t, 3, 1).with(func(c *Cluster) { c.Members[0].Status.DelaysCommits = true }), ReasonReplicaCanTakeOver, "; db-0 delays commits, because clients"},
		"it does, and both still apply what they received": {
			healthy(t, 3, 1).hears(1, StateCatchingUp).hears(2, StateCatchingUp).with(func(c *Cluster) { c.Members[0].Status.DelaysCommits = true }),
			ReasonReplicasCatchUp, "; db-0 delays commits"},
		"one lacks rows":                {healthy(t, 3, 1).hears(1, StateReplicating, lacks("shop.t")), ReasonReplicaCanTakeOver, "db-2 takes over"},
		"one applies what it received":  {healthy(t, 3, 1).hears(2, StateCatchingUp), ReasonReplicaCanTakeOver, "db-1 takes over"},
		"both apply what they received": {healthy(t, 3, 1).hears(1, StateCatchingUp).hears(2, StateCatchingUp), ReasonReplicasCatchUp, "has to apply"},
		"both lack rows":                {healthy(t, 3, 1).hears(1, StateReplicating, lacks("shop.t")).hears(2, StateReplicating, lacks("shop.t")), ReasonIncompleteMembers, "shop.t"},
		"one is away, and each may be the only one that acknowledged": {healthy(t, 3, 1).silent(2), ReasonTooFewReplicas, "so far: db-1"},
		"one is away, and two acknowledge each commit":                {healthy(t, 3, 2).silent(2), ReasonReplicaCanTakeOver, "db-1 takes over"},
		"one is errant": {healthy(t, 3, 1).hears(1, StateErrant), ReasonErrantMember, "db-1 has errant transactions, which would spread if it took over. Do not rebuild it before you have read them"},
		"one is errant, and the primary has lost its data":              {lostPrimary(t, 3, 1).hears(2, StateErrant, acking), ReasonErrantMember, rebuildsLater},
		"one is errant, and the primary is down":                        {downPrimary(t, 3, 1).hears(2, StateErrant, acking), ReasonErrantMember, rebuildsLater},
		"one is errant, and the primary is gone":                        {healthy(t, 3, 1).silent(0).hears(2, StateErrant, acking), ReasonErrantMember, rebuildsLater},
		"nothing is promised":                                           {healthy(t, 3, 0), ReasonCommitsNotReplicated, "on the primary alone"},
		"a member holds a later record":                                 {healthy(t, 2, 1).hears(1, StateReplicating, holding(Record{Epoch: 1, Revision: 99, Primary: "db-0"})), ReasonRecordOutdated, "db-1 holds"},
		"the applier of one has failed, and it may have a commit alone": {healthy(t, 3, 1).hears(2, StateBroken), ReasonReplicationBroken, "db-2"},
		"the applier of one has failed, and the others suffice":         {healthy(t, 5, 2).hears(2, StateBroken), ReasonReplicaCanTakeOver, "db-1 or db-3 or db-4"},
		"the primary's agent is older":                                  {healthy(t, 3, 1).with(func(c *Cluster) { c.Members[0].Status.Protocol-- }), ReasonAgentRelease, "db-0"},
		"the primary went back in time":                                 {healthy(t, 3, 1).hears(0, StateWaiting, has("A:1-8"), func(_ *testing.T, s *Status) { s.ServerUUID = uuidA }), ReasonPrimaryDataLost, "without"},
		"the primary is away, so none follows it": {
			healthy(t, 3, 1).lost(0).hears(1, StateCatchingUp).hears(2, StateCatchingUp), ReasonReplicaCanTakeOver, "db-1 or db-2"},
		"one member":                    {healthy(t, 1, 0), ReasonSingleMember, "no replica"},
		"a primary is chosen right now": {fencedFromDown(t, 3, 1), ReasonReplacingPrimary, "takes over from db-0"},
		"no primary was ever chosen":    {healthy(t, 2, 1).with(func(c *Cluster) { c.Record = Record{} }), ReasonWaitingForMembers, "no primary yet"},
	}
	for name, test := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isReady, reason, message := test.story.c.Failover()
			if isReady != (test.reason == ReasonReplicaCanTakeOver) || reason != test.reason || !strings.Contains(message, test.says) {
				t.Errorf("%v %s %q, want %s %q", isReady, reason, message, test.reason, test.says)
			}
		})
	}
}
