package mysqld

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestTheAgentSeesEventsThatDoNotRunMysqld: the agent of a member that was a replica counts the events that do not run there, with its own
// privileges. An event that a user has enabled or disabled since does not count. Events of a primary whose mysqld was read-only for a while
// run again by themselves.
func TestTheAgentSeesEventsThatDoNotRunMysqld(t *testing.T) {
	t.Parallel()
	certificates, b := writeCertificates(t), bootstrap("root's")
	former, next := newMysqld(t, certificates), newMysqld(t, certificates)
	source := former.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--bind-address=*")...)
	agent := next.start(t, sqlOf(t, b), b.Agent, append(withSemiSync(), "--super-read-only=ON")...)
	if err := agent.PointToSource(t.Context(), sourceAt(former, certificates, b.Replication)); err != nil {
		t.Fatal(err)
	}
	if err := agent.StartReplica(t.Context(), b.Replication); err != nil {
		t.Fatal(err)
	}
	allow(t, source, 1)
	awaitReplication(t, agent, next)
	do := func(by *Server, statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := by.exec(t.Context(), statement, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	disabled := func(by *Server, want int) {
		t.Helper()
		if seen, err := by.ScheduledEvents(t.Context(), 1); err != nil || seen.ReplicaSideCount != want {
			t.Errorf("the agent sees that %d events do not run, want %d (%v)", seen.ReplicaSideCount, want, err)
		}
	}
	do(former.connect(t, Account{User: "root", Password: "root's"}), "CREATE DATABASE shop", "CREATE TABLE shop.runs (id INT PRIMARY KEY AUTO_INCREMENT)",
		"CREATE EVENT shop.purge ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.runs VALUES ()", "CREATE EVENT shop.idle ON SCHEDULE EVERY 1 SECOND DISABLE DO DO 0")
	disabled(source, 0)
	hasAll(t, agent, source, next)
	disabled(agent, 2)

	t.Log("the replica becomes the primary")
	root := next.connect(t, Account{User: "root", Password: "root's"})
	do(root, "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL read_only = OFF")
	do(root, "ALTER EVENT shop.purge ENABLE", "ALTER EVENT shop.idle DISABLE")
	disabled(agent, 0)
	runs := func() {
		t.Helper()
		before := rowsOf(t, root)
		eventually(t, "the event does not run", func() error {
			if rowsOf(t, root) <= before+1 {
				return errors.New("it has not run twice yet")
			}
			return nil
		}, next.messages)
	}
	runs()

	t.Log("its mysqld is read-only while an event is due")
	if err := agent.SetReadOnly(t.Context(), ReadOnlyWait); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no event is due", func() error {
		var data string
		return root.db.QueryRowContext(t.Context(), "SELECT DATA FROM performance_schema.error_log WHERE DATA LIKE 'Event Scheduler:%super-read-only%' LIMIT 1").Scan(&data)
	}, next.messages)
	do(root, "SET GLOBAL read_only = OFF")
	runs()
}

// TestALookAtEventsLeavesTheAgentItsEyesMysqld: mysqld does not answer while a statement about accounts waits. The agent can still observe
// mysqld, and end the wait.
func TestALookAtEventsLeavesTheAgentItsEyesMysqld(t *testing.T) {
	t.Parallel()
	_, agent := waitingForAnAcknowledgement(t)
	brief, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := agent.ScheduledEvents(brief, 1); err == nil {
		t.Error("mysqld answers, so this test proves nothing")
	}
	if !briefly(t, agent).LoginsHang {
		t.Error("the agent does not see that no client can log in")
	}
	if err := agent.StopEnforcingAcks(t.Context()); err != nil {
		t.Error(err)
	}
}

func rowsOf(t *testing.T, root *Server) (rows int) {
	t.Helper()
	if err := root.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.runs").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}
