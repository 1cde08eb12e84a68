package mysqld

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// keysOn gives new tables without a primary key an invisible one. It is the default of new clusters.
const keysOn = "--loose-sql-generate-invisible-primary-key=ON"

// definitions returns the statements that create a server's tables, with invisible columns, and the rows in them.
func definitions(t *testing.T, server *Server, schema string) map[string]string {
	t.Helper()
	one, err := server.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	found := map[string]string{}
	for _, table := range column(t, one, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME", schema) {
		quoted := "`" + schema + "`.`" + strings.ReplaceAll(table, "`", "``") + "`"
		var name, made string
		if err := one.QueryRowContext(t.Context(), "SHOW CREATE TABLE "+quoted).Scan(&name, &made); err != nil {
			t.Fatal(err)
		}
		rows := []string{"no key"}
		if strings.Contains(made, "`my_row_id`") {
			rows = column(t, one, "SELECT CONCAT_WS(' ', my_row_id, a) FROM "+quoted+" ORDER BY my_row_id")
		}
		// A primary may have skipped numbers that are not used yet.
		found[table] = regexp.MustCompile(` AUTO_INCREMENT=\d+`).ReplaceAllString(made, "") + "\n" + strings.Join(rows, "\n")
	}
	return found
}

func column(t *testing.T, one *sql.Conn, statement string, arguments ...any) []string {
	t.Helper()
	rows, err := one.QueryContext(t.Context(), statement, arguments...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		found = append(found, value)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return found
}

// replicated waits until a replica has the same transactions as its primary.
func replicated(t *testing.T, primary, follower *Server, replica *mysqld) {
	t.Helper()
	executed := func(of *Server) string {
		observed, err := of.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return observed.Server.Executed.String()
	}
	eventually(t, "the replica has what the primary has", func() error {
		if has, want := executed(follower), executed(primary); has != want {
			return fmt.Errorf("the replica has %s, the primary %s", has, want)
		}
		return nil
	}, replica.messages)
}

// TestTablesGetTheSameKeysMysqld: on the primary and on its replicas, independent of the replicas' settings. MySQL's own tables get no such
// key, also not in an upgrade.
func TestTablesGetTheSameKeysMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	if output, err := primary.command(t.Context(), "--datadir="+primary.file("another"), "--initialize-insecure", keysOn).CombinedOutput(); err != nil {
		t.Errorf("initialize: %v\n%s", err, output)
	}
	agent := primary.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), keysOn)...)
	allowReceiver(t, agent)
	root := primary.connect(t, Account{User: "root", Password: "root's"})
	for schema, setting := range map[string]string{"as_the_primary": keysOn, "without": "--loose-sql-generate-invisible-primary-key=OFF"} {
		follower := replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), setting, "--super-read-only=ON")...)
		if err := follower.PointToSource(t.Context(), sourceAt(primary, certificates, b.Replication)); err != nil {
			t.Fatal(err)
		}
		if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
			t.Fatal(err)
		}
		makesTables(t, root, schema)
		replicated(t, agent, follower, replica)
		has := definitions(t, root, schema)
		if diff := cmp.Diff(has, definitions(t, replica.connect(t, Account{User: "root", Password: "root's"}), schema)); diff != "" {
			t.Errorf("%s: the replica has other tables (-primary +replica):\n%s", schema, diff)
		}
		for table, made := range has {
			keyless := strings.HasPrefix(table, "keyed") || table == "bare"
			if keyless == strings.Contains(made, "INVISIBLE */") {
				t.Errorf("%s: %s is\n%s", schema, table, made)
			}
		}
		replica.stop(t)
	}
	primary.stop(t)
	root = primary.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, append(withSemiSync(), keysOn, "--upgrade=FORCE")...)
	var system int
	if err := root.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'my_row_id' AND TABLE_SCHEMA IN ('mysql', 'sys')").Scan(&system); err != nil || system != 0 {
		t.Errorf("%d of MySQL's own tables have got a key, %v", system, err)
	}
}

// makesTables creates tables of many kinds in a new schema, and changes their rows.
func makesTables(t *testing.T, root *Server, schema string) {
	t.Helper()
	one, err := root.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	for _, statement := range []string{
		"CREATE DATABASE " + schema, "USE " + schema,
		"CREATE TABLE plain (a INT, b TEXT)", "CREATE TABLE some (a INT UNIQUE) COMMENT 'it''s ä' CHARACTER SET latin1", "CREATE TABLE keyed (a INT PRIMARY KEY)",
		"CREATE TABLE `od``d ä` (a INT DEFAULT 3, b JSON, c INT AS (a + 1), KEY (c), CHECK (a > -9))",
		"INSERT INTO plain VALUES (3, 'x'), (1, 'y'), (1, 'y'), (2, 'z')", "INSERT INTO some VALUES (5), (4)",
		"CREATE TABLE copied AS SELECT * FROM plain ORDER BY a", "CREATE TABLE alike LIKE plain", "CREATE TABLE IF NOT EXISTS plain (a INT)",
		"UPDATE plain SET a = 7 WHERE a = 1 LIMIT 1", "DELETE FROM plain WHERE a = 3", "INSERT INTO plain (a) VALUES (8)",
		"ALTER TABLE some ADD d INT DEFAULT 1", "TRUNCATE TABLE alike", "INSERT INTO alike SELECT * FROM plain",
		"CREATE TEMPORARY TABLE passing (a INT)", "INSERT INTO passing VALUES (1)",
		"CREATE TABLE keyed_later (a INT)", "ALTER TABLE keyed_later DROP PRIMARY KEY, DROP COLUMN my_row_id, ADD PRIMARY KEY (a)",
		"SET SESSION sql_generate_invisible_primary_key = OFF", "CREATE TABLE bare (a INT)", "SET SESSION sql_generate_invisible_primary_key = ON",
	} {
		if _, err := one.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	refuses(t, one, 4109, "CREATE TABLE counted (a INT, b INT AUTO_INCREMENT, KEY (b))")
	refuses(t, one, 4108, "CREATE TABLE named (my_row_id INT)")
	refuses(t, one, 1235, "CREATE TABLE parted (a INT) PARTITION BY HASH (a) PARTITIONS 2")
}

// refuses checks what docs/clusters.md says about tables that get no key.
func refuses(t *testing.T, one *sql.Conn, number uint16, statement string) {
	t.Helper()
	if _, err := one.ExecContext(t.Context(), statement); !hasNumber(err, number) {
		t.Errorf("%s: %v, want error %d", statement, err, number)
	}
}
