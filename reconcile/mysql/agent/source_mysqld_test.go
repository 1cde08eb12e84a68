package agent

import (
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAReplicaFollowsItsPrimaryToAnotherAddressMysqld: the primary's Pod has another address.
func TestAReplicaFollowsItsPrimaryToAnotherAddressMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica := startRealMember(t, ca), startRealMember(t, ca)
	leader.until(t, "the primary answers", func() bool { return leader.agent.Status().State != replication.StateStarting })
	replica.until(t, "the replica answers", func() bool {
		status := replica.agent.Status()
		return status.State != replication.StateStarting && status.Origin != replication.OriginInitializing
	})
	if err := replica.agent.keepOrigin(replication.OriginMember); err != nil { // otherwise it copies the primary, which restarts mysqld
		t.Fatal(err)
	}
	replica.obeys(t, replication.Assignment{
		Record: replication.Record{Epoch: 1, Revision: 1, Primary: "db-0"}, Role: replication.RoleReplica,
		SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: leader.port,
	})
	replica.until(t, "the replica waits until the primary leads", func() bool {
		return strings.Contains(replica.agent.Status().Message, "it does not lead yet")
	})
	leader.leads(t, 1, 0)
	writer := leader.open(t, "root", "root's", nil, ca)
	replica.follows(t, leader)
	execute(t, writer, "CREATE DATABASE before_it_moved")

	moved := *replica.agent.Status().Assignment
	moved.SourceAddress = "127.0.0.2"
	moved.Record.Revision++
	replica.obeys(t, moved)
	reader := replica.open(t, "root", "root's", nil, ca)
	host := func() (found string) {
		const query = "SELECT host FROM performance_schema.replication_connection_configuration"
		if err := reader.QueryRowContext(t.Context(), query).Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	replica.until(t, "the replica follows the new address", func() bool {
		return host() == moved.SourceAddress && replica.agent.Status().State == replication.StateReplicating
	})
	execute(t, writer, "CREATE DATABASE since_it_moved")
	replica.until(t, "the replica has both databases", func() bool {
		found := 0
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE '%it_moved'").Scan(&found)
		return err == nil && found == 2
	})
}
