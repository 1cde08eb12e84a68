package mysqld

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SetReadOnly makes mysqld refuse writes of every client, also of those with CONNECTION_ADMIN (manual, "super_read_only"). It waits for
// commits in progress and locked tables, for patience, in whole seconds: all writes stand behind it, and would also after this connection
// has ended.
func (s *Server) SetReadOnly(ctx context.Context, patience time.Duration) error {
	if err := s.execWith(ctx, "lock_wait_timeout", strconv.Itoa(int(patience.Seconds())), "SET GLOBAL super_read_only = ON"); err != nil {
		return fmt.Errorf("set super_read_only: %w", err)
	}
	return nil
}

// ReadOnlyWait is for how long SetReadOnly waits for commits of which some may still end.
const ReadOnlyWait = 10 * time.Second

// LateAfter is how long after it was sent a statement may weaken what protects data. mysqld reads statements of a client that has given up
// and gone, when it runs again after it was stopped (SIGSTOP) or its machine was paused; by then, the operator may have decided otherwise.
const LateAfter = 5 * time.Second

// inTime returns an SQL condition that is false when mysqld evaluates it too late. mysqld and the agent have the same clock.
func inTime(sent time.Time) string {
	return fmt.Sprintf("UNIX_TIMESTAMP(SYSDATE(6)) < %d.%06d", sent.Add(LateAfter).Unix(), sent.Add(LateAfter).Nanosecond()/1000)
}

// LimitTransactions limits what one transaction may write to the binary log, in bytes, for connections and appliers that start from now on
// (manual, "max_binlog_cache_size"). A larger transaction fails with error 1197. 0 removes the limit.
func (s *Server) LimitTransactions(ctx context.Context, limit int64) error {
	value := "DEFAULT" // MySQL's default, also if my.cnf sets another value
	if limit > 0 {
		value = strconv.FormatInt(limit, 10)
	}
	return s.exec(ctx, "set max_binlog_cache_size", "SET GLOBAL max_binlog_cache_size = "+value)
}

// StopReplica stops receiving and applying.
func (s *Server) StopReplica(ctx context.Context) error {
	return s.exec(ctx, "stop replica", "STOP REPLICA")
}

// StopReceiver stops receiving and continues to apply what was received.
func (s *Server) StopReceiver(ctx context.Context) error {
	return s.exec(ctx, "stop receiver", "STOP REPLICA IO_THREAD")
}

// ApplyReceived applies what was received. It does not start the receiver.
func (s *Server) ApplyReceived(ctx context.Context) error {
	return s.exec(ctx, "start applier", "START REPLICA SQL_THREAD")
}

// StartReplica starts the receiver and the applier if they do not run. The receiver keeps the account's password in memory until it stops,
// also to reconnect (manual, "START REPLICA Statement").
func (s *Server) StartReplica(ctx context.Context, account Account) error {
	return s.startAs(ctx, "START REPLICA", account)
}

