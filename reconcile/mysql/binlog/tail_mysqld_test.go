package binlog

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// mysqld is a real mysqld.
type mysqld struct {
	data, log, socket string
	command           func(ctx context.Context) *exec.Cmd
	process           *exec.Cmd
	db                *sql.DB
}

// TestALogOfAKilledMysqld: mysqld has run all kinds of transactions, the last few of which only change rows. Then it is killed. What is
// read from its last binary log is what mysqld said before. The same holds for a log that follows another.
func TestALogOfAKilledMysqld(t *testing.T) {
	t.Parallel()
	m := newMysqld(t)
	m.start(t)
	m.run(t, "CREATE DATABASE shop", "CREATE TABLE shop.items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(1000))",
		"CREATE TABLE shop.visits (id INT PRIMARY KEY AUTO_INCREMENT) ENGINE = MyISAM", "INSERT INTO shop.visits VALUES (1), (2)",
		"CREATE TABLE shop.copy AS SELECT * FROM shop.items", "CREATE USER reader IDENTIFIED BY 'a'", "ANALYZE TABLE shop.items",
		"SET SESSION binlog_format = STATEMENT", "INSERT INTO shop.items (name) VALUES ('of a statement')", "SET @name = 'of a variable'",
		"INSERT INTO shop.items (name) VALUES (@name)", "SET SESSION binlog_format = ROW",
		"XA START 'x'", "INSERT INTO shop.items (name) VALUES ('of XA')", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
		"SET SESSION binlog_transaction_compression = ON", "INSERT INTO shop.items (name) VALUES (REPEAT('long', 200))",
		"SET SESSION binlog_transaction_compression = OFF", "FLUSH TABLES shop.items", "CREATE TEMPORARY TABLE shop.brief (a INT)", "DROP TEMPORARY TABLE shop.brief",
		"START TRANSACTION", "INSERT INTO shop.items (name) VALUES ('e')", "SAVEPOINT s", "INSERT INTO shop.items (name) VALUES ('f')", "ROLLBACK TO s", "COMMIT")
	m.changeRows(t)
	m.check(t)

	t.Log("it starts again, and goes through more logs")
	m.start(t)
	m.changeRows(t)
	m.run(t, "FLUSH BINARY LOGS", "DROP TABLE shop.copy")
	m.changeRows(t)
	m.check(t)
}

// rowChanges is how many transactions changeRows runs.
const rowChanges = 7

// changeRows runs transactions that change rows only. The last one is empty.
func (m *mysqld) changeRows(t *testing.T) {
	t.Helper()
	m.run(t, "INSERT INTO shop.items (name) VALUES ('a'), ('b'), ('c')", "UPDATE shop.items SET name = 'd' WHERE name = 'b'",
		"SET SESSION binlog_rows_query_log_events = ON", "DELETE FROM shop.items WHERE name = 'c'", "SET SESSION binlog_rows_query_log_events = OFF",
		"START TRANSACTION", "INSERT INTO shop.items (name) VALUES ('e')",
		"UPDATE shop.items SET name = 'g' WHERE name = 'e'", "COMMIT",
		"INSERT INTO shop.items (name) VALUES ('h')", "INSERT INTO shop.items (name) VALUES ('i')")
	var uuid string
	if err := m.db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.server_uuid").Scan(&uuid); err != nil {
		t.Fatal(err)
	}
	next := m.executed(t).NextOf(uuid)
	m.run(t, "SET SESSION gtid_next = '"+next+"'", "BEGIN", "COMMIT", "SET SESSION gtid_next = AUTOMATIC")
}

