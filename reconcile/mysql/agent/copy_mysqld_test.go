package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestACopyWithoutPerformanceSchemaMysqld: a cluster from before the operator refused it may have performance_schema OFF. MySQL then does
// not report that a copy is complete. A member that relied on that report would copy indefinitely.
func TestACopyWithoutPerformanceSchemaMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	ca := newAuthority(t)
	primary, replica := startRealMember(t, ca), startRealMember(t, ca)
	primary.leads(t, 1, 0)
	execute(t, primary.open(t, "root", "root's", nil, ca), "CREATE DATABASE shop", "CREATE TABLE shop.log (id INT) ENGINE=MyISAM")
	replica.until(t, "the replica is made", func() bool { return replica.agent.Status().Origin == replication.OriginFresh })
	write(t, replica.layout.serverConfig(), read(t, replica.layout.serverConfig())+"performance_schema = OFF\n")
	replica.crashes(t)
	primary.admits(t, ca, replica)
	replica.follow(t, primary, 1)
	replica.isCopied(t)
	replica.follow(t, primary, 2)
	replica.until(t, "it replicates", func() bool {
		replica.obeysAgain(t)
		if !replica.saysSoFirst() {
			t.Fatal("the replica replicates, but has not reported the tables without rows")
		}
		return replica.agent.Status().State == replication.StateReplicating
	})
	if kept := stateOf(t, replica.layout); kept.Data != replication.OriginMember || kept.IsCopied || kept.TablesWithoutRows.Tables.Count() != 1 {
		t.Errorf("the stored state is %+v", kept)
	}
}

// TestACopyTakesThePlaceOfDataMysqld: the primary has purged transactions that a replica misses. CLONE first drops the tables there, which
// super_read_only forbids.
func TestACopyTakesThePlaceOfDataMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	primary, replica := startRealMember(t, ca), startRealMember(t, ca)
	primary.leads(t, 1, 0)
	root := primary.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
	primary.admits(t, ca, replica)
	revision := int64(0)
	copied := func() {
		t.Helper()
		revision++
		replica.follow(t, primary, revision)
		replica.isCopied(t)
		revision++
		replica.follow(t, primary, revision)
		replica.replicates(t)
	}
	former := replica.agent.Status().ServerUUID
	copied()
	if now := replica.agent.Status().ServerUUID; now == former || now == primary.agent.Status().ServerUUID {
		t.Errorf("the copy has the server_uuid %s, and its member had %s: their transactions would have the same GTIDs", now, former)
	}
	replica.stop(t)
	replica.until(t, "the agent has noticed", func() bool { return replica.agent.Status().State == replication.StateStarting })
	execute(t, root, "INSERT INTO shop.orders VALUES (7)", "FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
	replica.start(t)
	copied()
	var rows int
	if err := replica.open(t, "root", "root's", nil, ca).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("the copy has %d rows: %v", rows, err)
	}
	if status := replica.agent.Status(); status.Writable {
		t.Errorf("the replica takes writes: %+v", status)
	}
}
