package mysqld

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
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
		if _, err := one.ExecContext(ctx, "SET SESSION gtid_next = ?", gtid); err != nil {
			return count, fmt.Errorf("commit an empty transaction %s: %w", gtid, err)
		}
		for _, statement := range []string{"BEGIN", "COMMIT"} {
			if _, err := one.ExecContext(ctx, statement); err != nil {
				return count, fmt.Errorf("commit an empty transaction %s: %w", gtid, err)
			}
		}
		count++
	}
	return count, nil
}
