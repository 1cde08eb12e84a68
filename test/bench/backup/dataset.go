package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

// rowBytes is about what a row takes: half of it does not compress, as names, numbers and hashes do not.
const rowBytes = 1000

const tables = 8

// fill makes the source, eight tables of the size asked for on a primary, and then a replica as a copy of it: the binary logs of the
// filling would take as much of the disk once more on each of them.
func (b *bench) fill(ctx context.Context, m *measured) error {
	if err := b.cluster(ctx, source, 1); err != nil {
		return err
	}
	db, err := b.open(ctx, source, source)
	if err != nil {
		return err
	}
	defer db.Close()
	rows := b.options.mebibytes << 20 / rowBytes / tables
	statements := []string{"CREATE DATABASE bench"}
	for table := range tables {
		name := fmt.Sprintf("bench.t%d", table)
		statements = append(statements,
			"CREATE TABLE "+name+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, number BIGINT NOT NULL, hash CHAR(64) NOT NULL, at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), body TEXT NOT NULL, KEY (number))",
			"INSERT INTO "+name+" (number, hash, body) "+row(1<<10))
	}
	if err := execAll(ctx, db, statements); err != nil {
		return err
	}
	for table := range tables {
		name := fmt.Sprintf("bench.t%d", table)
		for have := 1 << 10; have < rows; {
			next := min(have, rows-have, 1<<15) // transactions of 32 MiB, as a replica likes them
			if err := execAll(ctx, db, []string{"INSERT INTO " + name + " (number, hash, body) " + row(next)}); err != nil {
				return err
			}
			have += next
		}
	}
	if err := execAll(ctx, db, []string{"FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 HOUR"}); err != nil {
		return err
	}
	if m.rows, err = rowsOf(ctx, db); err != nil {
		return err
	}
	if err := b.cluster(ctx, source, 2); err != nil {
		return err
	}
	return b.caughtUp(ctx, db)
}

// rowsOf is how many rows each table has.
func rowsOf(ctx context.Context, db *sql.DB) (string, error) {
	var all []string
	for table := range tables {
		var count string
		if err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM bench.t%d", table)).Scan(&count); err != nil {
			return "", err
		}
		all = append(all, count)
	}
	return strings.Join(all, " "), nil
}

// row makes so many rows: numbers and hashes, and text of which half repeats itself.
func row(count int) string {
	return fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT /*+ SET_VAR(cte_max_recursion_depth = 1000000) */ FLOOR(RAND() * 1e12), SHA2(RAND(), 256),
		CONCAT(TO_BASE64(RANDOM_BYTES(300)), REPEAT('lorem ipsum dolor ', 22)) FROM n`, count)
}

func execAll(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			begin, _, _ := strings.Cut(statement, "\n")
			return fmt.Errorf("%s: %w", begin, err)
		}
	}
	return nil
}

// caughtUp waits until the replica has all that the primary has, and both have written it to their files.
func (b *bench) caughtUp(ctx context.Context, primary *sql.DB) error {
	var executed string
	if err := primary.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed); err != nil {
		return err
	}
	replica, err := b.open(ctx, source, source+"-read")
	if err != nil {
		return err
	}
	defer replica.Close()
	var timedOut int
	if err := replica.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 600)", executed).Scan(&timedOut); err != nil || timedOut != 0 {
		return fmt.Errorf("the replica does not catch up: %w", err)
	}
	return kube.Wait(ctx, "the replica's pages to be written", 2*time.Minute, func(ctx context.Context) (bool, string) {
		var name, dirty string
		err := replica.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'").Scan(&name, &dirty)
		return err == nil && len(dirty) <= 3, dirty
	})
}
