package mysqld

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// Account is a user name with its password.
type Account struct{ User, Password string }

// The accounts that the operator creates on every member. Their passwords are generated for each cluster. bootstrap.go has their
// privileges.
const (
	// AgentUser is the agent's own account. It can log in only through the socket.
	AgentUser = "mysql_operator_agent"
	// ReplicationUsers begins the names of the accounts that read the primary's binary log. They share a password of this name.
	ReplicationUsers = "mysql_operator_replication"
	// ObserverUser reads which transactions the primary has. It has the password of ReplicationUsers.
	ObserverUser = "mysql_operator_observer"
	// CloneUser copies a member's data.
	CloneUser = "mysql_operator_clone"
)

// mostMembers is the highest spec.replicas: each of so many members has an account to read the primary's binary log.
const mostMembers = 9

// ReplicationUser returns the account with which the member of this ordinal reads the primary's binary log. Each member has its own, so
// that the primary can refuse a single member.
func ReplicationUser(ordinal int) string { return fmt.Sprintf("%s_%d", ReplicationUsers, ordinal) }

// ordinalOf is the inverse of ReplicationUser.
func ordinalOf(user string) (ordinal int, ok bool) {
	number, isMember := strings.CutPrefix(user, ReplicationUsers+"_")
	ordinal, err := strconv.Atoi(number)
	return ordinal, isMember && err == nil
}

// replicationUsersLike matches the names of these accounts in SQL.
const replicationUsersLike = `mysql\_operator\_replication\_%`

// isReplicationUser reports whether an account is that of a member that reads the primary's binary log.
func isReplicationUser(user string) bool { return strings.HasPrefix(user, ReplicationUsers+"_") }

// Server is a connection to one mysqld.
type Server struct {
	// db observes mysqld, within allowance; connector makes separate connections.
	db        *sql.DB
	allowance *allowance
	connector sqldriver.Connector
	config    *driver.Config
	// allowing is the session of a call of AllowReceivers that has not succeeded; 0 if there is none.
	allowing int64
}

// connectTimeout bounds one attempt to connect. Contexts bound statements.
const connectTimeout = 2 * time.Second

// Local connects to the mysqld in the agent's Pod through its socket.
func Local(socket string, account Account) (*Server, error) {
	config := newConfig(account)
	config.Net, config.Addr = "unix", socket
	return open(config)
}

// Remote connects to another member over TLS, at an address, and verifies that the certificate is for the host.
func Remote(host, address string, port int, account Account, security *tls.Config) (*Server, error) {
	config := newConfig(account)
	config.Net, config.Addr = "tcp", net.JoinHostPort(address, strconv.Itoa(port))
	config.TLS = security.Clone()
	config.TLS.ServerName = host
	return open(config)
}

// quotedFor is the character set of every connection. The driver sets it again after the handshake (SET NAMES): some servers put their
// clients into another character set, in which the driver's quoting could end too early.
const quotedFor = "utf8mb4"

// sessionSettings protect the meaning of the operator's statements, and of mysqld's answers, from what users set for their clients:
// sql_mode, time zone, autocommit, what COMMIT begins, and whether names are quoted.
func sessionSettings() map[string]string {
	return map[string]string{"sql_mode": "''", "time_zone": "'+00:00'", "autocommit": "1", "completion_type": "'NO_CHAIN'", "sql_quote_show_create": "1"}
}

func newConfig(account Account) *driver.Config {
	config := driver.NewConfig()
	config.User, config.Passwd = account.User, account.Password
	config.Timeout = connectTimeout
	config.Params = sessionSettings()
	config.InterpolateParams = true
	config.Logger = &driver.NopLogger{}
	return config
}

func open(config *driver.Config) (*Server, error) {
	if err := config.Apply(driver.Charset(quotedFor, "")); err != nil {
		return nil, fmt.Errorf("choose the character set %s: %w", quotedFor, err)
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("open connection to mysqld at %s: %w", config.Addr, err)
	}
	looking, allowance := config.Clone(), newAllowance()
	looking.DialFunc = allowance.dial
	bounded, err := driver.NewConnector(looking)
	if err != nil {
		return nil, fmt.Errorf("open connection to mysqld at %s: %w", config.Addr, err)
	}
	db := sql.OpenDB(bounded)
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(1)
	return &Server{db: db, connector: connector, config: config, allowance: allowance}, nil
}

// Close ends the connection.
func (s *Server) Close() error { return s.db.Close() }

// exec runs statements in order and stops at the first that fails.
func (s *Server) exec(ctx context.Context, what string, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// execApart runs one statement that may wait over a separate connection. database/sql closes a connection whose statement outlasts its
// context. The observing connection must survive that: mysqld may not accept another one.
func (s *Server) execApart(ctx context.Context, statement string, arguments ...any) error {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	_, err := apart.ExecContext(ctx, statement, arguments...)
	if isConnectionRefused(err) {
		_, err = s.db.ExecContext(ctx, statement, arguments...)
	}
	return err
}

// execWith runs a statement with a session variable, over a separate connection. If mysqld accepts none, it uses the observing connection,
// and resets the variable.
func (s *Server) execWith(ctx context.Context, variable, value, statement string) error {
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if isConnectionRefused(err) {
		one, err = s.db.Conn(ctx)
	}
	if err != nil {
		return err
	}
	defer one.Close()
	if _, err := one.ExecContext(ctx, "SET SESSION "+variable+" = "+value); err != nil {
		return err
	}
	_, err = one.ExecContext(ctx, statement)
	return errors.Join(err, resetVariable(ctx, one, variable))
}

// resetVariable gives a session variable its default value, or else makes database/sql close the connection.
func resetVariable(ctx context.Context, one *sql.Conn, variable string) error {
	_, err := one.ExecContext(ctx, "SET SESSION "+variable+" = DEFAULT")
	if err != nil {
		_ = one.Raw(func(any) error { return sqldriver.ErrBadConn })
	}
	return err
}

// isConnectionRefused reports whether mysqld refused another connection: clients use all connections (manual, "Too many connections"), or
// the password is no longer valid.
func isConnectionRefused(err error) bool {
	return IsAccessDenied(err) || hasNumber(err, errTooManyConnections)
}

func hasNumber(err error, number uint16) bool {
	var reply *driver.MySQLError
	return errors.As(err, &reply) && reply.Number == number
}

// IsDonorBusy reports whether a clone failed because the donor serves another one. The caller should retry later.
func IsDonorBusy(err error) bool {
	return hasNumber(err, errTooManyClones) ||
		hasNumber(err, errCloneDonor) && strings.Contains(err.Error(), fmt.Sprintf(": %d :", errTooManyClones))
}

// IsHeldUp reports whether a statement gave up because sessions of clients hold locks that it needs, or wait in their commits.
func IsHeldUp(err error) bool { return hasNumber(err, errLockWait) }

// IsNotListening reports whether no mysqld accepts connections: it has not started, is recovering, or has stopped.
func IsNotListening(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// IsAccessDenied reports whether mysqld refused the account or its password.
func IsAccessDenied(err error) bool { return hasNumber(err, errAccessDenied) }
