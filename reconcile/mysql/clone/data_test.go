package clone

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// fill creates one of everything that a donor may have, with about this many MiB in the largest tables.
func fill(t testing.TB, s *server, mebibytes int) {
	t.Helper()
	s.exec(t,
		"CREATE DATABASE shop", "CREATE DATABASE `a-b.c`", "CREATE DATABASE nothing_in_it", "CREATE DATABASE ddl",
		"SET SESSION cte_max_recursion_depth = 1000000",
		"CREATE TABLESPACE together ADD DATAFILE 'together.ibd'",
		"CREATE UNDO TABLESPACE undo_extra ADD DATAFILE 'undo_extra.ibu'",
		"CREATE TABLE shop.plain (id INT AUTO_INCREMENT PRIMARY KEY, k INT, pad VARBINARY(1000), KEY (k))",
		"CREATE TABLE shop.compact (id INT PRIMARY KEY, v VARCHAR(200)) ROW_FORMAT=COMPACT",
		"CREATE TABLE shop.redundant (id INT PRIMARY KEY, v VARCHAR(200)) ROW_FORMAT=REDUNDANT",
		"CREATE TABLE shop.compressed (id INT PRIMARY KEY, v TEXT, KEY (v(20))) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4",
		"CREATE TABLE shop.pages (id INT PRIMARY KEY, v TEXT) COMPRESSION='zlib'",
		"CREATE TABLE shop.blobs (id INT PRIMARY KEY, v LONGBLOB)",
		"CREATE TABLE shop.parts (id INT PRIMARY KEY, v VARCHAR(100)) PARTITION BY HASH (id) PARTITIONS 5",
		"CREATE TABLE shop.words (id INT PRIMARY KEY, v TEXT, FULLTEXT KEY (v))",
		"CREATE TABLE shop.columns (id INT PRIMARY KEY, j JSON, g INT AS (id * 2) STORED, w INT AS (id + 1), p POINT NOT NULL SRID 0, KEY (w), SPATIAL KEY (p))",
		"CREATE TABLE shop.shared (id INT PRIMARY KEY, v VARCHAR(100)) TABLESPACE together",
		"CREATE TABLE shop.inside (id INT PRIMARY KEY, v VARCHAR(100)) TABLESPACE innodb_system",
		"CREATE TABLE shop.child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES shop.plain (id))",
		"CREATE TABLE `a-b.c`.`t/1 ä` (id INT PRIMARY KEY)", "INSERT INTO `a-b.c`.`t/1 ä` VALUES (1), (2), (3)",
		"CREATE TABLE shop.isam (id INT PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO shop.isam VALUES (1)",
		"CREATE VIEW shop.seen AS SELECT id, k FROM shop.plain",
		"CREATE PROCEDURE shop.count_plain() SELECT COUNT(*) FROM shop.plain",
		"CREATE TRIGGER shop.keep BEFORE INSERT ON shop.child FOR EACH ROW SET NEW.parent = NEW.parent",
		"CREATE USER reader IDENTIFIED BY 'reads'", "GRANT SELECT ON shop.* TO reader",
		"CREATE TABLE shop.sequence (n BIGINT PRIMARY KEY, pad VARCHAR(500))",
		"CREATE TABLE shop.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, pad VARCHAR(500))",
	)
	numbers := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)", n)
	}
	fillings := []string{
		"INSERT INTO shop.compact " + numbers(5000) + " SELECT i, REPEAT(CHAR(65 + i % 26), i % 200) FROM n",
		"INSERT INTO shop.redundant " + numbers(5000) + " SELECT i, REPEAT(CHAR(65 + i % 26), i % 200) FROM n",
		"INSERT INTO shop.compressed " + numbers(20000) + " SELECT i, REPEAT(SHA2(i, 256), 5) FROM n",
		"INSERT INTO shop.pages " + numbers(20000) + " SELECT i, REPEAT(SHA2(i, 256), 5) FROM n",
		"INSERT INTO shop.blobs " + numbers(20) + " SELECT i, REPEAT(SHA2(i, 512), 4000 * i) FROM n",
		"INSERT INTO shop.parts " + numbers(5000) + " SELECT i, SHA2(i, 256) FROM n",
		"INSERT INTO shop.words " + numbers(3000) + " SELECT i, CONCAT_WS(' ', SHA2(i, 256), 'common', SHA2(i * 7, 256)) FROM n",
		"INSERT INTO shop.columns (id, j, p) " + numbers(3000) + " SELECT i, JSON_OBJECT('i', i), POINT(i, -i) FROM n",
		"INSERT INTO shop.shared " + numbers(3000) + " SELECT i, SHA2(i, 256) FROM n",
		"INSERT INTO shop.inside " + numbers(3000) + " SELECT i, SHA2(i, 256) FROM n",
		"INSERT INTO shop.accounts " + numbers(2000) + " SELECT i, 1000, REPEAT('x', 500) FROM n",
	}
	for _, filling := range fillings {
		s.exec(t, "SET SESSION cte_max_recursion_depth = 1000000; "+filling)
	}
	for range mebibytes / 10 {
		s.exec(t, "SET SESSION cte_max_recursion_depth = 1000000; INSERT INTO shop.plain (k, pad) "+numbers(10<<20/1100)+
			" SELECT i, RANDOM_BYTES(1000) FROM n")
	}
	s.exec(t, "INSERT INTO shop.child SELECT id, id FROM shop.plain LIMIT 100")
}

