package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// follows makes a member the replica of another that leads, without a copy: neither has data.
func (m *realMember) follows(t *testing.T, leader *realMember) {
	t.Helper()
	m.until(t, "the member answers", func() bool {
		status := m.agent.Status()
		return status.State != replication.StateStarting && status.Origin != replication.OriginInitializing
	})
	if err := m.agent.keepOrigin(replication.OriginMember); err != nil {
		t.Fatal(err)
	}
	order := replication.Assignment{
		Protocol: replication.Protocol, Record: leader.agent.Status().Held, Role: replication.RoleReplica, Boot: m.agent.Status().Boot,
		SourceHost: "localhost", SourcePort: leader.port,
	}
	if err := m.agent.Assign(order); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the member replicates", func() bool { return m.agent.Status().State == replication.StateReplicating })
}

// restarts kills mysqld, and starts it once the agent has noticed: one that takes no writes may come back between two looks.
func (m *realMember) restarts(t *testing.T) {
	t.Helper()
	_ = m.mysqld.Process.Kill()
	_ = m.mysqld.Wait()
	m.until(t, "the agent has noticed", func() bool { return m.agent.Status().State == replication.StateStarting })
	m.start(t)
}

// matches asks the leader for what a member tells, until both have the same.
func (m *realMember) matches(t *testing.T, leader *realMember) {
	t.Helper()
	m.until(t, "both have the same", func() bool {
		told, status := m.agent.Status(), leader.agent.Status()
		if !told.Hollow.Empty() {
			asked := replication.Matching{Epoch: status.Held.Epoch, Primary: status.Held.Primary, Boot: status.Boot, GTIDs: told.Hollow}
			if err := leader.agent.Match(asked); err != nil {
				t.Fatal(err)
			}
		}
		if told.State == replication.StateErrant {
			t.Fatalf("it is %s: %s", told.State, told.Message)
		}
		return told.Hollow.Empty() && told.Executed.Equal(status.Executed)
	})
}

// TestHollowTransactionsMysqld: a monitoring account flushes on a replica, and a MEMORY table is used after its restart. It serves on, and
// the primary gets the same GTIDs. A row that somebody writes there makes it errant, as ever.
func TestHollowTransactionsMysqld(t *testing.T) { //nolint:paralleltest // its time limits are mysqld's
	ca := newAuthority(t)
	leader, replica := startRealMember(t, ca), startRealMember(t, ca)
	leader.leads(t, 1, 0)
	writer := leader.open(t, "root", "root's", nil, ca)
	replica.follows(t, leader)
	reader := replica.open(t, "root", "root's", nil, ca)
	execute(t, writer, "CREATE DATABASE shop", "CREATE TABLE shop.cache (id INT PRIMARY KEY) ENGINE=MEMORY", "CREATE TABLE shop.orders (id INT PRIMARY KEY)",
		"INSERT INTO shop.cache VALUES (1)", "CREATE USER monitor IDENTIFIED BY 'monitor'", "GRANT RELOAD ON *.* TO monitor")
	monitor := replica.open(t, "monitor", "monitor", nil, ca)
	replica.until(t, "the replica has it all", func() bool { return monitor.PingContext(t.Context()) == nil })

	t.Log("a monitoring account flushes")
	execute(t, monitor, "FLUSH STATUS", "FLUSH TABLES")
	began := time.Now()
	replica.until(t, "the replica tells", func() bool { return replica.agent.Status().Hollow.Count() == 2 })
	t.Logf("told after %s", time.Since(began))
	replica.matches(t, leader)
	t.Logf("the same after %s", time.Since(began))

	t.Log("a MEMORY table is written to after the replica has started anew")
	replica.restarts(t)
	replica.follows(t, leader)
	execute(t, writer, "INSERT INTO shop.cache VALUES (2)")
	replica.until(t, "the replica tells", func() bool { return replica.agent.Status().Hollow.Count() == 1 })
	replica.matches(t, leader)

	t.Log("a replica that stands still turns to its primary again")
	execute(t, reader, "STOP REPLICA", "FLUSH STATUS")
	replica.until(t, "the replica replicates again", func() bool { return replica.agent.Status().State == replication.StateReplicating })
	replica.until(t, "the replica tells", func() bool { return replica.agent.Status().Hollow.Count() == 1 })
	replica.matches(t, leader)

	t.Log("somebody writes there")
	execute(t, reader, "SET GLOBAL super_read_only = OFF", "INSERT INTO shop.orders VALUES (7)", "SET GLOBAL super_read_only = ON", "FLUSH STATUS")
	replica.until(t, "it is errant", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateErrant && status.Hollow.Count() == 1
	})
}
