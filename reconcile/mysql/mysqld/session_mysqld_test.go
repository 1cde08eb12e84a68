package mysqld

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestTheAgentDependsOnNoSettingOfPeopleMysqld: settings that users make for their clients, and limits of accounts, do not affect the
// agent.
func TestTheAgentDependsOnNoSettingOfPeopleMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, append(withSemiSync(),
		"--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL", "--default-time-zone=-11:00", "--autocommit=OFF", "--completion-type=RELEASE", "--max-user-connections=1")...)
	if err := root.exec(t.Context(), "limit", "ALTER USER "+theAgent+" WITH MAX_QUERIES_PER_HOUR 1 MAX_USER_CONNECTIONS 1"); err != nil {
		t.Fatal(err)
	}
	server.stop(t)
	b.NewData = false
	agent := server.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(),
		"--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL", "--default-time-zone=-11:00", "--autocommit=OFF", "--completion-type=RELEASE", "--max-user-connections=1")...)
	for range 5 {
		if _, err := agent.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	status, err := agent.semiSyncStatus(t.Context())
	if err != nil || status["Rpl_semi_sync_source_clients"] != "0" || status["Rpl_semi_sync_replica_status"] != "OFF" {
		t.Errorf("the agent sees %v (%v)", status, err)
	}
	if err := agent.SetPassword(t.Context(), "root", "%", `back\slash's`); err != nil {
		t.Fatal(err)
	}
	missing, err := replication.ParseGTIDSet(otherUUID + ":1-2")
	if err != nil {
		t.Fatal(err)
	}
	if count, err := agent.CommitEmpty(t.Context(), missing.All()); err != nil || count != 2 {
		t.Errorf("%d empty transactions are committed: %v", count, err)
	}
	another, err := Local(server.socket(), b.Agent)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	if err := another.Ping(t.Context()); err != nil {
		t.Errorf("a second connection: %v", err)
	}
	server.connect(t, Account{User: "root", Password: `back\slash's`})
}
