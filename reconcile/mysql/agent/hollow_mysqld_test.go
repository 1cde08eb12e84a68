package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// follows makes a member the replica of a primary, without a copy: neither has data.
func (m *realMember) follows(t *testing.T, leader *realMember) {
	t.Helper()
	m.until(t, "the member answers", func() bool {
		status := m.agent.Status()
		return status.State != replication.StateStarting && status.Origin != replication.OriginInitializing
	})
	if err := m.agent.keepOrigin(replication.OriginMember); err != nil {
		t.Fatal(err)
	}
	m.obeys(t, replication.Assignment{
		Record: leader.agent.Status().Held, Role: replication.RoleReplica, SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: leader.port,
	})
	m.replicates(t)
}

// matches asks the primary to match the member's hollow transactions, until both have the same transactions.
func (m *realMember) matches(t *testing.T, leader *realMember) {
	t.Helper()
	m.until(t, "both have the same transactions", func() bool {
		told, status := m.agent.Status(), leader.agent.Status()
		if !told.Hollow.Empty() {
			asked := replication.Matching{Epoch: status.Held.Epoch, Primary: status.Held.Primary, Boot: status.Boot, GTIDs: told.Hollow}
			if err := leader.agent.Match(asked); err != nil {
				t.Fatal(err)
			}
		}
		if told.State == replication.StateErrant {
			t.Fatalf("the member is %s: %s", told.State, told.Message)
		}
		return told.Hollow.Empty() && told.Executed.Equal(status.Executed)
	})
}

// TestHollowTransactionsMysqld: a monitoring account runs FLUSH on a replica, and a client uses a MEMORY table after its restart. The
// replica continues to serve, and the primary gets the same GTIDs. A row that a client writes there still makes the replica errant.
func TestHollowTransactionsMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica := startRealMember(t, ca), startRealMember(t, ca)
	leader.leads(t, 1, 0)
	writer := leader.open(t, "root", "root's", nil, ca)
	replica.follows(t, leader)
	reader := replica.open(t, "root", "root's", nil, ca)
	execute(t, writer, "CREATE DATABASE shop", "CREATE TABLE shop.cache (id INT PRIMARY KEY) ENGINE=MEMORY", "CREATE TABLE shop.orders (id INT PRIMARY KEY)",
		"INSERT INTO shop.cache VALUES (1)", "CREATE USER monitor IDENTIFIED BY 'monitor'", "GRANT RELOAD ON *.* TO monitor")
	monitor := replica.open(t, "monitor", "monitor", nil, ca)
	replica.until(t, "the replica has all transactions", func() bool { return monitor.PingContext(t.Context()) == nil })

	t.Log("a monitoring account runs FLUSH")
	execute(t, monitor, "FLUSH STATUS", "FLUSH TABLES")
	began := time.Now()
	replica.until(t, "the replica reports the hollow transactions", func() bool { return replica.agent.Status().Hollow.Count() == 2 })
	t.Logf("reported after %s", time.Since(began))
	replica.matches(t, leader)
	t.Logf("matched after %s", time.Since(began))

	t.Log("a client writes to a MEMORY table after the replica has restarted")
	replica.crashes(t)
	replica.follows(t, leader)
	execute(t, writer, "INSERT INTO shop.cache VALUES (2)")
	replica.until(t, "the replica reports the hollow transactions", func() bool { return replica.agent.Status().Hollow.Count() == 1 })
	replica.matches(t, leader)

	t.Log("a stopped replica connects to its primary again")
	execute(t, reader, "STOP REPLICA", "FLUSH STATUS")
	replica.until(t, "the replica replicates again", func() bool { return replica.agent.Status().State == replication.StateReplicating })
	replica.until(t, "the replica reports the hollow transactions", func() bool { return replica.agent.Status().Hollow.Count() == 1 })
	replica.matches(t, leader)

	t.Log("a client writes on the replica")
	execute(t, reader, "SET GLOBAL super_read_only = OFF", "INSERT INTO shop.orders VALUES (7)", "SET GLOBAL super_read_only = ON", "FLUSH STATUS")
	replica.until(t, "it is errant", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateErrant && status.Hollow.Count() == 1
	})
}

// optimize makes a transaction without rows, which waits on a replica while a client there reads the table.
const optimize = "OPTIMIZE TABLE mysql.time_zone"

// received is a replica that has received this transaction and others from its primary, and not applied them, when it crashes. Another
// member, which lacks them, is the primary then.
func received(t *testing.T, others ...string) (replica, next *realMember) {
	t.Helper()
	ca := newAuthority(t)
	leader, replica, next := startRealMember(t, ca), startRealMember(t, ca), startRealMember(t, ca)
	leader.leads(t, 1, 0)
	replica.follows(t, leader)
	reader, err := replica.open(t, "root", "root's", nil, ca).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, statement := range []string{"BEGIN", "SELECT COUNT(*) FROM mysql.time_zone"} {
		if _, err := reader.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, leader.open(t, "root", "root's", nil, ca), append([]string{optimize}, others...)...)
	replica.until(t, "the replica has received all", func() bool { return replica.agent.Status().Received.Count() == int64(len(others)+1) })
	fence(t, replica)
	replica.until(t, "the replica receives no more", func() bool { return replica.agent.Status().ObservedUnder.Epoch == 2 })
	replica.crashes(t)
	replica.until(t, "the replica answers", func() bool { return replica.agent.Status().State != replication.StateStarting })
	if status := replica.agent.Status(); !status.Executed.Empty() || status.Received.Count() != int64(len(others)+1) {
		t.Fatalf("the replica has applied %q of %s, so this test proves nothing", status.Executed, status.Received)
	}
	record := replication.Record{Epoch: 2, Revision: 9, Primary: "db-0", Joining: []string{"db-1"}}
	next.obeys(t, replication.Assignment{Record: record, Role: replication.RolePrimary})
	next.until(t, "the next primary takes writes", func() bool { return next.agent.Status().State == replication.StateWriting })
	return replica, next
}

// TestHollowTransactionsThatAreOnlyReceivedMysqld: the replica applies them, its agent reads them in the binary log, and the replica
// follows its new primary.
func TestHollowTransactionsThatAreOnlyReceivedMysqld(t *testing.T) {
	t.Parallel()
	replica, next := received(t, "FLUSH STATUS", "ANALYZE TABLE mysql.user")
	replica.follows(t, next)
	replica.until(t, "the replica reports the hollow transactions", func() bool { return replica.agent.Status().Hollow.Count() == 3 })
	replica.matches(t, next)
}

// TestAWriteThatIsOnlyReceivedMysqld: the replica applies it, still has it, and waits for a user.
func TestAWriteThatIsOnlyReceivedMysqld(t *testing.T) {
	t.Parallel()
	replica, next := received(t, "CREATE DATABASE shop", "FLUSH STATUS")
	replica.obeys(t, replication.Assignment{
		Record: next.agent.Status().Held, Role: replication.RoleReplica, SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: next.port,
	})
	replica.until(t, "it knows that one of them is a write", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateErrant && status.Executed.Count() == 3 && status.Hollow.Count() == 2
	})
}
