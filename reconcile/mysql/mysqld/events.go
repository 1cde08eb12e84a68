package mysqld

import (
	"context"
	"database/sql"
	"fmt"
)

// replicaSideDisabled counts events. A replica gives this status to each event that is created or altered on its source, also to a disabled
// one (manual, "Replication of Invoked Features"). MySQL 8.0 has the older name.
const replicaSideDisabled = "SELECT /*+ MAX_EXECUTION_TIME(2000) */ COUNT(*) FROM information_schema.EVENTS WHERE STATUS IN ('REPLICA_SIDE_DISABLED', 'SLAVESIDE_DISABLED')"

// ReplicaSideDisabled returns how many scheduled events do not run here because they came through replication. It uses a separate
// connection: mysqld checks the privileges on events in tables that a statement about accounts locks (BarredAccounts).
func (s *Server) ReplicaSideDisabled(ctx context.Context) (count int, err error) {
	err = s.readApart(ctx, replicaSideDisabled, nil, func(rows *sql.Rows) error { return rows.Scan(&count) })
	if err != nil {
		return 0, fmt.Errorf("look at scheduled events: %w", err)
	}
	return count, nil
}