// RestartReceiver makes the receiver reconnect, because it negotiates acknowledgements when it connects.
func (s *Server) RestartReceiver(ctx context.Context, account Account) error {
	if err := s.exec(ctx, "restart receiver", "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	return s.startAs(ctx, "START REPLICA IO_THREAD", account)
}

// startAs starts the receiver with an account's password.
func (s *Server) startAs(ctx context.Context, statement string, account Account) error {
	if _, err := s.db.ExecContext(ctx, statement+" USER = ? PASSWORD = ?", account.User, account.Password); err != nil {
		return fmt.Errorf("%s: %w", strings.ToLower(statement), err)
	}
	return nil
}

// ForgetSource removes the replication channel with its relay logs. Call it only when everything received is applied.
func (s *Server) ForgetSource(ctx context.Context) error {
	return s.exec(ctx, "remove the replication channel", "STOP REPLICA", "RESET REPLICA ALL")
}

// SemiSyncTimeout is rpl_semi_sync_source_timeout, in milliseconds: the longest that MySQL accepts, 49 days. Acknowledgements never end
// silently: if the user's durability policy says so, the operator first records that, and then turns them off.
const SemiSyncTimeout = "4294967295"

// EnforceAcks makes every commit wait until acks replicas have acknowledged that they received it (AFTER_SYNC; manual, "Semisynchronous
// Replication"), and for nothing less: MySQL must not fall back to asynchronous replication by itself.
//
// MySQL switches it off if it runs out of memory for its list of transactions, or after a time-out, and leaves the variable ON. To set the
// variable ON again does nothing then. While it is switched off, commits wait for nothing, so it may be turned off first.
func (s *Server) EnforceAcks(ctx context.Context, acks int) error {
	what := fmt.Sprintf("enforce %d acknowledgements", acks)
	status, err := s.semiSyncStatus(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var statements []string
	if status["Rpl_semi_sync_source_status"] != "ON" {
		statements = append(statements, disableAcks(time.Now()))
	}
	return s.exec(ctx, what, append(statements,
		enforceCount(time.Now(), acks),
		"SET GLOBAL rpl_semi_sync_source_timeout = "+SemiSyncTimeout,
		"SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC", "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON",
		"SET GLOBAL rpl_semi_sync_source_enabled = ON")...)
}

// enforceCount returns a statement that lowers the number of acknowledgements only in time.
func enforceCount(sent time.Time, acks int) string {
	return fmt.Sprintf("SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = CAST(IF(%s, %d, GREATEST(%[2]d, @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count)) AS UNSIGNED)",
		inTime(sent), acks)
}

// StopEnforcingAcks lets commits return without acknowledgements, also those that wait now.
func (s *Server) StopEnforcingAcks(ctx context.Context) error {
	return s.exec(ctx, "stop enforcing acknowledgements", disableAcks(time.Now()))
}

func disableAcks(sent time.Time) string {
	return "SET GLOBAL rpl_semi_sync_source_enabled = IF(" + inTime(sent) + ", 0, @@GLOBAL.rpl_semi_sync_source_enabled)"
}

// StartAcknowledging turns a replica's acknowledgements on. They begin when its receiver connects next.
func (s *Server) StartAcknowledging(ctx context.Context) error {
	return s.exec(ctx, "start acknowledging", "SET GLOBAL rpl_semi_sync_replica_enabled = IF("+inTime(time.Now())+", 1, @@GLOBAL.rpl_semi_sync_replica_enabled)")
}

// StopAcknowledging turns a replica's acknowledgements off. It also stops the receiver, because a running receiver would continue to
// acknowledge.
func (s *Server) StopAcknowledging(ctx context.Context) error {
	return s.exec(ctx, "stop acknowledging", "STOP REPLICA IO_THREAD", "SET GLOBAL rpl_semi_sync_replica_enabled = OFF")
}

// Certificates are the files that mysqld uses as a client of another member.
type Certificates struct{ CA, Certificate, Key string }

// Source is the host of a primary, and what a replica needs to connect to it.
type Source struct {
	Host         string
	Port         int
	Account      Account
	Certificates Certificates
}

// Clone replaces this server's data with a copy of the donor's and stops mysqld, which its supervisor starts again (manual, "Cloning Remote
// Data"). The caller must have verified that the donor has every transaction of this server. mysqld reads the donor with at most limit
// bytes per second, in whole MiB.
func (s *Server) Clone(ctx context.Context, donor Source, limit int64) error {
	settings := []struct {
		statement string
		value     any
	}{
		{"SET GLOBAL clone_max_data_bandwidth = ?", max(1, limit>>20)},
		{"SET GLOBAL clone_valid_donor_list = ?", fmt.Sprintf("%s:%d", donor.Host, donor.Port)},
		{"SET GLOBAL clone_ssl_ca = ?", donor.Certificates.CA},
		{"SET GLOBAL clone_ssl_cert = ?", donor.Certificates.Certificate},
		{"SET GLOBAL clone_ssl_key = ?", donor.Certificates.Key},
	}
	for _, setting := range settings {
		if _, err := s.db.ExecContext(ctx, setting.statement, setting.value); err != nil {
			return fmt.Errorf("prepare to clone %s: %w", donor.Host, err)
		}
	}
	replace := func() error {
		_, err := s.db.ExecContext(ctx, "CLONE INSTANCE FROM ?@?:? IDENTIFIED BY ? REQUIRE SSL",
			donor.Account.User, donor.Host, donor.Port, donor.Account.Password)
		if hasNumber(err, errRestartFailed) {
			return nil
		}
		return err
	}
	err := replace()
	if hasNumber(err, errOptionPrevents) {
		err = s.withoutReadOnly(ctx, replace)
	}
	if err != nil {
		return fmt.Errorf("clone %s: %w", donor.Host, err)
	}
	return nil
}

// withoutReadOnly runs act with super_read_only off. CLONE needs that if users have tables, because it drops them first (seen on 9.7.4).
// read_only stays on, so that only accounts with CONNECTION_ADMIN could write meanwhile, to data that is about to be replaced. If act
// succeeds, mysqld ends and starts again read-only.
func (s *Server) withoutReadOnly(ctx context.Context, act func() error) error {
	if err := s.exec(ctx, "clear super_read_only", "SET GLOBAL super_read_only = OFF"); err != nil {
		return err
	}
	err := act()
	if err == nil {
		return nil
	}
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginTimeout)
	defer cancel()
	return errors.Join(err, s.SetReadOnly(again, ReadOnlyWait))
}

// ReloadTLS makes mysqld load the current certificate files for new connections.
func (s *Server) ReloadTLS(ctx context.Context) error {
	return s.exec(ctx, "reload TLS", "ALTER INSTANCE RELOAD TLS")
}

// SetPassword gives an account a new password. The binary log and the general log have only its hash (manual, "Passwords and Logging").
//
// Call it, and SetOwnPassword, only while enough replicas acknowledge. mysqld holds the lock of its privilege tables until the statement is
// acknowledged. Meanwhile no client can log in, and no replica that would acknowledge the statement.
func (s *Server) SetPassword(ctx context.Context, user, host, password string) error {
	err := s.execApart(ctx, "ALTER USER ?@? IDENTIFIED BY ?", user, host, password)
	if hasNumber(err, errCannotUser) {
		return fmt.Errorf("the account %s@%s does not exist: create it, or set spec.root: Absent: %w", user, host, err)
	}
	if err != nil {
		return fmt.Errorf("set the password of %s@%s: %w", user, host, err)
	}
	return nil
}

// SetOwnPassword gives the operator's own accounts that share the password of this name a new one. It sends the hash, to which the user's
// password policy does not apply.
func (s *Server) SetOwnPassword(ctx context.Context, user, password string) error {
	statement, err := alterOwn(user, password)
	if err != nil {
		return err
	}
	if err := s.execApart(ctx, statement); err != nil {
		return fmt.Errorf("set the password of %s: %w", user, err)
	}
	return nil
}

// SetOwnPasswordHere does so on this server alone, without the binary log, so that it waits for no replica. Replicas get the password from
// a later SetOwnPassword.
func (s *Server) SetOwnPasswordHere(ctx context.Context, user, password string) error {
	statement, err := alterOwn(user, password)
	if err != nil {
		return err
	}
	if err := s.execWith(ctx, "sql_log_bin", "0", statement); err != nil {
		return fmt.Errorf("set the password of %s on this member: %w", user, err)
	}
	return nil
}

func alterOwn(user, password string) (string, error) {
	hash, err := hashed(password)
	if err != nil {
		return "", fmt.Errorf("set the password of %s: %w", user, err)
	}
	var changes []string
	for _, account := range ownAccounts() {
		if account.password == user {
			changes = append(changes, account.name()+" "+identifiedAs+hash)
		}
	}
	if len(changes) == 0 {
		return "", fmt.Errorf("%s is not one of the operator's accounts", user)
	}
	return alterUsers + strings.Join(changes, ", "), nil
}

// Ping returns an error unless mysqld answers and accepts the account's password.
func (s *Server) Ping(ctx context.Context) error { return s.db.PingContext(ctx) }
