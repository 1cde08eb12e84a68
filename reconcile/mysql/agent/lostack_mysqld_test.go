package agent

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/test/hang"
)

// TestALostAcknowledgementMysqld: the only replica's mysqld hangs, and its connection ends after a commit was sent to it. When mysqld
// continues, the replica stores the commit, but cannot acknowledge it. It connects again, and the primary's mysqld does not ask for the
// acknowledgement once more. No client commits anything else, and the commit returns all the same.
func TestALostAcknowledgementMysqld(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Second
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)
	hung := replica.pid(t)
	for _, isAsked := range []bool{false, true} {
		t.Logf("the agent's own commit is lost as well: %t", isAsked)
		session := receiverOf(t, leader)
		before := sentTo(t, db, session)
		hang.Process(t, hung)
		told := orderLarge(t, db)
		leader.until(t, "the commit is sent", func() bool { return sentTo(t, db, session) > before+filler })
		if isAsked {
			before = sentTo(t, db, session)
			leader.until(t, "the agent's commit is sent", func() bool { return asking(t, db) == 1 && sentTo(t, db, session) > before+100 })
		}
		if err := leader.agent.local.EndSession(t.Context(), session.ID); err != nil {
			t.Fatal(err)
		}
		hang.Continue(t, hung)
		began := time.Now()
		leader.until(t, "the commit returns", func() bool { return len(told) > 0 || time.Since(began) > limit })
		if len(told) == 0 {
			t.Fatalf("the commit waits longer than %s; the primary reports %+v", limit, leader.agent.Status())
		}
		t.Logf("the commit returns %s after the connection ended", time.Since(began))
		if err := <-told; err != nil {
			t.Errorf("the commit failed: %v", err)
		}
	}
}

// receiverOf waits until the only replica has everything, and returns its session.
func receiverOf(t *testing.T, leader *realMember) mysqld.ReceiverSession {
	t.Helper()
	var sessions []mysqld.ReceiverSession
	leader.until(t, "the replica has received everything", func() bool {
		var err error
		sessions, err = leader.agent.local.ReceiverSessions(t.Context())
		return err == nil && len(sessions) == 1 && sessions[0].SentAll
	})
	return sessions[0]
}

// filler is how many bytes orderLarge writes: more than mysqld sends to a replica while there are no commits.
const filler = 10_000

// orderLarge inserts a row into shop.orders in the background.
func orderLarge(t *testing.T, db *sql.DB) <-chan error {
	t.Helper()
	told := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO shop.orders (filler) VALUES (REPEAT('x', ?))", filler)
		told <- err
	}()
	return told
}

// asking returns how many commits of the agent wait.
func asking(t *testing.T, db *sql.DB) int {
	t.Helper()
	var count int
	row := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO = 'FLUSH OPTIMIZER_COSTS'")
	if err := row.Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

// sentTo returns how many bytes mysqld has sent to a replica.
func sentTo(t *testing.T, db *sql.DB, session mysqld.ReceiverSession) int {
	t.Helper()
	var count int
	row := db.QueryRowContext(t.Context(), "SELECT VARIABLE_VALUE FROM performance_schema.status_by_thread JOIN performance_schema.threads USING (THREAD_ID)"+
		" WHERE VARIABLE_NAME = 'Bytes_sent' AND PROCESSLIST_ID = ?", session.ID)
	if err := row.Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}
