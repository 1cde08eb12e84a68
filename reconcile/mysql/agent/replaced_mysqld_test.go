package agent

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// TestAReplacedPrimaryRejoinsMysqld: it has a commit that no replica has. No client was told that the commit has succeeded, so the member
// keeps a copy of it, which mysqlbinlog reads, and becomes a replica. What a user writes there meanwhile stays.
func TestAReplacedPrimaryRejoinsMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	former, next := startRealMember(t, ca), startRealMember(t, ca)
	former.leads(t, 1, 0)
	root := former.open(t, "root", "root's", nil, ca)
	execute(t, root, "SET GLOBAL binlog_transaction_compression = ON", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)")
	former.admits(t, ca, next)
	next.follow(t, former, 1)
	next.isCopied(t)
	next.follow(t, former, 2)
	next.until(t, "the replica replicates", func() bool { return next.agent.Status().State == replication.StateReplicating })
	next.stop(t)
	former.leads(t, 2, 1)
	told := make(chan error, 1)
	go func() {
		_, err := root.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO shop.orders VALUES (2)")
		told <- err
	}()
	former.until(t, "the commit waits", func() bool { return former.agent.Status().Transactions.CommitWaitSeconds > 0 })

	former.crashes(t)
	if err := <-told; err == nil {
		t.Error("the client was told that its commit has succeeded")
	}

	fence := replication.Record{Epoch: 2, Revision: 3, FormerPrimary: "db-0", InSync: []string{"db-0", "db-2"}, RequiredAcks: 1}
	former.obeys(t, replication.Assignment{Record: fence, Role: replication.RoleReplica})
	former.until(t, "the member takes no writes", func() bool {
		closed := former.agent.Status().Closed
		return closed != nil && *closed == fence.Version() && former.agent.Status().State == replication.StateCatchingUp
	})
	uuid := former.agent.Status().ServerUUID

	next.start(t)
	chosen := replication.Record{Epoch: 2, Revision: 4, Primary: "db-2", InSync: []string{"db-2"}, Joining: []string{"db-1"}}
	next.until(t, "the next primary answers", func() bool { return next.agent.Status().State != replication.StateStarting })
	next.obeys(t, replication.Assignment{Record: chosen, Role: replication.RolePrimary})
	next.until(t, "it leads", func() bool { return next.agent.Status().State == replication.StateWriting })
	next.admits(t, ca, former)
	execute(t, next.open(t, "root", "root's", nil, ca), "INSERT INTO shop.orders VALUES (3)")
	follow := replication.Assignment{Record: chosen, Role: replication.RoleReplica, SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: next.port}
	former.obeys(t, follow)
	former.isCopied(t)
	follow.Record.Revision++
	former.obeys(t, follow)
	former.until(t, "the former primary replicates", func() bool { return former.agent.Status().State == replication.StateReplicating })
	if now := former.agent.Status().ServerUUID; now == uuid {
		t.Error("it still has its server_uuid: it would give the GTIDs of lost transactions to others")
	}
	var rows string
	row := former.open(t, "root", "root's", nil, ca).QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.orders")
	if err := row.Scan(&rows); err != nil || rows != "1,3" {
		t.Errorf("the former primary has the rows %s: %v", rows, err)
	}
	if kept := stateOf(t, former.layout); kept.Replaced != nil {
		t.Errorf("it is still taken for a former primary: %+v", kept.Replaced)
	}

	files, err := filepath.Glob(filepath.Join(former.layout.setAsideDir(2), "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files set aside are %v: %v", files, err)
	}
	said, err := rootfs.Program(t.Context(), former.rootfs, "bin/mysqlbinlog", "--verify-binlog-checksum", "-vv", files[0]).CombinedOutput()
	if err != nil || strings.Count(string(said), "### INSERT INTO `shop`.`orders`") != 1 || !strings.Contains(string(said), "@1=2") {
		t.Errorf("mysqlbinlog: %v\n%s", err, said)
	}
}

// obeys gives a member an assignment for its present start.
func (m *realMember) obeys(t *testing.T, order replication.Assignment) {
	t.Helper()
	m.until(t, "the member answers", func() bool { return m.agent.Status().State != replication.StateStarting })
	order.Protocol, order.Cluster, order.Boot = replication.Protocol, "uid", m.agent.Status().Boot
	if err := m.agent.Assign(order); err != nil {
		t.Fatal(err)
	}
}
