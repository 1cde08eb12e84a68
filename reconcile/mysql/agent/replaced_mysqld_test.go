package agent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// replacement is a primary with a commit that no replica has, and the replica that takes over from it.
type replacement struct {
	former, next *realMember
	ca           authority
	uuid         string
	// forcedEpoch is the epoch in which a user chooses the next one; 0 if no user does.
	forcedEpoch int64
}

// replacedMember makes a primary crash while its last commits wait. No client is told that they have succeeded. The statements before need
// no acknowledgement.
func replacedMember(t *testing.T, before []string, last ...string) replacement {
	t.Helper()
	r := replaceableMember(t, before...)
	r.crashes(t, last...)
	return r
}

// replaceableMember makes a primary that executes statements, and whose later commits wait. Its replica receives nothing more.
func replaceableMember(t *testing.T, before ...string) replacement {
	t.Helper()
	r := replacement{ca: newAuthority(t)}
	r.former, r.next = startRealMember(t, r.ca), startRealMember(t, r.ca)
	r.former.leads(t, 1, 0)
	r.uuid = r.former.agent.Status().ServerUUID
	root := r.former.open(t, "root", "root's", nil, r.ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)", "CREATE USER app IDENTIFIED BY 'secret'")
	r.former.admits(t, r.ca, r.next)
	r.next.follow(t, r.former, 1)
	r.next.isCopied(t)
	r.next.follow(t, r.former, 2)
	r.next.replicates(t)
	fence(t, r.next)
	replica, receivers := r.next.open(t, "root", "root's", nil, r.ca), 0
	r.next.until(t, "the receiver has stopped", func() bool {
		const running = "SELECT COUNT(*) FROM performance_schema.replication_connection_status WHERE SERVICE_STATE <> 'OFF'"
		err := replica.QueryRowContext(t.Context(), running).Scan(&receivers)
		return err == nil && receivers == 0
	})
	execute(t, root, before...)
	r.former.obeys(t, replication.Assignment{Record: replication.Record{Epoch: 1, Revision: 2, Primary: "db-0", Joining: []string{"db-1"}}, Role: replication.RolePrimary, Acks: 1})
	r.former.until(t, "commits wait", func() bool { return r.former.agent.Status().AcksEnforced == 1 })
	r.former.leads(t, 3, 1) // the record promises nothing before
	return r
}

// crashes makes the primary crash while these commits wait.
func (r replacement) crashes(t *testing.T, last ...string) {
	t.Helper()
	told := make(chan error, len(last))
	for _, statement := range last {
		client := r.former.open(t, "root", "root's", nil, r.ca)
		go func() {
			_, err := client.ExecContext(context.WithoutCancel(t.Context()), statement)
			told <- err
		}()
	}
	r.former.until(t, "the commits wait", func() bool { return r.former.agent.Status().Pending.Count() == int64(len(last)) })
	r.former.crashes(t)
	for range last {
		if err := <-told; err == nil {
			t.Error("the client was told that its commit has succeeded")
		}
	}
}

// fence gives a member the record under which no member leads.
func fence(t *testing.T, m *realMember) {
	t.Helper()
	fenced := replication.Record{Epoch: 2, Revision: 4, FormerPrimary: "db-0", InSync: []string{"db-0", "db-2"}, RequiredAcks: 1}
	m.obeys(t, replication.Assignment{Record: fenced, Role: replication.RoleReplica})
	m.until(t, "the member takes no writes", func() bool {
		closed := m.agent.Status().Closed
		return closed != nil && *closed == fenced.Version()
	})
}

// takesOver makes the replica the primary, and returns the assignment with which the former one follows it.
func (r replacement) takesOver(t *testing.T) replication.Assignment {
	t.Helper()
	chosen := replication.Record{Epoch: 2, Revision: 5, Primary: "db-2", InSync: []string{"db-2"}, Joining: []string{"db-1"}, ForcedEpoch: r.forcedEpoch}
	r.next.obeys(t, replication.Assignment{Record: chosen, Role: replication.RolePrimary})
	r.next.until(t, "it leads", func() bool { return r.next.agent.Status().State == replication.StateWriting })
	r.next.admits(t, r.ca, r.former)
	execute(t, r.next.open(t, "root", "root's", nil, r.ca), "INSERT INTO shop.orders VALUES (3)")
	return replication.Assignment{Record: chosen, Role: replication.RoleReplica, SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: r.next.port}
}