// tables returns the quoted names of all InnoDB base tables of users.
func tables(t testing.TB, s *server, schemas string) []string {
	t.Helper()
	return s.rows(t, "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables WHERE table_type = 'BASE TABLE' "+
		"AND engine = 'InnoDB' AND table_schema IN ("+schemas+") ORDER BY 1")
}

const allSchemas = "'shop', 'a-b.c', 'ddl', 'nothing_in_it', 'mysql', 'sys'"

// checksums returns the checksums of all tables of users.
func checksums(t testing.TB, s *server) string {
	t.Helper()
	return strings.Join(s.rows(t, "CHECKSUM TABLE "+strings.Join(tables(t, s, "'shop', 'a-b.c'"), ", ")), "\n")
}

// checkTables runs CHECK TABLE on everything.
func checkTables(t testing.TB, s *server) {
	t.Helper()
	for _, table := range tables(t, s, allSchemas) {
		for _, line := range s.rows(t, "CHECK TABLE "+table+" EXTENDED") {
			if !strings.HasSuffix(line, " check status OK") {
				t.Errorf("CHECK TABLE %s: %s", table, line)
			}
		}
	}
}

// workload writes until it is stopped. Every transaction has its number in a row and in its GTID.
type workload struct {
	stop    context.CancelFunc
	workers sync.WaitGroup
	number  atomic.Int64
	err     atomic.Pointer[error]
}

const workloadUUID = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

// newWorkload begins to write with this many connections.
func newWorkload(t testing.TB, s *server, connections int) *workload {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &workload{stop: cancel}
	for range connections {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.workers.Go(func() {
			defer conn.Close()
			for ctx.Err() == nil {
				if err := w.transaction(context.WithoutCancel(ctx), conn); err != nil {
					w.err.Store(&err)
					return
				}
			}
		})
	}
	t.Cleanup(func() { w.end(t) })
	return w
}

// end stops writing and returns the number of transactions begun.
func (w *workload) end(t testing.TB) int64 {
	t.Helper()
	w.stop()
	w.workers.Wait()
	if err := w.err.Load(); err != nil {
		t.Errorf("workload: %v", *err)
	}
	return w.number.Load()
}

