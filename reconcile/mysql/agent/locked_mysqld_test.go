package agent

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAStatementAboutAccountsThatNobodyAcknowledges: no client can log in until commits need no acknowledgement any more. The operator's
// own agent never starts such a statement.
func TestAStatementAboutAccountsThatNobodyAcknowledges(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	former, latest := m.open(t, "root", "root's", nil, ca), m.open(t, "root", "another", nil, ca)
	sets := func(statement string) {
		t.Helper()
		if _, err := former.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	m.leads(t, 1, 0)
	sets("ALTER USER root FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME UNBOUNDED")
	m.leads(t, 2, 1)

	t.Log("a new password waits for replicas, so every client can still log in")
	if err := os.WriteFile(m.layout.rootPassword(), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the agent reports what it waits for", func() bool { return strings.Contains(m.agent.Status().RootError, "when enough replicas acknowledge") })
	asked := time.Now()
	m.until(t, "the agent has looked so often that the account would be locked", func() bool { return time.Since(asked) > 3*lookEvery })
	if err := former.PingContext(t.Context()); err != nil {
		t.Errorf("the former password no longer works: %v", err)
	}

	t.Log("replicas connect with the current passwords of the Secret")
	if err := os.WriteFile(m.layout.account(mysqld.ReplicationUsers), []byte("later"), 0o600); err != nil {
		t.Fatal(err)
	}
	replica := m.open(t, mysqld.ObserverUser, "later", m.card(t), ca)
	m.until(t, "a replica connects", func() bool { return replica.PingContext(t.Context()) == nil })

	t.Log("a client creates an account")
	made := make(chan error, 1)
	go func() {
		_, err := former.ExecContext(t.Context(), "CREATE USER shop")
		made <- err
	}()
	m.until(t, "the agent reports that no client can log in", func() bool { return strings.Contains(m.agent.Status().Message, "no client can log in") })
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := former.PingContext(brief); err == nil {
		t.Error("a client can log in, so this test proves nothing")
	}

	t.Log("the cluster continues without replicas")
	m.leads(t, 3, 0)
	if err := <-made; err != nil {
		t.Error(err)
	}
	// In this order: a login before the new password works would lock the account.
	m.until(t, "the new password works", func() bool { return m.agent.Status().RootError == "" && latest.PingContext(t.Context()) == nil })
	wanted, err := m.layout.wantedPasswords()
	if err != nil {
		t.Fatal(err)
	}
	m.until(t, "the accounts' new passwords work on all members", func() bool {
		kept, err := m.layout.keptPasswords()
		return err == nil && maps.Equal(kept, wanted)
	})
	if message := m.agent.Status().Message; strings.Contains(message, "log in") {
		t.Errorf("clients can log in, but the message is %q", message)
	}
}

// TestAPrimaryAdmitsMembersWithThePasswordsOfNow: while no replica acknowledges, mysqld restarts with the former passwords, and the Secret
// returns to earlier passwords.
func TestAPrimaryAdmitsMembersWithThePasswordsOfNow(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	m.leads(t, 2, 1)
	admits := func(password string) {
		t.Helper()
		if err := os.WriteFile(m.layout.account(mysqld.ReplicationUsers), []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		replica := m.open(t, mysqld.ObserverUser, password, m.card(t), ca)
		m.until(t, "a replica connects with "+password, func() bool { return replica.PingContext(t.Context()) == nil })
	}
	former := read(t, m.layout.account(mysqld.ReplicationUsers))
	admits("later")
	m.crashes(t)
	record := replication.Record{Epoch: 1, Revision: 3, Primary: "db-0", Joining: []string{"db-1"}, RequiredAcks: 1}
	m.obeys(t, replication.Assignment{Record: record, Role: replication.RolePrimary, Acks: 1}) // it waits for a replica before it opens
	admits("later")
	admits(former)
	admits("last")
	if err := os.WriteFile(m.layout.account(mysqld.ReplicationUsers), []byte(former), 0o600); err != nil {
		t.Fatal(err)
	}
	m.leads(t, 4, 0)
	admits(former)
}