// follows checks that the former primary replicates what the next one has, and keeps a copy of what it had alone.
func (r replacement) follows(t *testing.T, changes int) {
	t.Helper()
	r.former.replicates(t)
	if now := r.former.agent.Status().ServerUUID; now == r.uuid {
		t.Error("it still has its server_uuid: it would give the GTIDs of lost transactions to others")
	}
	reader, rows := r.former.open(t, "root", "root's", nil, r.ca), ""
	r.former.until(t, "it has the rows of the next primary, and no other", func() bool {
		err := reader.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.orders").Scan(&rows)
		return err == nil && rows == "1,3"
	})
	if kept := stateOf(t, r.former.layout); kept.Replaced != nil {
		t.Errorf("it is still taken for a former primary: %+v", kept.Replaced)
	}
	if kept := r.former.agent.Status().SetAside; kept == nil || kept.Epoch != 2 || kept.GTIDs.OfServer(r.uuid).Empty() {
		t.Errorf("it reports that it has set aside %+v", kept)
	}
	files, err := filepath.Glob(filepath.Join(r.former.layout.setAsideDir(2), "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files set aside are %v: %v", files, err)
	}
	said, err := rootfs.Program(t.Context(), r.former.rootfs, "bin/mysqlbinlog", "--verify-binlog-checksum", "-vv", files[0]).CombinedOutput()
	if err != nil || strings.Count(string(said), "### INSERT INTO `shop`.`orders`") != changes || !strings.Contains(string(said), "@1=2") {
		t.Errorf("mysqlbinlog: %v\n%s", err, said)
	}
}

// TestAReplacedPrimaryRejoinsMysqld: it has a commit that no replica has, and recovery has committed that. The member keeps a copy of it,
// which mysqlbinlog reads, and becomes a replica. What a user writes there meanwhile stays.
func TestAReplacedPrimaryRejoinsMysqld(t *testing.T) {
	t.Parallel()
	r := replacedMember(t, []string{"SET GLOBAL binlog_transaction_compression = ON"}, "INSERT INTO shop.orders VALUES (2)")
	r.former.until(t, "it starts although the operator says nothing", func() bool { return r.former.agent.Status().State != replication.StateStarting })
	fence(t, r.former)
	follow := r.takesOver(t)
	r.former.obeys(t, follow)
	r.former.isCopied(t)
	follow.Record.Revision++
	r.former.obeys(t, follow)
	r.follows(t, 1)
}

// TestAFormerPrimaryKeepsWhatAForcedOneLacksMysqld: clients may have been told that it had succeeded. So the member neither cuts it off its
// binary log, nor gets a copy of the next primary's data.
func TestAFormerPrimaryKeepsWhatAForcedOneLacksMysqld(t *testing.T) {
	t.Parallel()
	r := replacedMember(t, nil, "INSERT INTO shop.orders VALUES (2)")
	r.forcedEpoch = 2
	fence(t, r.former)
	r.former.obeys(t, r.takesOver(t))
	r.staysErrant(t, "1,2")
}

// TestAFormerPrimaryKeepsWhatMySQLAcknowledgedAloneMysqld: MySQL has stopped waiting for acknowledgements, and waits again when the agent
// looks. The member keeps the commit that a client was told had succeeded, and what came after it.
func TestAFormerPrimaryKeepsWhatMySQLAcknowledgedAloneMysqld(t *testing.T) {
	t.Parallel()
	const prefix = "SET GLOBAL rpl_semi_sync_source_"
	for name, meanwhile := range map[string][2][]string{
		"after a time-out": {{prefix + "timeout = 1"}, {prefix + "timeout = " + mysqld.SemiSyncTimeout, prefix + "wait_no_replica = OFF", prefix + "wait_no_replica = ON"}},
		"a user does that": {{prefix + "enabled = OFF"}, {prefix + "enabled = ON"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replaceableMember(t)
			root := r.former.open(t, "root", "root's", nil, r.ca)
			r.former.agent.mu.Lock() // no look begins meanwhile
			execute(t, root, slices.Concat(meanwhile[0], []string{"INSERT INTO shop.orders VALUES (9)"}, meanwhile[1])...)
			r.former.agent.mu.Unlock()
			r.former.until(t, "the commit is in doubt", func() bool { return !stateOf(t, r.former.layout).InDoubt.Empty() })
			r.crashes(t, "INSERT INTO shop.orders VALUES (2)")
			fence(t, r.former)
			r.former.obeys(t, r.takesOver(t))
			r.staysErrant(t, "1,2,9")
			if now := r.former.agent.Status(); !strings.Contains(now.Message, "clients may have been told") {
				t.Errorf("the member says: %s", now.Message)
			}
		})
	}
}

