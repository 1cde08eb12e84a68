package mysqld

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestTurnToSourceMysqld: the primary gets another address while a replica's applier is behind. The replica acknowledges from there at
// once, and applies all that it had received before. Without a running applier it does not turn, because mysqld would delete that.
func TestTurnToSourceMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	primary, replica := newMysqld(t, certificates), newMysqld(t, certificates)
	agent := primary.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--bind-address=*")...)
	root := primary.connect(t, Account{User: "root", Password: "root's"})
	follower := replica.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--rpl-semi-sync-replica-enabled=ON")...)
	source := sourceAt(primary, certificates, b.Replication)
	if err := follower.PointToSource(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	allow(t, agent, 1)
	awaitReplication(t, follower, replica)
	writes := func(statements ...string) {
		t.Helper()
		if err := root.exec(t.Context(), "write", statements...); err != nil {
			t.Fatal(err)
		}
	}
	writes("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
	hasAll(t, follower, agent, replica)
	if err := agent.EnforceAcks(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	t.Log("a reader's lock blocks the applier, and transactions are received behind it")
	reader, err := replica.connect(t, Account{User: "root", Password: "root's"}).db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ExecContext(t.Context(), "LOCK TABLES shop.orders READ"); err != nil {
		t.Fatal(err)
	}
	writes("INSERT INTO shop.orders VALUES (1)", "INSERT INTO shop.orders VALUES (2)")
	source.Host = "127.0.0.2"
	risks := 0
	atRisk := func() error { risks++; return nil }
	if err := follower.TurnToSource(t.Context(), source, atRisk); err != nil || risks != 1 {
		t.Fatalf("%v, after %d warnings", err, risks)
	}
	writes("INSERT INTO shop.orders VALUES (3)") // it returns with the replica's acknowledgement
	if seen := observed(t, follower); seen.Channel.SourceHost != source.Host || seen.Executed.Contains(seen.Channel.Retrieved) {
		t.Errorf("the replica follows %s, has received %s and executed %s", seen.Channel.SourceHost, seen.Channel.Retrieved, seen.Executed)
	}
	if _, err := reader.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	hasAll(t, follower, agent, replica)

	t.Log("the volume does not take the warning")
	full := errors.New("no space left on device")
	source.Host = "127.0.0.1"
	if err := follower.TurnToSource(t.Context(), source, func() error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if seen := observed(t, follower).Channel; seen.SourceHost != "127.0.0.2" {
		t.Errorf("the replica follows %s all the same", seen.SourceHost)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}

	t.Log("the applier is stopped, and a transaction is received behind it")
	if err := follower.exec(t.Context(), "stop", "STOP REPLICA SQL_THREAD"); err != nil {
		t.Fatal(err)
	}
	writes("INSERT INTO shop.orders VALUES (4)")
	received := observed(t, follower).Channel.Retrieved
	if err := follower.TurnToSource(t.Context(), source, atRisk); err == nil || risks != 1 || !strings.Contains(err.Error(), "the applier does not run") {
		t.Errorf("the replica turns: %v", err)
	}
	if got := observed(t, follower).Channel.Retrieved; !got.Equal(received) {
		t.Errorf("the replica had received %s, and has %s", received, got)
	}
	err = follower.turn(t.Context(), source, received) // as if it had stopped in that moment
	if lost := (*ReceivedLostError)(nil); !errors.As(err, &lost) {
		t.Errorf("mysqld has deleted what the replica had received, and the error is %v; %s", err, observed(t, follower).Channel.Retrieved)
	}
}

// TestReceiversVerifyTheCAMysqld: a replica sends its password to no server whose certificate is from another CA.
func TestReceiversVerifyTheCAMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	stranger, replica := newMysqld(t, writeCertificates(t)), newMysqld(t, certificates)
	stranger.start(t, sqlOf(t, b), b.Agent, withSemiSync()...)
	follower := replica.start(t, "", Account{User: "root"}, withSemiSync()...)
	if err := follower.PointToSource(t.Context(), sourceAt(stranger, certificates, b.Replication)); err != nil {
		t.Fatal(err)
	}
	if err := follower.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the receiver refuses the certificate", func() error {
		if seen := observed(t, follower).Channel; seen.IOErrno != errTLS || !strings.Contains(seen.IOError, "certificate verify failed") {
			return fmt.Errorf("error %d: %s", seen.IOErrno, seen.IOError)
		}
		return nil
	}, replica.messages)
}

// errTLS is CR_SSL_CONNECTION_ERROR.
const errTLS = 2026

// observed returns the state of a mysqld.
func observed(t *testing.T, server *Server) (seen replication.Server) {
	t.Helper()
	found, err := server.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found.Server
}

// hasAll waits until a replica has executed what its primary has executed by now.
func hasAll(t *testing.T, follower, primary *Server, replica *mysqld) {
	t.Helper()
	want := observed(t, primary).Executed
	eventually(t, "the replica has all transactions", func() error {
		if got := observed(t, follower).Executed; !got.Contains(want) {
			return fmt.Errorf("it has executed %s, the primary %s", got, want)
		}
		return nil
	}, replica.messages)
}
