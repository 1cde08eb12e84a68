package mysqld

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNobodyAppliesItsOwnServerIDMysqld shows why no two members of any clusters may share a server_id. A server does not apply
// transactions with its own server_id that come back as relay logs, and reports no error. A server with another server_id applies them.
func TestNobodyAppliesItsOwnServerIDMysqld(t *testing.T) {
	t.Parallel()
	certificates, root := writeCertificates(t), Account{User: "root"}
	writer, reader := newMysqld(t, certificates), newMysqld(t, certificates)
	if err := writer.start(t, "", root, "--server-id=100").exec(t.Context(), "write", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	writer.stop(t)
	layDown(t, writer, reader)
	for want, id := range []int{100, 101} {
		server := reader.start(t, "", root, fmt.Sprintf("--server-id=%d", id), "--relay-log-purge=OFF")
		if err := server.exec(t.Context(), "apply", "CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE = 'relay.000001', RELAY_LOG_POS = 4, SOURCE_HOST = 'unused'", "START REPLICA SQL_THREAD"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all is read", func() error {
			row, err := server.oneRow(t.Context(), "SHOW REPLICA STATUS")
			if err == nil && !strings.Contains(row["Replica_SQL_Running_State"], "has read all relay log") {
				err = fmt.Errorf("the applier says %q %q", row["Replica_SQL_Running_State"], row["Last_SQL_Error"])
			}
			return err
		}, reader.messages)
		var databases int
		if err := server.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'shop'").Scan(&databases); err != nil || databases != want {
			t.Errorf("server %d has %d of the databases that server 100 created, %v; want %d", id, databases, err, want)
		}
		reader.stop(t)
	}
}

// layDown copies one server's binary logs to another server as its relay logs.
func layDown(t *testing.T, from, to *mysqld) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(from.data(), "binlog.0*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d binary logs, %v", len(logs), err)
	}
	index := ""
	for i, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("relay.%06d", i+1)
		if err := os.WriteFile(filepath.Join(to.data(), name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		index += "./" + name + "\n"
	}
	if err := os.WriteFile(filepath.Join(to.data(), "relay.index"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
}