// transaction moves money between accounts, inserts its number, and deletes and updates some rows.
func (w *workload) transaction(ctx context.Context, conn *sql.Conn) error {
	n := w.number.Add(1)
	statements := []string{
		fmt.Sprintf("SET gtid_next = '%s:%d'", workloadUUID, n), "BEGIN",
		fmt.Sprintf("INSERT INTO shop.sequence VALUES (%d, REPEAT(SHA2(%d, 256), 7))", n, n),
		fmt.Sprintf("UPDATE shop.accounts SET balance = balance - 1 WHERE id = %d", n*7%2000+1),
		fmt.Sprintf("UPDATE shop.accounts SET balance = balance + 1 WHERE id = %d", n*13%2000+1),
		fmt.Sprintf("UPDATE shop.plain SET pad = RANDOM_BYTES(900), k = k + 1 WHERE id = %d", n*9973%30000+1),
		fmt.Sprintf("REPLACE INTO shop.compressed VALUES (%d, REPEAT(SHA2(%d, 256), %d))", n*31%40000, n, n%7+1),
		fmt.Sprintf("REPLACE INTO shop.pages VALUES (%d, REPEAT(SHA2(%d, 256), %d))", n*37%40000, n, n%7+1),
		fmt.Sprintf("DELETE FROM shop.parts WHERE id = %d", n%5000),
		fmt.Sprintf("INSERT INTO shop.parts VALUES (%d, 'again')", n%5000),
		"COMMIT",
	}
	for _, statement := range statements {
		_, err := conn.ExecContext(ctx, statement)
		var reply *driver.MySQLError
		if errors.As(err, &reply) && (reply.Number == 1213 || reply.Number == 1205 || reply.Number == 1062) { // deadlock, lock wait, or an earlier insert
			_, err = conn.ExecContext(ctx, "ROLLBACK")
			if err == nil {
				_, err = conn.ExecContext(ctx, "SET gtid_next = AUTOMATIC")
			}
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	_, err := conn.ExecContext(ctx, "SET gtid_next = AUTOMATIC")
	return err
}

// checkWorkload checks that the rows are exactly those of the transactions in gtid_executed, and that each transaction is whole.
func checkWorkload(t testing.TB, s *server) int {
	t.Helper()
	executed, err := replication.ParseGTIDSet(s.value(t, "SELECT @@GLOBAL.gtid_executed"))
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	rows := s.rows(t, "SELECT n FROM shop.sequence ORDER BY n")
	for _, n := range rows {
		parts = append(parts, workloadUUID+":"+n)
	}
	present, err := replication.ParseGTIDSet(strings.Join(parts, ","))
	if err != nil {
		t.Fatal(err)
	}
	if mine := executed.OfServer(workloadUUID); !mine.Equal(present) {
		t.Errorf("rows without GTID: %v; GTIDs without row: %v", present.Subtract(mine), mine.Subtract(present))
	}
	if sum := s.value(t, "SELECT SUM(balance) FROM shop.accounts"); sum != "2000000" {
		t.Errorf("balances add up to %s: half a transaction", sum)
	}
	return len(rows)
}

// ddl changes tables until it is stopped.
type ddl struct {
	server *server
	rounds atomic.Int64
	stop   func() int64
}

// during waits until this many more rounds have passed.
func (d *ddl) during(t testing.TB, rounds int64) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for target := d.rounds.Load() + rounds; d.rounds.Load() < target; pause(t, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("DDL does not continue:\n%s", strings.Join(d.server.rows(t, "SELECT id, time, state, info FROM information_schema.processlist"), "\n"))
		}
	}
}

func newDDL(t testing.TB, s *server, round func(i int) []string) *ddl {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := &ddl{server: s}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		defer conn.Close()
		for ctx.Err() == nil {
			for _, statement := range round(int(d.rounds.Load())) {
				if _, err := conn.ExecContext(context.WithoutCancel(ctx), statement); err != nil {
					done <- fmt.Errorf("%s: %w", statement, err)
					return
				}
			}
			d.rounds.Add(1)
		}
		done <- nil
	}()
	d.stop = sync.OnceValue(func() int64 {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("DDL: %v", err)
		}
		return d.rounds.Load()
	})
	t.Cleanup(func() { d.stop() })
	return d
}

