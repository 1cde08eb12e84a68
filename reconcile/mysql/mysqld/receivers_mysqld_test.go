package mysqld

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// TestOnlyAllowedReceiversConnectMysqld: mysqld starts with all members locked out. A member that is no longer allowed loses its connection
// and its acknowledgements, also while a commit waits for them. A new password changes none of that.
func TestOnlyAllowedReceiversConnectMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	root := primary.connect(t, Account{User: "root", Password: "root's"})
	follower := replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--rpl-semi-sync-replica-enabled=ON")...)
	source := sourceAt(primary, certificates, b.Replication)
	if err := follower.PointToSource(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		eventually(t, "the account is locked", func() error {
			channel, err := follower.observeChannel(t.Context())
			if err == nil && (channel.IOErrno != 3118 || !strings.Contains(channel.IOError, "locked")) {
				return context.DeadlineExceeded
			}
			return err
		}, replica.messages)
		if clients := acknowledging(t, agent); clients != 0 {
			t.Errorf("%d members acknowledge, and none is allowed", clients)
		}
		if _, replicas, err := agent.Acknowledgers(t.Context()); len(replicas) != 0 || err != nil {
			t.Errorf("%v are connected (%v), and none is allowed", replicas, err)
		}
	}
	refused()

	t.Log("the member is allowed")
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	allow(t, agent, 1, 8)
	awaitReplication(t, follower, replica)
	if err := root.exec(t.Context(), "write", "CREATE DATABASE shop"); err != nil {
		t.Error(err)
	}
	port, replicas, err := agent.Acknowledgers(t.Context())
	if err != nil || len(replicas) != 1 || int(port) != source.Port || !replicas[1].Addr().IsLoopback() {
		t.Errorf("connected to port %d: %v (%v)", port, replicas, err)
	}

	t.Log("it follows without acknowledging")
	if err := follower.StopAcknowledging(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	awaitReplication(t, follower, replica)
	eventually(t, "the session that has ended does not count", func() error {
		_, replicas, err := agent.Acknowledgers(t.Context())
		if len(replicas) != 0 {
			return context.DeadlineExceeded
		}
		return err
	}, replica.messages)
	if receivers, err := agent.Receivers(t.Context()); receivers != 1 || err != nil {
		t.Errorf("%d members follow (%v)", receivers, err)
	}
	if err := follower.StartAcknowledging(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := follower.RestartReceiver(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the member acknowledges", func() error {
		if acknowledging(t, agent) != 1 {
			return context.DeadlineExceeded
		}
		return nil
	}, replica.messages)

	t.Log("a commit waits for another member, and this one is locked out")
	if err := agent.EnforceAcks(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- root.exec(context.WithoutCancel(t.Context()), "write", "CREATE DATABASE another") }()
	awaitCommit(t, agent, primary)
	began := time.Now()
	allow(t, agent, 0, 8)
	t.Logf("locked out after %s", time.Since(began))
	refused()

	t.Log("the password changes, and changes no lock")
	if err := agent.SetOwnPasswordHere(t.Context(), ReplicationUsers, "later"); err != nil {
		t.Error(err)
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if err := agent.SetOwnPassword(t.Context(), ReplicationUsers, b.Replication.Password); err != nil {
		t.Error(err)
	}
	if !isLocked(t, root) {
		t.Error("a new password unlocks the account")
	}
	allow(t, agent, 1)
	awaitReplication(t, follower, replica)
	if err := agent.SetOwnPassword(t.Context(), ReplicationUsers, b.Replication.Password); err != nil {
		t.Error(err)
	}
	if isLocked(t, root) {
		t.Error("a new password locks the account")
	}

	t.Log("a user has dropped an account, and SHOW PROCESSLIST looks elsewhere")
	if err := root.exec(t.Context(), "spoil", "DROP USER "+receiverAccount(7).name(), "SET GLOBAL performance_schema_show_processlist = ON"); err != nil {
		t.Error(err)
	}
	allow(t, agent, 0)
	refused()
	allow(t, agent, 1)
	awaitReplication(t, follower, replica)

	t.Log("mysqld restarts")
	primary.stop(t)
	agent = primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	refused()
	allow(t, agent, 1)
	awaitReplication(t, follower, replica)
}

// awaitCommit waits until a commit waits for acknowledgements.
func awaitCommit(t *testing.T, own *Server, primary *mysqld) {
	t.Helper()
	eventually(t, "a commit waits", func() error {
		if !briefly(t, own).CommitsWait {
			return context.DeadlineExceeded
		}
		return nil
	}, primary.messages)
}

func allow(t *testing.T, own *Server, ordinals ...int) {
	t.Helper()
	if err := own.AllowReceivers(t.Context(), ordinals); err != nil {
		t.Fatal(err)
	}
}

func acknowledging(t *testing.T, own *Server) int {
	t.Helper()
	seen, err := own.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return seen.AckClients
}

// TestMembersAreLetInWhileClientsLogInMysqld: neither a client nor the change hangs. If sessions were killed while they log in, some would
// hang: a client until it gives up, and the change until the session ends.
func TestMembersAreLetInWhileClientsLogInMysqld(t *testing.T) {
	t.Parallel()
	const patience, hangs, changes = 5 * time.Second, 2 * time.Second, 200
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary := newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	config := driver.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", "root's", "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(primary.port))
	config.TLS = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} // only the time matters
	connector, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				bounded, end := context.WithTimeout(t.Context(), patience)
				began := time.Now()
				conn, err := connector.Connect(bounded)
				end()
				if took := time.Since(began); err != nil || took > hangs {
					t.Errorf("a client has logged in after %s: %v", took, err)
				}
				if err == nil {
					_ = conn.Close() // its session has served its purpose
				}
			}
		})
	}
	var longest time.Duration
	for change := range changes {
		began := time.Now()
		if err := agent.AllowReceivers(ctx, []int{change % 2}); err != nil {
			t.Error(err)
			break
		}
		longest = max(longest, time.Since(began))
	}
	cancel()
	clients.Wait()
	t.Logf("the longest change took %s", longest)
	if longest > hangs {
		t.Errorf("a change took %s", longest)
	}
}

