package mysqld

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// UnsafeEngines is a value of disabled_storage_engines. It lists the engines whose tables have no rows in a copy that CLONE makes and do
// not survive a crash, and those that store no rows at all. MEMORY is not in the list, because mysqld would refuse it to temporary tables
// as well. CSV is not, because MySQL's own tables need it.
const UnsafeEngines = "MyISAM,MRG_MYISAM,BLACKHOLE,FEDERATED,ARCHIVE"

const (
	allTables = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ TABLE_SCHEMA, TABLE_NAME, COALESCE(ENGINE, ''), COALESCE(CAST(CREATE_TIME AS CHAR), '')
		FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`
	// otherEngines selects users' tables of other engines than InnoDB. Views have no engine, and temporary tables are not listed. mysqld
	// itself ends the statement after 20 seconds; with a million tables it takes some seconds.
	otherEngines = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ TABLE_SCHEMA, TABLE_NAME, ENGINE, COUNT(*) OVER () FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`
	// withoutKey counts users' tables of any engine that have neither a primary key nor a unique key without NULL. MySQL reports the latter
	// as PRI too (manual, "The INFORMATION_SCHEMA COLUMNS Table"). mysqld reads its dictionary for this and opens no table.
	withoutKey = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ COUNT(*) FROM information_schema.TABLES AS t
		WHERE t.TABLE_TYPE = 'BASE TABLE' AND t.TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') AND NOT EXISTS (
			SELECT 1 FROM information_schema.COLUMNS AS c
			WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME AND c.COLUMN_KEY = 'PRI')`
	// showKeys makes information_schema show keys that MySQL generated (since 8.0.30), even if users hide them.
	showKeys = "SET SESSION show_gipk_in_create_table_and_information_schema = ON"
	// withRows restricts a statement to engines whose rows survive a restart of mysqld. MEMORY loses its rows with every restart, also on
	// the primary, and the others store none.
	withRows  = ` AND ENGINE NOT IN ('MEMORY', 'BLACKHOLE', 'FEDERATED', 'MRG_MYISAM')`
	fromUntil = ` AND (CREATE_TIME IS NULL OR CREATE_TIME <= ?)`
	firstOnes = ` ORDER BY TABLE_SCHEMA, TABLE_NAME LIMIT ?`
	// newestCreateTime selects when the youngest of the users' tables of other engines was created, or now if that is later: CREATE_TIME may
	// come from the clock of another server, or from SET timestamp.
	newestCreateTime = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ CAST(GREATEST(UTC_TIMESTAMP(), COALESCE(MAX(CREATE_TIME), UTC_TIMESTAMP())) AS CHAR) FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`
)

// OtherEngines finds users' tables of other engines than InnoDB, and names at most most of them. It needs REFERENCES, which shows tables
// but none of their rows: information_schema lists only tables on which the account has some privilege.
func (s *Server) OtherEngines(ctx context.Context, most int) (replication.Tables, error) {
	return s.readTables(ctx, otherEngines+firstOnes, most)
}

// TablesWithoutRows finds the tables whose rows are missing in a copy, and names at most most of them. With until it finds only tables
// created up to that time, which is in UTC in MySQL's format.
func (s *Server) TablesWithoutRows(ctx context.Context, until string, most int) (replication.Tables, error) {
	if until == "" {
		return s.readTables(ctx, otherEngines+withRows+firstOnes, most)
	}
	return s.readTables(ctx, otherEngines+withRows+fromUntil+firstOnes, until, most)
}

func (s *Server) readTables(ctx context.Context, statement string, arguments ...any) (replication.Tables, error) {
	found := replication.Tables{}
	count := 0
	err := s.readApart(ctx, statement, arguments, func(rows *sql.Rows) error {
		var table replication.Table
		if err := rows.Scan(&table.Schema, &table.Name, &table.Engine, &count); err != nil {
			return err
		}
		found.Named = append(found.Named, table)
		return nil
	})
	if err != nil {
		return replication.Tables{}, fmt.Errorf("look for tables of other engines: %w", err)
	}
	found.More = max(0, count-len(found.Named))
	return found, nil
}

// TablesWithoutKey counts users' tables in which a replica must read all rows to find one. It needs REFERENCES, as OtherEngines does.
func (s *Server) TablesWithoutKey(ctx context.Context) (int64, error) {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return 0, fmt.Errorf("count tables without a primary key: %w", err)
	}
	defer one.Close()
	if _, err := one.ExecContext(ctx, showKeys); err != nil && !hasNumber(err, errUnknownVariable) {
		return 0, fmt.Errorf("count tables without a primary key: %w", err)
	}
	var count int64
	if err := one.QueryRowContext(ctx, withoutKey).Scan(&count); err != nil {
		return 0, fmt.Errorf("count tables without a primary key: %w", err)
	}
	return count, nil
}

// EachTable calls tell for users' tables, at most most of them, with the name, the engine and the time of creation. RENAME TABLE does not
// change that time.
func (s *Server) EachTable(ctx context.Context, most int, tell func(table replication.Table, made string)) error {
	err := s.readApart(ctx, allTables+` LIMIT ?`, []any{most}, func(rows *sql.Rows) error {
		var table replication.Table
		var made string
		if err := rows.Scan(&table.Schema, &table.Name, &table.Engine, &made); err != nil {
			return err
		}
		tell(table, made)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for tables: %w", err)
	}
	return nil
}

// HasNoTable reports whether no table has this name. It waits up to ten seconds for a statement that changes the table, and fails if that
// takes longer: while ALTER TABLE changes the engine, information_schema does not show the table for a moment (seen on 9.7.4).
func (s *Server) HasNoTable(ctx context.Context, table replication.Table) (bool, error) {
	name := quoteName(table.Schema) + "." + quoteName(table.Name)
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("look for table %s: %w", name, err)
	}
	defer one.Close()
	if _, err := one.ExecContext(ctx, "SET SESSION lock_wait_timeout = 10"); err != nil {
		return false, fmt.Errorf("look for table %s: %w", name, err)
	}
	_, err = one.ExecContext(ctx, "SHOW CREATE TABLE "+name)
	if hasNumber(err, errNoSuchTable) || hasNumber(err, errUnknownDatabase) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for table %s: %w", name, err)
	}
	return false, nil
}

// TablesUntil returns a time after which none of the tables was created, for TablesWithoutRows.
func (s *Server) TablesUntil(ctx context.Context) (string, error) {
	var until string
	err := s.readApart(ctx, newestCreateTime, nil, func(rows *sql.Rows) error { return rows.Scan(&until) })
	if err != nil {
		return "", fmt.Errorf("read when tables were created: %w", err)
	}
	return until, nil
}

// readApart reads all rows of a statement that may take long, over a separate connection (execApart). If mysqld accepts none, readApart
// fails, and the caller tries again later. It does not use the observing connection: it runs concurrently with the agent's loop, which
// could then not reconnect.
func (s *Server) readApart(ctx context.Context, statement string, arguments []any, row func(*sql.Rows) error) error {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	rows, err := apart.QueryContext(ctx, statement, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
