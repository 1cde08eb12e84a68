package mysqld

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAccountsThatNobodyCanLogInToMysqld: the agent finds the accounts whose plugin is gone, whatever their names are. Its own privileges
// suffice, and they do not show passwords.
func TestAccountsThatNobodyCanLogInToMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent)
	root := server.connect(t, Account{User: "root", Password: "root's"})
	look := func(most int) replication.Accounts {
		t.Helper()
		found, err := agent.BarredAccounts(t.Context(), most)
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
	do("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'", "INSTALL PLUGIN mysql_no_login SONAME 'mysql_no_login.so'",
		"CREATE USER app IDENTIFIED WITH auth_socket", "CREATE USER app@localhost IDENTIFIED WITH auth_socket", "CREATE USER `it's \"x\"`@`10.%` IDENTIFIED WITH auth_socket",
		"CREATE USER shut IDENTIFIED WITH auth_socket ACCOUNT LOCK", "CREATE USER owner IDENTIFIED WITH mysql_no_login", "CREATE USER fine IDENTIFIED BY 'fine'", "CREATE ROLE readers")
	if found := look(8); !found.Empty() {
		t.Errorf("all plugins are active, but the agent names %s", found)
	}
	do("UNINSTALL PLUGIN auth_socket", "UNINSTALL PLUGIN mysql_no_login")
	all := []replication.Account{{User: "app", Host: "%", Plugin: "auth_socket"}, {User: "app", Host: "localhost", Plugin: "auth_socket"}, {User: `it's "x"`, Host: "10.%", Plugin: "auth_socket"}}
	for most, want := range map[int]replication.Accounts{8: {Named: all}, 2: {Named: all[:2], More: 1}} {
		if diff := cmp.Diff(want, look(most)); diff != "" {
			t.Errorf("at most %d (-want +got):\n%s", most, diff)
		}
	}
	for _, statement := range []string{"GRANT SELECT ON *.* TO app", "ALTER USER app ACCOUNT LOCK", "ALTER USER app IDENTIFIED BY 'another'"} {
		if err := root.exec(t.Context(), statement, statement); !hasNumber(err, 1524) {
			t.Errorf("%s: %v, but users read that it stops a replica with error 1524", statement, err)
		}
	}
	do("ALTER USER app IDENTIFIED WITH caching_sha2_password BY 'fixed'", "ALTER USER app@localhost IDENTIFIED WITH caching_sha2_password BY 'left' ACCOUNT LOCK", "DROP USER `it's \"x\"`@`10.%`")
	if found := look(8); !found.Empty() {
		t.Errorf("all accounts are fixed, but the agent names %s", found)
	}
	var secret string
	if err := agent.db.QueryRowContext(t.Context(), "SELECT authentication_string FROM mysql.user WHERE User = 'root'").Scan(&secret); err == nil {
		t.Error("the agent can read password hashes")
	}
}
