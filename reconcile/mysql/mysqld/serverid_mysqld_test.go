package mysqld

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAServerGetsBackWhatItMadeMysqld shows why members replicate transactions with their own server_id. By default, a server drops those
// that come back, from relay logs or from a source, and reports no error. With replicate_same_server_id it has them.
func TestAServerGetsBackWhatItMadeMysqld(t *testing.T) {
	t.Parallel()
	certificates, root := writeCertificates(t), Account{User: "root"}
	const own, other, replicates = "--server-id=100", "--server-id=101", "--replicate-same-server-id=ON"
	writer, source, applier, receiver := newMysqld(t, certificates), newMysqld(t, certificates), newMysqld(t, certificates), newMysqld(t, certificates)
	if err := writer.start(t, "", root, own).exec(t.Context(), "write", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	writer.stop(t)
	layDown(t, writer, applier)
	for want, settings := range [][]string{{own}, {own, replicates}} {
		appliesRelayLogs(t, applier, applier.start(t, "", root, append(settings, "--relay-log-purge=OFF")...), want)
		applier.stop(t)
	}
	layDown(t, writer, source)
	server := source.start(t, "", root, other)
	appliesRelayLogs(t, source, server, 1)
	if err := server.exec(t.Context(), "create user", "CREATE USER r@'127.0.0.1' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.* TO r@'127.0.0.1'", "CREATE DATABASE last"); err != nil {
		t.Fatal(err)
	}
	connect := fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'r', SOURCE_PASSWORD = 'r', SOURCE_SSL = 1, SOURCE_AUTO_POSITION = 1", source.port)
	for want, settings := range [][]string{{own}, {own, replicates}} {
		server := receiver.start(t, "", root, settings...)
		if err := server.exec(t.Context(), "replicate", connect, "START REPLICA"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all is received and applied", func() error {
			if shop, last := server.countDatabases(t, "shop"), server.countDatabases(t, "last"); shop != want || last != 1 {
				return fmt.Errorf("the server has %d of the databases that it created in an earlier life, and %d of the last; want %d", shop, last, want)
			}
			return nil
		}, receiver.messages)
		receiver.stop(t)
	}
}

// appliesRelayLogs applies the relay logs that another server's binary logs have become. want is how many databases the server has then.
func appliesRelayLogs(t *testing.T, m *mysqld, server *Server, want int) {
	t.Helper()
	const change = "CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE = 'relay.000001', RELAY_LOG_POS = 4, SOURCE_HOST = 'unused'"
	if err := server.exec(t.Context(), "apply", change, "START REPLICA SQL_THREAD"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is read", func() error {
		row, err := server.oneRow(t.Context(), "SHOW REPLICA STATUS")
		if err == nil && !strings.Contains(row["Replica_SQL_Running_State"], "has read all relay log") {
			err = fmt.Errorf("the applier says %q %q", row["Replica_SQL_Running_State"], row["Last_SQL_Error"])
		}
		return err
	}, m.messages)
	if got := server.countDatabases(t, "shop"); got != want {
		t.Errorf("the server has %d of the databases that server 100 created, want %d", got, want)
	}
}

func (s *Server) countDatabases(t *testing.T, name string) (count int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", name).Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
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
