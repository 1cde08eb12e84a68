package mysqld

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestTablesOfOtherEnginesMysqld: the agent's account sees the tables of other engines, whatever their names are, but none of their rows.
func TestTablesOfOtherEnginesMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent)
	root := server.connect(t, Account{User: "root", Password: "root's"})
	look := func(most int) replication.Tables {
		t.Helper()
		found, err := agent.OtherEngines(t.Context(), most)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	do := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := root.exec(t.Context(), statement, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found := look(5); !found.Empty() {
		t.Errorf("a new server has %s", found)
	}
	until := func() string {
		t.Helper()
		moment, err := agent.TablesUntil(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	before := until()
	do("CREATE DATABASE shop", "CREATE DATABASE `a``b'; DROP`", "CREATE DATABASE MYSQL", "CREATE TABLE shop.fine (id INT PRIMARY KEY)",
		"CREATE TABLE shop.log (id INT) ENGINE=MyISAM", "CREATE VIEW shop.seen AS SELECT * FROM shop.log", "CREATE TABLE shop.quick (id INT) ENGINE=MEMORY",
		"CREATE TABLE shop.gone (id INT) ENGINE=BLACKHOLE", "CREATE TABLE shop.all_logs (id INT) ENGINE=MERGE UNION=(shop.log)", "CREATE TABLE MYSQL.mine (id INT NOT NULL) ENGINE=CSV",
		"CREATE TABLE `a``b'; DROP`.`x\n'\"\\äß` (id INT) ENGINE=ARCHIVE",
		"CREATE TABLE shop.parted (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3", "INSERT INTO shop.log VALUES (1)")
	one, err := root.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if _, err := one.ExecContext(t.Context(), "CREATE TEMPORARY TABLE shop.passing (id INT) ENGINE=MyISAM"); err != nil {
		t.Fatal(err)
	}

	strange := replication.Table{Schema: "a`b'; DROP", Name: "x\n'\"\\äß", Engine: "ARCHIVE"}
	mine, log := replication.Table{Schema: "MYSQL", Name: "mine", Engine: "CSV"}, replication.Table{Schema: "shop", Name: "log", Engine: "MyISAM"}
	want := replication.Tables{Named: []replication.Table{
		mine, strange, {Schema: "shop", Name: "all_logs", Engine: "MRG_MYISAM"}, {Schema: "shop", Name: "gone", Engine: "BLACKHOLE"}, log, {Schema: "shop", Name: "quick", Engine: "MEMORY"},
	}}
	if diff := cmp.Diff(want, look(20)); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(replication.Tables{Named: want.Named[:2], More: 4}, look(2)); diff != "" {
		t.Errorf("the first two (-want +got):\n%s", diff)
	}
	now := until()
	without, err := agent.TablesWithoutRows(t.Context(), now, 20)
	if diff := cmp.Diff(replication.Tables{Named: []replication.Table{mine, strange, log}}, without); diff != "" || err != nil {
		t.Errorf("tables whose rows are lost, %v (-want +got):\n%s", err, diff)
	}
	if older, err := agent.TablesWithoutRows(t.Context(), "2020-01-01 00:00:00", 20); err != nil || !older.Empty() {
		t.Errorf("tables from before the start: %s, %v; the test began at %s", older, err, before)
	}
	for most, want := range map[int][]string{100: {"MYSQL.mine", "a`b'; DROP.x\n'\"\\äß", "shop.all_logs", "shop.fine", "shop.gone", "shop.log", "shop.parted", "shop.quick"}, 0: nil} {
		var all []string
		err := agent.EachTable(t.Context(), most, func(table replication.Table, _ string) { all = append(all, table.Schema+"."+table.Name) })
		slices.Sort(all)
		if diff := cmp.Diff(want, all); diff != "" || err != nil {
			t.Errorf("all tables, %v (-want +got):\n%s", err, diff)
		}
	}
	var rows int
	if err := agent.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.log").Scan(&rows); !hasNumber(err, 1142) {
		t.Errorf("the agent reads rows: %d, %v", rows, err)
	}
	ages := func() map[string]string {
		t.Helper()
		found := map[string]string{}
		if err := agent.EachTable(t.Context(), 100, func(table replication.Table, made string) { found[table.Name] = table.Engine + " " + made }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	older := ages()
	do("RENAME TABLE shop.log TO shop.former")
	if younger := ages(); younger["former"] != older["log"] || len(older["log"]) != len("MyISAM 2026-11-24 12:00:00") {
		t.Errorf("RENAME TABLE changes more than a table's name: %q, before %q", younger["former"], older["log"])
	}
	if renamed, err := agent.TablesWithoutRows(t.Context(), now, 20); err != nil || len(renamed.Named) != 3 || renamed.Named[2].Name != "former" {
		t.Errorf("a table that is renamed keeps its age: %s, %v", renamed, err)
	}
	do("SET timestamp = UNIX_TIMESTAMP('2035-01-01 00:00:00')", "CREATE TABLE shop.ahead (id INT) ENGINE=MyISAM")
	if ahead, err := agent.TablesWithoutRows(t.Context(), until(), 20); err != nil || len(ahead.Named) != 4 {
		t.Errorf("a table whose clock is ahead is missing in %s, %v", ahead, err)
	}
	if all, err := agent.TablesWithoutRows(t.Context(), "", 20); err != nil || len(all.Named) != 4 {
		t.Errorf("all are %s, %v", all, err)
	}
}

// TestATableThatChangesItsEngineExistsMysqld: information_schema does not show it for a moment, and HasNoTable waits.
func TestATableThatChangesItsEngineExistsMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent)
	root := server.connect(t, Account{User: "root", Password: "root's"})
	do := func(ctx context.Context, statement string) {
		t.Helper()
		if err := root.exec(ctx, statement, statement); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	table := replication.Table{Schema: "shop", Name: "it`s"}
	hasNone := func() bool {
		t.Helper()
		none, err := agent.HasNoTable(t.Context(), table)
		if err != nil {
			t.Error(err)
		}
		return none
	}
	if !hasNone() {
		t.Error("the database does not exist, but its table")
	}
	do(t.Context(), "CREATE DATABASE shop")
	if !hasNone() {
		t.Error("the table exists before it is created")
	}
	do(t.Context(), "CREATE TABLE shop.`it``s` (id INT) ENGINE=MyISAM")
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var altering sync.WaitGroup
	altering.Go(func() {
		for bounded.Err() == nil {
			do(bounded, "ALTER TABLE shop.`it``s` ENGINE=InnoDB")
			do(bounded, "ALTER TABLE shop.`it``s` ENGINE=MyISAM")
		}
	})
	hidden := 0
	for bounded.Err() == nil && hidden < 10 {
		found := false
		if err := agent.EachTable(t.Context(), 10, func(replication.Table, string) { found = true }); err != nil {
			t.Fatal(err)
		}
		if !found {
			hidden++
		}
		if hasNone() {
			t.Error("it does not exist while its engine changes")
		}
	}
	cancel()
	altering.Wait()
	t.Logf("information_schema did not show the table %d times", hidden)
	do(t.Context(), "DROP TABLE shop.`it``s`")
	if !hasNone() {
		t.Error("the table exists after it is dropped")
	}
}

// TestUnsafeEnginesAreRefusedMysqld: existing tables can be read, written and upgraded. mysqld refuses only new ones.
func TestUnsafeEnginesAreRefusedMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	server := newMysqld(t, writeCertificates(t))
	root := Account{User: "root"}
	refused := "--loose-disabled-storage-engines=" + UnsafeEngines
	if output, err := server.command(t.Context(), "--datadir="+server.file("another"), "--initialize-insecure", refused).CombinedOutput(); err != nil {
		t.Errorf("initialize: %v\n%s", err, output)
	}
	do := func(db *Server, statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := db.exec(t.Context(), statement, statement); err != nil {
				t.Error(err)
			}
		}
	}
	do(server.start(t, "", root), "CREATE DATABASE shop", "CREATE TABLE shop.log (id INT) ENGINE=MyISAM", "INSERT INTO shop.log VALUES (1)")
	server.stop(t)
	later := server.start(t, "", root, refused, "--upgrade=FORCE")
	do(later, "INSERT INTO shop.log VALUES (2)", "UPDATE shop.log SET id = 3 WHERE id = 1")
	var sum int
	if err := later.db.QueryRowContext(t.Context(), "SELECT SUM(id) FROM shop.log").Scan(&sum); err != nil || sum != 5 {
		t.Errorf("the sum is %d, %v", sum, err)
	}
	for _, engine := range []string{"MyISAM", "ARCHIVE", "BLACKHOLE"} {
		made := fmt.Sprintf("CREATE TABLE shop.of_%s (id INT) ENGINE=%s", engine, engine)
		if err := later.exec(t.Context(), "create", made); err != nil {
			t.Errorf("without NO_ENGINE_SUBSTITUTION it is InnoDB: %v", err)
		}
	}
	if found, err := later.OtherEngines(t.Context(), 5); err != nil || found.Count() != 1 || found.Named[0].Name != "log" {
		t.Errorf("there are %s, %v", found, err)
	}
	if one, err := later.db.Conn(t.Context()); err != nil {
		t.Error(err)
	} else {
		defer one.Close()
		if _, err := one.ExecContext(t.Context(), "SET SESSION sql_mode = DEFAULT"); err != nil {
			t.Error(err)
		}
		if _, err := one.ExecContext(t.Context(), "CREATE TABLE shop.refused (id INT) ENGINE=MyISAM"); !hasNumber(err, 3161) {
			t.Errorf("mysqld creates a MyISAM table: %v", err)
		}
	}
	do(later, "CREATE TEMPORARY TABLE shop.t (id INT) ENGINE=MEMORY", "ALTER TABLE shop.log ENGINE=InnoDB")
	server.stop(t)
	do(server.start(t, "", root, refused, "--disabled-storage-engines="), "CREATE TABLE shop.allowed (id INT) ENGINE=MyISAM")
}
