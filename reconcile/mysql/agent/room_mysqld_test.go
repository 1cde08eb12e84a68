package agent

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// startAcknowledging starts a primary, whose commits wait for its only replica, with a table shop.orders. db is a client of root.
func startAcknowledging(t *testing.T, ca authority, before ...func(Layout)) (leader, replica *realMember, db *sql.DB) {
	t.Helper()
	leader, replica = startRealMember(t, ca, before...), startRealMember(t, ca)
	leader.leads(t, 1, 0)
	leader.admits(t, ca, replica)
	db = leader.open(t, "root", "root's", nil, ca)
	execute(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, filler LONGTEXT)")
	replica.follows(t, leader)
	order := *replica.agent.Status().Assignment
	order.Acknowledge, order.InSync, order.Record.Revision = true, true, 2
	replica.obeys(t, order)
	leader.leads(t, 2, 1)
	leader.until(t, "the replica acknowledges", func() bool { return replica.agent.Status().Acknowledging && leader.agent.Status().AckClients == 1 })
	return leader, replica, db
}

// TestAFullRelayLogMysqld: a lock stops the applier of a replica whose acknowledgements the primary requires. The replica reports that its
// relay log is full and stops acknowledging, so that the primary knows. When the lock is gone it acknowledges again.
func TestAFullRelayLogMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)
	acknowledges := func(is bool) func() bool {
		return func() bool {
			return replica.agent.Status().Acknowledging == is && (leader.agent.Status().AckClients == 1) == is
		}
	}

	t.Log("a client locks a table on the replica, and another writes on the primary")
	there := replica.open(t, "root", "root's", nil, ca)
	lock, err := there.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.ExecContext(t.Context(), "LOCK TABLES shop.orders READ"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		done := 0
		for ctx.Err() == nil {
			if _, err := db.ExecContext(ctx, "INSERT INTO shop.orders (filler) VALUES (REPEAT('x', 4000000))"); err == nil {
				done++
			}
		}
		ended <- done
	}()
	replica.until(t, "the replica stops acknowledging", acknowledges(false))
	told := func() string { return replica.agent.Status().Message }
	replica.until(t, "the replica reports why", func() bool { return strings.Contains(told(), "relay log is full") })
	filled := time.Now()

	t.Log("the lock is released")
	if _, err := lock.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	replica.until(t, "the replica acknowledges again", acknowledges(true))
	t.Logf("the replica acknowledged again after %s", time.Since(filled).Round(time.Millisecond))
	stop()
	if written := <-ended; written < 10 {
		t.Errorf("%d rows were written", written)
	}
	replica.until(t, "the replica has all", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateReplicating && status.Executed.Contains(leader.agent.Status().Executed)
	})
}
