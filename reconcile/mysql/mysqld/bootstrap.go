package mysqld

import (
	"fmt"
	"strings"
)

// Bootstrap describes the init_file that mysqld runs at every start, before any client can connect. It sets up the operator's own accounts
// with the current passwords. It runs on every member, also on a read-only one, and does not write to the binary log, so that members have
// no errant transactions.
type Bootstrap struct {
	Agent, Replication, Clone Account
	// Root is the user's password for root. It is set only for a data directory that mysqld --initialize has just made, and for restored
	// data that has no root@'%'. The primary makes later changes, which replicate.
	Root string
	// NewData reports whether the data directory has just been made, RestoredData whether it was restored and no member has used it.
	NewData, RestoredData bool
	// Receivers are the ordinals of the members that may read the binary log from the start on, as with AllowReceivers.
	Receivers []int
	// RefuseClients lets only accounts with CONNECTION_ADMIN log in from the start on, as RefuseClients of a Server does.
	RefuseClients bool
}

// ownAccount is one of the operator's accounts as an init_file sets it up. Its grants are the least that its verbs need (manual,
// "Privileges Provided by MySQL").
type ownAccount struct {
	user, host, require, grants string
	// password names the account's password: accounts that share one are changed together.
	password string
	// locked means that no member can log in to it when mysqld has started.
	locked bool
}

func (a ownAccount) name() string { return fmt.Sprintf("'%s'@'%s'", a.user, a.host) }

// lock returns the option that an account has when mysqld has started.
func (a ownAccount) lock() string {
	if a.locked {
		return accountLock
	}
	return accountUnlock
}

const (
	accountLock   = "ACCOUNT LOCK"
	accountUnlock = "ACCOUNT UNLOCK"
)

func ownAccounts() []ownAccount {
	all := append(make([]ownAccount, 0, 3+mostMembers),
		// SYSTEM_USER protects the account from users with fewer privileges (manual, "Account Categories"). A role with SYSTEM_USER would
		// not.
		ownAccount{AgentUser, "localhost", "NONE", agentGrants, AgentUser, false},
		ownAccount{CloneUser, "%", "X509", "BACKUP_ADMIN ON *.*", CloneUser, false},
		ownAccount{ObserverUser, "%", "X509", "USAGE ON *.*", ReplicationUsers, false},
	)
	for ordinal := range mostMembers {
		all = append(all, receiverAccount(ordinal))
	}
	return all
}

// receiverAccount is the account of the member of this ordinal. It is locked until AllowReceivers unlocks it.
func receiverAccount(ordinal int) ownAccount {
	return ownAccount{ReplicationUser(ordinal), "%", "X509", "REPLICATION SLAVE ON *.*", ReplicationUsers, true}
}

// accounts are the operator's accounts, where Receivers are not locked.
func (b Bootstrap) accounts() []ownAccount {
	all := ownAccounts()
	for _, ordinal := range b.Receivers {
		unlocked := ReplicationUser(ordinal)
		for i := range all {
			all[i].locked = all[i].locked && all[i].user != unlocked
		}
	}
	return all
}

const (
	// agentRole has the same privileges as the agent's account. A session keeps the privileges of its active roles. mysqld looks up other
	// privileges in its privilege tables (MySQL source, Security_context::has_global_grant, check_access), which are locked while a
	// statement about accounts waits for an acknowledgement. With the role, an agent that is logged in can observe and end that wait.
	agentRole = "'mysql_operator_agent_role'@'localhost'"
	// agentGrants are for settings, replication, copies, TLS reload, reading (REPLICATION SLAVE) and purging binary logs, looking at
	// transactions, and the root password: altering root requires SYSTEM_USER. REFERENCES shows all tables with their engines in
	// information_schema, and none of their rows. EVENT does so for scheduled events, and with the next two (since MySQL 8.2), the agent of a
	// new primary enables those of the former one for their definers.
	agentGrants = "RELOAD, PROCESS, REFERENCES, EVENT, REPLICATION CLIENT, REPLICATION SLAVE, CREATE USER, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, /*!80200 SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER, */ REPLICATION_SLAVE_ADMIN, CLONE_ADMIN, CONNECTION_ADMIN, BINLOG_ADMIN, XA_RECOVER_ADMIN ON *.*"
)

