package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestScheduledEventsRunOnTheNextPrimaryMysqld: those that ran on the former one. An event that a user had disabled, or has changed since
// the former primary was last looked at, stays as it is.
func TestScheduledEventsRunOnTheNextPrimaryMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	leader, replica, db := startAcknowledging(t, ca)
	execute(t, db, "CREATE EVENT shop.every ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.orders VALUES ()",
		"CREATE EVENT shop.changed ON SCHEDULE EVERY 1 HOUR DO DO 1", "CREATE EVENT shop.stopped ON SCHEDULE EVERY 1 HOUR DISABLE DO DO 1", "DO SLEEP(2)")
	known, err := leader.agent.local.ScheduledEvents(t.Context(), replication.MostEvents)
	if err != nil || len(known.Running) != 2 {
		t.Fatalf("the primary has %+v: %v", known, err)
	}
	execute(t, db, "ALTER EVENT shop.changed COMMENT 'changed'")
	order := *replica.agent.Status().Last
	order.Events = known.Running
	replica.obeys(t, order)
	seen, err := leader.agent.local.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replica.until(t, "the replica has the events", func() bool { return replica.agent.Status().Executed.Contains(seen.Server.Executed) })

	fence(t, replica)
	record := replication.Record{Epoch: 2, Revision: 5, Primary: "db-1", InSync: []string{"db-1"}}
	replica.obeys(t, replication.Assignment{Record: record, Role: replication.RolePrimary})
	replica.until(t, "the event runs on the next primary", func() bool {
		events := replica.agent.Status().Events
		return events != nil && len(events.Running) == 1 && events.Running[0].Name == "every" && len(events.ReplicaSide) == 2
	})
	there, before, after := replica.open(t, "root", "root's", nil, ca), 0, 0
	count := func(rows *int) {
		t.Helper()
		if err := there.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(rows); err != nil {
			t.Fatal(err)
		}
	}
	count(&before)
	replica.until(t, "the event inserts rows", func() bool {
		count(&after)
		return after > before
	})
}
