package agent

import (
	"context"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAReplicaThatConnectsIsFencedSoonMysqld: the network drops all packets to the primary, and a replica connects again. When another
// member is to take over, the replica says within seconds that it acknowledges nothing, long before its connection times out.
func TestAReplicaThatConnectsIsFencedSoonMysqld(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second // replica_net_timeout
	ca := newAuthority(t)
	leader, replica, _ := startAcknowledging(t, ca)
	session := receiverOf(t, leader)
	dropAll(t, leader.port)
	if err := leader.agent.local.EndSession(t.Context(), session.ID); err != nil {
		t.Fatal(err)
	}
	replica.until(t, "it connects", func() bool {
		seen, err := replica.agent.local.Observe(t.Context())
		return err == nil && seen.Server.Channel.IO == "Connecting"
	})
	fenced := replication.Record{Epoch: 2, Revision: 3, FormerPrimary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}
	began := time.Now()
	replica.obeys(t, replication.Assignment{Record: fenced, Role: replication.RoleReplica})
	replica.until(t, "it is silent", func() bool {
		status := replica.agent.Status()
		return status.IsSilent(fenced)
	})
	took := time.Since(began)
	t.Logf("silent after %s", took)
	if took >= timeout {
		t.Errorf("it is silent after %s, as late as its connection times out", took)
	}
}

// dropAll drops all packets to a port over the loopback interface.
func dropAll(t *testing.T, port int) {
	t.Helper()
	rule := []string{"INPUT", "-i", "lo", "-p", "tcp", "--dport", strconv.Itoa(port), "-j", "DROP"}
	if out, err := exec.CommandContext(t.Context(), "iptables", append([]string{"-w", "-I"}, rule...)...).CombinedOutput(); err != nil {
		t.Skipf("needs root, and iptables: %v: %s", err, out)
	}
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "iptables", append([]string{"-w", "-D"}, rule...)...).Run()
	})
}
