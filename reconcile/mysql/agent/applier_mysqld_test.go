package agent

import (
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestAStoppedApplierIsStartedAgainMysqld: a user has written a row on a replica that the primary writes, too. When the user removes it,
// the replica continues by itself.
func TestAStoppedApplierIsStartedAgainMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	ca := newAuthority(t)
	primary, replica := startRealMember(t, ca), startRealMember(t, ca)
	primary.leads(t, 1, 0)
	root := primary.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
	primary.admits(t, ca, replica)
	replica.follow(t, primary, 1)
	replica.isCopied(t)
	replica.follow(t, primary, 2)
	isIn := func(state replication.State) func() bool {
		return func() bool {
			replica.obeysAgain(t)
			return replica.agent.Status().State == state
		}
	}
	replica.until(t, "it replicates", isIn(replication.StateReplicating))

	byHand := func(statement string) {
		t.Helper()
		session, err := replica.open(t, "root", "root's", nil, ca).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		replica.until(t, statement, func() bool { // the agent makes it read-only again
			for _, one := range []string{"SET sql_log_bin = 0", "SET GLOBAL super_read_only = OFF", statement} {
				if _, err := session.ExecContext(t.Context(), one); err != nil {
					return false
				}
			}
			return true
		})
	}
	byHand("INSERT INTO shop.orders VALUES (7)")
	execute(t, root, "INSERT INTO shop.orders VALUES (6)", "INSERT INTO shop.orders VALUES (7)", "INSERT INTO shop.orders VALUES (8)")
	replica.until(t, "its applier has stopped", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateBroken && strings.Contains(status.Message, "1062")
	})
	byHand("DELETE FROM shop.orders WHERE id = 7")
	replica.until(t, "it replicates again", isIn(replication.StateReplicating))
	rows := 0
	if err := replica.open(t, "root", "root's", nil, ca).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&rows); err != nil || rows != 3 {
		t.Errorf("it has %d rows, %v; want 3", rows, err)
	}
}
