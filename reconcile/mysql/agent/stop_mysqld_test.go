package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestSIGTERMAcknowledgesNothingMysqld stops a primary whose commits wait for a replica that is away. mysqld alone would tell its clients
// that their commits have succeeded.
func TestSIGTERMAcknowledgesNothingMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	root := m.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY)")
	m.leads(t, 2, 1)
	told := make(chan error, 3)
	for range cap(told) {
		go func() {
			_, err := root.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO shop.orders VALUES ()")
			told <- err
		}()
	}
	m.until(t, "all commits wait", func() bool {
		var waiting int
		err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE IN ('waiting for handler commit', 'Waiting for semi-sync ACK from replica')").Scan(&waiting)
		return err == nil && waiting == cap(told)
	})

	began := time.Now()
	m.stop(t)
	t.Logf("stopped after %s", time.Since(began))
	for range cap(told) {
		if err := <-told; err == nil {
			t.Error("a client was told that its commit has succeeded")
		}
	}
	if log := m.messages(); !strings.Contains(log, "Shutdown complete") {
		t.Errorf("mysqld was not stopped cleanly:\n%s", log)
	}
	m.until(t, "the operator learns that another member should take over", func() bool {
		now := m.agent.Status()
		return now.IsRestarting && now.Closed != nil
	})

	t.Log("it takes writes again when the operator has confirmed this start")
	m.start(t)
	m.until(t, "the member waits", func() bool { return m.agent.Status().State == replication.StateWaiting })
	if m.agent.Status().IsRestarting {
		t.Error("mysqld has answered, and its container still restarts")
	}
	m.leads(t, 3, 0)
	execute(t, root, "INSERT INTO shop.orders VALUES ()")
}

// TestACrashedMysqldIsBackMysqld: within seconds, and closed.
func TestACrashedMysqldIsBackMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	root := m.open(t, "root", "root's", nil, ca)
	boot, began := m.agent.Status().Boot, time.Now()
	m.crashes(t)
	m.until(t, "mysqld answers", func() bool { return m.agent.Status().State == replication.StateWaiting })
	t.Logf("mysqld answers %s after the crash", time.Since(began))
	if _, err := root.ExecContext(t.Context(), "CREATE DATABASE shop"); err == nil {
		t.Error("it takes writes before the operator has confirmed it")
	}
	late := replication.Assignment{
		Protocol: replication.Protocol, Record: replication.Record{Epoch: 1, Revision: 2, Primary: "db-0"}, Role: replication.RolePrimary, Boot: boot,
	}
	if stale := (*replication.StaleError)(nil); !errors.As(m.agent.Assign(late), &stale) {
		t.Error("a confirmation of the mysqld that crashed is accepted")
	}
	m.leads(t, 2, 0)
	execute(t, root, "CREATE DATABASE shop")
}