// TestAReceiverThatIsLoggingInIsRefusedMysqld: a session that has not logged in yet ends with the change. An earlier change that still
// waits in mysqld is never carried out.
func TestAReceiverThatIsLoggingInIsRefusedMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary := newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--connect-timeout=600")...)
	stranger, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(primary.port)))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	eventually(t, "a client is logging in", func() error {
		one, err := newSession(t.Context(), agent.db)
		if err != nil {
			return err
		}
		defer one.Close()
		all, err := one.processes(t.Context())
		for _, process := range all {
			if process.user == unauthenticated {
				return nil
			}
		}
		if err == nil {
			err = context.DeadlineExceeded
		}
		return err
	}, primary.messages)
	allow(t, agent)
	_ = stranger.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		if _, err := stranger.Read(make([]byte, 1024)); err != nil {
			if strings.Contains(err.Error(), "timeout") {
				t.Error("the session of a client that is logging in is still open")
			}
			break
		}
	}

	t.Log("a statement about accounts waits for an acknowledgement and holds the lock")
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	root := primary.connect(t, Account{User: "root", Password: "root's"})
	written := make(chan error, 1)
	go func() { written <- root.exec(context.WithoutCancel(t.Context()), "write", "CREATE USER shop") }()
	awaitCommit(t, agent, primary)
	everybody := []int{0, 1, 2, 3, 4, 5, 6, 7, 8} // so that the statement that waits unlocks
	for _, allowed := range [][]int{everybody, nil} {
		brief, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if err := agent.AllowReceivers(brief, allowed); err == nil {
			t.Fatal("accounts can be changed, so this test proves nothing")
		}
		cancel()
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if locked := isLocked(t, root); !locked {
		t.Error("the abandoned change was carried out")
	}
}

// isLocked reports whether the account of the member of bootstrap is locked.
func isLocked(t *testing.T, root *Server) bool {
	t.Helper()
	var locked string
	if err := root.db.QueryRowContext(t.Context(), "SELECT account_locked FROM mysql.user WHERE user = ?", ReplicationUser(1)).Scan(&locked); err != nil {
		t.Fatal(err)
	}
	return locked == "Y"
}
