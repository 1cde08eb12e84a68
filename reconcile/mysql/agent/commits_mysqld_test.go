package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestCommitsThatHangMysqld: no replica acknowledges, so a client waits. The agent reports for how long, until commits complete.
func TestCommitsThatHangMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	db := m.open(t, "root", "root's", nil, ca)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE shop"); err != nil {
		t.Fatal(err)
	}
	m.leads(t, 2, 1)
	committed := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
		committed <- err
	}()
	stand := func() int64 { return m.agent.Status().Transactions.CommitWaitSeconds }
	m.until(t, "the agent reports that nothing is committed", func() bool { return stand() >= 5 })
	m.leads(t, 3, 0)
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	m.until(t, "commits complete", func() bool { return stand() == 0 })
}
