package mysqld

import (
	"fmt"
	"strings"
)

// Bootstrap is what init_file brings about at every start of mysqld, before anybody can connect: the operator's own accounts with
// the passwords that are in force now. It runs on every member, also on a read-only one, and leaves the binary log alone, so
// that members stay free of transactions of their own.
type Bootstrap struct {
	Agent, Replication, Clone Account
	// Root is the user's password for root; it is set only on a data directory that mysqld --initialize has just made, and on one that was
	// just restored and has no root@'%'. Later changes go through the primary and replicate.
	Root string
	// NewData says that the data directory has just been made, RestoredData that it was restored and no member has used it.
	NewData, RestoredData bool
}

// ownAccount is what an init_file says of one of the operator's accounts; grants are the least that its verbs need (manual, "Privileges
// Provided by MySQL").
type ownAccount struct{ user, host, require, grants string }

func (a ownAccount) name() string { return fmt.Sprintf("'%s'@'%s'", a.user, a.host) }

func ownAccounts() []ownAccount {
	return []ownAccount{
		// SYSTEM_USER keeps the account itself from those who may do less (manual, "Account Categories"): a role that has it would not.
		{AgentUser, "localhost", "NONE", agentGrants},
		{ReplicationUser, "%", "X509", "REPLICATION SLAVE ON *.*"},
		{CloneUser, "%", "X509", "BACKUP_ADMIN ON *.*"},
	}
}

const (
	// agentRole has the agent's privileges once more. A session keeps those of its active roles; others are looked up in mysqld's privilege
	// tables (MySQL source, Security_context::has_global_grant, check_access), which are locked while a statement about accounts waits for an
	// acknowledgement. So an agent that is logged in can look and stop the waiting.
	agentRole = "'mysql_operator_agent_role'@'localhost'"
	// agentGrants: settings, replication, copies, TLS reload, reading (REPLICATION SLAVE) and purging binary logs, looking at transactions,
	// and the root password: SYSTEM_USER is what altering root takes. REFERENCES shows all tables with their engines in information_schema,
	// and no row of them.
	agentGrants = "RELOAD, PROCESS, REFERENCES, REPLICATION CLIENT, REPLICATION SLAVE, CREATE USER, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, REPLICATION_SLAVE_ADMIN, CLONE_ADMIN, CONNECTION_ADMIN, BINLOG_ADMIN, XA_RECOVER_ADMIN ON *.*"
)

// lasting keeps what is set for people's accounts (max_user_connections, default_password_lifetime, password_history,
// password_reuse_interval) away from the operator's own: replication would end when its password expires, and a restart could not set the
// password that is in force. It comes before the password, which it is a condition for. Zero would have max_user_connections count.
const lasting = "WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 MAX_USER_CONNECTIONS 10000 PASSWORD EXPIRE NEVER PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 0 DAY PASSWORD REQUIRE CURRENT OPTIONAL ACCOUNT UNLOCK"

// SQL renders the file: one statement a line, as init_file demands (manual, "init_file"). It holds hashes instead of passwords: init_file
// ends at the first statement that fails, and a password policy in the data must not be a reason.
func (b Bootstrap) SQL() (string, error) {
	passwords := map[string]string{AgentUser: b.Agent.Password, ReplicationUser: b.Replication.Password, CloneUser: b.Clone.Password}
	lines := []string{"SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''", "SET NAMES utf8mb4"}
	for _, account := range ownAccounts() {
		hash, err := hashed(passwords[account.user])
		if err != nil {
			return "", fmt.Errorf("account %s: %w", account.user, err)
		}
		name := account.name()
		lines = append(lines,
			"CREATE USER IF NOT EXISTS "+name+" "+identifiedAs+hash+" REQUIRE "+account.require,
			"ALTER USER "+name+" "+lasting,
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
	// At the end, and made anew: whatever was done to the role costs no more than what it is for.
	lines = append(lines,
		"DROP ROLE IF EXISTS "+agentRole,
		"CREATE ROLE "+agentRole,
		"GRANT "+agentGrants+" TO "+agentRole,
		"GRANT SELECT ON performance_schema.* TO "+agentRole,
		"GRANT "+agentRole+" TO '"+AgentUser+"'@'localhost'",
		"SET DEFAULT ROLE "+agentRole+" TO '"+AgentUser+"'@'localhost'",
	)
	return strings.Join(lines, ";\n") + ";\n", nil
}

// root makes root@'%'. In restored data an account of that name keeps its rights.
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
	// The account gets its name last: one that a crash left without rights would be taken for the data's own. PREPARE fails where people's
	// settings allow no prepared statements: that is lifted while nobody can connect yet.
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

// newRoot is root@'%' while it is being made.
const newRoot = "'mysql_operator_new_root'@'localhost'"

// identifiedAs comes before the hash of a password.
const identifiedAs = "IDENTIFIED WITH caching_sha2_password AS "
