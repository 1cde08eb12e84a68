package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// noLimit is MySQL's default max_binlog_cache_size.
const noLimit = 18446744073709547520

// TestThePrimaryAloneLimitsTransactionsMysqld: the limit applies from the primary's first write on, and ends when it becomes a replica.
func TestThePrimaryAloneLimitsTransactionsMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.until(t, "the member answers", func() bool { return m.agent.Status().State != replication.StateStarting })
	db := m.open(t, "root", "root's", nil, ca)
	limit := func() (found uint64) {
		if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.max_binlog_cache_size").Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := limit(); got != noLimit {
		t.Errorf("mysqld starts with a limit of %d", got)
	}
	m.leads(t, 1, 0)
	if got, want := limit(), uint64(sizing.TransactionLimit(m.agent.Status().Disk.Size)); got != want || want == 0 {
		t.Errorf("the primary's limit is %d, want %d", got, want)
	}
	m.obeys(t, replication.Assignment{
		Record: replication.Record{Epoch: 2, Revision: 2, Primary: "db-1"}, Role: replication.RoleReplica,
		SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: rootfs.Port(t),
	})
	m.until(t, "the member is a replica without a limit", func() bool { return !m.agent.Status().Writable && limit() == noLimit })
}
