package mysqld

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

func sqlOf(t *testing.T, b Bootstrap) string {
	t.Helper()
	text, err := b.SQL()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A password policy comes with the data: its component is registered in a table, so backups and copies have it, too.
func TestAccountsUnderAPasswordPolicyMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	server := newMysqld(t, writeCertificates(t))
	admin := server.start(t, "", Account{User: "root"})
	if err := admin.exec(t.Context(), "install a policy", "INSTALL COMPONENT 'file://component_validate_password'"); err != nil {
		t.Fatal(err)
	}
	server.stop(t)
	b := bootstrap("root's")
	b.Agent.Password, b.Replication.Password, b.Clone.Password = "weak", "weak", "weak"
	own := server.start(t, sqlOf(t, b), b.Agent, "--validate-password.policy=STRONG")
	if err := server.connect(t, Account{User: "root", Password: b.Root}).exec(t.Context(), "act", "CREATE DATABASE roots"); err != nil {
		t.Errorf("root does not have its privileges: %v", err)
	}
	if err := own.SetPassword(t.Context(), "root", "%", "weak"); !hasNumber(err, 1819) {
		t.Errorf("no policy is active, so this test proves nothing: %v", err)
	}
	for _, user := range []string{ReplicationUsers, CloneUser, AgentUser} {
		if err := own.SetOwnPassword(t.Context(), user, "weaker"); err != nil {
			t.Error(err)
		}
	}
	server.connect(t, Account{User: AgentUser, Password: "weaker"})
}

// Every password that a Secret may hold opens the account.
func TestHashesOpenAccountsMysqld(t *testing.T) {
	t.Parallel()
	passwords := map[string]string{
		"one character": "x", "a quote": `it's`, "a backslash": `C:\`, "unicode": "пароль-密码-🔑-é", "32 bytes": string(bytes.Repeat([]byte("ab"), 16)),
		"the longest": string(bytes.Repeat([]byte("a"), 256)), "line breaks": "one\ntwo\r\n",
	}
	server := newMysqld(t, writeCertificates(t))
	first := bootstrap("root's")
	own := server.start(t, sqlOf(t, first), first.Agent)
	for name, password := range passwords {
		if err := own.SetOwnPassword(t.Context(), AgentUser, password); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		trial, err := Local(server.socket(), Account{User: AgentUser, Password: password})
		if err != nil {
			t.Fatal(err)
		}
		if err := trial.Ping(t.Context()); err != nil {
			t.Errorf("%s does not open the account: %v", name, err)
		}
		_ = trial.Close()
	}
}

// The replication password opens nothing by itself, but it must not be readable in a backup or on a volume.
func TestReplicationPasswordIsNotStoredMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	certificates := writeCertificates(t)
	b := bootstrap("root's-cleartext")
	b.Agent.Password, b.Replication.Password, b.Clone.Password = "agents-cleartext", "replications-cleartext", "clones-cleartext"
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	allowReceiver(t, primary.start(t, sqlOf(t, b), b.Agent))
	follower := replica.start(t, sqlOf(t, b), b.Agent)
	source := sourceAt(primary, certificates, b.Replication)
	start := func(verb func() error) {
		t.Helper()
		if err := verb(); err != nil {
			t.Fatal(err)
		}
		awaitReplication(t, follower, replica)
	}
	startBoth := func() error { return follower.StartReplica(t.Context(), b.Replication) }
	if err := follower.PointToSource(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	start(startBoth)
	start(func() error { return follower.RestartReceiver(t.Context(), b.Replication) })
	// Only the applier has stopped.
	if err := follower.exec(t.Context(), "stop applier", "STOP REPLICA SQL_THREAD"); err != nil {
		t.Fatal(err)
	}
	start(startBoth)
	// The receiver reconnects by itself with the password in its memory.
	primary.stop(t)
	own := primary.start(t, sqlOf(t, b), b.Agent)
	allowReceiver(t, own)
	awaitReplication(t, follower, replica)
	// A replica that has restarted has no password in memory.
	replica.stop(t)
	follower = replica.start(t, sqlOf(t, b), b.Agent)
	start(startBoth)
	if err := own.SetOwnPassword(t.Context(), CloneUser, "clones-cleartext"); err != nil {
		t.Error(err)
	}
	primary.stop(t)
	replica.stop(t)
	for _, folder := range []string{primary.folder, replica.folder} {
		wantNowhere(t, folder, "-cleartext")
	}
}

// A password that an earlier release stored is removed.
func TestStoredReplicationPasswordIsRemovedMysqld(t *testing.T) {
	t.Parallel()
	server := newMysqld(t, writeCertificates(t))
	admin := server.start(t, "", Account{User: "root"})
	if err := admin.exec(t.Context(), "point", "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_USER='u', SOURCE_PASSWORD='stored', SOURCE_SSL=1"); err != nil {
		t.Fatal(err)
	}
	if err := admin.PointToSource(t.Context(), Source{Host: "127.0.0.1", Port: 3306, Account: Account{User: ReplicationUser(1), Password: "new"}}); err != nil {
		t.Fatal(err)
	}
	row, err := admin.oneRow(t.Context(), "SELECT User_name, User_password FROM mysql.slave_master_info")
	if err != nil || row["User_name"] != ReplicationUser(1) || row["User_password"] != "" {
		t.Errorf("stored: %v, %v; want the account %s without a password", row, err, ReplicationUser(1))
	}
}

// allowReceiver lets the member of bootstrap follow this primary.
func allowReceiver(t *testing.T, own *Server) {
	t.Helper()
	if err := own.AllowReceivers(t.Context(), []int{1}); err != nil {
		t.Fatal(err)
	}
}

// sourceAt returns how a replica connects to a mysqld.
func sourceAt(primary *mysqld, certificates string, account Account) Source {
	return Source{Host: "127.0.0.1", Port: primary.port, Account: account, Certificates: Certificates{
		CA: filepath.Join(certificates, "ca.pem"), Certificate: filepath.Join(certificates, "cert.pem"), Key: filepath.Join(certificates, "key.pem"),
	}}
}

// awaitReplication waits until both threads run and the connection to the source is established.
func awaitReplication(t *testing.T, follower *Server, replica *mysqld) {
	t.Helper()
	eventually(t, "replication runs", func() error {
		row, err := follower.oneRow(t.Context(), "SHOW REPLICA STATUS")
		if err != nil {
			return err
		}
		if row["Replica_IO_Running"] != "Yes" || row["Replica_SQL_Running"] != "Yes" {
			return fmt.Errorf("IO %s (%s), SQL %s (%s)", row["Replica_IO_Running"], row["Last_IO_Error"], row["Replica_SQL_Running"], row["Last_SQL_Error"])
		}
		return nil
	}, replica.messages)
}

// wantNowhere fails the test if a file below a folder has a text.
func wantNowhere(t *testing.T, folder, text string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s holds %q", path, text)
		}
		files++
		return err
	})
	if err == nil && files < 20 {
		err = errors.New("it has few files")
	}
	if err != nil {
		t.Fatalf("look through %s: %v", folder, err)
	}
}
