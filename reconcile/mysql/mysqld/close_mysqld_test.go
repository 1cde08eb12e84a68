package mysqld

import (
	"context"
	"errors"
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

// closing is a primary that closes, and its replica.
type closing struct {
	primary, replica      *mysqld
	agent, root, follower *Server
}

// startClosing starts a primary whose commits need an acknowledgement, and its replica if it has one.
func startClosing(t *testing.T, hasReplica bool) closing {
	t.Helper()
	certificates, b := writeCertificates(t), bootstrap("root's")
	c := closing{primary: newMysqld(t, certificates), replica: newMysqld(t, certificates)}
	c.agent = c.primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	c.root = c.primary.connect(t, Account{User: "root", Password: "root's"})
	if err := c.root.exec(t.Context(), "prepare", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY)",
		"INSERT INTO shop.orders VALUES ()", "CREATE USER app IDENTIFIED BY 'app'", "GRANT ALL ON shop.* TO app"); err != nil {
		t.Fatal(err)
	}
	if hasReplica {
		c.follower = c.replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--rpl-semi-sync-replica-enabled=ON")...)
		allowReceiver(t, c.agent)
		if err := c.follower.PointToSource(t.Context(), sourceAt(c.primary, certificates, b.Replication)); err != nil {
			t.Fatal(err)
		}
		if err := c.follower.StartReplica(t.Context(), b.Replication); err != nil {
			t.Fatal(err)
		}
		awaitReplication(t, c.follower, c.replica)
	}
	if err := c.agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return c
}

// insert lets clients insert rows until their context ends, each on new connections after an error. It counts the rows of which they were
// told that they succeeded.
func (c closing) insert(ctx context.Context, clients int) *atomic.Int64 {
	var told atomic.Int64
	for range clients {
		go func() {
			for ctx.Err() == nil {
				client, err := Local(c.primary.socket(), Account{User: "app", Password: "app"})
				if err != nil {
					return
				}
				for err == nil {
					if _, err = client.db.ExecContext(ctx, "INSERT INTO shop.orders VALUES ()"); err == nil {
						told.Add(1)
					}
				}
				_ = client.Close()
			}
		}()
	}
	return &told
}

// close closes the primary, and returns what is seen then.
func (c closing) close(t *testing.T) Observed {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began := time.Now()
	if err := c.agent.CloseToClients(bounded, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed after %s", time.Since(began))
	seen, err := c.agent.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestCloseToClientsKeepsReplicasMysqld: clients write until a primary closes. Its replica has received all that it has, so another member
// can lead, and the former primary needs no copy.
func TestCloseToClientsKeepsReplicasMysqld(t *testing.T) {
	t.Parallel()
	c := startClosing(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := c.insert(ctx, 8)
	eventually(t, "clients write", func() error {
		if count := told.Load(); count < 1000 {
			return fmt.Errorf("%d rows", count)
		}
		return nil
	}, c.primary.messages)

	seen := c.close(t)
	received, err := c.follower.received(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if alone := seen.Server.Executed.Subtract(received); !alone.Empty() {
		t.Errorf("the former primary alone has %s", alone)
	}
}

// TestCloseToClientsEndsLongStatementsMysqld: they do not make mysqld give up acknowledgements.
func TestCloseToClientsEndsLongStatementsMysqld(t *testing.T) {
	t.Parallel()
	c := startClosing(t, true)
	client, err := Local(c.primary.socket(), Account{User: "app", Password: "app"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	go func() { _, _ = client.db.ExecContext(t.Context(), "SELECT SLEEP(60) FROM shop.orders") }()
	eventually(t, "the statement runs", func() error {
		count := 0
		err := c.root.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_state = 'User sleep'").Scan(&count)
		if err == nil && count == 0 {
			err = errors.New("none sleeps")
		}
		return err
	}, c.primary.messages)
	if seen := c.close(t); !seen.Server.SuperReadOnly || seen.Server.SourceAcks != 1 {
		t.Errorf("it is %+v", seen.Server)
	}
}

// TestCloseToClientsTellsNobodyIfTheAgentEndsMysqld: commits have waited for a replica that does not exist, and do not any more. No client
// can log in then, although no agent uses the connections up.
func TestCloseToClientsTellsNobodyIfTheAgentEndsMysqld(t *testing.T) {
	t.Parallel()
	c := startClosing(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := c.insert(ctx, 8)
	eventually(t, "all commits wait", func() error {
		waiting, err := c.agent.WaitingCommits(t.Context())
		if err == nil && waiting < 8 {
			err = fmt.Errorf("%d commits wait", waiting)
		}
		return err
	}, c.primary.messages)

	looking, locking, err := c.agent.admitNobody(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := looking.waitFor(t.Context(), locking); err != nil {
		t.Fatal(err)
	}
	if isLocked, err := looking.awaitLock(t.Context(), locking); isLocked || err != nil {
		t.Fatalf("it is locked: %t, %v", isLocked, err)
	}
	locking.close()
	bounded, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	if err := looking.endCommits(bounded, closingSession{session: looking, done: make(chan error)}); err == nil {
		t.Error("it is locked")
	}
	if err := errors.Join(looking.Close(), c.agent.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "mysqld refuses clients", func() error {
		client, err := Local(c.primary.socket(), Account{User: "app", Password: "app"})
		if err != nil {
			return err
		}
		defer client.Close()
		if err := client.db.PingContext(t.Context()); !hasNumber(err, 3032) {
			return fmt.Errorf("a client gets %w", err)
		}
		return nil
	}, c.primary.messages)
	if count := told.Load(); count > 0 {
		t.Errorf("%d clients were told that their commits have succeeded", count)
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
