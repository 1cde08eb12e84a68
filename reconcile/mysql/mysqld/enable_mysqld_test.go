package mysqld

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestEventsAreEnabledAsTheyAreMysqld: an event that came through replication runs again, and nothing else of it changes.
func TestEventsAreEnabledAsTheyAreMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, "--super-read-only=OFF", "--read-only=OFF")
	root := server.connect(t, Account{User: "root", Password: "root's"})
	one, err := newSession(t.Context(), root.db)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if err := one.exec(t.Context(), "prepare", "CREATE DATABASE `odd ``name`", "CREATE USER `a@b`@'%' IDENTIFIED BY 'a'", "SET SESSION sql_mode = 'ANSI', time_zone = '+05:00'", "SET NAMES latin1 COLLATE latin1_german1_ci",
		"CREATE DEFINER=\"a@b\"@'%' EVENT \"odd `name\".\"every\" ON SCHEDULE EVERY 1 HOUR COMMENT 'c' DO DO 1",
		"CREATE DEFINER=gone@'%' EVENT \"odd `name\".\"of no user\" ON SCHEDULE EVERY 1 HOUR DO DO 1",
		"CREATE EVENT \"odd `name\".\"later\" ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL 1 HOUR DO DO 1",
		"CREATE EVENT \"odd `name\".\"past\" ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL 1 SECOND ON COMPLETION PRESERVE DISABLE ON REPLICA DO DO 1",
		"CREATE EVENT \"odd `name\".\"ended\" ON SCHEDULE EVERY 1 SECOND ENDS CURRENT_TIMESTAMP + INTERVAL 1 SECOND ON COMPLETION PRESERVE DISABLE ON REPLICA DO DO 1",
		"SET SESSION collation_connection = utf8mb4_general_ci", "CREATE EVENT \"odd `name\".\"another collation\" ON SCHEDULE EVERY 1 HOUR DISABLE ON REPLICA DO DO 1",
		"CREATE EVENT \"odd `name\".\"runs\" ON SCHEDULE EVERY 1 HOUR DO DO 1", "CREATE EVENT \"odd `name\".\"stopped\" ON SCHEDULE EVERY 1 HOUR DISABLE DO DO 1",
		"ALTER DEFINER=\"a@b\"@'%' EVENT \"odd `name\".\"every\" DISABLE ON REPLICA", "ALTER DEFINER=gone@'%' EVENT \"odd `name\".\"of no user\" DISABLE ON REPLICA",
		"ALTER EVENT \"odd `name\".\"later\" DISABLE ON REPLICA", "SET NAMES utf8mb4", "DO SLEEP(2)"); err != nil {
		t.Fatal(err)
	}
	found, err := agent.ScheduledEvents(t.Context(), replication.MostEvents)
	if err != nil {
		t.Fatal(err)
	}
	names := func(events []replication.ScheduledEvent) (all []string) {
		for _, event := range events {
			all = append(all, event.Name)
		}
		return all
	}
	if got := names(found.Running); !slices.Equal(got, []string{"runs"}) {
		t.Errorf("%q run", got)
	}
	if got := names(found.ReplicaSide); !slices.Equal(got, []string{"another collation", "ended", "every", "later", "of no user", "past"}) {
		t.Errorf("%q do not run because they came through replication", got)
	}
	before := describeEvents(t, root)
	for _, event := range found.ReplicaSide {
		changed := event
		changed.Altered++
		if isEnabled, err := agent.EnableEvent(t.Context(), changed); isEnabled || err != nil {
			t.Errorf("%s was changed since: %t, %v", event.Name, isEnabled, err)
		}
		isEnabled, err := agent.EnableEvent(t.Context(), event)
		if err != nil || isEnabled != (event.Name != "past" && event.Name != "ended") {
			t.Errorf("%s is enabled: %t, %v", event.Name, isEnabled, err)
		}
	}
	if after := describeEvents(t, root); !slices.Equal(before, after) {
		t.Errorf("before:\n%q\nafter:\n%q", before, after)
	}
	if found, err = agent.ScheduledEvents(t.Context(), replication.MostEvents); err != nil || !slices.Equal(names(found.Running), []string{"runs"}) {
		t.Errorf("those that were enabled a moment ago count as events that run: %+v, %v", found, err)
	}
	<-time.After(2 * time.Second)
	if found, err = agent.ScheduledEvents(t.Context(), replication.MostEvents); err != nil || !slices.Equal(names(found.ReplicaSide), []string{"ended", "past"}) || len(found.Running) != 5 {
		t.Errorf("afterwards %+v, %v", found, err)
	}
}

