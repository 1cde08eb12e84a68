package mysqld

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
)

// CommitEmpty commits an empty transaction with each GTID until the context ends. It returns how many it has tried. MySQL skips a GTID that
// is already executed. The account needs SYSTEM_VARIABLES_ADMIN (manual, "gtid_next").
//
// A commit may wait for acknowledgements longer than the caller's context allows, so CommitEmpty uses a separate connection, as execApart
// does.
func (s *Server) CommitEmpty(ctx context.Context, gtids iter.Seq[string]) (count int, err error) {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return 0, fmt.Errorf("commit empty transactions: %w", err)
	}
	defer one.Close()
	for gtid := range gtids {
		if err := commitEmpty(ctx, one, gtid); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

func commitEmpty(ctx context.Context, one *sql.Conn, gtid string) error {
	if _, err := one.ExecContext(ctx, "SET SESSION gtid_next = ?", gtid); err != nil {
		return fmt.Errorf("commit an empty transaction %s: %w", gtid, err)
	}
	for _, statement := range []string{"BEGIN", commit} {
		if _, err := one.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("commit an empty transaction %s: %w", gtid, err)
		}
	}
	return nil
}

// CommitAcknowledged commits an empty transaction with this GTID, which should be the next one of this server. It returns nil if replicas
// have acknowledged a commit since it was called, and no commit returned without an acknowledgement. Then they have everything that was
// in the binary log before: an acknowledgement covers all earlier transactions. The caller must have turned semi-synchronous replication
// on (EnforceAcks). CommitAcknowledged waits as long as its context allows, and uses a separate connection.
//
// MySQL counts commits that it lets return without an acknowledgement, because semi-synchronous replication was switched off, apart from
// the others (manual, "Semisynchronous Replication Monitoring").
func (s *Server) CommitAcknowledged(ctx context.Context, gtid string) error {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return fmt.Errorf("commit an empty transaction: %w", err)
	}
	defer one.Close()
	before, err := countCommits(ctx, one)
	if err != nil {
		return err
	}
	if err := commitEmpty(ctx, one, gtid); err != nil {
		return err
	}
	after, err := countCommits(ctx, one)
	if err != nil {
		return err
	}
	if after.acknowledged <= before.acknowledged || after.others != before.others {
		return fmt.Errorf("the empty transaction %s returned without an acknowledgement", gtid)
	}
	return nil
}

// commitCount is how many commits have returned: acknowledged ones, and others.
type commitCount struct{ acknowledged, others int64 }

func countCommits(ctx context.Context, one *sql.Conn) (commitCount, error) {
	var count commitCount
	const value = "(SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = ?)"
	row := one.QueryRowContext(ctx, "SELECT "+value+", "+value, "Rpl_semi_sync_source_yes_tx", "Rpl_semi_sync_source_no_tx")
	if err := row.Scan(&count.acknowledged, &count.others); err != nil {
		return count, fmt.Errorf("count acknowledged commits: %w", err)
	}
	return count, nil
}

// OwnCommitWaits reports whether a commit of the agent's account waits, of this agent or of one before it.
func (s *Server) OwnCommitWaits(ctx context.Context) (bool, error) {
	one, err := newSession(ctx, s.db)
	if err != nil {
		return false, fmt.Errorf("look for commits that wait: %w", err)
	}
	defer one.Close()
	all, err := one.processes(ctx)
	return slices.ContainsFunc(all, func(p process) bool { return p.user == AgentUser && p.info == commit }), err
}

const commit = "COMMIT"
