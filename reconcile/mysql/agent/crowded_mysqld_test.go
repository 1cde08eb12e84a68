package agent

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAPrimaryWithoutAFreeConnectionMysqld: clients use all connections, and the one that is reserved for administrators. The primary still
// counts as one that works, and is closed as soon as another member is to take over.
func TestAPrimaryWithoutAFreeConnectionMysqld(t *testing.T) {
	t.Parallel()
	const tooMany = 1040
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	db := m.open(t, "root", "root's", nil, ca)
	execute(t, db, "SET GLOBAL max_connections = 10")
	var held []*sql.Conn
	for refused := (*driver.MySQLError)(nil); refused == nil; {
		one, err := db.Conn(t.Context())
		if err != nil && (!errors.As(err, &refused) || refused.Number != tooMany) {
			t.Fatal(err)
		}
		if err == nil {
			held = append(held, one)
		}
	}
	t.Logf("clients hold %d connections", len(held))
	for began := time.Now(); time.Since(began) < 5*time.Second; <-time.After(50 * time.Millisecond) {
		if now := m.agent.Status(); now.State != replication.StateWriting || now.IsLate() {
			t.Fatalf("it does not count as a primary that works: %+v", now)
		}
	}
	began := time.Now()
	fenced := replication.Record{Epoch: 2, Revision: 3, FormerPrimary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}
	m.obeys(t, replication.Assignment{Record: fenced, Role: replication.RoleReplica})
	m.until(t, "it takes no writes", func() bool { return !m.agent.Status().Writable })
	t.Logf("closed after %s", time.Since(began))
	for _, one := range held {
		_ = one.Close()
	}
}
