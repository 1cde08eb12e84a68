package agent

import (
	"database/sql"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/hang"
)

// TestAPrimaryOpensWhenReplicasHaveEverythingMysqld: mysqld of the primary crashes while a commit waits, and recovery commits it. No
// replica has it, so no client must read it: it is lost if the primary fails again. Only when a replica has acknowledged everything, or
// when the record does not promise a copy any more, clients get in.
func TestAPrimaryOpensWhenReplicasHaveEverythingMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)
	leads := func(revision int64, acks int) replication.Assignment {
		record := replication.Record{Epoch: 1, Revision: revision, Primary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: acks}
		return replication.Assignment{Record: record, Role: replication.RolePrimary, Acks: acks}
	}
	isOpen := func() bool { return leader.agent.Status().State == replication.StateWriting }
	leader.obeys(t, leads(3, 1))
	leader.until(t, "it follows the record", func() bool { return leader.agent.Status().ObservedUnder.Revision == 3 })

	t.Log("the replica returns")
	hung := crashWhileACommitWaits(t, leader, replica, db)
	leader.obeys(t, leads(3, 1))
	staysHalfOpen(t, leader, db)
	hang.Continue(t, hung)
	leader.until(t, "it takes writes", isOpen)
	if missing := leader.agent.Status().Executed.Subtract(replica.agent.Status().Received); !missing.Empty() {
		replica.until(t, "the replica has everything", func() bool { return replica.agent.Status().Received.Contains(missing) })
	}
	execute(t, db, "INSERT INTO shop.orders VALUES ()")

	t.Log("the replica stays away, and the record does not promise a copy any more")
	crashWhileACommitWaits(t, leader, replica, db)
	leader.obeys(t, leads(3, 1))
	staysHalfOpen(t, leader, db)
	leader.obeys(t, leads(4, 0))
	leader.until(t, "it takes writes", isOpen)
	execute(t, db, "INSERT INTO shop.orders VALUES ()")
}

// crashWhileACommitWaits stops mysqld of the replica, and kills the one of the primary while a commit waits. It returns the process that is
// stopped.
func crashWhileACommitWaits(t *testing.T, leader, replica *realMember, db *sql.DB) (hung int) {
	t.Helper()
	hung = replica.pid(t)
	hang.Process(t, hung)
	told := orderLarge(t, db)
	leader.until(t, "the commit waits", func() bool { return leader.agent.Status().Pending.Count() == 1 })
	leader.crashes(t)
	if err := <-told; err == nil {
		t.Error("the client was told that its commit has succeeded")
	}
	return hung
}

// interruptTurn ends the loop's turns, as the end of mysqld does.
func (a *Agent) interruptTurn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.interrupt()
}

// staysHalfOpen checks that a primary lets its replicas in, and no clients. However often it tries to open, one commit waits.
func staysHalfOpen(t *testing.T, leader *realMember, db *sql.DB) {
	t.Helper()
	halfOpen := func() bool {
		status := leader.agent.Status()
		return status.State == replication.StatePromoting && status.Writable
	}
	leader.until(t, "it is half open", halfOpen)
	for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(100 * time.Millisecond) {
		var isClosed bool
		if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.read_only").Scan(&isClosed); err != nil || !isClosed {
			t.Fatalf("clients can write: %t, error %v; the primary reports %+v", !isClosed, err, leader.agent.Status())
		}
		if leader.agent.ready(time.Now()) == nil {
			t.Fatal("Services may lead clients to it")
		}
		leader.agent.interruptTurn()
	}
	var waiting int
	row := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO = 'COMMIT'")
	if err := row.Scan(&waiting); err != nil || waiting != 1 {
		t.Errorf("%d commits wait, error %v; want the one that makes sure that replicas have everything", waiting, err)
	}
	t.Log(leader.agent.Status().Message)
}
