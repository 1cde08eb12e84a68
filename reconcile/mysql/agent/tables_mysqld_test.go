package agent

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// follow makes the member a replica of another one.
func (m *realMember) follow(t *testing.T, primary *realMember, revision int64) {
	t.Helper()
	m.obeys(t, replication.Assignment{
		Record: replication.Record{Epoch: 1, Revision: revision, Primary: "db-0"}, Role: replication.RoleReplica,
		SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: primary.port,
	})
}

// admits sets a password of at most 32 characters for the replication account, which is what a replica can use, and waits until this
// primary accepts it.
func (m *realMember) admits(t *testing.T, ca authority, replica *realMember) {
	t.Helper()
	const short = "at most 32 characters"
	for _, one := range []*realMember{m, replica} {
		write(t, one.layout.account(mysqld.ReplicationUsers), short)
	}
	db := m.open(t, mysqld.ObserverUser, short, m.card(t), ca)
	m.until(t, "the primary accepts the password", func() bool { return db.PingContext(t.Context()) == nil })
}

// isCopied waits until a copy has replaced the member's data. It ends mysqld, and the supervisor starts the next one with the copy.
func (m *realMember) isCopied(t *testing.T) {
	t.Helper()
	m.until(t, "it is copied", func() bool {
		kept := stateOf(t, m.layout)
		return kept.IsCopied || kept.Data == replication.OriginMember
	})
}

// saysSoFirst returns false for a member that replicates and has not reported the tables without rows.
func (m *realMember) saysSoFirst() bool {
	status := m.agent.Status()
	return status.State != replication.StateReplicating || !status.KnownTablesWithoutRows().Empty()
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// lookAgain makes the agent look at tables now.
func (m *realMember) lookAgain() {
	m.agent.mu.Lock()
	defer m.agent.mu.Unlock()
	m.agent.tables.due = m.agent.looked
}

// looks waits until the agent has looked at tables once more.
func (m *realMember) looks(t *testing.T) {
	t.Helper()
	m.lookAgain()
	m.until(t, "the agent has looked", func() bool {
		m.agent.mu.Lock()
		defer m.agent.mu.Unlock()
		return !m.agent.tables.busy && m.agent.tables.due.After(m.agent.looked)
	})
}

// TestACopyLacksRowsMysqld: a replica is copied while the primary has tables of other engines. It reports them before it replicates, and as
// long as their rows are missing.
func TestACopyLacksRowsMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	ca := newAuthority(t)
	primary := startRealMember(t, ca)
	primary.leads(t, 1, 0)
	root := primary.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)")
	primary.lookAgain()
	primary.until(t, "the primary has counted none", func() bool { other := primary.agent.Status().OtherEngines; return other != nil && other.Empty() })
	for _, engine := range []string{"MyISAM", "CSV", "ARCHIVE", "MEMORY"} {
		execute(t, root, fmt.Sprintf("CREATE TABLE shop.of_%s (id INT NOT NULL) ENGINE=%s", engine, engine), fmt.Sprintf("INSERT INTO shop.of_%s VALUES (1), (2)", engine))
	}
	primary.lookAgain()
	primary.until(t, "the primary names them", func() bool { other := primary.agent.Status().OtherEngines; return other != nil && other.Count() == 4 })
	if lacks := primary.agent.Status().KnownTablesWithoutRows(); !lacks.Empty() {
		t.Errorf("rows are missing on the primary: %s", lacks)
	}

	replica := startRealMember(t, ca)
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
	lacks := func(want string) {
		t.Helper()
		replica.lookAgain()
		replica.until(t, "tables without rows: "+want, func() bool {
			replica.lookAgain()
			var names []string
			for _, table := range replica.agent.Status().KnownTablesWithoutRows().Named {
				names = append(names, table.Name)
			}
			return strings.Join(names, " ") == want
		})
	}
	lacks("of_ARCHIVE of_CSV of_MyISAM")
	copied := replica.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE TABLE shop.later (id INT) ENGINE=MyISAM")
	replica.until(t, "the table is there", func() bool {
		_, err := copied.ExecContext(t.Context(), "DO (SELECT COUNT(*) FROM shop.later)")
		return err == nil
	})
	lacks("of_ARCHIVE of_CSV of_MyISAM")
	t.Log("a former agent did not record it: MySQL reports that the data is a copy, but not which tables are older")
	forgets := func(found *missingRows) {
		replica.agent.mu.Lock()
		defer replica.agent.mu.Unlock()
		replica.agent.kept.TablesWithoutRows = found
		replica.agent.reportKept()
	}
	noted := stateOf(t, replica.layout).TablesWithoutRows
	forgets(nil)
	lacks("later of_ARCHIVE of_CSV of_MyISAM")
	forgets(noted)
	lacks("of_ARCHIVE of_CSV of_MyISAM")
	for table, want := range map[string]int{"orders": 1, "of_MyISAM": 0, "of_CSV": 0} {
		var rows int
		if err := copied.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop."+table).Scan(&rows); err != nil || rows != want {
			t.Errorf("the copy has %d rows of %s, %v; want %d", rows, table, err, want)
		}
	}

	if _, err := copied.ExecContext(t.Context(), "SELECT * FROM shop.of_ARCHIVE"); err == nil {
		t.Error("a copy has files of ARCHIVE, but docs/clusters.md says that it has none")
	}

	replica.looks(t)
	execute(t, root, "DROP TABLE shop.of_CSV")
	lacks("of_ARCHIVE of_MyISAM")
	t.Log("the table becomes InnoDB, on the replica without the former rows")
	execute(t, root, "ALTER TABLE shop.of_MyISAM ENGINE=InnoDB")
	lacks("of_ARCHIVE of_MyISAM")
	execute(t, root, "RENAME TABLE shop.of_ARCHIVE TO shop.renamed")
	replica.until(t, "the table has another name", func() bool {
		_, err := copied.ExecContext(t.Context(), "SELECT * FROM shop.renamed")
		return err != nil && strings.Contains(err.Error(), "1017")
	})
	for range 3 {
		replica.looks(t)
	}
	lacks("of_ARCHIVE of_MyISAM")
	t.Log("a client changes a row that is missing on the replica")
	execute(t, root, "UPDATE shop.of_MyISAM SET id = 3 WHERE id = 1")
	replica.until(t, "the replica reports why it cannot continue", func() bool {
		status := replica.agent.Status()
		return status.State == replication.StateBroken && strings.Contains(status.Message, "1032") && strings.Contains(status.Message, `"shop"."of_MyISAM" (MyISAM), which are not InnoDB`)
	})
	byHand := func(statement string) {
		t.Helper()
		replica.until(t, statement, func() bool { // the agent makes it read-only again
			_, opened := copied.ExecContext(t.Context(), "SET GLOBAL super_read_only = OFF")
			_, err := copied.ExecContext(t.Context(), statement)
			return opened == nil && err == nil
		})
	}
	byHand("STOP REPLICA")
	byHand("DROP TABLE shop.of_MyISAM")
	lacks("of_ARCHIVE")
	t.Log("a renamed table does not count as dropped until a table with its old name is created and dropped")
	byHand("DROP TABLE IF EXISTS shop.renamed")
	byHand("CREATE TABLE shop.of_ARCHIVE (id INT)")
	for range 3 {
		replica.looks(t)
	}
	byHand("DROP TABLE shop.of_ARCHIVE")
	lacks("")
	if kept := stateOf(t, replica.layout).TablesWithoutRows; kept == nil || !kept.Tables.Empty() {
		t.Errorf("the stored state is %+v", kept)
	}
}

