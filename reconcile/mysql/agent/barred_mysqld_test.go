package agent

import (
	"slices"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestTheAgentSaysWhoCannotLogInMysqld: the agent reports it at once when mysqld has started, also with other plugins than before.
func TestTheAgentSaysWhoCannotLogInMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.until(t, "the agent has looked", func() bool { return m.agent.Status().LockedOut != nil })
	if barred := m.agent.Status().LockedOut; !barred.Empty() {
		t.Errorf("on new data the agent names %s", barred)
	}
	m.leads(t, 1, 0)
	db := m.open(t, "root", "root's", nil, ca)
	for _, statement := range []string{
		"INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'", "CREATE USER app IDENTIFIED WITH auth_socket", "UNINSTALL PLUGIN auth_socket",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	m.crashes(t)
	want := []replication.Account{{User: "app", Host: "%", Plugin: "auth_socket"}}
	m.until(t, "the agent names the account", func() bool {
		barred := m.agent.Status().LockedOut
		return barred != nil && slices.Equal(barred.Named, want) && barred.More == 0
	})
}