// check kills mysqld and compares what is read with what mysqld said.
func (m *mysqld) check(t *testing.T) {
	t.Helper()
	executed := m.executed(t)
	file, gtids := m.transactions(t)
	m.kill(t)
	data, err := os.Open(filepath.Join(m.data, file))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	info, err := data.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for missing := range rowChanges + 1 {
		tailOf := gtids[len(gtids)-missing:]
		from, lost := info.Size(), replication.GTIDSet{}
		for at, one := range tailOf {
			if at == 0 {
				from = one.from
			}
			lost = lost.Union(parse(t, one.gtid))
		}
		tail, err := ReadTail(t.Context(), data, info.Size(), executed.Subtract(lost))
		if err != nil {
			t.Fatalf("%d transactions are missing: %v", missing, err)
		}
		if tail.From != from || tail.Size != info.Size() || !tail.GTIDs.Equal(lost) || !tail.Executed.Equal(executed) {
			t.Errorf("%d transactions are missing: the tail is %q from %d, want %q from %d; executed %q, want %q",
				missing, tail.GTIDs, tail.From, lost, from, tail.Executed, executed)
		}
		if tail.Head != gtids[0].from {
			t.Errorf("transactions begin at %d, want %d", tail.Head, gtids[0].from)
		}
	}
	if _, err := ReadTail(t.Context(), data, info.Size(), replication.GTIDSet{}); err == nil {
		t.Error("a tail with DDL is accepted")
	}
}

func newMysqld(t *testing.T) *mysqld {
	t.Helper()
	folder, home := rootfs.Need(t), t.TempDir()
	m := &mysqld{data: filepath.Join(home, "data"), log: filepath.Join(home, "error.log"), socket: filepath.Join(home, "s")}
	rootfs.NewData(t, folder, m.data)
	port := rootfs.Port(t)
	arguments := append(rootfs.Small(),
		"--datadir="+m.data, "--socket="+m.socket, fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1", "--mysqlx=OFF",
		"--pid-file="+filepath.Join(home, "pid"), "--log-error="+m.log, "--secure-file-priv=NULL", "--skip-name-resolve",
		"--auto-generate-certs=OFF", "--persisted-globals-load=OFF", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog",
		fmt.Sprintf("--server-id=%d", port),
	)
	m.command = func(ctx context.Context) *exec.Cmd { return rootfs.Mysqld(ctx, folder, "--no-defaults", arguments...) }
	return m
}

// start starts mysqld and waits until it answers.
func (m *mysqld) start(t *testing.T) {
	t.Helper()
	m.process = m.command(context.WithoutCancel(t.Context()))
	m.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.kill(t) })
	config := driver.NewConfig()
	config.User, config.Net, config.Addr, config.Logger = "root", "unix", m.socket, &driver.NopLogger{}
	connector, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	m.db = sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for m.db.PingContext(ctx) != nil {
		select {
		case <-ctx.Done():
			text, err := os.ReadFile(m.log)
			t.Fatalf("mysqld does not answer: %s (%v)", text, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// kill kills mysqld, if it runs.
func (m *mysqld) kill(t *testing.T) {
	t.Helper()
	if m.process == nil {
		return
	}
	_ = m.db.Close()
	if err := m.process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = m.process.Wait()
	m.process = nil
}

// run runs statements on one connection.
func (m *mysqld) run(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := m.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (m *mysqld) executed(t *testing.T) replication.GTIDSet {
	t.Helper()
	var text string
	if err := m.db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// transaction is a transaction as SHOW BINLOG EVENTS shows it.
type transaction struct {
	gtid string
	from int64
}

// transactions returns the last binary log and its transactions.
func (m *mysqld) transactions(t *testing.T) (file string, found []transaction) {
	t.Helper()
	var rest sql.RawBytes
	row, err := m.db.QueryContext(t.Context(), "SHOW BINARY LOG STATUS")
	if err != nil {
		t.Fatal(err)
	}
	if !row.Next() || row.Scan(&file, &rest, &rest, &rest, &rest) != nil || row.Close() != nil || row.Err() != nil {
		t.Fatalf("no status: %v", row.Err())
	}
	rows, err := m.db.QueryContext(t.Context(), "SHOW BINLOG EVENTS IN '"+file+"'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind, info string
		var from, server, next int64
		if err := rows.Scan(&name, &from, &kind, &server, &next, &info); err != nil {
			t.Fatal(err)
		}
		if parts := strings.Split(info, "'"); kind == "Gtid" && len(parts) == 3 {
			found = append(found, transaction{gtid: parts[1], from: from})
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return file, found
}