// TestALockedEventIsNotEnabledLaterMysqld: a backup tool locks the dictionary. mysqld must not run the statement when the lock is gone: a
// user may have disabled the event by then.
func TestALockedEventIsNotEnabledLaterMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, "--super-read-only=OFF", "--read-only=OFF")
	root := server.connect(t, Account{User: "root", Password: "root's"})
	tool, err := newSession(t.Context(), root.db)
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	if err := tool.exec(t.Context(), "lock", "CREATE DATABASE shop", "CREATE EVENT shop.every ON SCHEDULE EVERY 1 HOUR DISABLE ON REPLICA DO DO 1", "LOCK INSTANCE FOR BACKUP"); err != nil {
		t.Fatal(err)
	}
	found, err := agent.ScheduledEvents(t.Context(), 1)
	if err != nil || len(found.ReplicaSide) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	brief, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if isEnabled, err := agent.EnableEvent(brief, found.ReplicaSide[0]); isEnabled || err == nil {
		t.Errorf("it is enabled under a lock: %t, %v", isEnabled, err)
	}
	<-time.After(2 * time.Second)
	if err := tool.exec(t.Context(), "unlock", "UNLOCK INSTANCE"); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	if found, err = agent.ScheduledEvents(t.Context(), 1); err != nil || len(found.ReplicaSide) != 1 {
		t.Errorf("mysqld has enabled it later: %+v, %v", found, err)
	}
}

// TestAnEventThatAUserHasChangedIsDisabledMysqld: it would run what the user wrote with the privileges of its former definer.
func TestAnEventThatAUserHasChangedIsDisabledMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	agent := server.start(t, sqlOf(t, b), b.Agent, "--super-read-only=OFF", "--read-only=OFF")
	root := server.connect(t, Account{User: "root", Password: "root's"})
	client, err := newSession(t.Context(), root.db)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.exec(t.Context(), "create events", "CREATE DATABASE shop", "CREATE EVENT shop.every ON SCHEDULE EVERY 1 HOUR DO DO 1"); err != nil {
		t.Fatal(err)
	}
	every := replication.ScheduledEvent{Schema: "shop", Name: "every"}
	for _, test := range []struct {
		body, status string
	}{{"DO 1", "ENABLED"}, {"DO 2", "DISABLED"}} {
		err := agent.withEvents(t.Context(), func(one *sql.Conn) error {
			return disableChanged(t.Context(), one, every, test.body, altering(every, "root@%")+" DISABLE")
		})
		if (err != nil) != (test.status == "DISABLED") {
			t.Errorf("it was to do %s: %v", test.body, err)
		}
		status := ""
		if err := root.db.QueryRowContext(t.Context(), "SELECT STATUS FROM information_schema.EVENTS").Scan(&status); err != nil || status != test.status {
			t.Errorf("it was to do %s, and is %s: %v", test.body, status, err)
		}
	}
}

// describeEvents returns all that users can say about events, except whether they run.
func describeEvents(t *testing.T, server *Server) []string {
	t.Helper()
	rows, err := server.db.QueryContext(t.Context(), "SELECT CONCAT_WS('|', EVENT_NAME, DEFINER, TIME_ZONE, EVENT_DEFINITION, EVENT_TYPE, INTERVAL_VALUE, INTERVAL_FIELD, SQL_MODE, STARTS, EXECUTE_AT, ON_COMPLETION, CREATED, EVENT_COMMENT, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION) FROM information_schema.EVENTS ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil || len(all) < 5 {
		t.Fatalf("%d events: %v", len(all), err)
	}
	return all
}
