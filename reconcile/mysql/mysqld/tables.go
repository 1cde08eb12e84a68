package mysqld

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// UnsafeEngines is a value of disabled_storage_engines: engines whose tables have no rows in a copy that CLONE makes and survive no crash,
// or that keep no rows at all. MEMORY is none of them, since it would be refused to temporary tables as well. MySQL's own tables of CSV are
// needed.
const UnsafeEngines = "MyISAM,MRG_MYISAM,BLACKHOLE,FEDERATED,ARCHIVE"

const (
	allTables = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ TABLE_SCHEMA, TABLE_NAME, COALESCE(ENGINE, ''), COALESCE(CAST(CREATE_TIME AS CHAR), '')
		FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`
	// otherEngines are people's tables of other engines than InnoDB. Views have no engine, and temporary tables are not listed. mysqld itself
	// ends the statement after some seconds, which with a million tables it takes.
	otherEngines = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ TABLE_SCHEMA, TABLE_NAME, ENGINE, COUNT(*) OVER () FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`
	// withoutKey counts people's tables that have neither a primary key nor a unique one without NULL, which MySQL tells as PRI too (manual,
	// "The INFORMATION_SCHEMA COLUMNS Table"), of whatever engine. mysqld's dictionary knows; no table is opened for it.
	withoutKey = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ COUNT(*) FROM information_schema.TABLES AS t
		WHERE t.TABLE_TYPE = 'BASE TABLE' AND t.TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') AND NOT EXISTS (
			SELECT 1 FROM information_schema.COLUMNS AS c
			WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME AND c.COLUMN_KEY = 'PRI')`
	// showKeys has information_schema tell of keys that MySQL made (since 8.0.30), whatever people have set.
	showKeys = "SET SESSION show_gipk_in_create_table_and_information_schema = ON"
	// withRows are those that have rows of their own which outlive a restart of mysqld: MEMORY loses them with every restart, also the
	// primary's, and the others keep none.
	withRows  = ` AND ENGINE NOT IN ('MEMORY', 'BLACKHOLE', 'FEDERATED', 'MRG_MYISAM')`
	fromUntil = ` AND (CREATE_TIME IS NULL OR CREATE_TIME <= ?)`
	firstOnes = ` ORDER BY TABLE_SCHEMA, TABLE_NAME LIMIT ?`
	// youngest is the time at which the youngest of people's tables of other engines was made, or now if that is later: CREATE_TIME is as the
	// clock of another server, or SET timestamp, had it.
	youngest = `SELECT /*+ MAX_EXECUTION_TIME(20000) */ CAST(GREATEST(UTC_TIMESTAMP(), COALESCE(MAX(CREATE_TIME), UTC_TIMESTAMP())) AS CHAR) FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`
)

// OtherEngines finds people's tables of other engines than InnoDB, and names at most so many. It needs REFERENCES, which shows tables and
// no row of them: information_schema has only what the account has some privilege on.
func (s *Server) OtherEngines(ctx context.Context, most int) (replication.Tables, error) {
	return s.readTables(ctx, otherEngines+firstOnes, most)
}

// TablesWithoutRows finds the tables of which a copy has no rows, and names at most so many: all that there are or, with a time, those that
// are as old. The time is in UTC and as MySQL writes it.
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

// TablesWithoutKey counts people's tables of which a replica finds a row only by looking at all of them. It needs REFERENCES, as
// OtherEngines does.
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

// EachTable tells of people's tables, of at most so many: the name, the engine and when it was made, which RENAME TABLE leaves as it is.
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

// TablesUntil is a time that none of the tables is younger than, for TablesWithoutRows.
func (s *Server) TablesUntil(ctx context.Context) (string, error) {
	var until string
	err := s.readApart(ctx, youngest, nil, func(rows *sql.Rows) error { return rows.Scan(&until) })
	if err != nil {
		return "", fmt.Errorf("look for the age of tables: %w", err)
	}
	return until, nil
}

// readApart reads all rows of a statement that may take long, over a connection of its own (execApart). Where mysqld has no place for that
// it does not take the one that looks: it runs beside the loop, whose next look would be turned away. Who asks looks again later.
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