// staysErrant checks that the former primary has these rows, and will not be copied.
func (r replacement) staysErrant(t *testing.T, want string) {
	t.Helper()
	r.former.until(t, "it is errant", func() bool { return r.former.agent.Status().State == replication.StateErrant })
	if now := r.former.agent.Status(); now.ServerUUID != r.uuid || now.SetAside != nil || now.NeedsCopy {
		t.Errorf("the member reports %+v", now)
	}
	rows := ""
	if err := r.former.open(t, "root", "root's", nil, r.ca).QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.orders").Scan(&rows); err != nil || rows != want {
		t.Errorf("it has the rows %s: %v", rows, err)
	}
}

// TestACrashedPrimaryIsCopiedMysqld if InnoDB has committed one of the transactions that are cut off its binary log, because that did not
// have to wait.
func TestACrashedPrimaryIsCopiedMysqld(t *testing.T) {
	t.Parallel()
	r := replacedMember(t, []string{"INSERT INTO shop.orders VALUES (8)"}, "INSERT INTO shop.orders VALUES (2)")
	fence(t, r.former)
	follow := r.takesOver(t)
	r.former.obeys(t, follow)
	r.former.until(t, "mysqld starts", func() bool { return !r.former.agent.Status().StartHeld })
	r.former.isCopied(t)
	follow.Record.Revision++
	r.former.obeys(t, follow)
	r.follows(t, 2)
}

// TestACrashedPrimaryRejoinsWithoutACopyMysqld: another member takes over before its mysqld starts again. Recovery rolls back what no
// replica has.
func TestACrashedPrimaryRejoinsWithoutACopyMysqld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, last  []string
		endsContainer bool
	}{
		"several":                       {nil, []string{"INSERT INTO shop.orders VALUES (2)", "INSERT INTO shop.orders VALUES (4), (5)", "INSERT INTO shop.orders VALUES (6)"}, false},
		"the first one in a binary log": {[]string{"FLUSH BINARY LOGS"}, []string{"INSERT INTO shop.orders VALUES (2)"}, false},
		"its container ends, too":       {nil, []string{"INSERT INTO shop.orders VALUES (2)"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replacedMember(t, test.before, test.last...)
			if !r.former.agent.Status().StartHeld {
				t.Fatal("the start of mysqld is not held")
			}
			if test.endsContainer {
				if _, err := r.next.agent.layout.lockTablespace(); !errors.Is(err, errStillUsed) {
					t.Errorf("lock the tablespace of a mysqld that runs: %v", err)
				}
				r.former.stop(t)
				r.former.until(t, "the agent holds the next start", r.former.agent.holdsFirstStart)
				r.former.start(t)
			}
			fence(t, r.former)
			starts := strings.Count(r.former.messages(), "ready for connections")
			r.former.obeys(t, r.takesOver(t))
			r.follows(t, strings.Count(strings.Join(test.last, ""), "("))
			if again := strings.Count(r.former.messages(), "ready for connections") - starts; again != 1 {
				t.Errorf("mysqld started %d times", again)
			}
		})
	}
}

// holdsFirstStart reports whether the agent, and not the supervisor, holds the next start.
func (a *Agent) holdsFirstStart() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hold.unlock != nil
}

// obeys gives a member an assignment for its present start. A replica gets it also while its start is held.
func (m *realMember) obeys(t *testing.T, order replication.Assignment) {
	t.Helper()
	m.until(t, "the member answers", func() bool {
		status := m.agent.Status()
		return status.State != replication.StateStarting || order.Role == replication.RoleReplica && status.StartHeld
	})
	order.Protocol, order.Cluster, order.Boot = replication.Protocol, "uid", m.agent.Status().Boot
	if err := m.agent.Assign(order); err != nil {
		t.Fatal(err)
	}
}

// obeysAgain gives a member its last assignment again if mysqld has started since, as the operator does.
func (m *realMember) obeysAgain(t *testing.T) {
	t.Helper()
	if status := m.agent.Status(); status.State != replication.StateStarting && status.Last != nil && status.Last.Boot != status.Boot {
		m.obeys(t, *status.Last)
	}
}

// replicates waits until a member replicates.
func (m *realMember) replicates(t *testing.T) {
	t.Helper()
	m.until(t, "the member replicates", func() bool {
		m.obeysAgain(t)
		return m.agent.Status().State == replication.StateReplicating
	})
}
