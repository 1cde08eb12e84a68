package mysqld

import "testing"

// TestTheAgentMeasuresMysqld: the agent's own privileges suffice. A key that MySQL generated counts as one, even if users hide it, and so
// does a unique key without NULL.
func TestTheAgentMeasuresMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, "--show-gipk-in-create-table-and-information-schema=OFF")
	found, err := agent.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if pool := int64(128 << 20); found.Memory < pool || found.Memory > 8*pool || found.OpenFiles < 1000 {
		t.Errorf("mysqld uses %d bytes of memory, the buffer pool alone has %d, and mysqld may open %d files", found.Memory, pool, found.OpenFiles)
	}
	keyless := func(want int64) {
		t.Helper()
		if count, err := agent.TablesWithoutKey(t.Context()); err != nil || count != want {
			t.Errorf("%d tables have no primary key, %v; want %d", count, err, want)
		}
	}
	keyless(0)
	root := server.connect(t, Account{User: "root", Password: "root's"})
	for _, statement := range []string{
		"CREATE DATABASE shop", "CREATE TABLE shop.keyed (id INT PRIMARY KEY, other INT UNIQUE, FOREIGN KEY (other) REFERENCES keyed (id))",
		"CREATE TABLE shop.plain (id INT)", "CREATE TABLE shop.sole (id INT NOT NULL UNIQUE, CHECK (id > 0))", "CREATE TABLE shop.both (a INT NOT NULL, b INT, UNIQUE (a, b))",
		"CREATE TABLE shop.old (id INT) ENGINE=MyISAM", "CREATE VIEW shop.seen AS SELECT * FROM shop.plain", "CREATE TABLE shop.`Keyed``too` (a INT, b INT, PRIMARY KEY (a, b))",
		"SET GLOBAL sql_generate_invisible_primary_key = ON",
	} {
		if err := root.exec(t.Context(), statement, statement); err != nil {
			t.Fatal(err)
		}
	}
	keyless(3)
	later := server.connect(t, Account{User: "root", Password: "root's"})
	if err := later.exec(t.Context(), "make a table", "CREATE TABLE shop.made (id INT)"); err != nil {
		t.Fatal(err)
	}
	keyless(3)
}