// TestARestoredMemberLacksRowsMysqld: the data on the volume began as a backup. Tables that are created later have their rows.
func TestARestoredMemberLacksRowsMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	root := m.open(t, "root", "root's", nil, ca)
	m.until(t, "the primary has looked at its tables, and looks again in an hour", func() bool { return m.agent.Status().OtherEngines != nil })
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.log (id INT) ENGINE=MyISAM")
	m.agent.mu.Lock()
	kept := m.agent.kept
	kept.TablesWithoutRows, kept.Held, kept.RestoredFrom = nil, replication.Record{}, &RestoredFrom{UID: "1"}
	err := m.agent.storeState(kept)
	m.agent.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	m.until(t, "the member reports the tables without rows", func() bool { return m.agent.Status().KnownTablesWithoutRows().Count() == 1 })
	m.leads(t, 2, 0)
	execute(t, root, "DO SLEEP(1.1)", "CREATE TABLE shop.later (id INT) ENGINE=MyISAM", "RENAME TABLE shop.log TO shop.former")
	m.lookAgain()
	m.until(t, "the member finds the table under its new name", func() bool {
		m.lookAgain()
		lacks := m.agent.Status().KnownTablesWithoutRows()
		return lacks.Count() == 1 && lacks.Named[0].Name == "former"
	})
	t.Log("the rows of the primary are the rows of its cluster")
	execute(t, root, "ALTER TABLE shop.former ENGINE=InnoDB")
	m.until(t, "the member has no tables without rows", func() bool { m.lookAgain(); return m.agent.Status().KnownTablesWithoutRows().Empty() })
	m.until(t, "the member names the remaining table", func() bool {
		m.lookAgain()
		other := m.agent.Status().OtherEngines
		return other != nil && other.Count() == 1 && other.Named[0].Name == "later"
	})
}
