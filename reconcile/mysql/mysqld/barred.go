package mysqld

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// barredColumns are the only columns of mysql.user that the agent may read.
	barredColumns = "Host, User, plugin, account_locked"
	// barredAccounts selects the accounts whose authentication plugin is not active: not loaded, disabled, or removed from this release. It
	// leaves out the operator's own accounts, which each start of mysqld sets up, MySQL's own (manual, "Reserved Accounts"), locked
	// accounts and thus roles, and those of mysql_no_login, to which no client logs in. mysqld itself ends the statement, which waits while
	// another statement about accounts holds the table.
	barredAccounts = `SELECT /*+ MAX_EXECUTION_TIME(2000) */ User, Host, plugin, COUNT(*) OVER () FROM mysql.user
		WHERE account_locked <> 'Y' AND plugin <> 'mysql_no_login'
		AND User NOT LIKE 'mysql\_operator\_%' AND User NOT IN ('mysql.sys', 'mysql.session', 'mysql.infoschema')
		AND plugin NOT IN (SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE' AND PLUGIN_TYPE = 'AUTHENTICATION')
		ORDER BY User, Host LIMIT ?`
)

// BarredAccounts finds the accounts to which no client can log in while this mysqld runs, and names at most most of them. It uses a
// separate connection: a lock of the privilege tables must not cost the agent the connection that is logged in.
func (s *Server) BarredAccounts(ctx context.Context, most int) (replication.Accounts, error) {
	found, count := replication.Accounts{}, 0
	err := s.readApart(ctx, barredAccounts, []any{most}, func(rows *sql.Rows) error {
		var account replication.Account
		if err := rows.Scan(&account.User, &account.Host, &account.Plugin, &count); err != nil {
			return err
		}
		found.Named = append(found.Named, account)
		return nil
	})
	if err != nil {
		return replication.Accounts{}, fmt.Errorf("find accounts that cannot log in: %w", err)
	}
	found.More = max(0, count-len(found.Named))
	return found, nil
}
