package agent

import (
	"context"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAFormerPrimaryWithAWaitingCommitIsClosedMysqld: no replica acknowledges a commit any more, because all are fenced. The commit would
// hold up super_read_only without end. Its client is not told that it has succeeded.
func TestAFormerPrimaryWithAWaitingCommitIsClosedMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	root := m.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop")
	m.leads(t, 2, 1)
	told := make(chan error, 1)
	go func() {
		_, err := root.ExecContext(context.WithoutCancel(t.Context()), "CREATE DATABASE another")
		told <- err
	}()
	m.until(t, "the commit waits", func() bool { return m.agent.Status().Transactions.CommitWaitSeconds > 0 })

	began := time.Now()
	m.obeys(t, replication.Assignment{Record: replication.Record{Epoch: 2, Revision: 3, FormerPrimary: "db-0"}, Role: replication.RoleReplica})
	m.until(t, "the member is a closed replica", func() bool {
		status := m.agent.Status()
		return status.State == replication.StateCatchingUp && !status.Writable
	})
	t.Logf("closed after %s", time.Since(began))
	if err := <-told; err == nil {
		t.Error("the client was told that its commit has succeeded")
	}
}
