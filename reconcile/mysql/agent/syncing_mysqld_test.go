package agent

import "testing"

// TestAReplicaThatFlushesForgetsNothingMysqld: it acknowledges only what is on its disk (spec.durability.survives is Power). If a user
// changes that while mysqld runs, the member may forget again.
func TestAReplicaThatFlushesForgetsNothingMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, _ := startAcknowledging(t, ca)
	const life = "boot/pod"
	for _, m := range []*realMember{leader, replica} {
		m.agent.mu.Lock()
		kept := m.agent.kept
		kept.Life, m.agent.life = life, life
		err := m.agent.storeState(kept)
		m.agent.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	db := replica.open(t, "root", "root's", nil, ca)
	forgets := func(is bool) func() bool {
		return func() bool { return stateOf(t, replica.layout).livingIn("next boot/pod").IsForgetful == is }
	}
	replica.until(t, "it may forget", forgets(true))
	execute(t, db, "SET GLOBAL sync_relay_log = 1")
	replica.until(t, "it forgets nothing, and reports that", func() bool { return forgets(false)() && replica.agent.Status().SyncsRelayLog })
	execute(t, db, "SET GLOBAL sync_relay_log = 10000")
	replica.until(t, "it may forget again", forgets(true))
	if leader.agent.Status().SyncsRelayLog || stateOf(t, leader.layout).Life != life {
		t.Error("the primary, which has no relay log, counts as a replica that flushes it")
	}
}
