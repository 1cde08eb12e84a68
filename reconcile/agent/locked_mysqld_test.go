package agent

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestAStatementAboutAccountsThatNobodyAcknowledges: it keeps everybody out until commits need no acknowledgement any more. The operator's own
// agent never begins one.
func TestAStatementAboutAccountsThatNobodyAcknowledges(t *testing.T) { //nolint:paralleltest // its time limits are mysqld's
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 1)

	t.Log("a new password waits for replicas, and so harms nobody")
	if err := os.WriteFile(m.layout.rootPassword(), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the agent says what it waits for", func() bool { return strings.Contains(m.agent.Status().RootError, "when enough replicas acknowledge") })
	former, latest := m.open(t, "root", "root's", nil, ca), m.open(t, "root", "another", nil, ca)
	if err := former.PingContext(t.Context()); err != nil {
		t.Errorf("nobody has changed the password: %v", err)
	}

	t.Log("a client makes an account")
	made := make(chan error, 1)
	go func() {
		_, err := former.ExecContext(t.Context(), "CREATE USER shop")
		made <- err
	}()
	m.until(t, "the agent says that nobody can log in", func() bool { return strings.Contains(m.agent.Status().Message, "nobody can log in") })
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := former.PingContext(brief); err == nil {
		t.Error("somebody can log in, so that this test shows nothing")
	}

	t.Log("the cluster goes on without replicas")
	m.leads(t, 2, 0)
	if err := <-made; err != nil {
		t.Error(err)
	}
	m.until(t, "the password is in force", func() bool { return latest.PingContext(t.Context()) == nil && m.agent.Status().RootError == "" })
	if message := m.agent.Status().Message; strings.Contains(message, "log in") {
		t.Errorf("everybody can log in, and it says %q", message)
	}
}
