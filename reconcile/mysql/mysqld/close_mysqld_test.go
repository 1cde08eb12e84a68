package mysqld

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestCloseToClientsTellsNobodyMysqld: commits wait for a replica that does not exist. No client is told that its commit has succeeded, and
// mysqld stops cleanly.
func TestCloseToClientsTellsNobodyMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	if err := root.exec(t.Context(), "prepare", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE USER app IDENTIFIED BY 'app'", "GRANT ALL ON shop.* TO app"); err != nil {
		t.Fatal(err)
	}
	agent := server.connect(t, b.Agent)
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 100)
	inserts := func(account Account) {
		for t.Context().Err() == nil {
			client, err := Local(server.socket(), account)
			if err != nil {
				told <- err
				return
			}
			_, err = client.db.ExecContext(t.Context(), "INSERT INTO shop.orders VALUES ()")
			_ = client.Close()
			told <- err
			if account.User != "root" || IsNotListening(err) {
				return
			}
		}
	}
	for range 3 {
		go inserts(Account{User: "app", Password: "app"})
	}
	go inserts(Account{User: "root", Password: "root's"}) // it comes back, and may use the connection that is reserved for such accounts
	eventually(t, "all commits wait", func() error {
		waiting, err := agent.WaitingCommits(t.Context())
		if err == nil && waiting < 4 {
			err = fmt.Errorf("%d commits wait", waiting)
		}
		return err
	}, server.messages)

	began := time.Now()
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := agent.CloseToClients(bounded, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed after %s", time.Since(began))
	if seen, err := agent.Observe(t.Context()); err != nil || !seen.Server.SuperReadOnly || seen.Server.SourceAcks != 0 {
		t.Errorf("it is not closed: %+v (%v)", seen.Server, err)
	}
	if err := server.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-server.ended:
		server.process = nil
		if err != nil {
			t.Errorf("mysqld did not stop cleanly: %v\n%s", err, server.messages())
		}
	case <-time.After(time.Minute):
		t.Fatalf("mysqld did not stop in a minute:\n%s", server.messages())
	}
	for range 4 {
		if err := <-told; err == nil {
			t.Error("a client was told that its commit has succeeded")
		}
	}
	for len(told) > 0 {
		if err := <-told; err == nil {
			t.Error("a client was told that its commit has succeeded")
		}
	}
}

// TestCloseToClientsKeepsReplicasMysqld: clients write until a primary closes. Its replica has received all that it has, so another member
// can lead, and the former primary needs no copy.
func TestCloseToClientsKeepsReplicasMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	root := primary.connect(t, Account{User: "root", Password: "root's"})
	if err := root.exec(t.Context(), "prepare", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE USER app IDENTIFIED BY 'app'", "GRANT ALL ON shop.* TO app"); err != nil {
		t.Fatal(err)
	}
	follower := replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--rpl-semi-sync-replica-enabled=ON")...)
	allowReceiver(t, agent)
	if err := follower.PointToSource(t.Context(), sourceAt(primary, certificates, b.Replication)); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	awaitReplication(t, follower, replica)
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	for range 8 {
		go func() {
			for {
				if err := root.exec(t.Context(), "write", "INSERT INTO shop.orders VALUES ()"); err != nil {
					return
				}
				written.Add(1)
			}
		}()
	}
	eventually(t, "clients write", func() error {
		if count := written.Load(); count < 1000 {
			return fmt.Errorf("%d rows", count)
		}
		return nil
	}, primary.messages)

	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began := time.Now()
	if err := agent.CloseToClients(bounded, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed after %s and %d commits", time.Since(began), written.Load())
	seen, err := agent.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	received, err := follower.received(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if alone := seen.Server.Executed.Subtract(received); !alone.Empty() {
		t.Errorf("the former primary alone has %s", alone)
	}
}

// TestEnforceAcksAfterMySQLSwitchedThemOffMysqld: after a time-out the variable stays ON, and commits pass.
func TestEnforceAcksAfterMySQLSwitchedThemOffMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	agent := server.connect(t, b.Agent)
	acks := func(want int, when string) {
		t.Helper()
		if seen, err := agent.Observe(t.Context()); err != nil || seen.Server.SourceAcks != want {
			t.Errorf("%s, %d acknowledgements are in force: %v", when, seen.Server.SourceAcks, err)
		}
	}
	enforce := func() {
		t.Helper()
		if err := agent.EnforceAcks(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		acks(1, "when they are enforced")
	}
	enforce()
	for _, setting := range []string{"timeout = 300", "wait_point = AFTER_COMMIT", "wait_no_replica = OFF", "wait_for_replica_count = 2"} {
		if err := root.exec(t.Context(), "set", "SET GLOBAL rpl_semi_sync_source_"+setting); err != nil {
			t.Fatal(err)
		}
		if setting != "wait_for_replica_count = 2" {
			acks(0, "when a user has set "+setting)
		}
		enforce()
	}
	if err := root.exec(t.Context(), "time out", "SET GLOBAL rpl_semi_sync_source_timeout = 300", "CREATE DATABASE shop", "SET GLOBAL rpl_semi_sync_source_timeout = "+SemiSyncTimeout); err != nil {
		t.Fatal(err)
	}
	acks(0, "when MySQL has switched them off")
	enforce()
	bounded, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := root.exec(bounded, "create", "CREATE DATABASE bar"); err == nil {
		t.Error("a commit does not wait")
	}
}
