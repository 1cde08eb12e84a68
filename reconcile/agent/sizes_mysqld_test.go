package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/sizing"
)

// smallest is the least that a member may have.
func smallest() sizing.Given {
	return sizing.Given{Memory: 512 << 20, CPU: 1000, Volume: 1 << 30}
}

// TestMysqldTakesTheSizesItIsGiven: it knows every setting, and rounds none of them.
func TestMysqldTakesTheSizesItIsGiven(t *testing.T) { //nolint:paralleltest // its time limits are mysqld's
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.until(t, "mysqld answers", func() bool { return m.agent.Status().State != replication.StateStarting })
	db := m.open(t, "root", "root's", nil, ca)
	for name, want := range sizing.Tune(smallest()) {
		var found, value string
		if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL VARIABLES LIKE '"+name+"'").Scan(&found, &value); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if value != want {
			t.Errorf("%s is %s, want %s", name, value, want)
		}
	}
}
