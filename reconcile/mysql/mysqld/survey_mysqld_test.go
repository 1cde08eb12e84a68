package mysqld

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTheAgentSeesTransactionsMysqld: the agent sees other users' transactions with its own privileges, on a machine whose time zone is not
// UTC.
func TestTheAgentSeesTransactionsMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	server.environment = []string{"TZ=EAST-5"}
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	agent := server.connect(t, b.Agent)
	seen, err := agent.Survey(t.Context())
	if err != nil || len(seen.Prepared) != 0 || seen.Oldest != 0 {
		t.Fatalf("no transaction is open, but the agent sees %+v (%v)", seen, err)
	}
	one, err := root.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)",
		"XA START 'pay-1', 'b'", "INSERT INTO shop.orders VALUES (1)", "XA END 'pay-1', 'b'", "XA PREPARE 'pay-1', 'b'",
	} {
		if _, err := one.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	_ = one.Close()
	open, err := root.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.ExecContext(t.Context(), "INSERT INTO shop.orders VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); seen.Oldest < time.Second && time.Now().Before(deadline); {
		<-time.After(200 * time.Millisecond) // within 100 ms mysqld repeats its former answer (MySQL source, trx_i_s_possibly_fetch_data_into_cache)
		if seen, err = agent.Survey(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen.Prepared) != 1 || seen.Prepared[0] != "1:5:0x7061792D3162" || seen.Oldest < time.Second || seen.Oldest > time.Minute {
		t.Errorf("the agent sees %+v", seen)
	}
	if err := open.Rollback(); err != nil {
		t.Error(err)
	}
	if err := agent.DumpBufferPool(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRestoredDataGetsRootMysqld: restored data without root gets one with all privileges, also if mysqld was killed while it ran the file.
// An existing root keeps its privileges. The file can run twice without harm.
func TestRestoredDataGetsRootMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	if err := root.exec(t.Context(), "rename root", "CREATE USER dba IDENTIFIED BY 'dba'", "GRANT ALL ON *.* TO dba WITH GRANT OPTION", "DROP USER root"); err != nil {
		t.Fatal(err)
	}
	server.stop(t)
	b.NewData, b.RestoredData, b.Root = false, true, "another"
	settings := append(withSemiSync(), "--max-prepared-stmt-count=0")
	all := strings.SplitAfter(sqlOf(t, b), ";\n")
	for i, statement := range all {
		kind, _, _ := strings.Cut(statement, " ")
		if !strings.Contains(statement, "_root") || !slices.Contains([]string{"CREATE", "GRANT", "EXECUTE"}, kind) {
			continue
		}
		halved := strings.Join(all[:i+1], "") // mysqld ends there, as in a crash
		dba := server.start(t, halved, Account{User: "dba", Password: "dba"}, settings...)
		var made, rights int
		if err := dba.db.QueryRowContext(t.Context(), "SELECT COUNT(*), COALESCE(SUM(Super_priv = 'Y'), 0) FROM mysql.user WHERE user = 'root'").Scan(&made, &rights); err != nil || made != rights {
			t.Errorf("after %q there are %d accounts named root, %d of them with privileges: %v", statement, made, rights, err)
		}
		server.stop(t)
	}
	root = server.start(t, sqlOf(t, b), Account{User: "root", Password: "another"}, settings...)
	if err := root.exec(t.Context(), "use its rights", "CREATE DATABASE shop", "GRANT ALL ON shop.* TO dba", "REVOKE INSERT ON *.* FROM root"); err != nil {
		t.Error(err)
	}
	server.stop(t)
	root = server.start(t, sqlOf(t, b), Account{User: "root", Password: "another"}, settings...)
	if err := root.exec(t.Context(), "write", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)"); err == nil {
		t.Error("root has a privilege again that was revoked")
	}
	var strangers, mostPrepared int
	if err := root.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM mysql.user WHERE user LIKE '%new_root'").Scan(&strangers); err != nil || strangers != 0 {
		t.Errorf("%d accounts are left over: %v", strangers, err)
	}
	if err := root.db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.max_prepared_stmt_count").Scan(&mostPrepared); err != nil || mostPrepared != 0 {
		t.Errorf("clients may prepare %d statements, want 0: %v", mostPrepared, err)
	}
}