// rebuilding is DDL that builds indexes and tables without redo log. It waits for the end of StagePages.
func rebuilding(i int) []string {
	round := []string{
		fmt.Sprintf("CREATE TABLE ddl.t%d (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))", i),
		fmt.Sprintf("INSERT INTO ddl.t%d (v) SELECT SHA2(id, 256) FROM shop.accounts LIMIT 500", i),
		fmt.Sprintf("ALTER TABLE ddl.t%d ADD COLUMN w INT DEFAULT 7, ADD INDEX (v)", i),
		fmt.Sprintf("ALTER TABLE ddl.t%d ENGINE=InnoDB, ALGORITHM=INPLACE", i),
		fmt.Sprintf("ALTER TABLE ddl.t%d ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", i),
		fmt.Sprintf("CREATE DATABASE ddl_%d", i), fmt.Sprintf("RENAME TABLE ddl.t%d TO ddl_%d.moved", i, i),
		"ALTER TABLE shop.parts REORGANIZE PARTITION", "ALTER TABLE shop.redundant FORCE",
		fmt.Sprintf("CREATE TABLESPACE gs%d ADD DATAFILE 'gs%d.ibd'", i, i), fmt.Sprintf("CREATE TABLE ddl.g%d (id INT PRIMARY KEY) TABLESPACE gs%d", i, i),
	}
	if i >= 3 {
		round = append(round, fmt.Sprintf("DROP TABLE ddl_%d.moved", i-3), fmt.Sprintf("DROP DATABASE ddl_%d", i-3),
			fmt.Sprintf("DROP TABLE ddl.g%d", i-3), fmt.Sprintf("DROP TABLESPACE gs%d", i-3))
	}
	return round
}

// renaming is DDL that continues during all stages.
func renaming(i int) []string {
	round := []string{
		"RENAME TABLE ddl.x TO ddl.z, ddl.y TO ddl.x, ddl.z TO ddl.y",
		fmt.Sprintf("CREATE TABLE ddl.s%d (id INT PRIMARY KEY) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4", i),
		fmt.Sprintf("INSERT INTO ddl.s%d SELECT id FROM shop.accounts", i),
		fmt.Sprintf("TRUNCATE TABLE ddl.s%d", i), fmt.Sprintf("INSERT INTO ddl.s%d SELECT id FROM shop.accounts LIMIT 100", i),
		fmt.Sprintf("CREATE TABLE ddl.p%d (id INT PRIMARY KEY)", i),
		fmt.Sprintf("INSERT INTO ddl.p%d SELECT id FROM shop.accounts", i),
		fmt.Sprintf("RENAME TABLE ddl.p%d TO ddl.q%d", i, i),
		fmt.Sprintf("TRUNCATE TABLE ddl.q%d", i), fmt.Sprintf("INSERT INTO ddl.q%d SELECT id FROM shop.accounts LIMIT 500", i),
	}
	switch i % 4 {
	case 1:
		round = append(round, "ALTER UNDO TABLESPACE undo_extra SET INACTIVE")
	case 3:
		round = append(round, "ALTER UNDO TABLESPACE undo_extra SET ACTIVE")
	}
	if i >= 3 {
		round = append(round, fmt.Sprintf("DROP TABLE ddl.s%d, ddl.q%d", i-3, i-3))
	}
	return round
}

// checkDDL checks that every table that DDL left is readable and has the expected rows.
func checkDDL(t testing.TB, s *server) {
	t.Helper()
	for _, table := range s.rows(t, "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema LIKE 'ddl%'") {
		count := s.value(t, "SELECT COUNT(*) FROM "+table)
		if !slices.Contains([]string{"0", "1", "2", "100", "500", "2000"}, count) {
			t.Errorf("%s has %s rows", table, count)
		}
	}
	sides := s.rows(t, "SELECT COUNT(*), MIN(v), MAX(v) FROM ddl.x UNION ALL SELECT COUNT(*), MIN(v), MAX(v) FROM ddl.y")
	slices.Sort(sides)
	if !slices.Equal(sides, []string{"1 left left", "2 right right"}) {
		t.Errorf("tables that swap their names: %v", sides)
	}
}
