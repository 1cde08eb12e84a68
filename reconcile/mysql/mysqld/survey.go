package mysqld

import (
	"context"
	"fmt"
	"time"
)

// maxPrepared limits how many prepared transactions are read.
const maxPrepared = 1000

// Survey is what the agent reads about transactions once a minute.
type Survey struct {
	// Prepared are the identifiers of transactions in the state of XA PREPARE: at most maxPrepared, in hexadecimal.
	Prepared []string
	// Oldest is how long the oldest transaction has been open.
	Oldest time.Duration
	// History is the length of InnoDB's history list: the number of undo logs that wait for the purge.
	History int64
}

// Survey reads the state of transactions.
func (s *Server) Survey(ctx context.Context) (Survey, error) {
	var seen Survey
	var err error
	if seen.Prepared, err = s.prepared(ctx); err != nil {
		return seen, err
	}
	var open int64
	// trx_started is in the system's time zone, independent of the session's.
	row := s.db.QueryRowContext(ctx, `SELECT /*+ SET_VAR(time_zone = 'SYSTEM') */ COALESCE((SELECT MAX(TIMESTAMPDIFF(SECOND, trx_started, NOW())) FROM information_schema.innodb_trx), 0),
		COALESCE((SELECT MAX(count) FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'), 0)`)
	if err := row.Scan(&open, &seen.History); err != nil {
		return seen, fmt.Errorf("look at transactions: %w", err)
	}
	seen.Oldest = time.Duration(max(0, open)) * time.Second
	return seen, nil
}

// DumpBufferPool makes mysqld store which pages it caches, so that its next start reads them again, also after a crash (manual, "Saving and
// Restoring the Buffer Pool State").
func (s *Server) DumpBufferPool(ctx context.Context) error {
	return s.exec(ctx, "dump the buffer pool", "SET GLOBAL innodb_buffer_pool_dump_now = ON")
}

// prepared lists the transactions that XA RECOVER shows (manual, "XA Transaction SQL Statements").
func (s *Server) prepared(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, "XA RECOVER CONVERT XID")
	if err != nil {
		return nil, fmt.Errorf("look for prepared transactions: %w", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() && len(found) < maxPrepared {
		row, err := scanRow(rows)
		if err != nil {
			return nil, fmt.Errorf("look for prepared transactions: %w", err)
		}
		found = append(found, row["formatID"]+":"+row["gtrid_length"]+":"+row["data"])
	}
	return found, rows.Err()
}
