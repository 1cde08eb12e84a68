package mysqld

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// Donor is what a program must know of a member to copy its data.
type Donor struct {
	// Host is the member's name (report_host). It shows which member answered behind a Service.
	Host string
	// ServerUUID and Version are the member's.
	ServerUUID, Version string
	// Primary reports whether the member takes writes.
	Primary bool
	// Executed are the committed transactions, Pending those that may be about to commit.
	Executed, Pending replication.GTIDSet
}

// ObserveDonor reads the state of a member for a program that copies its data. Any account may do that.
func (s *Server) ObserveDonor(ctx context.Context) (Donor, error) {
	donor := Donor{}
	var executed, owned string
	var readOnly bool
	row := s.db.QueryRowContext(ctx, `SELECT COALESCE(@@GLOBAL.report_host, ''), @@GLOBAL.server_uuid, @@GLOBAL.version, @@GLOBAL.super_read_only,
		@@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed`)
	if err := row.Scan(&donor.Host, &donor.ServerUUID, &donor.Version, &readOnly, &owned, &executed); err != nil {
		return donor, fmt.Errorf("look at the member to copy: %w", err)
	}
	donor.Primary = !readOnly
	var err error
	if donor.Executed, err = replication.ParseGTIDSet(executed); err != nil {
		return donor, fmt.Errorf("gtid_executed: %w", err)
	}
	if donor.Pending, err = replication.ParseOwnedGTIDs(owned); err != nil {
		return donor, fmt.Errorf("gtid_owned: %w", err)
	}
	if donor.Host == "" {
		return donor, errors.New("the member to copy has no report_host: it is not a member of a MySQLCluster")
	}
	return donor, nil
}

// CopiesBlockDDL reports whether a member of the same release that this server copies is locked for DDL meanwhile (clone_block_ddl). Then
// it cannot stop its applier either, and so cannot become the primary before the copy ends (error 3857, seen on 9.7.4). Releases before
// 8.0.27 lack the setting, and always lock the donor.
func (s *Server) CopiesBlockDDL(ctx context.Context) (bool, error) {
	var blocks bool
	err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL.clone_block_ddl").Scan(&blocks)
	if hasNumber(err, errUnknownVariable) {
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("look whether copies block DDL: %w", err)
	}
	return blocks, nil
}

// ObserveActivity counts the statements that clients sent to a member and its commits since it started. Replicated commits count. It
// includes the operator's own statements, about twenty a second. Any account may ask (manual, "SHOW STATUS Statement").
func (s *Server) ObserveActivity(ctx context.Context) (int64, error) {
	rows, err := s.db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Handler_commit')")
	if err != nil {
		return 0, fmt.Errorf("count statements and commits: %w", err)
	}
	defer rows.Close()
	var sum int64
	for rows.Next() {
		var name string
		var count int64
		if err := rows.Scan(&name, &count); err != nil {
			return 0, fmt.Errorf("count statements and commits: %w", err)
		}
		sum += count
	}
	return sum, rows.Err()
}
