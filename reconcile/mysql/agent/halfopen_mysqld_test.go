package agent

import (
	"context"
	"database/sql"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/test/hang"
)

// TestAReplicaThatVanishesMysqld cuts the connection of the only replica without a word, as a lost node does. Commits wait. Linux would
// believe in the replica for a quarter of an hour, and so would mysqld.
func TestAReplicaThatVanishesMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, _, db := startAcknowledging(t, ca)

	lost := receiverOf(t, leader).Peer
	cut(t, leader.port, int(lost.Port()))
	told := order(t, db)
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

// TestAReplicaThatHangsMysqld: the only replica's mysqld hangs, but its machine still acknowledges packets. The primary's commit waits, and
// the primary reports that no replica acknowledges. When the replica's mysqld continues, the commit is acknowledged and returns.
func TestAReplicaThatHangsMysqld(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Second // the replica's agent kills its mysqld after two minutes
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)

	hung := replica.pid(t)
	hang.Process(t, hung)
	told := order(t, db)
	began := time.Now()
	leader.until(t, "no replica acknowledges", func() bool {
		return leader.agent.Status().AckClients == 0 || time.Since(began) > limit
	})
	if status := leader.agent.Status(); status.AckClients > 0 {
		t.Fatalf("after %s the primary reports %+v", limit, status)
	}
	t.Logf("no replica acknowledges after %s", time.Since(began))
	if len(told) > 0 {
		t.Errorf("the commit returned without an acknowledgement: %v", <-told)
	}

	began = time.Now()
	hang.Continue(t, hung)
	leader.until(t, "the commit returns", func() bool { return len(told) > 0 })
	t.Logf("the commit returns %s after the replica's mysqld continues", time.Since(began))
	if err := <-told; err != nil {
		t.Errorf("the commit failed: %v", err)
	}
	leader.until(t, "the replica acknowledges again", func() bool {
		status := leader.agent.Status()
		return replica.agent.Status().Acknowledging && status.AckClients == 1 && status.AcksEnforced == 1
	})
}

// order inserts a row into shop.orders in the background.
func order(t *testing.T, db *sql.DB) <-chan error {
	t.Helper()
	told := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO shop.orders VALUES ()")
		told <- err
	}()
	return told
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
