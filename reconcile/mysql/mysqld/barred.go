package mysqld

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// barredColumns are all that the agent may read of mysql.user.
	barredColumns = "Host, User, plugin, account_locked"
	// barredAccounts are accounts whose authentication plugin is not active: not loaded, switched off or gone from this release. Left out are
	// the operator's own, which a start of mysqld sets up, MySQL's own (manual, "Reserved Accounts"), locked ones, among them roles, and those
	// of mysql_no_login, to which nobody logs in anyway. mysqld itself ends the statement: it waits while another one about accounts holds the
	// table.
	barredAccounts = `SELECT /*+ MAX_EXECUTION_TIME(2000) */ User, Host, plugin, COUNT(*) OVER () FROM mysql.user
		WHERE account_locked <> 'Y' AND plugin <> 'mysql_no_login'
		AND User NOT IN (?, ?, ?, 'mysql.sys', 'mysql.session', 'mysql.infoschema')
		AND plugin NOT IN (SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE' AND PLUGIN_TYPE = 'AUTHENTICATION')
		ORDER BY User, Host LIMIT ?`
)

// BarredAccounts finds the accounts that nobody can log in to as long as this mysqld runs as it does, and names at most so many. It takes a
// connection of its own: the one that is logged in must not be lost to a lock of the privilege tables.
func (s *Server) BarredAccounts(ctx context.Context, most int) (replication.Accounts, error) {
	found, count := replication.Accounts{}, 0
	err := s.readApart(ctx, barredAccounts, []any{AgentUser, ReplicationUser, CloneUser, most}, func(rows *sql.Rows) error {
		var account replication.Account
		if err := rows.Scan(&account.User, &account.Host, &account.Plugin, &count); err != nil {
			return err
		}
		found.Named = append(found.Named, account)
		return nil
	})
	if err != nil {
		return replication.Accounts{}, fmt.Errorf("look for accounts that nobody can log in to: %w", err)
	}
	found.More = max(0, count-len(found.Named))
	return found, nil
}