// accountOptions exempts the operator's accounts from what users set for other accounts (max_user_connections, default_password_lifetime,
// password_history, password_reuse_interval). Otherwise replication would end when its password expires, and a restart could not set the
// current password again. It must come before the password, because it decides whether mysqld accepts the password. A MAX_USER_CONNECTIONS
// of 0 would apply the global max_user_connections.
const accountOptions = "WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 MAX_USER_CONNECTIONS 10000 PASSWORD EXPIRE NEVER PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 0 DAY PASSWORD REQUIRE CURRENT OPTIONAL "

// SQL renders the file with one statement a line, as init_file requires (manual, "init_file"). It has hashes instead of passwords:
// init_file ends at the first statement that fails, and a password policy in the data must not make one fail.
func (b Bootstrap) SQL() (string, error) {
	hashes := map[string]string{}
	for user, password := range map[string]string{AgentUser: b.Agent.Password, ReplicationUsers: b.Replication.Password, CloneUser: b.Clone.Password} {
		var err error
		if hashes[user], err = hashed(password); err != nil {
			return "", fmt.Errorf("account %s: %w", user, err)
		}
	}
	lines := []string{
		"SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''", "SET NAMES utf8mb4",
		"DROP USER IF EXISTS '" + ReplicationUsers + "'@'%'", // all members of earlier builds followed with it
	}
	for _, account := range b.accounts() {
		name, hash := account.name(), hashes[account.password]
		lines = append(lines,
			"CREATE USER IF NOT EXISTS "+name+" "+identifiedAs+hash+" REQUIRE "+account.require+" "+account.lock(),
			"ALTER USER "+name+" "+accountOptions+account.lock(),
			"ALTER USER "+name+" "+identifiedAs+hash+" REQUIRE "+account.require,
			"GRANT "+account.grants+" TO "+name,
		)
	}
	lines = append(lines,
		"GRANT SELECT ON performance_schema.* TO '"+AgentUser+"'@'localhost'",
		"GRANT SELECT ("+barredColumns+") ON mysql.user TO '"+AgentUser+"'@'localhost'",
	)
	root, err := b.root()
	if err != nil {
		return "", fmt.Errorf("root: %w", err)
	}
	lines = append(lines, root...)
	// The role comes last and is created again: if a user changed it, only the role's own purpose can fail.
	lines = append(lines,
		"DROP ROLE IF EXISTS "+agentRole,
		"CREATE ROLE "+agentRole,
		"GRANT "+agentGrants+" TO "+agentRole,
		"GRANT SELECT ON performance_schema.* TO "+agentRole,
		"GRANT "+agentRole+" TO '"+AgentUser+"'@'localhost'",
		"SET DEFAULT ROLE "+agentRole+" TO '"+AgentUser+"'@'localhost'",
	)
	if b.RefuseClients {
		lines = append(lines, offlineOn)
	}
	return strings.Join(lines, ";\n") + ";\n", nil
}

// root creates root@'%'. If restored data has an account of that name, it keeps its privileges.
func (b Bootstrap) root() ([]string, error) {
	if !b.NewData && !b.RestoredData {
		return nil, nil
	}
	hash, err := hashed(b.Root)
	if err != nil {
		return nil, err
	}
	if b.NewData {
		return []string{
			"CREATE USER IF NOT EXISTS 'root'@'%' " + identifiedAs + hash,
			"GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION",
			"DROP USER IF EXISTS 'root'@'localhost'",
		}, nil
	}
	// The account gets its name last: after a crash, an account without privileges would look like one that came with the data. PREPARE
	// fails where the user's settings allow no prepared statements, so that limit is lifted while no client can connect yet.
	return []string{
		"SET @most_prepared = @@GLOBAL.max_prepared_stmt_count",
		"SET GLOBAL max_prepared_stmt_count = DEFAULT",
		"SET @has_root = EXISTS (SELECT 1 FROM mysql.user WHERE user = 'root' AND host = '%')",
		"DROP USER IF EXISTS " + newRoot,
		"CREATE USER " + newRoot + " " + identifiedAs + hash,
		"GRANT ALL ON *.* TO " + newRoot + " WITH GRANT OPTION",
		`SET @name_root = IF(@has_root, "DROP USER ` + newRoot + `", "RENAME USER ` + newRoot + ` TO 'root'@'%'")`,
		"PREPARE name_root FROM @name_root",
		"EXECUTE name_root",
		"DEALLOCATE PREPARE name_root",
		"SET GLOBAL max_prepared_stmt_count = @most_prepared",
	}, nil
}

// newRoot is the temporary name of root@'%' until it is complete.
const newRoot = "'mysql_operator_new_root'@'localhost'"

// identifiedAs precedes the hash of a password.
const identifiedAs = "IDENTIFIED WITH caching_sha2_password AS "
