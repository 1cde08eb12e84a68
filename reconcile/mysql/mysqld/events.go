package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// replicaSide is the status of an event that does not run because it came through replication. MySQL 8.0 has the older name.
const replicaSide = "STATUS IN ('REPLICA_SIDE_DISABLED', 'SLAVESIDE_DISABLED')"

// ScheduledEvents returns the events that run here, and those that do not because they came through replication, at most so many of each.
// Events that were altered a moment ago count as neither: another change in the same second would not show. It uses a separate connection:
// mysqld checks the privileges on events in tables that a statement about accounts locks (BarredAccounts).
func (s *Server) ScheduledEvents(ctx context.Context, most int) (replication.ScheduledEvents, error) {
	var found replication.ScheduledEvents
	err := s.withEvents(ctx, func(one *sql.Conn) (err error) {
		if found.Running, err = readEvents(ctx, one, "STATUS = 'ENABLED' AND LAST_ALTERED < UTC_TIMESTAMP() - INTERVAL 1 SECOND", most); err != nil {
			return err
		}
		if found.ReplicaSide, err = readEvents(ctx, one, replicaSide, most); err != nil {
			return err
		}
		return one.QueryRowContext(ctx, "SELECT /*+ MAX_EXECUTION_TIME(2000) */ COUNT(*) FROM information_schema.EVENTS WHERE "+replicaSide).Scan(&found.ReplicaSideCount)
	})
	if err != nil {
		return replication.ScheduledEvents{}, fmt.Errorf("look at scheduled events: %w", err)
	}
	return found, nil
}

func readEvents(ctx context.Context, one *sql.Conn, which string, most int) ([]replication.ScheduledEvent, error) {
	const events = "SELECT /*+ MAX_EXECUTION_TIME(2000) */ EVENT_SCHEMA, EVENT_NAME, UNIX_TIMESTAMP(LAST_ALTERED) FROM information_schema.EVENTS WHERE "
	rows, err := one.QueryContext(ctx, events+which+" ORDER BY 1, 2 LIMIT ?", most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []replication.ScheduledEvent
	for rows.Next() {
		var event replication.ScheduledEvent
		if err := rows.Scan(&event.Schema, &event.Name, &event.Altered); err != nil {
			return nil, err
		}
		all = append(all, event)
	}
	return all, rows.Err()
}

// withEvents runs a function with a separate connection whose times are UTC. A statement that changes an event does not wait for a lock for
// longer than a second: mysqld would run it later, although its client has gone, and the event may be another one by then.
func (s *Server) withEvents(ctx context.Context, use func(*sql.Conn) error) error {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return err
	}
	defer one.Close()
	if _, err := one.ExecContext(ctx, "SET SESSION time_zone = '+00:00', lock_wait_timeout = 1"); err != nil {
		return err
	}
	return use(one)
}

// isDue holds for an event that came through replication, was last altered at a time, and has still to run.
const isDue = replicaSide + ` AND UNIX_TIMESTAMP(LAST_ALTERED) = ?
	AND IF(EVENT_TYPE = 'ONE TIME', CONVERT_TZ(EXECUTE_AT, TIME_ZONE, '+00:00') > UTC_TIMESTAMP(), ENDS IS NULL OR CONVERT_TZ(ENDS, TIME_ZONE, '+00:00') > UTC_TIMESTAMP())`

// EnableEvent enables an event that does not run because it came through replication, and that was not changed since. ALTER EVENT would
// change the definer, and the character set and collation of the client: they stay. It takes the collation of the database as it is now. It
// reports whether it has enabled the event. It does not if the event is not as the caller thinks, or has no time left at which it runs, or
// if its name cannot be written in its character set.
//
// MySQL has no ALTER EVENT with a condition. A user who changes the event in this very moment becomes its definer, and this statement would
// give what it does to the former definer. So it is disabled again if it does something else afterwards.
func (s *Server) EnableEvent(ctx context.Context, event replication.ScheduledEvent) (isEnabled bool, err error) {
	err = s.withEvents(ctx, func(one *sql.Conn) error {
		var definer, charset, collation, body string
		row := one.QueryRowContext(ctx, "SELECT DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ? AND EVENT_NAME = ? AND "+isDue,
			event.Schema, event.Name, event.Altered)
		if err := row.Scan(&definer, &charset, &collation, &body); errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		statement := altering(event, definer)
		if !isWord(charset) || !isWord(collation) || !canWrite(charset, statement) {
			return nil
		}
		for _, statement := range []string{"SET character_set_client = " + charset + ", collation_connection = " + collation, statement + " ENABLE"} {
			if _, err := one.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		isEnabled = true
		return disableChanged(ctx, one, event, body, statement+" DISABLE")
	})
	if err != nil {
		return isEnabled, fmt.Errorf("enable the scheduled event %q.%q: %w", event.Schema, event.Name, err)
	}
	return isEnabled, nil
}

// disableChanged disables an event that does not have this body.
func disableChanged(ctx context.Context, one *sql.Conn, event replication.ScheduledEvent, body, disable string) error {
	now := ""
	row := one.QueryRowContext(ctx, "SELECT EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ? AND EVENT_NAME = ?", event.Schema, event.Name)
	if err := row.Scan(&now); errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	if now == body {
		return nil
	}
	_, err := one.ExecContext(ctx, disable)
	return errors.Join(errors.New("a user has changed it meanwhile: it is disabled"), err)
}

func altering(event replication.ScheduledEvent, definer string) string {
	at := strings.LastIndexByte(definer, '@')
	return fmt.Sprintf("ALTER DEFINER=%s@%s EVENT %s.%s", quoteName(definer[:max(at, 0)]), quoteName(definer[at+1:]), quoteName(event.Schema), quoteName(event.Name))
}

// canWrite reports whether a statement has the same bytes in a character set as in UTF-8. In swe7, some letters have the codes of ASCII's
// signs.
func canWrite(charset, statement string) bool {
	return strings.HasPrefix(charset, "utf8") || charset != "swe7" && isASCII(statement)
}

// quoteName quotes an identifier (manual, "Schema Object Names").
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// isWord reports whether a text is the name of a character set or a collation.
func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
