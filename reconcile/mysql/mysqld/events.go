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

// ScheduledEvents returns the events that run here, and those that do not because they came through replication, at most so many of both.
// Events that were altered a moment ago count as neither: another change in the same second would not show. It uses a separate connection:
// mysqld checks the privileges on events in tables that a statement about accounts locks (BarredAccounts).
func (s *Server) ScheduledEvents(ctx context.Context, most int) (replication.ScheduledEvents, error) {
	var found replication.ScheduledEvents
	err := s.withEvents(ctx, func(one *sql.Conn) error {
		rows, err := one.QueryContext(ctx, "SELECT /*+ MAX_EXECUTION_TIME(2000) */ EVENT_SCHEMA, EVENT_NAME, UNIX_TIMESTAMP(LAST_ALTERED), "+replicaSide+
			" FROM information_schema.EVENTS WHERE "+replicaSide+" OR STATUS = 'ENABLED' AND LAST_ALTERED < UTC_TIMESTAMP() - INTERVAL 1 SECOND ORDER BY 4 DESC, 1, 2 LIMIT ?", most)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var event replication.ScheduledEvent
			var isReplicaSide bool
			if err := rows.Scan(&event.Schema, &event.Name, &event.Altered, &isReplicaSide); err != nil {
				return err
			}
			if isReplicaSide {
				found.ReplicaSide = append(found.ReplicaSide, event)
			} else {
				found.Running = append(found.Running, event)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return replication.ScheduledEvents{}, fmt.Errorf("look at scheduled events: %w", err)
	}
	return found, nil
}

// withEvents runs a function with a separate connection whose times are UTC.
func (s *Server) withEvents(ctx context.Context, use func(*sql.Conn) error) error {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return err
	}
	defer one.Close()
	if _, err := one.ExecContext(ctx, "SET SESSION time_zone = '+00:00'"); err != nil {
		return err
	}
	return use(one)
}

// EnableEvent enables an event that does not run because it came through replication, and that was not changed since. It keeps the event as
// it is: ALTER EVENT changes the definer, and the character set and collation of the client. It reports whether it has enabled the event.
// It does not if the event is not as the caller thinks, or was to run once at a time that has passed, or if its name cannot be written in
// its character set. The statement waits for acknowledgements.
func (s *Server) EnableEvent(ctx context.Context, event replication.ScheduledEvent) (isEnabled bool, err error) {
	err = s.withEvents(ctx, func(one *sql.Conn) error {
		var definer, charset, collation string
		row := one.QueryRowContext(ctx, "SELECT DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ? AND EVENT_NAME = ? AND "+
			replicaSide+" AND UNIX_TIMESTAMP(LAST_ALTERED) = ? AND (EXECUTE_AT IS NULL OR CONVERT_TZ(EXECUTE_AT, TIME_ZONE, '+00:00') > UTC_TIMESTAMP())",
			event.Schema, event.Name, event.Altered)
		if err := row.Scan(&definer, &charset, &collation); errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		at := strings.LastIndexByte(definer, '@')
		statement := fmt.Sprintf("ALTER DEFINER=%s@%s EVENT %s.%s ENABLE", quoteName(definer[:max(at, 0)]), quoteName(definer[at+1:]), quoteName(event.Schema), quoteName(event.Name))
		if !isWord(charset) || !isWord(collation) || !strings.HasPrefix(charset, "utf8") && !isASCII(statement) {
			return nil
		}
		for _, statement := range []string{"SET NAMES " + charset + " COLLATE " + collation, statement} {
			if _, err := one.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		isEnabled = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("enable the scheduled event %q.%q: %w", event.Schema, event.Name, err)
	}
	return isEnabled, nil
}

// quoteName quotes an identifier (manual, "Schema Object Names").
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// isWord reports whether a text is the name of a character set or a collation.
func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
