package agent

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// TestAReplicaThatVanishesMysqld cuts the connection of the only replica without a word, as a lost node does. Commits wait. Linux would
// believe in the replica for a quarter of an hour, and so would mysqld.
func TestAReplicaThatVanishesMysqld(t *testing.T) { //nolint:paralleltest // its time limits are mysqld's
	ca := newAuthority(t)
	leader, _, db := startAcknowledging(t, ca)

	sessions, err := leader.agent.local.ReceiverSessions(t.Context())
	if err != nil || len(sessions) != 1 || !sessions[0].Peer.IsValid() {
		t.Fatalf("the receivers are %v: %v", sessions, err)
	}
	lost := sessions[0].Peer
	cut(t, leader.port, int(lost.Port()))
	told := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO shop.orders VALUES ()")
		told <- err
	}()
	began := time.Now()
	leader.until(t, "its session is ended", func() bool {
		sessions, err := leader.agent.local.ReceiverSessions(t.Context())
		return err == nil && !slices.ContainsFunc(sessions, func(one mysqld.ReceiverSession) bool { return one.Peer == lost })
	})
	t.Logf("its session is ended after %s", time.Since(began))
	if err := <-told; err != nil { // the receiver connects again, over another port
		t.Errorf("the commit failed: %v", err)
	}
	t.Logf("the commit returns after %s", time.Since(began))
}

// cut drops the packets of one connection over the loopback interface, in both directions.
func cut(t *testing.T, port, peer int) {
	t.Helper()
	own, other := strconv.Itoa(port), strconv.Itoa(peer)
	for _, way := range [][2]string{{own, other}, {other, own}} {
		rule := []string{"INPUT", "-i", "lo", "-p", "tcp", "--sport", way[0], "--dport", way[1], "-j", "DROP"}
		if out, err := exec.CommandContext(t.Context(), "iptables", append([]string{"-w", "-I"}, rule...)...).CombinedOutput(); err != nil {
			t.Skipf("needs root, and iptables: %v: %s", err, out)
		}
		t.Cleanup(func() {
			_ = exec.CommandContext(context.WithoutCancel(t.Context()), "iptables", append([]string{"-w", "-D"}, rule...)...).Run()
		})
	}
}
